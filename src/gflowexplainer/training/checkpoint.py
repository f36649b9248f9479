"""The checkpoint of a training: everything that is needed to go on, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, optim

from gflowexplainer.errors import CheckpointError
from gflowexplainer.flow.replay import Replay
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.identity import differences, identity_of

CHECKPOINT = "checkpoint.safetensors"


def save_training(
    path: Path,
    sampler: FlowSampler,
    optimizer: optim.Optimizer,
    replay: Replay,
    iteration: int,
    identity: Mapping[str, str],
) -> None:
    """Writes weights, optimizer, memories and the number of updates that a training has come to, and what it is of."""
    moments = {
        f"{number}/{name}": value
        for number, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    sections = {
        "network": sampler.network.state_dict(),
        "optimizer": moments,
        "replay": replay.tensors(),
        "reward": sampler.reward.tensors(),
    }
    write_checkpoint(path, sections, {"identity": dict(identity), "iteration": iteration})


def load_training(
    path: Path, sampler: FlowSampler, optimizer: optim.Optimizer, replay: Replay, identity: Mapping[str, str]
) -> int:
    """Puts a training into the state that :func:`save_training` stored; another model, data or settings are refused.

    Returns:
        The number of updates that it had come to.
    """
    sections, meta = read_checkpoint(path, sampler.instances.device)
    refuse_another(path, meta.get("identity"), identity)
    try:
        sampler.network.load_state_dict(sections["network"])
        _load_optimizer(optimizer, sections.get("optimizer", {}))
        replay.load_tensors(sections.get("replay", {}))
        sampler.reward.load_tensors(sections["reward"])
        return int(meta["iteration"])
    except (KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"The checkpoint '{path}' does not fit this training: {error}") from error


def _load_optimizer(optimizer: optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state = optimizer.state_dict()
    state["state"] = {}
    for name, value in tensors.items():
        number, _, field = name.partition("/")
        state["state"].setdefault(int(number), {})[field] = value
    optimizer.load_state_dict(state)


def training_identity(sampler: FlowSampler) -> dict[str, str]:
    """Names what a training of a sampler depends on, by what it was given of its instances."""
    instances = sampler.instances
    outer = instances.surroundings or instances
    given = {"x": outer.rows(), "edge_index": outer.edge_index}
    given |= outer.node_arguments | outer.edge_arguments | outer.shared_arguments
    target = sampler.inputs.target
    return identity_of(
        sampler.predictor.model,
        [given],
        index=[instances.graph, instances.ptr, instances.node_id, instances.center],
        target=None if target.label is None else target.label.cpu(),
        settings=sampler.settings.to_dict(),
    )


def refuse_another(path: Path, there: object, here: Mapping[str, str]) -> None:
    """Refuses what was stored of another model, other data or other settings, and says what differs."""
    different = differences(there, here)
    if different:
        raise CheckpointError(
            f"'{path}' belongs to another training: {'; '.join(different[:5])}. "
            "Use another folder, or begin anew with overwrite=True (--overwrite)."
        )
