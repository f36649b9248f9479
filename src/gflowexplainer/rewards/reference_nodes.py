"""Other nodes of a graph that a consensus is learned from where one is explained without a fit.

What holds predictions in general cannot be told from one instance. The graph that it lies in has more nodes: some of
these, of the same predicted class as far as there are any, bear witness. Which ones depends on the asked class, the
graph and the seed alone, never on what else is asked. A graph that is explained as a whole has no such company, and a
large instance needs none: it tells much by itself, and each witness would cost as much as it does.
"""

from __future__ import annotations

import torch

from gflowexplainer.errors import InstanceError
from gflowexplainer.model.task import GraphQuestions, NodeQuestions, Question
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.rewards.calibration import find_consensus
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.factory import raw_evidence
from gflowexplainer.settings import Settings

_STREAM = 101
"""Names the random order in which instances are called, apart from all other noise."""
_CALLED, _AT_ONCE = 8, 16
"""At most so many times as many nodes as are needed are asked for their class, so many at once."""
_LARGE = 300
"""Nodes of a large instance."""


class Witnesses:
    """Learns a consensus for each asked class, once.

    Args:
        questions: What the user asks; the graph behind it is where witnesses come from.
        settings: All settings; ``settings.witnesses`` is how many are needed.
    """

    def __init__(self, questions: NodeQuestions | GraphQuestions, settings: Settings) -> None:
        self.questions, self.settings = questions, settings
        self._known: dict[int | None, Consensus | None] = {}

    def consensus(self, question: Question) -> Consensus | None:
        """Gives what holds the class of the one instance of ``question`` in general.

        It is ``None`` where nobody else is asked: where whole graphs are explained, where the instance is large, where
        the graph has no other node, and where no consensus is used.
        """
        if self.settings.reward != "consensus" or self.settings.witnesses == 0:
            return None
        if isinstance(self.questions, GraphQuestions) or question.instances.num_nodes >= _LARGE:
            return None
        label = None if question.target.label is None else int(question.target.label)
        if label not in self._known:
            try:
                self._known[label] = self._learn(self.questions, label)
            except InstanceError:
                # Something is wrong with data that nobody asked about.
                self._known[label] = None
        return self._known[label]

    def _learn(self, questions: NodeQuestions, label: int | None) -> Consensus | None:
        settings = self.settings
        draws = torch.arange(_CALLED * settings.witnesses, device=questions.nodes.device)
        drawn, first, _ = first_of_each((uniform(settings.seed, _STREAM, draws) * questions.total).long())
        called = drawn[torch.argsort(first)]
        if called.numel() == 1:
            return None
        same = torch.zeros(0, dtype=torch.bool, device=called.device)
        for some in called.split(_AT_ONCE):
            labels, most = questions.labels_at(some)
            same = torch.cat([same, some >= 0 if labels is None or label is None else labels.eq(label)])
            # Where instances are large, a few must do.
            if most >= _LARGE or same.sum() >= settings.witnesses:
                break
        by_class = torch.argsort(same.long(), descending=True, stable=True)
        question = questions.at(called[by_class][: settings.witnesses].sort().values)
        predictor, instances, target = question.predictor, question.instances, question.target
        raw = raw_evidence(predictor, instances, target, question.evidence)
        return find_consensus(predictor, instances, settings, raw, target)
