"""DEGREE (Feng et al., ICLR 2022): how much of a GCN's score comes from some nodes, and subgraphs grown by it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowbench.explainers.decomposition import Decomposition
from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.peer import Peer
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.sampling import Action, Chooser, roll_out
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, edge_values
from gflowexplainer.ops.segments import segment_argmax, segment_max


@dataclass(kw_only=True, eq=False)
class DegreeDecomposition(Peer):
    r"""Reads contributions of nodes and of pairs off the forward pass, and agglomerates nodes into a subgraph.

    The contribution :math:`\phi(S)` of a node set is the target portion of the score of the explained class, less
    the mean of the other classes' portions: a bias towards all classes at once explains none of them.

    The subgraph begins with the explained node, at graph level with the better end of the best edge, and gains the
    neighbour with the largest relative contribution :math:`\phi(S \cup v) - \phi(S)` up to ``K`` nodes. At node level
    the edges inside come first, in the order of their later end; all other edges follow by the sum of their ends'
    contributions. At graph level an edge scores the joint contribution of its two ends, as in the public code.
    """

    name = "degree-decomposition"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores nodes and edges by contribution, and names the nodes in the order of agglomeration."""
        instances = subject.instances
        contribution = Contribution(subject)
        everything = torch.arange(instances.num_nodes, device=instances.device)
        node = contribution(Subgraphs(instances.owner, everything[:, None]))
        bound = self.bound(subject)
        if instances.level == "node":
            order = agglomerate(contribution, instances.center, bound)
            inside = Scores.of_order(instances, order, bound)
            source, target = instances.edge_index
            outside = _below_zero(instances, node[source] + node[target], instances.owner[source])
            edge = torch.where(inside.edge > 0, inside.edge, outside)
        else:
            pair = contribution.of_neighbors()
            order = agglomerate(contribution, _better_end(instances, node, pair), bound)
            edge = edge_values(instances, pair)
        return Scores(node, edge, order=order)


class Contribution:
    r"""The contribution :math:`\phi(S)` of node sets to the prediction that a subject explains."""

    def __init__(self, subject: Subject) -> None:
        if subject.target.label is None:
            raise ConfigError("DEGREE explains classes, but the model is a regression. Leave it out.")
        self.instances = subject.instances
        self.label = subject.target.label
        self.decomposition = Decomposition(subject.predictor, subject.instances)

    def __call__(self, sets: Subgraphs) -> Tensor:
        """Computes the contributions of ``B`` sets, shape ``[B]``."""
        portion = self.decomposition.contributions(sets).double()
        own = portion.gather(1, self.label[sets.instance, None])[:, 0]
        return own - (portion.sum(dim=1) - own) / max(portion.size(1) - 1, 1)

    def of_neighbors(self) -> Tensor:
        """Computes the contributions of all pairs of neighbours, shape ``[m]``; each pair is computed once."""
        total = self.instances.num_nodes
        key = self.instances.neighbor_key
        low, high = torch.minimum(key // total, key % total), torch.maximum(key // total, key % total)
        pair, group = torch.unique(low * total + high, return_inverse=True)
        ends = torch.stack([pair // total, pair % total], dim=1)
        return self(Subgraphs(self.instances.owner[ends[:, 0]], ends))[group]


def agglomerate(contribution: Contribution, start: Tensor, max_nodes: int) -> Tensor:
    """Grows one connected subgraph for each instance, by the neighbour with the largest relative contribution.

    Args:
        contribution: Contributions of node sets.
        start: Node that each subgraph begins with, shape ``[I]``.
        max_nodes: Size bound ``K``.

    Returns:
        Nodes in the order they were added, shape ``[I, K]``; ``-1`` fills up.
    """
    instances = contribution.instances
    every = torch.arange(len(instances), device=instances.device)
    return roll_out(instances, every, start, max_nodes, _largest_gain(contribution), cuts=False).subgraphs.members


def _largest_gain(contribution: Contribution) -> Chooser:
    """Adds the node that the set contributes most with; within a state that is the largest gain as well."""

    def choose(states: States, at: Tensor, draw: Tensor) -> Action:
        state = states.frontier_state
        grown = torch.cat([states.members[state], states.frontier[:, None]], dim=1)
        gain = contribution(Subgraphs(states.instance[state], grown))
        return Action(segment_argmax(gain, state, len(states))[at])

    return choose


def _better_end(instances: Instances, node: Tensor, pair: Tensor) -> Tensor:
    """Names the end that contributes more of each graph's best pair of neighbours, shape ``[I]``.

    A graph without edges begins with its best node.
    """
    alone = segment_argmax(node, instances.owner, len(instances))
    total = instances.num_nodes
    key = instances.neighbor_key
    best = segment_argmax(pair, instances.owner[key // total], len(instances))
    joined = best >= 0
    one, other = key[best[joined]] // total, key[best[joined]] % total
    alone[joined] = torch.where(node[one] >= node[other], one, other)
    return alone


def _below_zero(instances: Instances, value: Tensor, owner: Tensor) -> Tensor:
    """Squeezes values into [-1, 0] within each instance, the largest to 0."""
    highest = segment_max(value, owner, len(instances))[owner]
    lowest = -segment_max(-value, owner, len(instances))[owner]
    return (value - highest) / (highest - lowest).clamp(min=1e-12)
