"""The scene of a case: which nodes and edges are drawn, where, with which values. Every painter draws the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.choice import MOST_NODES, adjacency, best_ends, chosen_nodes, explained_nodes, node_levels
from gflowexplainer.drawing.layout import layout_around
from gflowexplainer.drawing.molecules import read_molecule

GAPS = (88.0, 34.0, 20.0)
"""How far apart nodes of the explanation, their neighbours and the rest lie at least, in pixels of a page."""
ATOM = 46.0
"""Pixels of a bond."""
_OF_NODES = ("nodes", "place", "values", "labels", "names", "level", "degree", "types", "features")
_OF_EDGES = ("edge_values", "order", "truth", "relations")
"""Fields of a scene that have one entry a node, and one an edge."""


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
        parts: Positions of the nodes of each part of the explanation; empty where there is one part or none is known.
        link: Positions of both ends of the explained link; ``None`` if none is explained or one is not drawn.
        focus: Positions of the nodes that another explainer chooses, by its name.
        level: When each node is shown, shape ``[n]``: 0 as the explanation, 1 beside it, 2 with the surroundings. All
            are part of the explanation if not given.
        degree: Neighbours of each node in the whole graph, shape ``[n]``; as drawn if not given.
        types: Name of each node's type, if there are types.
        relations: Names of the relations of each edge, if there are relations.
        features: Features of each node in words, if it has any.
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
    parts: list[np.ndarray] = field(default_factory=list)
    focus: dict[str, np.ndarray] = field(default_factory=dict)
    level: np.ndarray | None = None
    degree: np.ndarray | None = None
    types: list[str] | None = None
    relations: list[str] | None = None
    link: tuple[int, int] | None = None
    features: list[str] | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, case: Case, limit: int = MOST_NODES) -> Scene:
        """Returns what is drawn of a case: at most ``limit`` nodes, the most probable and then the nearest."""
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
        graph = adjacency(explanation)
        nodes, reach = chosen_nodes(case, graph, limit)
        if kind == "sentence":
            nodes = np.sort(nodes)
        if len(nodes) < case.num_nodes:
            notes.append(_left_out(explanation, len(nodes), case.num_nodes, limit, reach, case.names is not None))
        values = explanation.node_probability()
        slot = np.full(values.size, -1)
        slot[nodes] = np.arange(nodes.size)
        pairs = explanation.edge_probability(nodes.tolist())
        ends = np.array(list(pairs), dtype=int).reshape(-1, 2)
        probability = np.array(list(pairs.values()), dtype=float)
        rank = np.argsort(probability, kind="stable")
        ends, probability = ends[rank], probability[rank]
        scores, odd = _scores(case)
        notes += odd
        drawn = {name: _at_pairs(explanation, score, ends) for name, score in scores.items()}
        marks = None if case.truth is None else case.truth.cpu().numpy().astype(bool).astype(float)
        truth = None if marks is None else _at_pairs(explanation, marks, ends) > 0
        text = case.words if case.words is not None else case.labels
        labels = None if text is None else [str(text[node]) for node in nodes]
        names = [str(node) if text is None else _name(str(text[node]), int(node)) for node in nodes]
        names = names if case.names is None else [str(case.names[node]) for node in nodes]
        node, both = explanation.explained_node, explanation.explained_link
        ringed = None if node is None or slot[node] < 0 else int(slot[node])
        link = None if both is None or (slot[list(both)] < 0).any() else (int(slot[both[0]]), int(slot[both[1]]))
        first = slot[list(explanation.subgraphs[0].nodes)]
        focus = {name: best_ends(score, slot[ends], first[first >= 0]) for name, score in drawn.items()}
        focus |= {name: slot[list(other.subgraphs[0].nodes)] for name, other in case.beside.items()}
        focus = {name: found[found >= 0] for name, found in focus.items()}
        level = node_levels(explanation, slot, slot[ends], values[nodes], whole=kind != "graph", truth=truth)
        for found in focus.values():
            level[found] = np.minimum(level[found], 1)
        order = None
        if molecule is not None:
            place, order = ATOM * molecule.place[nodes] / 1.5, molecule.orders(ends)
            labels = [molecule.symbols[node] for node in nodes]
            names = [f"{molecule.elements[node]}{node}" for node in nodes]
            if (order == 0).any():
                notes.append("Dotted lines are edges of the graph that are no bonds of the molecule.")
        elif kind == "sentence":
            names = labels or names
            place = np.stack([np.arange(nodes.size), np.zeros(nodes.size)], axis=1).astype(float)
        else:
            middle = ringed if ringed is not None else int(np.flatnonzero(level == 0)[0]) if link is None else link[0]
            place = layout_around(level, slot[ends], GAPS, middle)
        return cls(
            kind=kind,
            nodes=nodes,
            place=place,
            values=values[nodes],
            ends=slot[ends],
            edge_values=probability,
            order=order,
            truth=truth,
            others=drawn,
            found=_found(case),
            labels=labels,
            names=names,
            ringed=ringed,
            parts=_parts(explanation, slot),
            focus=focus,
            level=level,
            degree=np.diff(graph.indptr)[nodes],
            types=None if case.types is None else [str(case.types[node]) for node in nodes],
            relations=None if case.relations is None else _relations(explanation, case.relations, ends),
            link=link,
            features=_features(explanation, nodes),
            notes=notes,
        )

    @property
    def marked(self) -> tuple[int, ...]:
        """Positions of what is explained: the node, or both ends of the link."""
        return self.link if self.link is not None else () if self.ringed is None else (self.ringed,)

    @property
    def kinds(self) -> list[str]:
        """Names of the types that are drawn, in the order of their shapes."""
        return sorted(set(self.types or []))

    @property
    def levels(self) -> np.ndarray:
        """When each node is shown, shape ``[n]``."""
        return np.zeros(self.nodes.size, dtype=int) if self.level is None else self.level

    def undrawn(self, level: int) -> np.ndarray:
        """Counts the neighbours of each node that are not drawn up to a level, shape ``[n]``."""
        both = (self.levels[self.ends] <= level).all(axis=1)
        drawn = np.bincount(self.ends[both].ravel(), minlength=self.nodes.size)
        return np.zeros(self.nodes.size, dtype=int) if self.degree is None else self.degree - drawn

    def up_to(self, level: int) -> Scene:
        """Returns the scene without the nodes that are only shown at higher levels."""
        kept = self.levels <= level
        if kept.all():
            return self
        slot, joined = np.cumsum(kept) - 1, kept[self.ends].all(axis=1)
        changes: dict[str, Any] = {}
        for names, mask in ((_OF_NODES, kept), (_OF_EDGES, joined)):
            for name in names:
                value = getattr(self, name)
                if isinstance(value, np.ndarray):
                    changes[name] = value[mask]
                elif value is not None:
                    changes[name] = [text for text, stays in zip(value, mask, strict=True) if stays]
        return replace(
            self,
            **changes,
            ends=slot[self.ends[joined]],
            others={name: score[joined] for name, score in self.others.items()},
            ringed=None if self.ringed is None else int(slot[self.ringed]),
            parts=[slot[part[kept[part]]] for part in self.parts],
            focus={name: slot[found[kept[found]]] for name, found in self.focus.items()},
            link=None if self.link is None else (int(slot[self.link[0]]), int(slot[self.link[1]])),
        )

    @property
    def truth_nodes(self) -> np.ndarray:
        """Returns whether each node is an end of a ground-truth edge, shape ``[n]``."""
        inside = np.zeros(self.nodes.size, dtype=bool)
        if self.truth is not None:
            inside[self.ends[self.truth]] = True
        return inside

    def inside_part(self, part: np.ndarray) -> np.ndarray:
        """Returns the positions of the edges inside a part, shape ``[k]``."""
        return np.flatnonzero(np.isin(self.ends, part).all(axis=1))

    def node_scores(self, name: str) -> np.ndarray:
        """Returns the largest score of each node's edges by another explainer, shape ``[n]``."""
        scores = np.zeros(self.nodes.size)
        np.maximum.at(scores, self.ends, self.others[name][:, None])
        return scores


