r"""The evidence reward: how much speaks for a subgraph, per node of it. The model is not evaluated.

.. math:: \log R(s) = \frac{\beta}{\sigma} \cdot \frac{\sum_{v \in s} e_v + \sum_{uv \subseteq s} e_{uv}}{|s| + c}
    - |s| \log 2

with the evidence :math:`e` of nodes and inner edges (:mod:`~gflowexplainer.evidence.learned`) and the spread
:math:`\sigma` of evidence per node over random subgraphs of the instance. The small :math:`c` makes all of several
equal nodes better than some of them; the price makes random growth one that ends after each node with chance one half.
Nothing here knows how large a subgraph may become. What is in every subgraph, the explained node or both ends of a
link, counts neither above nor below the line.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.choices import Direction
from gflowexplainer.errors import ConfigError
from gflowexplainer.evidence.learned import Evidence, Learned, total_evidence
from gflowexplainer.graphs.subgraphs import Subgraphs, size_penalty
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.base import Reward
from gflowexplainer.steering import ENDING, SILENT


class EvidenceReward(Reward):
    """The evidence per node of a subgraph.

    Args:
        inputs: The instances, with what the model predicts for them.
        learned: What kinds of nodes usually bring.
        direction: Of a value, what is explained: ``"any"`` contribution, those that raise it or that lower it.
        **settings: See :class:`Reward`.
    """

    def __init__(
        self, inputs: TaskInputs, learned: Learned, *, direction: Direction = Direction.any, **settings: Any
    ) -> None:
        super().__init__(inputs.predictor, inputs.instances, target=inputs.target, removal=learned.removal, **settings)
        if self.target.label is not None and direction != Direction.any:
            raise ConfigError(
                f"direction='{direction}' tells contributions to a value apart, but the model predicts classes. "
                "Leave it out, or pass the class to explain as 'target'."
            )
        self.learned, self.direction = learned, direction
        self._inputs = inputs

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence of the instances, for which the model is evaluated without each of their nodes."""
        return self.learned.evidence(self._inputs)

    @property
    def node_evidence(self) -> Tensor:
        """Evidence of each node, shape ``[n]``."""
        return self.evidence.node

    @property
    def edge_evidence(self) -> Tensor:
        """Evidence of each neighbour entry, the same from both ends, shape ``[m]``."""
        return self.evidence.edge

    @property
    def counted(self) -> Tensor:
        """Whether each node counts in the size, shape ``[n]``."""
        return self.evidence.counted

    def temper(self, log_score: Tensor, instance: Tensor) -> Tensor:
        """See :class:`Reward`; the spread is that of the evidence."""
        return log_score * (self.beta / self.evidence.spreads[-1]).index_select(0, instance)

    def log_reward_of(self, evidence: Tensor, size: Tensor, instance: Tensor) -> Tensor:
        """Returns the log-reward of subgraphs by evidence, counted nodes and instance, all ``[C]``, shape ``[C]``."""
        return self.temper(self._directed(evidence) / (size + SILENT), instance) + size * math.log(1 - ENDING)

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        evidence, size = self._content(subgraphs)
        return self._directed(evidence) / (size + SILENT)

    def log_reward(self, subgraphs: Subgraphs, can_grow: Tensor | None = None) -> Tensor:
        """See :class:`Reward`."""
        grows = torch.ones_like(subgraphs.instance, dtype=torch.bool) if can_grow is None else can_grow
        value = self.log_reward_of(*self._content(subgraphs), subgraphs.instance)
        return value + size_penalty(subgraphs.size, grows, self.min_nodes)

    def _content(self, subgraphs: Subgraphs) -> tuple[Tensor, Tensor]:
        """Returns the evidence inside and the number of nodes that count of ``B`` subgraphs, both ``[B]``."""
        members = subgraphs.members
        size = torch.where(members >= 0, self.counted[members.clamp(min=0)], 0.0).sum(dim=1)
        return total_evidence(self.instances, self.node_evidence, self.edge_evidence, subgraphs), size

    def log_score(self, subgraphs: Subgraphs) -> Tensor:
        """See :class:`Reward`; nothing is remembered, as looking it up would cost what computing it does."""
        return self._log_score(subgraphs)

    def _directed(self, value: Tensor) -> Tensor:
        """Turns signed contributions to a value into what is looked for; evidence for a class is signed already."""
        if self.target.label is not None or self.direction == Direction.up:
            return value
        return value.abs() if self.direction == Direction.any else -value
