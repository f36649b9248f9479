"""The scene of a case: which nodes and edges are drawn, where, with which values. Every painter draws the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

from gflowexplainer.drawing.answer import main_set
from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.layout import layout_around
from gflowexplainer.drawing.molecules import Molecule

MOST_NODES, BUDGET, FEWEST_NODES = 300, 12_000, 60
"""Nodes drawn of one case, of all cases together, and of one case however many there are."""
NEAR_ONE, NEAR_ALL, SMALL_GRAPH = 7, 28, 60
"""Direct neighbours shown of one node of the explanation and of all of them, and nodes of a graph shown as a whole."""
GAPS = (88.0, 34.0, 20.0)
"""How far apart nodes of the explanation, their neighbours and the rest lie at least, in pixels of a page."""


@dataclass(frozen=True, eq=False)
class Scene:
    """``n`` nodes and ``e`` undirected edges, ready to be drawn; plain values, as JSON has them.

    Attributes:
        kind: ``"graph"``, ``"molecule"`` or ``"sentence"``.
        ids: Ids in the user's graph, ``n``.
        x: Where nodes lie, in pixels, ``n``.
        y: The same downwards, ``n``.
        p: Probability of each node, ``n``.
        v: What colours each node, ``n``: its probability, or its contribution to a value by the largest one, signed.
        level: When each node is shown, ``n``: 0 as the explanation, 1 beside it, 2 with the surroundings.
        names: What each node is called in a list, ``n``.
        ends: Positions of both ends of each edge, ``e``; the most probable edge last.
        q: Probability of each edge, ``e``.
        labels: What is written on each node, if not its id, ``n``.
        marked: Position of the explained node, or of both ends of the explained link.
        parts: Positions of the nodes of each part of the explanation; empty where there is one.
        most: The largest contribution to a value, where contributions colour nodes.
        strokes: The structure of a molecule, as SVG paths and their kinds.
        unbound: Positions of edges that are no bonds of the molecule.
        truth: Positions of edges in the ground truth; ``None`` if it is not known.
        found: Ground-truth edges among as many most probable edges, and the number of them, over the whole graph.
        others: Other explainers: ``name``, scores ``q`` of edges and ``p`` of nodes in [0, 1], ``slots`` of their best.
        degree: Neighbours of each node in the whole graph, ``n``.
        types: Names of the types that are drawn, in the order of their shapes.
        kinds: Which type each node has, ``n``, where there are types.
        relations: Names of the relations of each edge, ``e``, where there are relations.
        features: Features of each node in words, ``n``, if it has any.
        notes: What the reader must know about the drawing.
    """

    kind: str
    ids: list[int]
    x: list[float]
    y: list[float]
    p: list[float]
    v: list[float]
    level: list[int]
    names: list[str]
    ends: list[list[int]]
    q: list[float]
    labels: list[str] | None = None
    marked: list[int] = field(default_factory=list)
    parts: list[list[int]] = field(default_factory=list)
    most: float | None = None
    strokes: list[tuple[str, str]] = field(default_factory=list)
    unbound: list[int] = field(default_factory=list)
    truth: list[int] | None = None
    found: tuple[int, int] | None = None
    others: list[dict[str, Any]] = field(default_factory=list)
    degree: list[int] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    kinds: list[int] | None = None
    relations: list[str] | None = None
    features: list[str] | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, case: Case, limit: int = MOST_NODES) -> Scene:
        """Returns what is drawn of a case: at most ``limit`` nodes, the most probable and then the nearest."""
        explanation, notes = case.explanation, []
        molecule = case.molecule
        if isinstance(molecule, str):
            notes, molecule = [f"Drawn as a graph: {molecule}"], None
        kind = "molecule" if molecule else "graph" if case.words is None else "sentence"
        graph = adjacency(explanation)
        nodes, note = _chosen_nodes(case, graph, case.num_nodes if molecule else limit)
        nodes = np.sort(nodes) if kind == "sentence" else nodes
        slot = np.full(case.num_nodes, -1)
        slot[nodes] = np.arange(nodes.size)

        def slots(chosen: Sequence[int]) -> list[int]:
            return [int(place) for place in slot[list(chosen)] if place >= 0]

        pairs = sorted(explanation.edge_probability(nodes.tolist()).items(), key=lambda entry: entry[1])
        ids = np.array([pair for pair, _ in pairs], dtype=int).reshape(-1, 2)
        ends = slot[ids]
        truth = None if case.truth is None else np.flatnonzero(_at_pairs(explanation, case.truth.cpu().numpy(), ids))
        others, odd = _others(case, ids, ends, slots, nodes.size)
        main, explained = main_set(explanation).nodes, explained_nodes(explanation) or []
        values = explanation.node_probability()[nodes]
        level = _levels(slots([*main, *explained]), ends, values, shown=_shown(kind, explained, ends, truth, others))
        place = _place(kind, molecule, nodes, level, ends, slots(explained))
        colours, most = _colours(explanation, nodes, values)
        notes += [] if most is None else [_together(colours[level == 0] * most)]
        parts = list(getattr(main_set(explanation), "parts", ()))
        unbound = [k for k, pair in enumerate(map(tuple, ids.tolist())) if molecule and pair not in molecule.bonds]
        notes += ([note] if note else []) + odd
        if unbound:
            notes.append("Dotted lines are edges of the graph that are no bonds of the molecule.")
        texts = case.labels if case.words is None else case.words
        types = sorted({case.types[node] for node in nodes}) if case.types is not None else []
        return cls(
            kind=kind,
            ids=nodes.tolist(),
            x=place[:, 0].round(1).tolist(),
            y=place[:, 1].round(1).tolist(),
            p=values.round(3).tolist(),
            v=colours.round(3).tolist(),
            level=level.tolist(),
            names=[case.node_name(node) for node in nodes.tolist()],
            ends=ends.tolist(),
            q=[round(float(probability), 3) for _, probability in pairs],
            labels=None if texts is None or molecule else [texts[node] or str(node) for node in nodes],
            marked=slots(explained) if len(slots(explained)) == len(explained) else [],
            parts=[slots(part.nodes) for part in parts] if len(parts) > 1 else [],
            most=most,
            strokes=molecule.strokes if molecule else [],
            unbound=unbound,
            truth=None if truth is None else truth.tolist(),
            found=_found(case),
            others=others,
            degree=np.diff(graph.indptr)[nodes].tolist(),
            types=types,
            kinds=None if case.types is None else [types.index(case.types[node]) for node in nodes],
            relations=None if case.relations is None else _relations(explanation, case.relations, ids),
            features=_features(explanation, nodes, level),
            notes=notes,
        )


def node_limit(num_cases: int) -> int:
    """Returns how many nodes of each case are drawn, so that a report of many cases can still be mailed."""
    return int(np.clip(BUDGET // max(num_cases, 1), FEWEST_NODES, MOST_NODES))


def explained_nodes(explanation: Any) -> list[int] | None:
    """Returns the explained node, or both ends of the explained link; ``None`` where a graph is explained."""
    if explanation.explained_link is not None:
        return list(explanation.explained_link)
    return None if explanation.explained_node is None else [explanation.explained_node]


def adjacency(explanation: Any) -> csr_array:
    """Returns the graph without directions and loops, shape ``[N, N]``."""
    source, target = explanation.edge_index.cpu().numpy()
    number, kept = len(explanation.node_probability()), source != target
    ends = np.concatenate([source[kept], target[kept]]), np.concatenate([target[kept], source[kept]])
    return coo_array((np.ones(ends[0].size), ends), shape=(number, number)).tocsr()


def _chosen_nodes(case: Case, graph: csr_array, limit: int) -> tuple[np.ndarray, str]:
    """Returns the nodes that are drawn, shape ``[n]``, and what was left out, in words.

    The most probable come first, then the nearest. The explanation, and the first subgraph of each compared one, are
    always among them. Around an explained node nothing is taken that lies farther away than the explanation reaches,
    two steps at least.
    """
    explanation = case.explanation
    values, start = explanation.node_probability(), explained_nodes(explanation)
    compared = [explanation, *case.beside.values()]
    first = sorted({node for other in compared for node in (*main_set(other).nodes, *other.subgraphs[0].nodes)})
    seeds = start or np.flatnonzero(values > 0).tolist() or first
    hops = dijkstra(graph, directed=False, indices=seeds, unweighted=True, min_only=True)
    inside, reach = np.ones(values.size, dtype=bool), 0
    last = np.ones(values.size)
    last[first] = 0
    if start is not None:
        reach = max(int(hops[(values > 0) & np.isfinite(hops)].max(initial=0)), 2)
        inside = (values > 0) | (hops <= reach)
        last[start] = -1
    inside[first] = True
    order = np.lexsort((hops, -values, last))
    nodes = order[inside[order]][:limit]
    if nodes.size == values.size:
        return nodes, ""
    near = "the most probable, then the nearest to them"
    if start is not None:
        names = [case.node_name(node) for node in start]
        what = " and ".join(f"node {name}" if name.isdecimal() else name for name in names)
        near = f"those within {reach} steps of {what}"
        if nodes.size >= limit:
            near = f"the most probable, then the nearest to {what}"
    return nodes, f"Drawn are {nodes.size} of the graph's {values.size} nodes: {near}."


def _shown(kind: str, explained: Sequence[int], ends: np.ndarray, truth: Any, others: Sequence[Any]) -> Any:
    """Returns the positions that are shown at once: ground truth and others' choices; ``None`` where all are."""
    if kind != "graph" or (not explained and ends.max(initial=0) < SMALL_GRAPH):
        return None
    marked = [] if truth is None else ends[truth].ravel().tolist()
    return sorted({*marked, *(slot for other in others for slot in other["slots"])})