def _parts(explanation: Any, slot: np.ndarray) -> list[np.ndarray]:
    """Returns the positions of the nodes of each part, where there are several."""
    parts = explanation.known_parts
    if parts is None or len(parts) < 2:
        return []
    places = [slot[list(part.nodes)] for part in parts]
    return [place[place >= 0] for place in places]


def _relations(explanation: Any, names: Sequence[str], pairs: np.ndarray) -> list[str]:
    """Returns the relations that join each of ``pairs`` ``[e, 2]`` of node ids, without reverse ones."""
    place = {(int(u), int(v)): k for k, (u, v) in enumerate(pairs)}
    found: list[dict[str, None]] = [{} for _ in place]
    source, target = explanation.edge_index.cpu().numpy()
    drawn = np.zeros(len(explanation.node_probability()), dtype=bool)
    drawn[pairs.ravel()] = True
    for edge in np.flatnonzero(drawn[source] & drawn[target]):
        u, v = int(source[edge]), int(target[edge])
        if u != v:
            found[place[min(u, v), max(u, v)]][str(names[int(edge)])] = None
    return [", ".join(name for name in own if not (name[:4] == "rev_" and name[4:] in own)) for own in found]


def _name(text: str, node: int) -> str:
    """Returns the name of a node:  its text and, where that says something else, its id."""
    return text if text == str(node) else f"{text} ({node})"


