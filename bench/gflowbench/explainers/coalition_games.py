r"""Cooperative games on graphs: the players are the nodes or the undirected edges of an instance.

What a coalition is worth is what the model predicts when all other players are really removed: the probability of the
explained class, or the value of a regression. Several instances are played side by side, one coalition of each in one
call of the model. The explained node is always there and no player; nor are self loops, and what surrounds an instance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from gflowbench.explainers.interface import Subject
from gflowbench.explainers.masked_model import MaskedModel
from gflowbench.metrics.undirected import UndirectedEdges
from gflowexplainer.ops.hashed_random import combine
from gflowexplainer.ops.segments import segment_max


class Game(ABC):
    """The games of ``I`` instances, with ``P`` players in total.

    Attributes:
        owner: Instance of each player, shape ``[P]``, ascending.
        key: A number that names each player, shape ``[P]``.
        own_key: A number that names each instance, shape ``[I]``.
    """

    owner: Tensor
    key: Tensor
    own_key: Tensor

    @property
    def counts(self) -> Tensor:
        """Players of each instance, shape ``[I]``."""
        return torch.bincount(self.owner, minlength=self.own_key.numel())

    @abstractmethod
    def worth(self, present: Tensor) -> Tensor:
        """Returns what coalitions are worth.

        Args:
            present: Which players are there, in ``S`` coalitions of every instance, shape ``[S, P]``.

        Returns:
            Shape ``[S, I]``.
        """

    def losses(self) -> Tensor:
        """Returns what is lost without each player alone, shape ``[P]``."""
        place = rank_in(self.owner, self.own_key.numel())
        rows = torch.arange(int(place.max()) + 1 if place.numel() else 1, device=place.device)
        without = self.worth(place != rows[:, None])
        (whole,) = self.worth(torch.ones_like(place, dtype=torch.bool)[None])
        return whole[self.owner] - without[place, self.owner]


class SubjectGame(Game):
    """Games whose players are parts of the instances of a subject.

    Args:
        subject: Model and instances.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.own_key = subject.instances.own_key

    @abstractmethod
    def spread(self, values: Tensor) -> Tensor:
        """Brings values of players ``[P]`` to the nodes ``[n]`` or directed edges ``[e]`` of the instances."""

    def read(self, prediction: Tensor) -> Tensor:
        """Reads the worth off predictions ``[I, C]``: the probability of the class, or the sum of the values."""
        label = self.subject.target.label
        return (prediction.sum(dim=1) if label is None else prediction.gather(1, label[:, None])[:, 0]).double()


class NodeGame(SubjectGame):
    """Nodes as players; one that is absent is removed with its edges."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        instances = subject.instances
        plays = torch.ones(instances.num_nodes, dtype=torch.bool, device=instances.device)
        plays[instances.center[instances.center >= 0]] = False
        self.players = torch.nonzero(plays).flatten()
        self.owner = instances.owner[self.players]
        self.key = instances.key[self.players]

    def worth(self, present: Tensor) -> Tensor:
        """Predicts on what is left, several coalitions in one call where the memory allows it."""
        subject = self.subject
        instances, predictor = subject.instances, subject.predictor
        every = torch.arange(len(instances), device=instances.device)
        rows = max(1, predictor.memory_budget // max(int(predictor.cost(instances).sum()), 1))
        found = []
        with predictor.evaluating():
            for part in present.split(rows):
                kept = torch.ones(len(part), instances.num_nodes, dtype=torch.bool, device=instances.device)
                kept[:, self.players] = part
                prediction = predictor.predict(instances, every.repeat(len(part)), kept.flatten())
                found += [self.read(rows) for rows in prediction.view(len(part), len(instances), -1)]
        return torch.stack(found)

    def spread(self, values: Tensor) -> Tensor:
        """Returns one value a node; the explained node gets the largest of its instance."""
        instances = self.subject.instances
        best = segment_max(values, self.owner, len(instances), empty=0.0)
        node = best[instances.owner]
        node[self.players] = values
        return node


class EdgeGame(SubjectGame):
    """Undirected edges as players; an edge that is absent is removed in both directions, its ends stay."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        instances = subject.instances
        self.graphs = MaskedModel.of(subject)
        self.edges = UndirectedEdges.of(instances)
        self.owner = self.edges.owner
        self.key = combine(*instances.key[self.edges.ends])

    def worth(self, present: Tensor) -> Tensor:
        """Predicts on the graphs without the absent edges, one coalition of every instance in one call."""
        predictor = self.subject.predictor
        with predictor.evaluating():
            return torch.stack([self.read(predictor.read(self._output(row))) for row in present])

    def _output(self, present: Tensor) -> Tensor:
        graphs = self.graphs.graphs
        kept = torch.ones(graphs.edge_index.size(1), dtype=torch.bool, device=present.device)
        kept[self.graphs.own[self.edges.entry]] = present[self.edges.pair]
        return self.graphs.without_edges(kept)

    def spread(self, values: Tensor) -> Tensor:
        """Returns one value a directed edge; self loops get 0."""
        edge = values.new_zeros(self.subject.instances.edge_index.size(1))
        edge[self.edges.entry] = values[self.edges.pair]
        return edge


def rank_in(owner: Tensor, count: int) -> Tensor:
    """Numbers the entries of each of ``count`` segments from 0, shape ``[P]``; ``owner`` ``[P]`` ascends."""
    first = torch.bincount(owner, minlength=count).cumsum(0).roll(1)
    first[:1] = 0
    return torch.arange(owner.numel(), device=owner.device) - first[owner]
