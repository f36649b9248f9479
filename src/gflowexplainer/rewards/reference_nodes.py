"""Reference nodes: others of the graph that a consensus is learned from where a node is explained without a fit.

What preserves predictions in general cannot be told from one instance. The graph that it lies in has more nodes: some
of these, of the same predicted class as far as there are any, serve as reference. Which ones depends on the explained
class, the graph and the seed alone, never on what else is explained. A graph that is explained as a whole has no such
nodes around it.
"""

from __future__ import annotations

import torch

from gflowexplainer.choices import RewardType
from gflowexplainer.errors import InstanceError
from gflowexplainer.model.requests import AnyTask
from gflowexplainer.model.task import NodeTask
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.belief import SILENT
from gflowexplainer.rewards.calibration import find_consensus
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.settings import Settings

_CALLED, _AT_ONCE = 8, 16
"""At most so many times as many nodes as are needed are asked for their class, so many at once."""
_CONTEXTS = 8
"""Contexts of each reference node, at most: somebody is waiting for the first answer."""
_LEAST, _EACH, _MOST, _WORK = 12, 4, 256, 32 << 20
"""Reference nodes at least, rollouts of each at least, and rollouts of all at most; in between, as many as so many
bytes hold of such instances: where they are large, the smallest must do."""


class ReferenceNodes:
    """Learns a consensus for each explained class, once for a model and a graph; later calls find it there.

    Args:
        task: What is explained; the graph behind it is where reference nodes come from.
        settings: All settings; ``settings.reference_nodes`` is how many are needed.
    """

    def __init__(self, task: AnyTask, settings: Settings) -> None:
        self.task, self.settings = task, settings

    def consensus(self, inputs: TaskInputs) -> Consensus | None:
        """Returns what preserves the class of the one instance of ``inputs`` in general.

        It is ``None`` where there are no reference nodes: where whole graphs are explained, where the graph has no
        other node, and where no consensus is used. And where what they teach does not predict the model.
        """
        if self.settings.reward != RewardType.consensus or self.settings.reference_nodes == 0:
            return None
        if not isinstance(self.task, NodeTask):
            return None
        label = None if inputs.target.label is None else int(inputs.target.label)
        known, name = self.task.found(), ("consensus", label)
        if name not in known:
            try:
                known[name] = self._learn(self.task, label)
            except InstanceError:
                # Something is wrong with nodes that nobody wants explained.
                known[name] = None
        return known[name]

    def _learn(self, task: NodeTask, label: int | None) -> Consensus | None:
        settings = self.settings
        draws = torch.arange(_CALLED * settings.reference_nodes, device=task.index.device)
        count = task.span.stop - task.span.start
        number = (uniform(settings.seed, Stream.reference_nodes, draws) * count).long()
        drawn, first, _ = first_of_each(number + task.span.start)
        called = drawn[torch.argsort(first)]
        if called.numel() == 1:
            return None
        same = torch.zeros(0, dtype=torch.bool, device=called.device)
        for some in called.split(_AT_ONCE):
            labels = task.labels_at(some)
            same = torch.cat([same, some >= 0 if labels is None or label is None else labels.eq(label)])
            if same.sum() >= settings.reference_nodes:
                break
        by_class = torch.argsort(same.long(), descending=True, stable=True)
        inputs = task.inputs_at(called[by_class][: settings.reference_nodes])
        inputs, rollouts = _cheapest(inputs)
        few = settings.change(num_contexts=min(settings.num_contexts, _CONTEXTS))
        found = find_consensus(few, inputs, most=rollouts)
        # What a few others do not tell, the instance has to tell by itself.
        return found if found.chosen.explained >= SILENT else None


def _cheapest(inputs: TaskInputs) -> tuple[TaskInputs, int]:
    """Picks the instances that are cheapest to evaluate, and returns how many rollouts they may have in all."""
    cost = inputs.predictor.cost(inputs.instances).double()
    by_cost = torch.argsort(cost, stable=True)
    fitting = int((_EACH * cost[by_cost].cumsum(0) <= _WORK).sum())
    some = by_cost[: max(fitting, _LEAST)].sort().values
    rollouts = int(some.numel() * _WORK / float(cost[some].sum()))
    return inputs.select(some), min(max(rollouts, _EACH * some.numel()), _MOST)
