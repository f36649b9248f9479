"""A worker of bulk explaining: loads explainer, model and graphs once, then explains one part after the other."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer import GFlowExplainer
from gflowexplainer.bulk.rows import row_of, write_rows
from gflowexplainer.errors import ClusterError, GFlowExplainerError, InstanceError
from gflowexplainer.storage.files import write_bytes

ATTEMPTS, MOST_ATTEMPTS = "attempts", 5
"""Where workers leave traces of the parts that they are at, and how many may be killed at one."""


@dataclass(frozen=True)
class Source:
    """Model and graphs.

    Attributes:
        model: The model.
        data: One graph for a model of nodes, many for a model of graphs.
        target: Classes or values to explain instead of the predicted ones, one a node of the graph, or a graph.
    """

    model: nn.Module
    data: Data | Sequence[Data]
    target: Tensor | None = None

    def instances(self, index: Any) -> np.ndarray:
        """Returns the nodes, or the positions of graphs, that ``index`` names, each once; all if it is ``None``."""
        level, count = ("node", self.data.num_nodes) if isinstance(self.data, Data) else ("graph", len(self.data))
        if index is None:
            return np.arange(count)
        ids = np.asarray(index)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise InstanceError(f"'index' must be a list of ids (got {str(index)[:80]}).")
        wrong = ids[(ids < 0) | (ids >= int(count or 0))]
        if wrong.size:
            raise InstanceError(f"'index' names {level} {wrong[0]}, but there are {count}. Pass ids in [0, {count}).")
        different, times = np.unique(ids, return_counts=True)
        if different.size < ids.size:
            raise InstanceError(f"'index' names {level} {different[times.argmax()]} more than once. Name each once.")
        return ids


def part_of(ids: np.ndarray, number: int, options: Mapping[str, Any]) -> tuple[str, np.ndarray]:
    """Returns the file name and the instances of a part."""
    size = options["part_size"]
    mine = ids[number * size : (number + 1) * size]
    digest = hashlib.sha256(repr(sorted(options.items())).encode() + mine.astype("<i8").tobytes()).hexdigest()
    return f"part-{number:06d}-{digest[:12]}.parquet", mine


class Worker:
    """Explains parts. Ray keeps one in each of its processes, and makes another where one was killed.

    Mistakes are told and not raised, as Ray would wrap them beyond recognition.

    Args:
        explainer: Folder of the fitted explainer.
        load: Returns model and graphs.
        ids: Returns all instances, shape ``[N]``.
        folder: Where the files go.
        options: Everything that decides what is in them.
    """

    def __init__(
        self,
        explainer: str,
        load: Callable[[], Source],
        ids: Callable[[], np.ndarray],
        folder: str,
        options: Mapping[str, Any],
    ) -> None:
        self.folder, self.options, self.failure = Path(folder), options, ("", "")
        try:
            self.source, self.ids = load(), ids()
            self.algorithm = GFlowExplainer.load(explainer)
            self.algorithm.num_samples = options["num_samples"]
        except GFlowExplainerError as error:
            self.failure = (type(error).__name__, str(error))

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Explains the parts with the numbers ``batch["part"]``, but not those that lie there: Ray may ask twice.

        Returns:
            For each part, its number of instances, when it began and ended, the processor time that it took, the
            process, and the class and the message of a mistake, or nothing.
        """
        rows = []
        for part in batch["part"].tolist():
            began, spent, count = time.time(), time.process_time(), 0
            if not any(self.failure):
                try:
                    count = self._explain(part)
                except GFlowExplainerError as error:
                    self.failure = (type(error).__name__, str(error))
            spent = time.process_time() - spent
            rows.append((part, count, began, time.time(), spent, os.getpid(), *self.failure))
        names = ("part", "instances", "began", "ended", "spent", "process", "failure", "message")
        return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

    def _explain(self, part: int) -> int:
        name, ids = part_of(self.ids, part, self.options)
        if (self.folder / name).is_file():
            return len(ids)
        with self._attempt(name):
            source, places = self.source, ids.tolist()
            found = self.algorithm.explain(source.model, source.data, places, target=source.target, progress=False)
            few = {"top": self.options["top"], "smallest": self.options["smallest"]}
            write_rows(self.folder / name, [row_of(place, e, **few) for place, e in zip(places, found, strict=True)])
        return len(ids)

    @contextmanager
    def _attempt(self, name: str) -> Iterator[None]:
        """Leaves a trace while a part is explained, so that one that ends every worker is not tried for ever."""
        traces = self.folder.with_name(ATTEMPTS)
        before = sorted(traces.glob(f"{name}.*"))
        if len(before) >= MOST_ATTEMPTS:
            raise ClusterError(
                f"{len(before)} workers ended while they explained '{name}', for want of memory perhaps. Use fewer "
                "workers, smaller parts, or an explainer with a lower 'max_graph_nodes'."
            )
        trace = traces / f"{name}.{uuid.uuid4().hex}"
        write_bytes(trace, b"")
        yield
        for path in (trace, *before):
            path.unlink(missing_ok=True)
