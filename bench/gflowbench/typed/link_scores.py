"""Scores of an explained link: the area under the curve over edges, and whether a true path is found early."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from sklearn.metrics import roc_auc_score

if TYPE_CHECKING:
    from gflowbench.typed.link_task import LinkTask, TypedEdge

Edge = TypeVar("Edge", bound=Hashable)
DEPTHS = (3, 5, 10, 20, 50, 100)


def path_hits(ranking: Sequence[Edge], paths: Sequence[Sequence[Edge]]) -> dict[int, bool]:
    """Says for each depth ``k`` whether all edges of some true path are among the first ``k`` of a ranking."""
    place = {edge: number for number, edge in enumerate(ranking)}
    needed = min(max(place.get(edge, len(place) + 10**6) for edge in path) + 1 for path in paths)
    return {depth: needed <= depth for depth in DEPTHS}


def edge_auc(score: Mapping[Edge, float], truth: set[Edge], around: Sequence[Edge]) -> float:
    """Computes the ROC-AUC of edge scores over a computation graph; an edge without a score has 0."""
    wanted = np.array([edge in truth for edge in around])
    return float(roc_auc_score(wanted, [score.get(edge, 0.0) for edge in around]))


def ranking_of(score: Mapping[Edge, float], seed: int) -> list[Edge]:
    """Orders edges by score, the best first, ties by chance."""
    edges = list(score)
    chance = np.random.default_rng(seed).random(len(edges))
    order = np.lexsort((chance, -np.array([score[edge] for edge in edges])))
    return [edges[place] for place in order]


def score_links(
    scores: Sequence[Mapping[TypedEdge, float]], task: LinkTask, seed: int
) -> tuple[float, dict[int, float]]:
    """Scores an explainer on the links of a task: edges that a link does not depend on are left out.

    Args:
        scores: For each link, the score of each edge that has one.
        task: The links.
        seed: Breaks ties.

    Returns:
        The mean AUC over links; and for each of :data:`DEPTHS` the share of links of which a true path is found.
    """
    aucs, hits = [], []
    for number, score in enumerate(scores):
        around, paths = set(task.around[number]), task.paths[number]
        own = {edge: value for edge, value in score.items() if edge in around}
        aucs.append(edge_auc(own, {edge for path in paths for edge in path}, task.around[number]))
        hits.append(path_hits(ranking_of(own, seed * 1000 + number), paths))
    return float(np.mean(aucs)), {depth: float(np.mean([hit[depth] for hit in hits])) for depth in DEPTHS}
