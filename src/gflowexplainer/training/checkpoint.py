"""The folder of a fit: one writer, the checkpoint of its training, and its curves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from torch import Tensor, optim

from gflowexplainer.errors import CheckpointError
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.files import make_folder, write_bytes
from gflowexplainer.storage.identity import differences, identity_of
from gflowexplainer.storage.lock import folder_lock
from gflowexplainer.training.distributed import Fabric
from gflowexplainer.training.interrupts import endings_interrupt

EXPLAINER, CHECKPOINT, METRICS = "explainer.safetensors", "checkpoint.safetensors", "metrics.jsonl"
UpdateRecord = dict[str, float | int]


@contextmanager
def writing(
    folder: str | Path | None, identity: Mapping[str, str] | None, *, overwrite: bool, fabric: Fabric | None = None
) -> Iterator[None]:
    """Keeps other writers out of the folder of a fit, and refuses it where it holds another training.

    Args:
        folder: The folder; ``None`` for none.
        identity: What the training is of.
        overwrite: Whether to delete what an earlier fit has left there.
        fabric: Of the processes that train together; only the first one writes.
    """
    if folder is None or (fabric is not None and fabric.global_rank != 0):
        yield
        return
    path = Path(folder)
    with endings_interrupt(), folder_lock(path):
        if overwrite:
            for name in (EXPLAINER, CHECKPOINT, METRICS):
                (path / name).unlink(missing_ok=True)
        elif identity is not None and (path / EXPLAINER).is_file():
            # The checkpoint beside it is compared where the training takes it up.
            stored: object = identity
            with suppress(CheckpointError):  # a damaged one is written again
                stored = read_checkpoint(path / EXPLAINER)[1].get("identity")
            refuse_another(path / EXPLAINER, stored, identity)
        yield


def save_training(
    path: Path,
    sampler: FlowSampler,
    optimizer: optim.Optimizer,
    iteration: int,
    identity: Mapping[str, str],
) -> None:
    """Writes weights, optimizer, known rewards, the number of updates that were made, and what the training is of."""
    moments = {
        f"{number}/{name}": value
        for number, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    sections = {
        "network": sampler.network.state_dict(),
        "optimizer": moments,
        "reward": sampler.reward.tensors(),
    }
    write_checkpoint(path, sections, {"identity": dict(identity), "iteration": iteration})


def load_training(path: Path, sampler: FlowSampler, optimizer: optim.Optimizer, identity: Mapping[str, str]) -> int:
    """Puts a training into the state that :func:`save_training` stored; another model, data or settings are refused.

    Returns:
        The number of updates that it had come to.
    """
    sections, meta = read_checkpoint(path, sampler.instances.device)
    refuse_another(path, meta.get("identity"), identity)
    try:
        sampler.network.load_state_dict(sections["network"])
        _load_optimizer(optimizer, sections.get("optimizer", {}))
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


def append_lines(path: Path, records: list[UpdateRecord]) -> None:
    """Adds the records of further updates."""
    make_folder(path.parent)
    try:
        with path.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
    except OSError as error:
        raise CheckpointError(
            f"'{path}' could not be written: {error.strerror or error}. Free some space; the same call goes on."
        ) from error


def cut_lines(path: Path, iteration: int) -> None:
    """Drops the lines of updates from ``iteration`` on, which the checkpoint does not know of, and broken lines."""
    if not path.exists():
        return
    lines = path.read_text().splitlines()
    known = [line for line in lines if _iteration_of(line) < iteration]
    if len(known) < len(lines):
        write_bytes(path, "".join(line + "\n" for line in known).encode())


def _iteration_of(line: str) -> float:
    try:
        return json.loads(line)["iteration"]
    except (ValueError, KeyError, TypeError):
        return math.inf
