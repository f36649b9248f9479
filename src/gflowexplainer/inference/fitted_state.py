"""What a fit leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch_geometric.explain import ModelConfig

from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.model.config import config_to_dict


@dataclass(frozen=True)
class Fitted:
    """The weights of a flow network, and which model and task they belong to.

    Attributes:
        weights: All that was learned (:meth:`~gflowexplainer.training.trainer.Trainer.weights`).
        model: Fingerprint of the model.
        config: Mode, level and return type of the model.
    """

    weights: dict[str, Tensor]
    model: str
    config: dict[str, str]

    def refuse_others(self, model: str, config: ModelConfig) -> None:
        """Refuses to explain another model, by its fingerprint, or another task."""
        if model != self.model:
            raise ModelError(
                "This explainer was fitted to another model, or to other weights of this one. "
                "Fit it again, or use a new GFlowExplainer."
            )
        here = config_to_dict(config)
        if here != self.config:
            raise ConfigError(f"This explainer was fitted for {self.config}, but is asked for {here}. Fit it again.")
