"""Reference nodes: others of the graph that evidence is learned from where a node is explained without a fit.

What nodes of a kind usually bring cannot be told from one instance. The graph that it lies in has more nodes: some of
these, of the same predicted class as far as there are any, serve as reference. Which ones depends on the explained
class, the graph and the seed alone, never on what else is explained.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError
from gflowexplainer.evidence.learned import Learned, learn
from gflowexplainer.model.one_graph import NodeTask
from gflowexplainer.model.task import Task
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import Stream, uniform
from gflowexplainer.ops.sorting import first_of_each

REFERENCES = 32
"""Reference nodes that are learned from, at most."""
_CALLED, _AT_ONCE = 8, 16
"""At most so many times as many nodes are looked at for their class, so many at once."""
_WORK = 1 << 29
"""Bytes of model input that somebody waits for."""


def learn_from_references(task: Task, inputs: TaskInputs, seed: int, removal: str) -> Learned:
    """Learns what preserves the class of the one instance of ``inputs``, once for a model and a graph.

    Where there are no other nodes, as around whole graphs and links, it is learned from the instance itself.
    """
    label = None if inputs.target.label is None else int(inputs.target.label)
    if not isinstance(task, NodeTask):
        return learn(inputs, seed, removal)
    found = task.known.once(("evidence", label, seed, removal), lambda: _learned(task, label, seed, removal))
    return learn(inputs, seed, removal) if found is None else found


def _learned(task: NodeTask, label: int | None, seed: int, removal: str) -> Learned | None:
    """Learns what preserves a class from reference nodes; ``None`` where there are none."""
    nodes = _references(task, label, seed)
    try:
        return None if nodes is None else learn(task.inputs_at(nodes), seed, removal, work=_WORK)
    except InstanceError:
        # Something is wrong with nodes that nobody wants explained.
        return None


def _references(task: NodeTask, label: int | None, seed: int) -> Tensor | None:
    """Draws other nodes, those of the same class first; ``None`` where there are none."""
    draws = torch.arange(_CALLED * REFERENCES, device=task.index.device)
    number = (uniform(seed, Stream.reference_nodes, draws) * (task.span.stop - task.span.start)).long()
    drawn, first, _ = first_of_each(number + task.span.start)
    called = drawn[torch.argsort(first)]
    if called.numel() < 2:
        return None
    same = torch.zeros(0, dtype=torch.bool, device=called.device)
    for some in called.split(_AT_ONCE):
        labels = task.labels_at(some)
        same = torch.cat([same, some >= 0 if labels is None or label is None else labels.eq(label)])
        if same.sum() >= REFERENCES:
            break
    return called[torch.argsort(same.long(), descending=True, stable=True)][:REFERENCES]
