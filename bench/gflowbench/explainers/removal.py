"""Two peers that remove nodes and predict again: occlusion of single nodes, and greedy growth of one subgraph.

Both play the node game (:mod:`gflowbench.explainers.coalition_games`): absent nodes are gone with their edges, several
instances are evaluated side by side, and the explained node always stays.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowbench.explainers.coalition_games import NodeGame, rank_in
from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import parts
from gflowbench.explainers.peer import Peer
from gflowexplainer.ops.segments import segment_argmax

MARGIN = 0.01
"""Greedy growth shows its smallest stage whose quality is at most this far from that of its best one."""


class Occlusion(Peer):
    """Scores a node by what the prediction loses when it alone is removed; of a regression, by the absolute change."""

    name = "occlusion"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores every node; the explained one, which cannot be removed, like the best of the others."""
        found = []
        for part in parts(subject):
            game = NodeGame(part)
            found.append(game.spread(game.losses()))
        loss = torch.cat(found)
        scores = Scores.of_nodes(subject.instances, loss if subject.target.label is not None else loss.abs())
        return Scores(scores.node, scores.edge, signed=loss)


class Greedy(Peer):
    """Grows one connected subgraph by the neighbour that raises the probability of the class most.

    Of a regression: by the neighbour that brings the value nearest to the whole one. A graph begins at its best single
    node. What is selected is the smallest stage that comes within :data:`MARGIN` of the best one.
    """

    name = "greedy"
    deterministic = True

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores one subgraph an instance by the order of its nodes."""
        bound = self.bound(subject)
        orders, lengths = zip(*(self._grow(NodeGame(part), bound) for part in parts(subject)), strict=True)
        begins = torch.tensor([0, *(len(order) for order in orders)]).cumsum(0)
        shift = [int(subject.instances.ptr[int(begin)]) for begin in begins[:-1]]
        order = torch.cat([torch.where(one >= 0, one + first, -1) for one, first in zip(orders, shift, strict=True)])
        shown = torch.arange(bound, device=order.device) < torch.cat(lengths)[:, None]
        selected = torch.zeros(subject.instances.num_nodes, dtype=torch.bool, device=order.device)
        selected[order[shown & (order >= 0)]] = True
        scores = Scores.of_order(subject.instances, order, bound)
        return Scores(scores.node, scores.edge, order=order, selected=selected)

    def _grow(self, game: NodeGame, bound: int) -> tuple[Tensor, Tensor]:
        """Returns the nodes in the order they were taken, ``[I, K]``, and how many of them are shown, ``[I]``."""
        subject, owner, players = game.subject, game.owner, game.players
        instances, count = subject.instances, len(subject)
        (whole,) = game.worth(torch.ones_like(owner, dtype=torch.bool)[None])
        order = torch.full((count, bound), -1, dtype=torch.long, device=owner.device)
        quality = torch.full((count, bound), -torch.inf, dtype=torch.double, device=owner.device)
        reached = torch.zeros(instances.num_nodes, dtype=torch.bool, device=owner.device)
        given = int(instances.level == "node")
        if given:
            order[:, 0] = instances.center
            reached[instances.center] = True
        for step in range(given, bound):
            near = torch.zeros_like(reached) if step else torch.ones_like(reached)
            near[instances.neighbors_of(torch.nonzero(reached).flatten())[1]] = True
            open_ = torch.nonzero((near & ~reached)[players]).flatten()
            if not open_.numel():
                break
            place = rank_in(owner[open_], count)
            present = reached[players].repeat(int(place.max()) + 1, 1)
            present[place, open_] = True
            found = game.worth(present)[place, owner[open_]]
            if subject.target.label is None:
                found = -(found - whole[owner[open_]]).abs()
            best = segment_argmax(found, owner[open_], count)
            grew = torch.nonzero(torch.bincount(owner[open_], minlength=count)).flatten()
            order[grew, step] = players[open_[best[grew]]]
            quality[grew, step] = found[best[grew]]
            reached[order[grew, step]] = True
        enough = quality >= quality.max(dim=1, keepdim=True).values - MARGIN
        length = torch.where(quality.isfinite().any(dim=1), enough.long().argmax(dim=1) + 1, given)
        return order, length