def _levels(core: Sequence[int], ends: np.ndarray, values: np.ndarray, shown: Sequence[int] | None) -> np.ndarray:
    """Returns when each node is shown, shape ``[n]``: the explanation, its direct neighbours, then the rest.

    Of a hub only the most probable neighbours come with it.
    """
    level = np.full(values.size, 2)
    level[slice(None) if shown is None else list(shown)] = 1
    level[core] = 0
    place = np.empty(values.size, dtype=int)
    place[np.argsort(-values, kind="stable")] = np.arange(values.size)
    near: set[int] = set()
    for node in sorted(set(core)):
        joined = np.unique(ends[(ends == node).any(axis=1)])
        outside = joined[level[joined] == 2]
        near |= set(outside[np.argsort(place[outside])][:NEAR_ONE].tolist())
    level[sorted(near, key=lambda node: place[node])[:NEAR_ALL]] = 1
    return level


def _place(
    kind: str, molecule: Molecule | None, nodes: np.ndarray, level: np.ndarray, ends: np.ndarray, middle: Sequence[int]
) -> np.ndarray:
    """Returns where nodes lie, in pixels, y downwards, shape ``[n, 2]``."""
    if molecule is not None:
        return molecule.place[nodes]
    if kind == "sentence":
        return np.stack([np.arange(nodes.size), np.zeros(nodes.size)], axis=1)
    around = [*middle, *np.flatnonzero(level == 0).tolist()][0]
    return layout_around(level, ends, GAPS, around) * [1, -1] + 0.0


