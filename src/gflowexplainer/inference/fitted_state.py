"""The fitted state: what was learned, which model and task it belongs to, and its file of safetensors and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from torch_geometric.explain import ModelConfig

from gflowexplainer.errors import CheckpointError, ConfigError, ModelError
from gflowexplainer.flow.network import FlowNetwork
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.model.witness import Witness
from gflowexplainer.sampler import FlowSampler, SamplerState
from gflowexplainer.settings import Settings
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.files import is_file
from gflowexplainer.training.checkpoint import CHECKPOINT
from gflowexplainer.training.checkpoint import EXPLAINER as FILE

KIND = "explainer"
Made = TypeVar("Made")


@dataclass(frozen=True)
class FittedState:
    """What a sampler has learned, and what it belongs to.

    Attributes:
        sampler: All that was learned.
        model: Fingerprint of the model.
        config: Mode, level and return type of the model.
        identity: Names everything that it was learned from, where it was stored while it learned.
        witness: One call of the model and what it returned, where that can be repeated.
    """

    sampler: SamplerState
    model: str
    config: dict[str, str]
    identity: dict[str, str] | None = None
    witness: Witness | None = None
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

    def refuse_others(self, predictor: Predictor, config: ModelConfig) -> None:
        """Refuses to explain another model, by its fingerprint and by what it returns, or another task."""
        known = predictor.known.fingerprint == self.model
        if not known or (self.witness is not None and not self.witness.agrees(predictor.model)):
            raise ModelError(
                "This explainer was fitted to another model, or to other weights of this one. "
                "Fit it again, or use a new GFlowExplainer."
            )
        here = config_to_dict(config)
        if here != self.config:
            raise ConfigError(f"This explainer was fitted for {self.config}, but is used for {here}. Fit it again.")

    def write(self, folder: str | Path, arguments: Mapping[str, Any]) -> None:
        """Stores it in a folder, with the ``arguments`` that the explainer was made with."""
        meta = {"kind": KIND, "arguments": dict(arguments), "model": self.model, "config": self.config}
        sections = self.sampler.sections() | ({} if self.witness is None else {"witness": self.witness.tensors()})
        write_checkpoint(Path(folder) / FILE, sections, meta | {"identity": self.identity})


def read_explainer(folder: str | Path, make: Callable[..., Made]) -> tuple[Made, FittedState]:
    """Reads an explainer that was stored in a folder.

    Args:
        folder: The folder.
        make: Makes an explainer of its arguments.

    Returns:
        The explainer, and what was learned.
    """
    path = Path(folder) / FILE
    if not is_file(path) and is_file(Path(folder) / CHECKPOINT):
        raise CheckpointError(
            f"'{folder}' holds a training that was not finished. Call fit with this folder to go on with it."
        )
    sections, meta = read_checkpoint(path)
    if meta.get("kind") != KIND:
        raise CheckpointError(f"'{path}' holds no explainer (but {meta.get('kind') or 'a training'}).")
    try:
        explainer = make(**meta["arguments"])
        config = config_to_dict(ModelConfig(**meta["config"]))
        state, witness = SamplerState.from_sections(sections), Witness.from_tensors(sections.get("witness", {}))
        fitted = FittedState(state, meta["model"], config, meta["identity"], witness)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"'{path}' holds an explainer of another version ({error}).") from error
    return explainer, fitted
