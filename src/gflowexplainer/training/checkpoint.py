"""The checkpoint of a training: everything that is needed to go on, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, optim

from gflowexplainer.errors import CheckpointError
from gflowexplainer.flow.replay import Replay
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.identity import model_fingerprint


def save_training(path: Path, sampler: FlowSampler, optimizer: optim.Optimizer, replay: Replay, iteration: int) -> None:
    """Writes weights, optimizer, memories and the number of updates that a training has come to."""
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
    write_checkpoint(path, sections, _identity(sampler) | {"iteration": iteration})


def load_training(path: Path, sampler: FlowSampler, optimizer: optim.Optimizer, replay: Replay) -> int:
    """Puts a training into the state that :func:`save_training` stored; another model, data or settings are refused.

    Returns:
        The number of updates that it had come to.
    """
    sections, meta = read_checkpoint(path, sampler.instances.device)
    for name, mine in _identity(sampler).items():
        if meta.get(name) != mine:
            raise CheckpointError(_mismatch(path, name, meta.get(name), mine))
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


def _identity(sampler: FlowSampler) -> dict[str, Any]:
    """Names what a checkpoint must agree on."""
    return {
        "model": model_fingerprint(sampler.predictor.model),
        "instances": int(sampler.instances.key.sum() + sampler.instances.edge_id.sum()),
        "settings": sampler.settings.to_dict(),
    }


def _mismatch(path: Path, name: str, theirs: Any, mine: Any) -> str:
    if name == "model":
        return f"The checkpoint '{path}' belongs to another model, or to other weights of it. Use another folder."
    if name == "instances":
        return f"The checkpoint '{path}' was trained on other instances. Use another folder."
    theirs = theirs if isinstance(theirs, dict) else {}
    different = sorted(key for key in {*theirs, *mine} if theirs.get(key) != mine.get(key))
    shown = ", ".join(f"{key}: {theirs.get(key)!r} there, {mine.get(key)!r} here" for key in different)
    return f"The checkpoint '{path}' was made with other settings ({shown}). Use the same ones or another folder."
