"""A worker of bulk explaining: loads explainer, model and graphs once, then explains one part after the other.

A part has a name of its own that follows from the question and its instances. Whoever explains it, however often,
writes the same file, whole or not at all. So a worker that is killed loses its part only until another has done it, and
nothing is there twice.
"""

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
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer.bulk.rows import row_of, write_rows
from gflowexplainer.errors import ClusterError, GFlowExplainerError, InstanceError
from gflowexplainer.explainer import GFlowExplainer
from gflowexplainer.graphs.checks import check_index
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import input_graphs
from gflowexplainer.storage.files import write_bytes
from gflowexplainer.storage.identity import identity_of

ATTEMPTS, MOST_ATTEMPTS = "attempts", 5
"""Where workers leave traces of the parts that they are at, and how many may be killed at one."""


@dataclass(frozen=True)
class Source:
    """What is explained.

    Attributes:
        model: The model.
        data: One graph for a model of nodes, many for a model of graphs.
        target: Classes or values to hold instead of the predicted ones, one a node of the graph, or a graph.
        graph_index: The index of the one graph; each worker builds it if it is not given.
    """

    model: nn.Module
    data: Data | Sequence[Data]
    target: Tensor | None = None
    graph_index: GraphIndex | None = None

    def instances(self, level: str, index: Any) -> np.ndarray:
        """Lists the nodes, or the positions of graphs, that ``index`` names, each once; all if it is ``None``."""
        if (level == "node") != isinstance(self.data, Data):
            what = "one graph, as a Data" if level == "node" else "a list of graphs"
            raise InstanceError(f"The explainer was fitted to predictions of {level}s. Pass {what}.")
        count = int(self.data.num_nodes or 0) if isinstance(self.data, Data) else len(self.data)
        if index is None:
            return np.arange(count)
        ids = check_index(index, count, torch.device("cpu")).numpy()
        different, times = np.unique(ids, return_counts=True)
        if different.size < ids.size:
            raise InstanceError(f"'index' names {level} {different[times.argmax()]} more than once. Name each once.")
        return ids

    def identity(self, **more: Any) -> dict[str, str]:
        """Names the model and everything that it is given, to notice when something has changed."""
        graphs = [graph.given() for graph in input_graphs(self.data, self.model, {})]
        return identity_of(self.model, graphs, target=self.target, **more)


@dataclass(frozen=True)
class Job:
    """What every worker must know.

    Attributes:
        explainer: Folder of the fitted explainer.
        load: Gives what is explained.
        ids: Gives all instances, shape ``[N]``.
        folder: Where the files go.
        question: Everything that decides what is in them.
    """

    explainer: str
    load: Callable[[], Source]
    ids: Callable[[], np.ndarray]
    folder: str
    question: Mapping[str, Any]


def part_of(ids: np.ndarray, number: int, question: Mapping[str, Any]) -> tuple[str, np.ndarray]:
    """Returns the file name and the instances of a part."""
    size = question["part_size"]
    mine = ids[number * size : (number + 1) * size]
    digest = hashlib.sha256(repr(sorted(question.items())).encode() + mine.astype("<i8").tobytes()).hexdigest()
    return f"part-{number:06d}-{digest[:12]}.parquet", mine


class Worker:
    """Explains parts. Ray keeps one in each of its processes, and makes another where one was killed.

    Mistakes are told and not raised, as Ray would wrap them beyond recognition.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.failure = job, ("", "")
        try:
            self.source, self.ids = job.load(), job.ids()
            self.algorithm = GFlowExplainer.load(job.explainer)
            for name in ("num_samples", "weighting"):
                setattr(self.algorithm, name, job.question[name])
            self.index = self.source.graph_index
            if self.index is None and isinstance(self.source.data, Data):
                self.index = GraphIndex.build(self.source.data.edge_index, int(self.source.data.num_nodes or 0))
        except GFlowExplainerError as error:
            self.failure = (type(error).__name__, str(error))

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Explains the parts with the numbers ``batch["part"]``, but not those that lie there: Ray may ask twice.

        Returns:
            For each part, its number of instances, when it began and ended, the processor time that it took, the
            process, and the class and the message of a mistake, or nothing.
        """
        rows = []
        for number in batch["part"].tolist():
            began, spent, count = time.time(), time.process_time(), 0
            if not any(self.failure):
                try:
                    count = self._explain(number)
                except GFlowExplainerError as error:
                    self.failure = (type(error).__name__, str(error))
            spent = time.process_time() - spent
            rows.append((count, began, time.time(), spent, os.getpid(), *self.failure))
        names = ("instances", "began", "ended", "spent", "process", "failure", "message")
        return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}

    def _explain(self, number: int) -> int:
        name, ids = part_of(self.ids, number, self.job.question)
        path = Path(self.job.folder) / name
        if path.is_file():
            return len(ids)
        with self._attempt(name):
            source, question, places = self.source, self.job.question, ids.tolist()
            found = self.algorithm.explain(
                source.model, source.data, places, target=source.target, progress=False, graph_index=self.index
            )
            pairs = zip(places, found, strict=True)
            few = {"top": question["top"], "smallest": question["smallest"]}
            write_rows(path, [row_of(place, explanation, **few) for place, explanation in pairs])
        return len(ids)

    @contextmanager
    def _attempt(self, name: str) -> Iterator[None]:
        """Leaves a trace while a part is explained, so that one that ends every worker is not tried for ever."""
        traces = Path(self.job.folder).with_name(ATTEMPTS)
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
