"""Other ways to a counterfactual by edges: CF-GNNExplainer, greedy removal, and exhaustive search as the truth.

Everything is verified in one way: the edges are really taken out of the graph and the GNN is called on what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import torch
from torch import Tensor, nn
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.utils import k_hop_subgraph

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class EdgeProblem:
    """One prediction, and the edges that can be removed from it.

    Attributes:
        model: The GNN, in evaluation mode.
        x: Features, shape ``[N, F]``.
        edge_index: Edges, shape ``[2, E]``.
        node: The node; ``None`` for the whole graph.
    """

    model: nn.Module
    x: Tensor
    edge_index: Tensor
    node: int | None = None

    @classmethod
    def around(cls, model: nn.Module, x: Tensor, edge_index: Tensor, node: int, num_hops: int) -> EdgeProblem:
        """Cuts a node's computation graph out; pass one hop more than the GNN has layers where it counts degrees."""
        nodes, edges, place, _ = k_hop_subgraph(node, num_hops, edge_index, relabel_nodes=True, num_nodes=x.size(0))
        return cls(model, x[nodes], edges, int(place))

    @cached_property
    def pairs(self) -> list[Pair]:
        """The undirected edges, smaller end first, without self loops."""
        return sorted({(min(u, v), max(u, v)) for u, v in self.edge_index.t().tolist() if u != v})

    @cached_property
    def label(self) -> int:
        """The class that the GNN predicts."""
        return int(self.scores([()])[0].argmax())

    @torch.no_grad()
    def scores(self, removed: Iterable[Iterable[Pair]]) -> Tensor:
        """Returns log-probabilities without each set of edges, shape ``[Q, C]``."""
        ends = [(min(u, v), max(u, v)) for u, v in self.edge_index.t().tolist()]
        rows = []
        for pairs in removed:
            gone = set(pairs)
            stays = [i for i, pair in enumerate(ends) if pair not in gone]
            rows.append(self._output(self.edge_index[:, stays]))
        return torch.cat(rows)

    def _output(self, edge_index: Tensor) -> Tensor:
        output = self.model(self.x, edge_index)
        row = output if self.node is None else output[self.node : self.node + 1]
        return row.log_softmax(dim=1)

    def changes(self, removed: Sequence[Pair]) -> bool:
        """Says whether the class changes without some edges."""
        return int(self.scores([removed])[0].argmax()) != self.label


def greedy_removal(problem: EdgeProblem) -> tuple[Pair, ...] | None:
    """Removes the edge that lowers the class's probability most, until the class changes."""
    removed: list[Pair] = []
    left = list(problem.pairs)
    while left:
        scores = problem.scores([[*removed, pair] for pair in left])
        removed.append(left.pop(int(scores[:, problem.label].argmin())))
        if problem.changes(removed):
            return tuple(removed)
    return None


def cf_gnn_explainer(
    problem: EdgeProblem, *, epochs: int = 100, learning_rate: float = 0.1, betas: Sequence[float] = (0.5, 0.05, 0.0)
) -> tuple[Pair, ...] | None:
    """Learns which edges to remove by gradients (Lucic et al., 2022); keeps the smallest set that changes the class.

    The loss is the log-probability of the class as long as it is predicted, and ``beta`` times the share of each edge
    that is removed. As in the paper, the mask is learned soft and read at one half; the soft mask multiplies messages.
    The paper's weight of one half outweighs the prediction of a GNN that is sure of itself, so smaller ones are tried
    too, in its favour: the smallest set of all is returned.
    """
    found = [_learn(problem, epochs, learning_rate, beta) for beta in betas]
    return min((pairs for pairs in found if pairs is not None), key=len, default=None)


def _learn(problem: EdgeProblem, epochs: int, learning_rate: float, beta: float) -> tuple[Pair, ...] | None:
    pairs = problem.pairs
    slot = {pair: i for i, pair in enumerate(pairs)}
    which = torch.tensor([slot.get((min(u, v), max(u, v)), -1) for u, v in problem.edge_index.t().tolist()])
    logits = torch.ones(len(pairs), requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=learning_rate, momentum=0.9, nesterov=True)
    best: tuple[Pair, ...] | None = None
    known: dict[tuple[Pair, ...], bool] = {(): False}
    for _ in range(epochs):
        soft = torch.cat([logits.sigmoid(), torch.ones(1)])[which]
        set_masks(problem.model, soft, problem.edge_index, apply_sigmoid=False)
        try:
            output = problem._output(problem.edge_index)
        finally:
            clear_masks(problem.model)
        removed = tuple(pair for pair, value in zip(pairs, logits.tolist(), strict=True) if value < 0)
        if removed not in known:
            known[removed] = problem.changes(removed)
        if known[removed] and (best is None or len(removed) < len(best)):
            best = removed
        loss = (0.0 if known[removed] else 1.0) * output[0, problem.label] + beta * (1 - logits.sigmoid()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return best


def exhaustive_minimum(problem: EdgeProblem, limit: int) -> int | None:
    """Returns the size of the smallest set that changes the class; 0 where none does up to what ``limit`` allows."""
    tried = 0
    for size in range(1, len(problem.pairs) + 1):
        tried += comb(len(problem.pairs), size)
        if tried > limit:
            return None
        if any(problem.changes(chosen) for chosen in combinations(problem.pairs, size)):
            return size
    return 0
