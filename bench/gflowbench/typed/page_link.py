r"""PaGE-Link: paths between the ends of a link, by a mask over edges that is learned to lie on paths.

Zhang et al., *PaGE-Link: Path-based Graph Neural Network Explanation for Heterogeneous Link Prediction*, WWW 2023, from
its formulas and the settings of its public code. For each link by itself:

1. The computation graph is pruned to its :math:`k`-core; both ends stay.
2. A mask :math:`w = \sigma(M)` over the edges is learned by Adam, with

   .. math:: -\log P(\text{link} \mid w) - \alpha \operatorname{mean}_{e \in \text{paths}} w_e
      + \beta \operatorname{mean}_{e \notin \text{paths}} w_e

   where the paths are those that are cheapest under the mask as it is. Entering node :math:`v` along edge :math:`e`
   costs :math:`-\log w_e + \log d_v`, so that paths through nodes of high degree are dear; the link's own ends cost
   nothing.
3. Paths are ranked by this cost under the learned mask. Edges score by the first path that they are on, all others by
   their mask behind them, those that were pruned least.

The paths of at most twice as many steps as the model reaches are few, so all are listed once, and the search for the
cheapest is exact: no search runs within the learning.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from gflowbench.explainers.masked_model import masks_alone
from gflowbench.explainers.peer import check_positive
from gflowbench.typed.cut_links import CutLink, cut_link
from gflowbench.typed.link_explainers import PATHS, by_rank
from gflowbench.typed.link_task import LinkScores, LinkTask, TypedEdge
from gflowbench.typed.link_ways import edges_along, ends_of_links, flat_graph, reach, ways_between


def page_link(
    task: LinkTask,
    seed: int,
    *,
    epochs: int = 20,
    learning_rate: float = 0.01,
    core: int = 2,
    num_paths: int = 5,
    on_paths: float = 1.0,
    off_paths: float = 1.0,
    ranked: int = PATHS,
) -> LinkScores:
    """Scores edges by the paths that a mask, learned for each link, makes cheapest.

    Args:
        task: The links.
        seed: Seed of the first masks.
        epochs: Updates of a mask.
        learning_rate: Of Adam.
        core: The ``k`` of the core that the computation graph is pruned to.
        num_paths: Cheapest paths whose edges are raised.
        on_paths: Weight of raising these, alpha.
        off_paths: Weight of lowering the others, beta.
        ranked: Paths that edges are ranked by; with 0 edges score by their mask alone.
    """
    check_positive(epochs=epochs, learning_rate=learning_rate, core=core, num_paths=num_paths)
    most_steps, scores = 2 * reach(task), []
    draw = torch.Generator().manual_seed(seed)
    with masks_alone(task.model):
        for link, ends, around in zip(task.test.t(), ends_of_links(task), task.around, strict=True):
            edges = pruned(task, around, ends, core) or list(around)
            cut = cut_link(task, link, edges)
            paths = PricedPaths(task, edges, ends, most_steps)
            mask = first_mask(cut, draw).requires_grad_()
            optimizer = torch.optim.Adam([mask], lr=learning_rate)
            for _ in range(epochs):
                weight = mask.sigmoid()
                loss = -functional.logsigmoid(cut.masked_score(weight))
                on = paths.cheapest(weight.detach(), num_paths)
                loss = loss + path_loss(weight, on, on_paths, off_paths)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            weight = mask.detach().sigmoid()
            score = dict(zip(edges, weight.tolist(), strict=True))
            order = paths.order(weight)[:ranked].tolist()
            scores.append(score | by_rank(paths.edges[number] for number in order))
    return scores


class PricedPaths:
    """All paths between the ends of a link, and what each costs under a mask over ``E`` edges.

    Args:
        task: The links.
        edges: The edges that paths run along.
        ends: Both ends of the link, by type and id.
        most_steps: Steps of a path at most.

    Attributes:
        edges: The edges of each of ``P`` paths.
    """

    def __init__(self, task: LinkTask, edges: Sequence[TypedEdge], ends: Sequence[Hashable], most_steps: int) -> None:
        graph, place = flat_graph(task, edges), {edge: number for number, edge in enumerate(edges)}
        arriving: Counter[Hashable] = Counter(task.ends_of(edge)[1] for edge in edges)
        ways = ways_between(graph, ends[0], ends[1], most_steps)
        self.edges = [edges_along(task, graph, way) for way in ways]
        # Paths of fewer steps are filled up with an edge behind all others that costs nothing.
        rows = [[place[edge] for edge in path] + [len(edges)] * (most_steps - len(path)) for path in self.edges]
        self._steps = torch.tensor(rows, dtype=torch.long).view(-1, most_steps)
        self._degrees = torch.tensor([sum(math.log(max(arriving[node], 1)) for node in way[1:-1]) for way in ways])

    def costs(self, weight: Tensor) -> Tensor:
        """Returns what each path costs under a mask ``[E]``, shape ``[P]``."""
        return self._degrees + torch.cat([-weight.log(), weight.new_zeros(1)])[self._steps].sum(dim=1)

    def order(self, weight: Tensor) -> Tensor:
        """Orders the paths under a mask ``[E]``, the cheapest first, shape ``[P]``."""
        return self.costs(weight).argsort(stable=True)

    def cheapest(self, weight: Tensor, count: int) -> Tensor:
        """Lists the edges of the ``count`` cheapest paths; an edge of several paths is listed as often."""
        steps = self._steps[self.order(weight)[:count]].flatten()
        return steps[steps < weight.numel()]


def path_loss(weight: Tensor, on: Tensor, on_paths: float, off_paths: float) -> Tensor:
    """Computes what raises the mask ``[E]`` on the edges ``on`` and lowers it on all others."""
    off = torch.ones(weight.numel(), dtype=torch.bool)
    off[on] = False
    loss = weight.new_zeros(())
    if on.numel():
        loss = loss - on_paths * weight[on].mean()
    if off.any():
        loss = loss + off_paths * weight[off].mean()
    return loss


def pruned(task: LinkTask, around: Sequence[TypedEdge], ends: Sequence[Hashable], core: int) -> list[TypedEdge]:
    """Takes away nodes at which fewer than ``core`` edges arrive, with their edges, until none is left but the ends."""
    edges = list(around)
    while True:
        arriving = Counter(task.ends_of(edge)[1] for edge in edges)
        kept = [
            edge for edge in edges if all(end in ends or not 0 < arriving[end] < core for end in task.ends_of(edge))
        ]
        if len(kept) == len(edges):
            return edges
        edges = kept


def first_mask(cut: CutLink, draw: torch.Generator) -> Tensor:
    """Draws the logits of a mask, near 0 where a relation joins many nodes, shape ``[E]``."""
    mask = torch.randn(cut.num_edges, generator=draw)
    for key, place in cut.place.items():
        mask[place] *= math.sqrt(2 / max(sum(cut.nodes[kind].numel() for kind in {key[0], key[2]}), 1))
    return mask
