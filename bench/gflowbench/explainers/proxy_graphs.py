"""The explained model on graphs whose edges have a probability, and so have some pairs of nodes that no edge joins.

Where the model takes weights of edges, probabilities are weights, of all candidate pairs, as in the public code of
ProxyExplainer. In any other model they multiply the messages along the edges of the graph, as masks do; of the pairs
that no edge joins some are drawn and really added, so that degrees and attention count no edge that is hardly there,
and the gradient passes through as if their messages were multiplied too (straight through). A model that takes further
arguments of its edges cannot be evaluated with edges that have none, so its graphs lose edges and gain none.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature

import torch
from torch import Tensor
from torch_geometric.explain.algorithm.utils import set_masks

from gflowbench.explainers.masked_model import MaskedModel
from gflowbench.metrics.undirected import UndirectedEdges
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.hashed_random import combine, uniform
from gflowexplainer.ops.segments import ranges
from gflowexplainer.ops.sorting import find_sorted, unique

WEIGHT = "edge_weight"
"""The argument by which PyG's models take weights of edges."""


@dataclass(frozen=True)
class ProxyGraphs:
    """Candidate edges of ``I`` instances: their ``p`` undirected edges, then ``q`` pairs that no edge joins.

    Attributes:
        model: The explained model and the instances.
        ends: Both ends of each pair, the smaller position first, shape ``[2, p + q]``.
        owner: Instance of each pair, shape ``[p + q]``.
        key: A random number that names each pair, shape ``[p + q]``.
        edges: The undirected edges.
        outer_ends: The ends among the nodes with what surrounds the instances, shape ``[2, p + q]``.
    """

    model: MaskedModel
    ends: Tensor
    owner: Tensor
    key: Tensor
    edges: UndirectedEdges
    outer_ends: Tensor

    @property
    def num_edges(self) -> int:
        """The number ``p``."""
        return self.edges.owner.numel()

    @classmethod
    def of(cls, model: MaskedModel, instances: Instances, non_edges: float, seed: int) -> ProxyGraphs:
        """Finds the candidate edges.

        Args:
            model: The explained model on ``instances``.
            instances: The instances.
            non_edges: Pairs that no edge joins at most, for each edge of an instance; all where there are no more.
            seed: Seed of the pairs where there are more.
        """
        edges = UndirectedEdges.of(instances)
        absent = edges.ends[:, :0] if instances.edge_arguments else unjoined(instances, non_edges, seed)
        ends = torch.cat([edges.ends, absent], dim=1)
        owner = instances.owner[ends[0]]
        key = combine(instances.own_key[owner], instances.key[ends[0]], instances.key[ends[1]])
        place = instances.place_outside
        return cls(model, ends, owner, key, edges, ends if place is None else place[ends])

    def evaluate(self, probability: Tensor, *stream: int, weighted: bool) -> Tensor:
        """Evaluates the model on graphs of the candidate edges.

        Args:
            probability: Probability of each pair, shape ``[p + q]``.
            *stream: Names the draw.
            weighted: Whether the model takes weights of edges; see :func:`takes_weights`.

        Returns:
            What the model returns of each instance, shape ``[I, C]``.
        """
        graphs = self.model.graphs
        probability = probability.to(graphs.x.dtype)
        # Self loops, and what leads into an instance from outside, are certain.
        own, certain = self.model.own[self.edges.entry], probability.new_ones(graphs.edge_index.size(1))
        existing, new = certain.index_put((own,), probability[self.edges.pair]), probability[self.num_edges :]
        added = self.outer_ends[:, self.num_edges :]
        if not weighted:
            drawn = torch.nonzero(uniform(*stream, self.key[self.num_edges :]) < new).flatten()
            added, new = added[:, drawn], 1 + new[drawn] - new[drawn].detach()
        edge_index = torch.cat([graphs.edge_index, added, added.flip(0)], dim=1)
        values = torch.cat([existing, new, new])
        if weighted:
            given = graphs.edge_arguments.get(WEIGHT)
            return self.model.evaluate(edge_index, **{WEIGHT: values if given is None else values * given})
        set_masks(self.model.predictor.model, values, edge_index, apply_sigmoid=False)
        return self.model.evaluate(edge_index)


def unjoined(instances: Instances, non_edges: float, seed: int) -> Tensor:
    """Finds pairs of nodes of the same instance that no edge joins.

    Args:
        instances: The instances.
        non_edges: Pairs at most, for each undirected edge of an instance.
        seed: Seed of the pairs where an instance has more.

    Returns:
        Both ends of each, the smaller position first, ascending, shape ``[2, q]``. Where there are more than wanted, as
        many are drawn, and repeats and edges among them are dropped.
    """
    nodes = instances.node_counts
    edges = torch.bincount(instances.owner[instances.neighbor_row], minlength=len(instances)) // 2
    wanted = (non_edges * edges).ceil().long()
    whole = nodes * (nodes - 1) // 2 - edges <= wanted
    owner, number = ranges(torch.zeros_like(nodes), torch.where(whole, nodes * nodes, wanted))
    size = nodes[owner]
    draw = (uniform(seed, instances.own_key[owner], number) * size * size).long()
    number = torch.where(whole[owner], number, draw)
    one, other = number // size, number % size
    low, high = torch.minimum(one, other), torch.maximum(one, other)
    first = instances.ptr[owner]
    key = unique(((low + first) * instances.num_nodes + high + first)[low < high])
    key = key[~find_sorted(instances.neighbor_key, key)[1]]
    return torch.stack([key // instances.num_nodes, key % instances.num_nodes])


def takes_weights(model: MaskedModel) -> bool:
    """Says whether the explained model takes weights of edges, and weights of 1 change nothing."""
    explained, graphs = model.predictor.model, model.graphs
    if WEIGHT in graphs.edge_arguments:
        return True
    if WEIGHT not in signature(explained.forward).parameters:
        return False
    ones = graphs.x.new_ones(graphs.edge_index.size(1))
    with torch.no_grad():
        plain = model.evaluate(graphs.edge_index)
        try:
            weighted = model.evaluate(graphs.edge_index, **{WEIGHT: ones})
        except Exception:  # a model whose layers take none says so in whatever way it likes
            return False
    return torch.allclose(plain, weighted, atol=1e-4)
