"""The scene of a case: which nodes and edges are drawn, where, with which values. Page and figures draw the same."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.pictures import Picture, layout
from gflowexplainer.report.content import Case
from gflowexplainer.report.molecule_drawing import read_molecule

MOST_NODES, BUDGET, FEWEST_NODES = 300, 12_000, 60
"""Nodes drawn of one case, of all cases together, and of one case however many there are."""


@dataclass(frozen=True, eq=False)
class Scene:
    """``n`` nodes and ``e`` undirected edges, ready to be drawn.

    Attributes:
        kind: ``"graph"``, ``"molecule"`` or ``"sentence"``.
        nodes: Ids in the user's graph, shape ``[n]``.
        place: Where they lie, y upwards, shape ``[n, 2]``.
        values: Probability of each node, shape ``[n]``.
        ends: Positions of both ends of each edge in ``nodes``, shape ``[e, 2]``; the most probable edge last.
        edge_values: Probability of each edge, shape ``[e]``.
        order: Bond order of each edge, shape ``[e]``; 0 where the molecule has no such bond. ``None`` if no molecule.
        truth: Whether each edge is in the ground truth, shape ``[e]``; ``None`` if it is not known.
        others: Scores of other explainers, each ``[e]``, scaled to [0, 1].
        found: Ground-truth edges among as many most probable edges, and the number of them, over the whole graph.
        labels: What is written on each node, if not its id.
        names: What each node is called in a list.
        ringed: Position of the explained node.
        notes: What the reader must know about the drawing.
    """

    kind: str
    nodes: np.ndarray
    place: np.ndarray
    values: np.ndarray
    ends: np.ndarray
    edge_values: np.ndarray
    order: np.ndarray | None
    truth: np.ndarray | None
    others: dict[str, np.ndarray]
    found: tuple[int, int] | None
    labels: list[str] | None
    names: list[str]
    ringed: int | None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, case: Case, limit: int = MOST_NODES) -> Scene:
        """Gathers what is drawn of a case: at most ``limit`` nodes, the most probable and then the nearest."""
        explanation = case.explanation
        notes: list[str] = []
        molecule = None
        if case.smiles is not None:
            read = read_molecule(case.smiles, case.num_nodes)
            if isinstance(read, str):
                notes.append(f"Drawn as a graph: {read}")
            else:
                molecule = read
        kind = "sentence" if case.words is not None else "graph" if molecule is None else "molecule"
        nodes, reach = _chosen(explanation, limit)
        if kind == "sentence":
            nodes = np.sort(nodes)
        if len(nodes) < case.num_nodes:
            notes.append(_left_out(explanation, len(nodes), case.num_nodes, limit, reach))
        values = explanation.node_probability()
        slot = np.full(values.size, -1)
        slot[nodes] = np.arange(nodes.size)
        pairs = explanation.edge_probability(nodes.tolist())
        ends = np.array(list(pairs), dtype=int).reshape(-1, 2)
        probability = np.array(list(pairs.values()), dtype=float)
        rank = np.argsort(probability, kind="stable")
        ends, probability = ends[rank], probability[rank]
        scores, odd = _scores(case)
        notes += [*odd, *explanation.warnings]
        drawn = {name: _at_pairs(explanation, score, ends) for name, score in scores.items()}
        marks = None if case.truth is None else case.truth.cpu().numpy().astype(bool).astype(float)
        text = case.words if case.words is not None else case.labels
        labels = None if text is None else [str(text[node]) for node in nodes]
        names = [str(node) if text is None else f"{text[node]} ({node})" for node in nodes]
        places, order = None, None
        if molecule is not None:
            places, order = molecule.place[nodes], molecule.orders(ends)
            labels = [molecule.symbols[node] for node in nodes]
            names = [f"{molecule.elements[node]}{node}" for node in nodes]
            if (order == 0).any():
                notes.append("Dotted lines are edges of the graph that are no bonds of the molecule.")
        elif kind == "sentence":
            names = labels or names
            places = np.stack([np.arange(nodes.size), np.zeros(nodes.size)], axis=1).astype(float)
        node = explanation.explained_node
        return cls(
            kind=kind,
            nodes=nodes,
            place=_turned(layout(nodes.size, slot[ends].tolist())) if places is None else places,
            values=values[nodes],
            ends=slot[ends],
            edge_values=probability,
            order=order,
            truth=None if marks is None else _at_pairs(explanation, marks, ends) > 0,
            others=drawn,
            found=_found(case),
            labels=labels,
            names=names,
            ringed=None if node is None or slot[node] < 0 else int(slot[node]),
            notes=notes,
        )

    @property
    def truth_nodes(self) -> np.ndarray:
        """Whether each node is an end of a ground-truth edge, shape ``[n]``."""
        inside = np.zeros(self.nodes.size, dtype=bool)
        if self.truth is not None:
            inside[self.ends[self.truth]] = True
        return inside

    def node_scores(self, name: str) -> np.ndarray:
        """Returns the largest score of each node's edges by another explainer, shape ``[n]``."""
        scores = np.zeros(self.nodes.size)
        np.maximum.at(scores, self.ends, self.others[name][:, None])
        return scores

    def picture(self, other: str | None = None) -> Picture:
        """Returns what matplotlib draws: the explanation, or the scores of an ``other`` explainer."""
        values = self.values if other is None else self.node_scores(other)
        scores = self.edge_values if other is None else self.others[other]
        rank = np.argsort(scores, kind="stable")
        edges = [(int(i), int(j), float(v)) for (i, j), v in zip(self.ends[rank], scores[rank], strict=True)]
        marked = [] if self.truth is None else np.flatnonzero(self.truth[rank]).tolist()
        return Picture(
            self.nodes.tolist(), values, edges, self.ringed, "", labels=self.labels, marked=marked, given=self.place
        )


