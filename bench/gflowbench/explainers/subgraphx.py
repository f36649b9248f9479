"""SubgraphX (Yuan et al., ICML 2021): Monte-Carlo tree search over connected subgraphs, by their Shapley values.

A rollout goes down the tree of pruned subgraphs until one is small; the value of where it ends is credited to all it
passed. Rollouts, children, bonus and samples are those of the public code (20, 14, 10, 100). Two defaults are not:
absent nodes are removed, where that code only cuts their edges, and large subgraphs get coarser values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.peer import Peer
from gflowbench.explainers.pruning import Branch, Search, Tree
from gflowbench.explainers.shapley import ShapleyValues
from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.graphs.instances import Instances

DIRECTIONS = ("high", "low")
COARSE_ABOVE = 4
"""A subgraph of more than so many times the size bound gets a coarser value."""


@dataclass(kw_only=True, eq=False)
class SubgraphX(Peer):
    """Searches the tree of every instance and returns the most valuable subgraph of at most ``K`` nodes.

    Its nodes are named in the reverse order in which they would be pruned further, the least loss of value first.
    All edges that are not inside follow in the order of pruning: those that lasted longest on the way come first.

    The rollouts of all instances go on side by side, so that the model is evaluated on all of them at once.

    Args:
        min_nodes: A rollout ends when a subgraph has no more nodes than this; ``K - 1`` if not given.
        num_rollouts: Rollouts for each instance.
        num_children: Nodes that are tried for pruning in each subgraph.
        prune_first: Whether nodes with the ``"high"`` or the ``"low"`` degree are tried first.
        exploration: Weight of the bonus for subgraphs that were seldom visited.
        num_samples: Samples of each Shapley value.
        coarse_samples: Samples for subgraphs of more than :data:`COARSE_ABOVE` times ``K`` nodes, which are never the
            explanation and only lead the way to it; by far the most of a large instance's tree.
        radius: Steps within which other nodes are players; the model's layers if not given.
        removal: ``"induced"`` or ``"isolate"``; see :class:`~gflowbench.explainers.shapley.ShapleyValues`.
    """

    name = "subgraphx"
    positive = ("min_nodes", "num_rollouts", "num_children", "num_samples", "coarse_samples")

    min_nodes: int | None = None
    num_rollouts: int = 20
    num_children: int = 14
    prune_first: str = "high"
    exploration: float = 10.0
    num_samples: int = 100
    coarse_samples: int = 10
    radius: int | None = None
    removal: str = "induced"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.exploration < math.inf:
            raise ConfigError(f"'exploration' must be a number of at least 0 (got {self.exploration}).")
        one_of("prune_first", self.prune_first, DIRECTIONS)

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores nodes and edges by the best subgraph found and the order of pruning."""
        bound = self.bound(subject)
        values = ShapleyValues(
            subject, num_samples=self.num_samples, radius=self.radius, removal=self.removal, seed=seed
        )
        search = Search(subject, values, COARSE_ABOVE * bound, self.coarse_samples, seed)
        trees = self.grow(search, bound)
        best = [tree.best(bound) for tree in trees]
        instances = subject.instances
        order = search.order(best, bound)
        inside = Scores.of_order(instances, order, bound)
        lasted = _lasted(instances, best)
        source, target = instances.edge_index
        outside = torch.minimum(lasted[source], lasted[target])
        return Scores(
            torch.where(inside.node > 0, inside.node, lasted),
            torch.where(inside.edge > 0, inside.edge, outside),
            order=order,
        )

    def grow(self, search: Search, max_nodes: int) -> list[Tree]:
        """Runs all rollouts and returns the trees of all instances."""
        leaf = max(1, max_nodes - 1) if self.min_nodes is None else self.min_nodes
        trees = search.roots()
        for _ in range(self.num_rollouts):
            paths = [[tree.root] for tree in trees]
            going = [path for path in paths if path[-1].nodes.numel() > leaf]
            while going:
                new = [path[-1] for path in going if path[-1].children is None]
                search.expand(trees, new, self.num_children, self.prune_first)
                going = [path for path in going if path[-1].children]
                for path in going:
                    path.append(path[-1].choose(self.exploration))
                going = [path for path in going if path[-1].nodes.numel() > leaf]
            for path in paths:
                for branch in path:
                    branch.visits += 1
                    branch.credit += path[-1].value
        return trees


def _lasted(instances: Instances, best: list[Branch]) -> Tensor:
    """Scores nodes by how long they lasted on the way to the best subgraph, in [-1, 0), shape ``[n]``.

    A node counts minus the share of its instance that the smallest subgraph on the way that holds it has.
    """
    score = torch.full((instances.num_nodes,), -1.0, dtype=torch.double)
    sizes = instances.node_counts.cpu()
    for last in best:
        way: list[Branch] = []
        branch: Branch | None = last
        while branch is not None:
            way.append(branch)
            branch = branch.parent
        for step in reversed(way):
            score[step.nodes] = -step.nodes.numel() / float(sizes[step.instance])
    return score.to(instances.device)
