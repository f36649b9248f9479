"""Trivial explainers: what is reached without a reward, without learning, mostly without evaluating the model.

A table that does not show them cannot say what an explainer has learned.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.peer import Peer
from gflowbench.explainers.random_growth import breadth_first, grow
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.segments import pointers, ranges

MAX_STARTS = 64
"""At graph level, distances are averaged over at most this many start nodes."""


@dataclass(kw_only=True, eq=False)
class RandomGrowth(Peer):
    """Grows connected subgraphs by random neighbours; a node or edge scores the share of them that hold it.

    Args:
        num_samples: Subgraphs grown for each instance.
        memory_budget: Bytes that one batch may take, roughly.
    """

    name = "random"
    positive = ("num_samples",)

    num_samples: int = 500
    memory_budget: int = 256 << 20

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores by marginals of ``num_samples`` subgraphs an instance."""
        instances, bound = subject.instances, self.bound(subject)
        parts = [grow(instances, instance, draw, bound, seed) for instance, draw in self._batches(instances, bound)]
        subgraphs = Subgraphs.cat(parts)
        weight = torch.full((len(subgraphs),), 1.0, dtype=torch.double, device=instances.device)
        scores = Scores.of_subgraphs(instances, subgraphs, weight)
        return Scores(scores.node / self.num_samples, scores.edge / self.num_samples)

    def _batches(self, instances: Instances, bound: int) -> list[tuple[Tensor, Tensor]]:
        """Splits instances and draws so that the frontiers of a batch fit the memory budget."""
        everything = torch.arange(len(instances), device=instances.device)
        instance = everything.repeat(self.num_samples)
        draw = torch.arange(self.num_samples, device=instances.device).repeat_interleave(len(instances))
        edges = instances.neighbor.numel() / max(instances.num_nodes, 1)
        row_cost = 64 * bound * max(1.0, bound * edges)
        rows = max(1, int(self.memory_budget / row_cost))
        return list(zip(instance.split(rows), draw.split(rows), strict=True))


class MinusDistance(Peer):
    """Scores a node by minus its distance to the explained node, an edge by that of its farther end.

    At graph level there is no explained node: the distance is the mean over start nodes, spread evenly over
    the graph (all of them up to :data:`MAX_STARTS`), so that central nodes come first.
    """

    name = "distance"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores by minus the distance."""
        instances = subject.instances
        if instances.level == "node":
            return Scores.of_nodes(instances, -_finite_hops(instances, instances.center))
        total = torch.zeros(instances.num_nodes, dtype=torch.double, device=instances.device)
        seen = torch.zeros_like(total)
        most = int(instances.node_counts.max())
        for number in range(min(most, MAX_STARTS)):
            place = torch.where(
                instances.node_counts <= MAX_STARTS,
                number,
                number * instances.node_counts // MAX_STARTS,
            )
            start = torch.where(place < instances.node_counts, instances.ptr[:-1] + place, -1)
            counts = (start >= 0)[instances.owner]
            total += torch.where(counts, _finite_hops(instances, start), 0.0)
            seen += counts
        return Scores.of_nodes(instances, -total / seen)


class ClassProbability(Peer):
    """Scores a node by the probability of the explained class there, an edge by the smaller one of its ends.

    No explainer at all: the model's own predictions at the nodes are read off. At graph level nodes have no
    prediction of their own; a node stands for the graph induced on it and its neighbours.
    """

    name = "probability"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores by the class probability of nodes."""
        label = subject.target.label
        if label is None:
            raise ConfigError("'probability' explains classes, but the model is a regression. Leave it out.")
        instances = subject.instances
        if subject.node_prediction is not None:
            node = subject.node_prediction.gather(1, label[instances.owner, None])[:, 0]
        else:
            node = _neighborhood_probability(subject, label)
        return Scores.of_nodes(instances, node.double())


class BreadthFirst(Peer):
    """Takes the nodes nearest to the explained node, or at graph level to a random one, scored by order."""

    name = "breadth-first"

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores one subgraph an instance by the order of its nodes."""
        bound = self.bound(subject)
        return Scores.of_order(subject.instances, breadth_first(subject.instances, bound, seed), bound)


class Degree(Peer):
    """Scores a node by its number of neighbours, an edge by the smaller number of its two ends."""

    name = "degree"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores by degree."""
        return Scores.of_nodes(subject.instances, subject.instances.degree.double())


class Rarity(Peer):
    """Scores a node by how rare its features are among the nodes of all instances: minus the log of their share."""

    name = "rarity"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores by rarity."""
        _, kind, counts = subject.instances.rows().unique(dim=0, return_inverse=True, return_counts=True)
        return Scores.of_nodes(subject.instances, -(counts[kind].double() / kind.numel()).log())


class Everything(Peer):
    """Takes the whole instance as its own explanation."""

    name = "everything"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores all the same, and selects all."""
        node = torch.ones(subject.instances.num_nodes, dtype=torch.double, device=subject.instances.device)
        scores = Scores.of_nodes(subject.instances, node)
        return Scores(scores.node, scores.edge, selected=torch.ones_like(node, dtype=torch.bool))


class Nothing(Peer):
    """Takes nothing as the explanation."""

    name = "nothing"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores all zero, and selects nothing."""
        node = torch.zeros(subject.instances.num_nodes, dtype=torch.double, device=subject.instances.device)
        scores = Scores.of_nodes(subject.instances, node)
        return Scores(scores.node, scores.edge, selected=torch.zeros_like(node, dtype=torch.bool))


def _finite_hops(instances: Instances, start: Tensor) -> Tensor:
    """Counts steps from ``start`` ``[I]``; a node without a path counts as far as the instance has nodes."""
    hops = instances.hops_from(start)
    return torch.where(hops < 0, instances.node_counts[instances.owner], hops).double()


def _neighborhood_probability(subject: Subject, label: Tensor) -> Tensor:
    """Evaluates the class probability on each node's closed neighbourhood, shape ``[n]``."""
    instances, predictor = subject.instances, subject.predictor
    owner = instances.owner
    parts = []
    with predictor.evaluating():
        for chunk in predictor.chunks(predictor.cost(instances)[owner]):
            nodes = torch.arange(chunk.start, chunk.stop, device=instances.device)
            instance = owner[nodes]
            counts = instances.node_counts[instance]
            shift = pointers(counts)[:-1] - instances.ptr[instance]
            query, node = ranges(instances.ptr[instance], counts)
            kept = node == nodes[query]
            row, neighbor = instances.neighbors_of(nodes)
            kept[neighbor + shift[row]] = True
            prediction = predictor.predict(instances, instance, kept)
            parts.append(prediction.gather(1, label[instance, None])[:, 0])
    return torch.cat(parts)