def _features(explanation: Any, nodes: np.ndarray) -> list[str] | None:
    """Writes the features of each node in a few words; ``None`` if there are none to read."""
    x = explanation.x if "x" in explanation else None
    if x is None or x.dim() != 2 or x.size(1) == 0:
        return None
    rows = x[nodes.tolist()].detach().double().cpu().numpy()
    if rows.shape[1] <= 6:
        return [", ".join(f"{value:.3g}" for value in row) for row in rows]
    texts = []
    for row in rows:
        present = np.flatnonzero(row)
        shown = ", ".join(str(column) if row[column] == 1 else f"{column}: {row[column]:.3g}" for column in present[:6])
        more = ", …" if present.size > 6 else ""
        texts.append(f"{present.size} of {row.size} are not zero" + (f" ({shown}{more})" if present.size else ""))
    return texts


def _left_out(explanation: Any, shown: int, total: int, limit: int, reach: int, named: bool) -> str:
    near = "the most probable, then the nearest to them"
    explained = explained_nodes(explanation)
    if explained is not None:
        what = "what is explained" if named or len(explained) > 1 else f"node {explained[0]}"
        near = f"those within {reach} steps of {what}"
        if shown >= limit:
            near = f"the most probable, then the nearest to {what}"
    return f"Drawn are {shown} of the graph's {total} nodes: {near}."


def _scores(case: Case) -> tuple[dict[str, np.ndarray], list[str]]:
    """Scales other explainers' scores to [0, 1], each ``[E]``, and says what was odd with them."""
    scores, notes = {}, []
    for name, given in [*case.others.items(), *((name, other.edge_mask) for name, other in case.beside.items())]:
        score = given.detach().double().cpu().numpy()
        sound = np.isfinite(score)
        if not sound.all():
            notes.append(f"{int((~sound).sum())} scores of {name} are not finite and shown as its lowest.")
        low = min(score[sound].min(initial=0.0), 0.0)
        spread = score[sound].max(initial=low) - low
        scores[str(name)] = np.where(sound, score - low, 0.0) / (spread if spread > 0 else 1.0)
    return scores, notes


def _at_pairs(explanation: Any, score: np.ndarray, pairs: np.ndarray) -> np.ndarray:
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
