"""Other nodes of a graph that a consensus is learned from where one is explained without a fit.

What holds predictions in general cannot be told from one instance. The graph that it lies in has more nodes: some of
these, of the same predicted class as far as there are any, bear witness. Which ones depends on the asked class, the
graph and the seed alone, never on what else is asked. A graph that is explained as a whole has no such company.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.errors import InstanceError
from gflowexplainer.noise import uniform
from gflowexplainer.questions import GraphQuestions, NodeQuestions, Question
from gflowexplainer.rewards.building import raw_evidence
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.settings import Settings
from gflowexplainer.sorting import first_of_each
from gflowexplainer.trials import find_consensus

_STREAM = 101
"""Names the random order in which instances are called, apart from all other noise."""
_CALLED, _AT_ONCE = 8, 16
"""At most so many times as many nodes as are needed are asked for their class, so many at once."""


class Witnesses:
    """Learns a consensus for each asked class, once.

    Args:
        questions: What the user asks; the graph behind it is where witnesses come from.
        settings: All settings; ``settings.witnesses`` is how many are needed.
    """

    def __init__(self, questions: NodeQuestions | GraphQuestions, settings: Settings) -> None:
        self.questions, self.settings = questions, settings
        self._known: dict[tuple[int, ...], Consensus | None] = {}

    def consensus(self, question: Question) -> Consensus | None:
        """Gives what holds the classes of ``question`` in general; ``None`` where it may as well tell that itself.

        That is where it has as many instances as are needed, where the graph has no more, where whole graphs are
        explained, and where no consensus is used.
        """
        labels, asked = question.target.label, len(question.instances)
        if self.settings.reward != "consensus" or asked >= self.settings.witnesses:
            return None
        if isinstance(self.questions, GraphQuestions):
            return None
        key = () if labels is None else tuple(torch.unique(labels).tolist())
        if key not in self._known:
            wanted = torch.tensor(key, dtype=torch.long, device=question.instances.device)
            try:
                self._known[key] = self._learn(self.questions, wanted, asked)
            except InstanceError:
                # Something is wrong with data that nobody asked about.
                self._known[key] = None
        return self._known[key]

    def _learn(self, questions: NodeQuestions, labels: Tensor, asked: int) -> Consensus | None:
        settings, draws = self.settings, torch.arange(_CALLED * self.settings.witnesses, device=labels.device)
        drawn, first, _ = first_of_each((uniform(settings.seed, _STREAM, draws) * questions.total).long())
        called = drawn[torch.argsort(first)]
        if called.numel() <= asked:
            return None
        known = labels[:0]
        for some in called.split(_AT_ONCE):
            more, large = questions.labels_at(some)
            known = torch.cat([known, some if more is None else more])
            wanted = known.numel() if more is None else int(torch.isin(known, labels).sum())
            # Where instances are as large as they may be, a few must do.
            if large or wanted >= settings.witnesses:
                break
        chosen = called[torch.argsort(_order(known, labels), stable=True)][: settings.witnesses]
        question = questions.at(chosen.sort().values)
        evidence = raw_evidence(question.instances, question.evidence)
        return find_consensus(question.predictor, question.instances, settings, evidence, question.target)


def _order(known: Tensor, labels: Tensor) -> Tensor:
    """Ranks witnesses of classes ``known`` ``[W]``: as they were called, each wanted class in turn, others last."""
    place = torch.arange(known.numel(), device=known.device)
    if labels.numel():
        place += known.numel()
    for label in labels:
        own = torch.nonzero(known == label).flatten()
        place[own] = torch.arange(own.numel(), device=own.device)
    return place