def node_limit(num_cases: int) -> int:
    """Returns how many nodes of each case are drawn, so that a report of many cases can still be mailed."""
    return int(np.clip(BUDGET // max(num_cases, 1), FEWEST_NODES, MOST_NODES))


def _chosen(explanation: SubgraphExplanation, limit: int) -> tuple[np.ndarray, int]:
    """Picks nodes, shape ``[n]``: the most probable, then the nearest; also tells how far away from the explained one.

    At node level nothing is taken that lies farther away than the explanation reaches, two steps at least: sampled
    subgraphs stay within the computation graph, so the rest is of no account.
    """
    values = explanation.node_probability()
    source, target = explanation.edge_index.cpu().numpy()
    graph = coo_array((np.ones(source.size), (source, target)), shape=(values.size, values.size)).tocsr()
    start = explanation.explained_node
    seeds = np.flatnonzero(values > 0) if start is None else np.array([start])
    if seeds.size == 0:
        seeds = np.array(explanation.subgraphs[0].nodes)
    hops = dijkstra(graph, directed=False, indices=seeds, unweighted=True, min_only=True)
    inside, reach = values > 0, 0
    if start is not None:
        reach = max(int(hops[inside & np.isfinite(hops)].max(initial=0)), 2)
        inside |= hops <= reach
    else:
        inside[:] = True
    order = np.lexsort((hops, -values))
    order = order[inside[order]][:limit]
    if start is not None and start not in order:
        order[-1] = start
    return order, reach


def _left_out(explanation: SubgraphExplanation, shown: int, total: int, limit: int, reach: int) -> str:
    near = "the most probable, then the nearest to them"
    if explanation.explained_node is not None:
        near = f"those within {reach} steps of node {explanation.explained_node}"
        if shown >= limit:
            near = f"the most probable, then the nearest to node {explanation.explained_node}"
    return f"Drawn are {shown} of the graph's {total} nodes: {near}."


def _scores(case: Case) -> tuple[dict[str, np.ndarray], list[str]]:
    """Brings other explainers' scores to [0, 1], each ``[E]``, and says what was odd with them."""
    scores, notes = {}, []
    for name, given in case.others.items():
        score = given.detach().double().cpu().numpy()
        sound = np.isfinite(score)
        if not sound.all():
            notes.append(f"{int((~sound).sum())} scores of {name} are not finite and shown as its lowest.")
        low = min(score[sound].min(initial=0.0), 0.0)
        spread = score[sound].max(initial=low) - low
        scores[str(name)] = np.where(sound, score - low, 0.0) / (spread if spread > 0 else 1.0)
    return scores, notes


def _at_pairs(explanation: SubgraphExplanation, score: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Reads the larger score of both directions at undirected ``pairs`` ``[e, 2]`` of node ids, shape ``[e]``."""
    ends = np.sort(explanation.edge_index.cpu().numpy(), axis=0)
    size = max(int(ends.max(initial=0)), int(pairs.max(initial=0))) + 1
    wanted = pairs[:, 0] * size + pairs[:, 1]
    rank = np.argsort(wanted)
    entry = ends[0] * size + ends[1]
    kept = np.flatnonzero(np.isin(entry, wanted))
    values = np.zeros(len(pairs))
    np.maximum.at(values, rank[np.searchsorted(wanted[rank], entry[kept])], score[kept])
    return values


def _found(case: Case) -> tuple[int, int] | None:
    """Counts the ground-truth edges among the equally many most probable edges; ties count as a fair draw, rounded."""
    if case.truth is None:
        return None
    truth = case.truth.cpu().numpy().astype(bool)
    source, target = case.explanation.edge_index.cpu().numpy()
    truth = truth & (source != target)
    count = len(np.unique(np.sort(np.stack([source, target])[:, truth], axis=0), axis=1).T)
    pairs = case.explanation.edge_probability(np.flatnonzero(case.explanation.node_probability() > 0).tolist())
    inside = {(min(u, v), max(u, v)) for u, v in np.stack([source, target])[:, truth].T.tolist()}
    ranked = sorted(((p, pair in inside) for pair, p in pairs.items() if p > 0), key=lambda entry: -entry[0])
    if len(ranked) <= count:
        return sum(hit for _, hit in ranked), count
    bar = ranked[count - 1][0] if count else 1.0
    sure = [hit for p, hit in ranked if p > bar]
    tied = [hit for p, hit in ranked if p == bar]
    share = (count - len(sure)) / max(len(tied), 1)
    return sum(sure) + round(sum(tied) * share), count


def _turned(place: np.ndarray) -> np.ndarray:
    """Lays the longer side of a drawing along the page."""
    centred = place - place.mean(axis=0)
    if len(place) < 3:
        return centred
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T
    # The sign of an axis is arbitrary; fix it, so that one graph is always drawn one way.
    heavy = np.abs(turned).argmax(axis=0)
    return turned * np.sign(turned[heavy, [0, 1]])
