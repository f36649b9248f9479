r"""GStarX: nodes by the value of Hamiache and Navarro, which shares the gains of coalitions along the graph.

Zhang et al., *GStarX: Explaining Graph Neural Networks with Structure-Aware Cooperative Games*, NeurIPS 2022. A game
:math:`v` gives rise to the associated game

.. math:: v^*(S) = v(S) + \tau \sum_{j \in N(S)} \bigl(v(S \cup j) - v(S) - v(\{j\})\bigr)

over connected coalitions :math:`S` with neighbours :math:`N(S)`; a coalition in several pieces is worth their sum, so
that a node that is no neighbour brings no surplus. Repeated without end, this leads to a game in which nobody gains by
joining, and what a node is worth alone in it is its value. On a complete graph that is its Shapley value. As the number
of coalitions grows without measure, values are averaged over random connected subgraphs of few nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.peer import Peer
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.sampling import grow_at_random
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.hashed_random import combine, uniform
from gflowexplainer.ops.segments import segment_max

Coalition = frozenset[int]
_SQUARINGS = 24
_SETTLED = 1e-12


@dataclass(kw_only=True, eq=False)
class GStarX(Peer):
    """Scores nodes by structure-aware values within random connected subgraphs.

    Args:
        sample_size: Nodes of a subgraph. The authors take 10, which is 1,023 coalitions if all are connected.
        num_starts: Subgraphs of an instance; one begun at every node if not given, as the authors do.
        tau: Weight of the surplus; it must lie below 2 / ``sample_size`` for the limit to exist.
    """

    name = "gstarx"
    positive = ("sample_size", "num_starts", "tau")

    sample_size: int = 7
    num_starts: int | None = None
    tau: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tau >= 2 / self.sample_size:
            raise ConfigError(f"'tau' must be less than 2 / sample_size = {2 / self.sample_size:.3g} (got {self.tau}).")

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores nodes by their mean value; those in no subgraph get 0, the explained node the largest."""
        instances, predictor = subject.instances, subject.predictor
        total = torch.zeros(instances.num_nodes, dtype=torch.double)
        count = torch.zeros_like(total)
        with predictor.evaluating():
            for number in range(len(subject)):
                neighbors = _neighbors(instances, number)
                games = [_connected(neighbors, nodes) for nodes in self._subgraphs(instances, number, seed)]
                worth = self._worth(subject, number, sorted({s for game in games for s in game}, key=sorted))
                for game in games:
                    for node, value in structure_aware_values(neighbors, {s: worth[s] for s in game}, self.tau).items():
                        total[node] += value
                        count[node] += 1
        mean = (total / count.clamp(min=1)).to(instances.device)
        mean = mean.abs() if subject.target.label is None else mean
        if instances.level == "node":
            mean[instances.center] = segment_max(mean, instances.owner, len(instances))
        return Scores.of_nodes(instances, mean)

    def _subgraphs(self, instances: Instances, number: int, seed: int) -> list[Coalition]:
        """Draws connected subgraphs of one instance, as flat node positions."""
        start = torch.arange(int(instances.ptr[number]), int(instances.ptr[number + 1]), device=instances.device)
        key = combine(seed, instances.own_key[number], instances.key[start])
        if self.num_starts is not None and self.num_starts < start.numel():
            chosen = uniform(seed, instances.own_key[number], instances.key[start], 1).argsort()[: self.num_starts]
            start, key = start[chosen], key[chosen]
        grown = grow_at_random(instances, torch.full_like(start, number), start, self.sample_size, key)
        return [frozenset(node for node in row if node >= 0) for row in grown.members.tolist()]

    def _worth(self, subject: Subject, number: int, sets: list[Coalition]) -> dict[Coalition, float]:
        """Predicts on each coalition: the probability of the class, less the mean over all instances."""
        instances, predictor, target = subject.instances, subject.predictor, subject.target
        first, size = int(instances.ptr[number]), int(instances.node_counts[number])
        kept = torch.zeros(len(sets), size, dtype=torch.bool, device=instances.device)
        for row, nodes in enumerate(sets):
            kept[row, [node - first for node in nodes]] = True
        if instances.level == "node":
            kept[:, int(instances.center[number]) - first] = True
        values = []
        for part in kept.split(max(1, predictor.memory_budget // max(int(predictor.cost(instances)[number]), 1))):
            instance = torch.full((len(part),), number, device=instances.device)
            prediction = predictor.predict(instances, instance, part.flatten()).double()
            if target.label is None:
                values += (prediction - target.prediction.mean(dim=0)).sum(dim=1).tolist()
            else:
                label = int(target.label[number])
                values += (prediction[:, label] - target.prediction[:, label].mean()).tolist()
        return dict(zip(sets, values, strict=True))


def structure_aware_values(
    neighbors: dict[int, set[int]], worth: dict[Coalition, float], tau: float
) -> dict[int, float]:
    """Computes the value of Hamiache and Navarro of every node of a connected subgraph.

    Args:
        neighbors: Neighbours of each node.
        worth: What each connected coalition of the subgraph is worth.
        tau: Weight of the surplus.
    """
    place = {coalition: number for number, coalition in enumerate(worth)}
    nodes = frozenset(node for coalition in worth for node in coalition)
    step = torch.eye(len(place), dtype=torch.double)
    for coalition, row in place.items():
        around = {other for node in coalition for other in neighbors[node]} & (nodes - coalition)
        step[row, row] -= tau * len(around)
        for other in around:
            step[row, place[coalition | {other}]] += tau
            step[row, place[frozenset({other})]] -= tau
    limit = step
    for _ in range(_SQUARINGS):
        further = limit @ limit
        if float((further - limit).abs().max()) < _SETTLED:
            break
        limit = further
    value = limit @ torch.tensor(list(worth.values()), dtype=torch.double)
    return {node: float(value[place[frozenset({node})]]) for node in nodes}


def _neighbors(instances: Instances, number: int) -> dict[int, set[int]]:
    nodes = torch.arange(int(instances.ptr[number]), int(instances.ptr[number + 1]), device=instances.device)
    row, neighbor = instances.neighbors_of(nodes)
    found: dict[int, set[int]] = {node: set() for node in nodes.tolist()}
    for node, other in zip(nodes[row].tolist(), neighbor.tolist(), strict=True):
        found[node].add(other)
    return found


def _connected(neighbors: dict[int, set[int]], nodes: Coalition) -> list[Coalition]:
    """Lists the connected coalitions among ``nodes``, each once."""
    found = {frozenset({node}) for node in nodes}
    new = set(found)
    while new:
        new = {s | {j} for s in new for i in s for j in neighbors[i] if j in nodes and j not in s} - found
        found |= new
    return list(found)