def _colours(explanation: Any, nodes: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float | None]:
    """Returns what colours nodes, shape ``[n]``, and the largest contribution where they are coloured by these."""
    whole, of_value = explanation.whole_prediction, explanation.explained_class is None
    if whole is None or len(whole) > 1 or not of_value or "node_contributions" not in explanation:
        return values, None
    added = explanation.node_contributions.detach().double().cpu().numpy().reshape(-1)[nodes]
    most = float(np.abs(added).max(initial=0.0))
    return (added / most, most) if np.isfinite(most) and most > 0 else (values, None)


def _together(added: np.ndarray) -> str:
    """Says what the nodes of the explanation add to a value, so that contributions that cancel are seen."""
    up, down = float(added[added > 0].sum()), float(added[added < 0].sum())
    if up and down:
        return f"The explanation raises the value by {up:+.3g} and lowers it by {down:+.3g}: {up + down:+.3g} together."
    return f"The explanation adds {up + down:+.3g} to the value."


def _relations(explanation: Any, names: Sequence[str], pairs: np.ndarray) -> list[str]:
    """Returns the relations that join each of ``pairs`` ``[e, 2]`` of node ids, without reverse ones."""
    found: dict[tuple[int, int], dict[str, None]] = {(u, v): {} for u, v in pairs.tolist()}
    source, target = explanation.edge_index.cpu().numpy()
    drawn = np.isin(np.arange(len(explanation.node_probability())), pairs)
    for edge in np.flatnonzero(drawn[source] & drawn[target] & (source != target)).tolist():
        found[tuple(sorted((int(source[edge]), int(target[edge]))))][str(names[edge])] = None  # type: ignore[index]
    return [", ".join(n for n in own if not (n[:4] == "rev_" and n[4:] in own)) for own in found.values()]


