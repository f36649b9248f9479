r"""EiG-Search: edges ranked by linear gradients, and the best of the subgraphs that the first k of them induce.

Lu et al., *EiG-Search: Generating Edge-Induced Subgraphs for GNN Explanation in Linear Time*, ICML 2024. Nothing is
learned. The linear gradient of an edge is the slope of the model's score between its weight 0 and its weight 1, which
does not vanish where the gradient itself is flat:

.. math:: s_e = f_c(1) - f_c(1 - e)

at graph level, where :math:`e` is the mask of that edge in both directions; at node level the length of the change of
all scores. The explanation is the first :math:`k` edges for the :math:`k` at which
:math:`\text{fidelity}_+ - \text{fidelity}_-` is largest, edges being really removed; :math:`k` is searched from 2 to a
share of all edges, so that one evaluation an edge and two a candidate are all it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowbench.explainers.coalition_games import EdgeGame
from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import MaskedModel, differentiable, parts
from gflowbench.explainers.peer import Peer
from gflowbench.metrics.undirected import UndirectedEdges
from gflowexplainer.errors import ConfigError
from gflowexplainer.ops.segments import pointers

FEWEST_EDGES = 2


@dataclass(kw_only=True, eq=False)
class EiGSearch(Peer):
    """Scores edges by linear gradients, and selects the nodes of the best edge-induced subgraph.

    Args:
        share: Share of the edges among which the size of the explanation is searched; 1 less the authors' sparsity.
    """

    name = "eig-search"
    deterministic = True

    share: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share <= 1:
            raise ConfigError(f"'share' must lie in (0, 1] (got {self.share}).")

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores every edge and marks the nodes of the best subgraph."""
        edges, selected = [], []
        for part in parts(subject):
            game = EdgeGame(part)
            slope = linear_gradients(part)
            inside = self._search(game, slope)
            edges.append(game.spread(slope))
            chosen = torch.zeros(part.instances.num_nodes, dtype=torch.bool, device=slope.device)
            chosen[game.edges.ends[:, inside].flatten()] = True
            selected.append(chosen)
        scores = Scores.of_edges(subject.instances, torch.cat(edges))
        return Scores(scores.node, scores.edge, selected=torch.cat(selected))

    def _search(self, game: EdgeGame, slope: Tensor) -> Tensor:
        """Marks the edges of the best subgraph of every instance, shape ``[p]``."""
        first, counts = pointers(game.counts), game.counts
        order = torch.argsort(-slope, stable=True)
        order = order[torch.argsort(game.owner[order], stable=True)]
        rank = torch.empty_like(order)
        rank[order] = torch.arange(order.numel(), device=order.device) - first[game.owner[order]]
        most = (counts * self.share).long().clamp(min=FEWEST_EDGES).minimum(counts)
        best = torch.full((counts.numel(),), -torch.inf, dtype=torch.double, device=slope.device)
        size = most.clone()
        for number in range(FEWEST_EDGES, int(most.max()) + 1 if most.numel() else 0):
            inside = rank < number
            only, without = game.worth(torch.stack([inside, ~inside]))
            # fidelity+ less fidelity-: the prediction on the whole graph is in both and cancels.
            value = self._quality(game, only, without)
            better = (value > best) & (number <= most)
            best[better], size[better] = value[better], number
        return rank < size[game.owner]

    @staticmethod
    def _quality(game: EdgeGame, only: Tensor, without: Tensor) -> Tensor:
        target = game.subject.target
        if target.label is not None:
            return only - without
        whole = target.prediction.double().sum(dim=1)
        return (whole - without).abs() - (whole - only).abs()


def linear_gradients(subject: Subject) -> Tensor:
    """Computes the slope of the score over the weight of each undirected edge, shape ``[p]``."""
    graphs = MaskedModel.of(subject)
    edges = UndirectedEdges.of(subject.instances)
    owner = edges.owner
    counts = torch.bincount(owner, minlength=len(subject))
    place = torch.arange(owner.numel(), device=owner.device) - pointers(counts)[owner]
    slope = torch.zeros(owner.numel(), dtype=torch.double, device=owner.device)
    with differentiable(subject.predictor), torch.no_grad():
        ones = graphs.graphs.x.new_ones(graphs.edge_owner.numel())
        whole = _scores(graphs, graphs(ones, sigmoid=False))
        for number in range(int(counts.max()) if counts.numel() else 0):
            mask = ones.clone()
            mask[graphs.own[edges.entry[place[edges.pair] == number]]] = 0.0
            change = whole - _scores(graphs, graphs(mask, sigmoid=False))
            here = place == number
            slope[here] = _slope(graphs, change)[owner[here]]
    return slope


def _scores(graphs: MaskedModel, output: Tensor) -> Tensor:
    """Returns what gradients are taken of: scores, or for a binary classifier both probabilities, shape ``[I, C]``."""
    return (graphs.predictor.read(output) if graphs.predictor.mode == "binary_classification" else output).double()


def _slope(graphs: MaskedModel, change: Tensor) -> Tensor:
    if graphs.predictor.level == "node" or graphs.target.label is None:
        return change.norm(dim=1)
    return change.gather(1, graphs.target.label[:, None])[:, 0]
