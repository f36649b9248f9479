"""The fitted state: what was learned, and which model and task it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch_geometric.explain import ModelConfig

from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.flow.network import FlowNetwork
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.sampler import FlowSampler, SamplerState
from gflowexplainer.settings import Settings


@dataclass(frozen=True)
class FittedState:
    """A trained sampler without its instances, and what it belongs to.

    Attributes:
        sampler: All that was learned.
        model: Fingerprint of the model.
        config: Mode, level and return type of the model.
        identity: Names everything that it was learned from, where it was stored while it learned.
    """

    sampler: SamplerState
    model: str
    config: dict[str, str]
    identity: dict[str, str] | None = None
    _networks: dict[str, FlowNetwork] = field(default_factory=dict, init=False, repr=False, compare=False)

    def sampler_of(self, settings: Settings, inputs: TaskInputs) -> FlowSampler:
        """Returns a sampler of instances that begins with what was learned; the network is built once a device."""
        place = f"{inputs.instances.level} on {inputs.instances.device}"
        known = self._networks.get(place)
        sampler = FlowSampler(settings, inputs, self.sampler, network=known)
        if settings.is_sampled_directly:
            return sampler
        if known is None or sampler.network.policy is not known.policy:
            # It is trained no further, so that what rollouts need of its weights is prepared once.
            self._networks[place] = sampler.network.requires_grad_(False)
        return sampler

    def refuse_others(self, model: str, config: ModelConfig) -> None:
        """Refuses to explain another model, by its fingerprint, or another task."""
        if model != self.model:
            raise ModelError(
                "This explainer was fitted to another model, or to other weights of this one. "
                "Fit it again, or use a new GFlowExplainer."
            )
        here = config_to_dict(config)
        if here != self.config:
            raise ConfigError(f"This explainer was fitted for {self.config}, but is used for {here}. Fit it again.")
