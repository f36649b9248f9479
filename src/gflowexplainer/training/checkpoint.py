"""The checkpoint of a training: everything that is needed to go on, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, optim

from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.identity import model_fingerprint

if TYPE_CHECKING:
    from gflowexplainer.training.trainer import Trainer


def save_training(trainer: Trainer, path: Path) -> None:
    """Writes weights, optimizer, memories and the number of updates that a training has come to."""
    tensors = {f"network/{name}": value for name, value in trainer.network.state_dict().items()}
    for number, state in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": value for name, value in state.items()}
    tensors |= {f"replay/{name}": value for name, value in trainer.replay.tensors().items()}
    tensors |= {f"reward/{name}": value for name, value in trainer.reward.tensors().items()}
    write_checkpoint(path, tensors, _identity(trainer) | {"iteration": trainer.iteration})


def load_training(trainer: Trainer, path: Path) -> None:
    """Puts a training into the state that :func:`save_training` stored; another model, data or settings are refused."""
    tensors, meta = read_checkpoint(path, trainer.instances.device)
    for name, mine in _identity(trainer).items():
        if meta.get(name) != mine:
            raise CheckpointError(_mismatch(path, name, meta.get(name), mine))
    groups: dict[str, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        label, _, rest = name.partition("/")
        groups.setdefault(label, {})[rest] = value
    try:
        trainer.network.load_state_dict(groups["network"])
        _load_optimizer(trainer.optimizer, groups.get("optimizer", {}))
        trainer.replay.load_tensors(groups.get("replay", {}))
        trainer.reward.load_tensors(groups["reward"])
        trainer.iteration = int(meta["iteration"])
    except (KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"The checkpoint '{path}' does not fit this training: {error}") from error


def _load_optimizer(optimizer: optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state = optimizer.state_dict()
    state["state"] = {}
    for name, value in tensors.items():
        number, _, field = name.partition("/")
        state["state"].setdefault(int(number), {})[field] = value
    optimizer.load_state_dict(state)


def _identity(trainer: Trainer) -> dict[str, Any]:
    """Names what a checkpoint must agree on."""
    return {
        "model": model_fingerprint(trainer.predictor.model),
        "instances": int(trainer.instances.key.sum() + trainer.instances.edge_id.sum()),
        "settings": trainer.settings.to_dict(),
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
