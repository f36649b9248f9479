"""A link cut out with its computation graph: the model is evaluated on many copies of it at once, or under a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.explain.algorithm.utils import set_hetero_masks, set_masks

from gflowbench.explainers.coalition_games import Game
from gflowbench.typed.link_task import RELATION, EdgeType, LinkTask, TypedEdge

MOST_MESSAGES = 100_000
"""Edges of all copies of a computation graph in one call of the model, at most."""


@dataclass(frozen=True, eq=False)
class CutLink:
    """One link with the ``E`` edges that it depends on, its nodes numbered anew.

    Attributes:
        task: The link's task.
        link: Both ends, shape ``[2]``.
        nodes: The nodes of each type, ascending, by their numbers in the graph.
        x: Features of the nodes of each type.
        edge_index: The edges by relation.
        place: Which of the ``E`` edges each of these is, by relation.
        num_edges: ``E``.
    """

    task: LinkTask
    link: Tensor
    nodes: dict[str, Tensor]
    x: dict[str, Tensor]
    edge_index: dict[EdgeType, Tensor]
    place: dict[EdgeType, Tensor]
    num_edges: int

    @torch.no_grad()
    def scores(self, kept: Tensor) -> Tensor:
        """Evaluates the model on copies that have some of the edges only.

        Args:
            kept: Which edges each of ``S`` copies has, shape ``[S, E]``.

        Returns:
            The raw score of the link on each copy, shape ``[S]``.
        """
        size = max(1, MOST_MESSAGES // max(self.num_edges, 1))
        return torch.cat([self._union(part) for part in kept.split(size)])

    def masked_score(self, mask: Tensor) -> Tensor:
        """Evaluates the model with every message multiplied by its mask.

        Leaves the mask in the layers: call it within :func:`gflowbench.explainers.masked_model.masks_alone`.

        Args:
            mask: Mask of each edge, shape ``[E]``.

        Returns:
            The raw score of the link, shape ``[]``.
        """
        masks = {key: mask[place] for key, place in self.place.items()}
        if self.task.is_plain:
            ((key, one),) = masks.items()
            set_masks(self.task.model, one, self.edge_index[key], apply_sigmoid=False)
        else:
            set_hetero_masks(self.task.model, masks, self.edge_index, apply_sigmoid=False)
        return self.evaluate(self.x, self.edge_index, self.link[:, None]).sum()

    def _union(self, kept: Tensor) -> Tensor:
        """Evaluates the model on the disjoint union of some copies."""
        copies = torch.arange(len(kept))
        size = {kind: x.size(0) for kind, x in self.x.items()}
        edges = {}
        for key, index in self.edge_index.items():
            copy, edge = torch.nonzero(kept[:, self.place[key]], as_tuple=True)
            edges[key] = index[:, edge] + torch.stack([copy * size[key[0]], copy * size[key[2]]])
        first = torch.stack([copies * size[kind] for kind in self.task.end_types])
        return self.evaluate(
            {kind: x.repeat(len(kept), 1) for kind, x in self.x.items()}, edges, self.link[:, None] + first
        )

    def evaluate(self, x: dict[str, Tensor], edges: dict[EdgeType, Tensor], links: Tensor) -> Tensor:
        """Evaluates the model on features and edges of these nodes; links ``[2, L]`` are numbered like them."""
        if not self.task.is_plain:
            return self.task.model(x, edges, links)
        (features,), (index,) = x.values(), edges.values()
        return self.task.model(features, index, links)


class LinkGame(Game):
    """The game of one link: its players are the directed edges that it depends on, worth its raw score.

    Args:
        cut: The link.
        number: A number that names it.
    """

    def __init__(self, cut: CutLink, number: int = 0) -> None:
        self.cut = cut
        self.key = torch.arange(cut.num_edges)
        self.owner, self.own_key = torch.zeros_like(self.key), torch.tensor([number])

    def worth(self, present: Tensor) -> Tensor:
        """Evaluates the model on copies that have the edges ``present`` ``[S, E]`` only, shape ``[S, 1]``."""
        return self.cut.scores(present).double()[:, None]


def cut_link(task: LinkTask, link: Tensor, around: Sequence[TypedEdge]) -> CutLink:
    """Cuts a link out of its graph.

    Args:
        task: The links.
        link: Both ends, shape ``[2]``.
        around: The edges that it depends on; masks are in their order.
    """
    features = {RELATION[0]: task.graph.x} if task.is_plain else task.graph.x_dict
    place: dict[EdgeType, list[int]] = {key: [] for key in task.edge_index}
    own: dict[EdgeType, list[int]] = {key: [] for key in task.edge_index}
    for number, (key, edge) in enumerate(around):
        place[key].append(number)
        own[key].append(edge)
    edges = {key: index[:, torch.tensor(own[key], dtype=torch.long)] for key, index in task.edge_index.items()}
    nodes = {}
    for kind in features:
        some = [end[None] for end, end_type in zip(link, task.end_types, strict=True) if end_type == kind]
        some += [index[side // 2] for key, index in edges.items() for side in (0, 2) if key[side] == kind]
        nodes[kind] = torch.cat(some).unique() if some else torch.zeros(0, dtype=torch.long)
    return CutLink(
        task,
        torch.stack([_found(nodes[kind], end) for kind, end in zip(task.end_types, link, strict=True)]),
        nodes,
        {kind: x[nodes[kind]] for kind, x in features.items()},
        {
            key: torch.stack([_found(nodes[key[0]], index[0]), _found(nodes[key[2]], index[1])])
            for key, index in edges.items()
        },
        {key: torch.tensor(numbers, dtype=torch.long) for key, numbers in place.items()},
        len(around),
    )


def _found(nodes: Tensor, wanted: Tensor) -> Tensor:
    return torch.searchsorted(nodes, wanted.contiguous())