def _features(explanation: Any, nodes: np.ndarray, level: np.ndarray) -> list[str] | None:
    """Writes the first features that are not zero of nodes that are shown at first; ``None`` if there are none."""
    x = explanation.x if "x" in explanation else None
    if x is None or x.dim() != 2 or x.size(1) == 0:
        return None
    texts = [""] * nodes.size
    for slot in np.flatnonzero(level < 2).tolist():
        row = x[int(nodes[slot])].detach().double().cpu().numpy()
        present = np.flatnonzero(row) if row.size > 6 else np.arange(row.size)
        said = ", ".join(f"{column}: {row[column]:.3g}" for column in present[:6]) or "all zero"
        texts[slot] = f"{said}, …" if present.size > 6 else said
    return texts


def _others(
    case: Case, pairs: np.ndarray, ends: np.ndarray, slots: Any, count: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns scores of other explainers, scaled to [0, 1], with their best nodes, and says what was odd with them."""
    found, notes = [], []
    core = slots(case.explanation.subgraphs[0].nodes)
    inside = max(int(np.isin(ends, core).all(axis=1).sum()), 1)
    for name, given in [*case.others.items(), *((name, other.edge_mask) for name, other in case.beside.items())]:
        score = given.detach().double().cpu().numpy()
        sound = np.isfinite(score)
        if not sound.all():
            notes.append(f"{int((~sound).sum())} scores of {name} are not finite and shown as its lowest.")
        low = min(score[sound].min(initial=0.0), 0.0)
        spread = score[sound].max(initial=low) - low
        q = _at_pairs(case.explanation, np.where(sound, score - low, 0.0) / (spread if spread > 0 else 1.0), pairs)
        p = np.zeros(count)
        np.maximum.at(p, ends, q[:, None])
        best = np.argsort(-q, kind="stable")[:inside]
        chosen = np.unique(ends[best[q[best] > 0]]).tolist()
        if name in case.beside:
            chosen = slots(main_set(case.beside[name]).nodes)
        found.append({"name": str(name), "q": q.round(3).tolist(), "p": p.round(3).tolist(), "slots": chosen})
    return found, notes


def _at_pairs(explanation: Any, score: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Reads the larger score of both directions at undirected ``pairs`` ``[e, 2]`` of node ids, shape ``[e]``."""
    ends = np.sort(explanation.edge_index.cpu().numpy(), axis=0)
    size = max(int(ends.max(initial=0)), int(pairs.max(initial=0))) + 1
    wanted = pairs[:, 0] * size + pairs[:, 1]
    rank, entry = np.argsort(wanted), ends[0] * size + ends[1]
    kept = np.flatnonzero(np.isin(entry, wanted))
    values = np.zeros(len(pairs))
    np.maximum.at(values, rank[np.searchsorted(wanted[rank], entry[kept])], score[kept].astype(float))
    return values


def _found(case: Case) -> tuple[int, int] | None:
    """Counts the ground-truth edges among the equally many most probable edges; ties count as a fair draw, rounded."""
    if case.truth is None:
        return None
    ends = case.explanation.edge_index.cpu()[:, case.truth.cpu().bool()].t().tolist()
    inside = {(min(u, v), max(u, v)) for u, v in ends if u != v}
    pairs = case.explanation.edge_probability(np.flatnonzero(case.explanation.node_probability() > 0).tolist())
    ranked = sorted(((p, pair in inside) for pair, p in pairs.items() if p > 0), key=lambda entry: -entry[0])
    if len(ranked) <= len(inside):
        return sum(hit for _, hit in ranked), len(inside)
    bar = ranked[len(inside) - 1][0] if inside else 1.0
    sure = [hit for p, hit in ranked if p > bar]
    tied = [hit for p, hit in ranked if p == bar]
    share = (len(inside) - len(sure)) / max(len(tied), 1)
    return sum(sure) + round(sum(tied) * share), len(inside)
