"""Where nodes lie: the explanation in the middle, true to its distances, and everything else around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist, pdist

_ANGLES = np.stack([f(2 * np.pi * np.arange(32) / 32) for f in (np.cos, np.sin)], axis=1)
_REACH = (1.0, 1.3, 1.7, 2.2, 2.9, 3.8)


def layout(num_nodes: int, edges: Sequence[tuple[int, int]], lengths: Sequence[float] | None = None) -> np.ndarray:
    """Places nodes so that distances on paper are those in the graph (stress majorisation), shape ``[n, 2]``.

    Args:
        num_nodes: Number of nodes ``n``.
        edges: Positions of both ends of each edge.
        lengths: Length of each edge; all 1 if not given.
    """
    return _true_to(_distances(num_nodes, edges, lengths))


def _distances(num_nodes: int, edges: Sequence[tuple[int, int]], lengths: Sequence[float] | None) -> np.ndarray:
    """Returns the lengths of shortest paths, shape ``[n, n]``; what is not joined lies beyond everything else."""
    ends = np.array(edges, dtype=int).reshape(-1, 2).T
    values = np.ones(ends.shape[1]) if lengths is None else np.asarray(lengths, dtype=float)
    distance = shortest_path(coo_array((values, (ends[0], ends[1])), shape=(num_nodes,) * 2).tocsr(), directed=False)
    beyond = values.max(initial=1.0)
    distance[~np.isfinite(distance)] = distance[np.isfinite(distance)].max() + beyond
    return distance


def _true_to(distance: np.ndarray) -> np.ndarray:
    """Places nodes by their distances ``[n, n]``, shape ``[n, 2]``."""
    if len(distance) == 1:
        return np.zeros((1, 2))
    distance, far = distance + np.eye(len(distance)), distance.max()
    weight = distance**-2.0
    np.fill_diagonal(weight, 0.0)
    # The pseudo-inverse of a Laplacian, at the price of an inverse.
    mean = 1 / len(distance)
    inverse = np.linalg.inv(np.diag(weight.sum(axis=1)) - weight + mean) - mean
    # Majorisation finds the nearest valley, in which a cycle may lie folded: the best of several beginnings is taken.
    tries = [_settle(begin, inverse, weight, distance) for begin in _beginnings(distance, far)]
    return min(tries, key=lambda found: found[0])[1]


def _beginnings(distance: np.ndarray, far: float) -> list[np.ndarray]:
    """Returns places to begin with: classical scaling of the distances, a near-circle, and two fixed random ones."""
    number = len(distance)
    squares = distance**2
    np.fill_diagonal(squares, 0.0)
    centre = np.eye(number) - 1 / number
    values, vectors = np.linalg.eigh(-0.5 * centre @ squares @ centre)
    scaled = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))
    angle = 2 * np.pi * np.arange(number) / number
    # Not quite a circle, on which symmetric graphs would stay folded onto themselves.
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 + 0.1 * np.cos(3.7 * angle + 1))[:, None] * far / 2
    random = np.random.default_rng(0)
    scattered = [random.normal(size=(number, 2)) * far / 2 for _ in range(2 if number <= 100 else 0)]
    return [scaled + 1e-3 * circle, circle, *scattered]


def _settle(
    place: np.ndarray, inverse: np.ndarray, weight: np.ndarray, distance: np.ndarray
) -> tuple[float, np.ndarray]:
    """Moves nodes until the stress falls no more; returns the stress and where they lie."""
    pull = weight * distance
    for _ in range(150):
        ratio = pull / np.maximum(cdist(place, place), 1e-9)
        before, place = place, inverse @ (ratio.sum(axis=1)[:, None] * place - ratio @ place)
        if np.abs(place - before).max() < 1e-4:
            break
    return float((weight * (cdist(place, place) - distance) ** 2).sum()), place


def layout_around(level: np.ndarray, edges: np.ndarray, gaps: tuple[float, float, float], middle: int) -> np.ndarray:
    """Places the explanation by its distances, then its direct neighbours, then all others in the free room around.

    Args:
        level: 0 for nodes of the explanation, 1 for those that are shown with it, 2 for the rest, shape ``[n]``.
        edges: Positions of both ends of each edge, shape ``[e, 2]``.
        gaps: How far apart nodes of each level lie at least; the first is also the length of an edge inside the
            explanation.
        middle: Position of the node that lies in the middle, the explained one.

    Returns:
        Places, shape ``[n, 2]``; ``middle`` lies at the origin, and the longer side of the explanation is horizontal.
    """
    core, place = level == 0, np.full((level.size, 2), np.nan)
    near = edges[(level[edges] < 2).all(axis=1)]
    lengths = np.where(core[near].all(axis=1), gaps[0], 0.72 * gaps[0])
    shape = turned(_true_to(_distances(level.size, near.tolist(), lengths.tolist())[np.ix_(core, core)]))
    closest = pdist(shape).min(initial=gaps[0])
    place[core] = shape * np.clip(0.7 * gaps[0] / max(closest, 1e-9), 1, 2)
    place -= place[middle]
    for number in (1, 2):
        _fill_around(place, level, number, edges, gaps)
    return place


def turned(place: np.ndarray) -> np.ndarray:
    """Lays the longer side of a drawing along the page."""
    centred = place - place.mean(axis=0)
    if len(place) < 3:
        return centred if len(place) < 2 or np.ptp(centred[:, 0]) >= np.ptp(centred[:, 1]) else centred[:, ::-1]
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    moved = centred @ axes.T
    # The sign of an axis is arbitrary; fix it, so that one graph is always drawn one way.
    heavy = np.abs(moved).argmax(axis=0)
    return moved * np.sign(moved[heavy, [0, 1]])


def _fill_around(
    place: np.ndarray, level: np.ndarray, number: int, edges: np.ndarray, gaps: tuple[float, float, float]
) -> None:
    """Puts each node of a level on the nearest free spot by its neighbours, those next to placed ones first."""
    neighbours: list[list[int]] = [[] for _ in level]
    for u, v in edges.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    done, gap = level < number, gaps[number]
    centre = place[done].mean(axis=0)
    radius = float(np.linalg.norm(place[done] - centre, axis=1).max(initial=0.0))
    mine = level == number
    queue = [v for u in np.flatnonzero(done) for v in neighbours[u] if mine[v]]
    waiting = np.flatnonzero(mine).tolist()
    # The explanation keeps some room around it, and its edges stay free.
    inside = edges[(level[edges] == 0).all(axis=1)]
    share = np.linspace(0.125, 0.875, 7)[:, None, None]
    bars = ((1 - share) * place[inside[:, 0]] + share * place[inside[:, 1]]).reshape(-1, 2)
    taken = [*place[done], *bars]
    room = [*np.where(level[done] == 0, 0.5 * gaps[0], gap), *[gap] * len(bars)]
    spread = 0
    while queue or waiting:
        node = queue.pop(0) if queue else waiting.pop(0)
        if done[node]:
            continue
        anchors = [v for v in neighbours[node] if done[v]]
        around = place[anchors].mean(axis=0) if anchors else centre + radius * _ANGLES[spread % len(_ANGLES)]
        spread += 1 if anchors else 7
        behind = [w for v in anchors for w in neighbours[v] if level[w] == 0]
        away = place[behind].mean(axis=0) if behind else centre
        place[node] = _free_spot(around, np.array(taken), np.array(room), away, gap)
        done[node] = True
        taken.append(place[node])
        room.append(gap)
        queue += [v for v in neighbours[node] if mine[v] and not done[v]]


def _free_spot(around: np.ndarray, taken: np.ndarray, room: np.ndarray, away: np.ndarray, gap: float) -> np.ndarray:
    """Finds a spot near ``around`` that leaves all taken ones their ``room``, rather ``away``, shape ``[2]``."""
    outward = around - away
    outward = outward / max(float(np.linalg.norm(outward)), 1e-9)
    scale = 1.6 * gap
    while True:
        spots = np.concatenate([around + scale * reach * _ANGLES for reach in _REACH])
        clear = (cdist(spots, taken) - room).min(axis=1)
        cost = np.linalg.norm(spots - around, axis=1) - 0.3 * ((spots - around) @ outward)
        free = np.flatnonzero(clear >= 0)
        if free.size:
            return spots[free[np.argmin(cost[free])]]
        scale *= 1.8
