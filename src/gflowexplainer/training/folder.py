"""The folder of a fit: one writer, one training, and what it takes to begin anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.checkpoints import read_checkpoint
from gflowexplainer.storage.lock import folder_lock
from gflowexplainer.training.checkpoint import CHECKPOINT, refuse_another
from gflowexplainer.training.curves import METRICS
from gflowexplainer.training.distributed import Fabric
from gflowexplainer.training.interrupts import endings_interrupt

EXPLAINER = "explainer.safetensors"


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
