"""What a page draws of a case, as plain values for its script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.colours import TYPES
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ModelError

MOST_SUBGRAPHS = 25
"""Ranked subgraphs that are listed of one case."""
MOST_FEATURES = 8
"""Features whose contributions are shown of one case."""


def case_data(case: Case, scene: Scene, most_subgraphs: int = MOST_SUBGRAPHS) -> dict[str, Any]:
    """Returns what the page draws of a case, as plain values; positions are in pixels, y downwards."""
    explanation, level = case.explanation, scene.levels
    listed = explanation.top(most_subgraphs)
    slot = {int(node): i for i, node in enumerate(scene.nodes)}
    kinds = scene.kinds
    counts = [int((level <= number).sum()) for number in range(3)]
    features = scene.features
    return {
        "name": case.name,
        "note": case.note,
        "notes": scene.notes,
        "warnings": list(explanation.warnings),
        "kind": scene.kind,
        "ids": scene.nodes.tolist(),
        "x": rounded(scene.place[:, 0], 1),
        "y": rounded(-scene.place[:, 1], 1),
        "p": rounded(scene.values),
        "level": level.tolist(),
        "counts": counts,
        "start": 1 if counts[1] > counts[0] or counts[2] == counts[0] else 2,
        "more": [_undrawn(scene, number) for number in (1, 2)],
        "degree": None if scene.degree is None else scene.degree.tolist(),
        "labels": scene.labels,
        "names": scene.names,
        "types": kinds or None,
        "kinds": None if scene.types is None else [kinds.index(name) for name in scene.types],
        "colours": [TYPES[number % len(TYPES)] for number in range(len(kinds))],
        "relations": scene.relations,
        "link": scene.link,
        "features": None if features is None else [t if at < 2 else "" for t, at in zip(features, level, strict=True)],
        "ends": scene.ends.tolist(),
        "q": rounded(scene.edge_values),
        "order": None if scene.order is None else rounded(scene.order, 1),
        "truth": None if scene.truth is None else np.flatnonzero(scene.truth).tolist(),
        "found": scene.found,
        "ring": scene.ringed,
        "others": [
            {"name": name, "q": rounded(score), "p": rounded(scene.node_scores(name)), "slots": _slots(scene, name)}
            | (_beside(case, name, scene, slot) if name in case.beside else {})
            for name, score in scene.others.items()
        ],
        "parts": _parts(explanation, scene, slot),
        "change": _change(case, scene, slot),
        "features_of": _contributions(case),
        "subgraphs": [_subgraph(subgraph, scene, slot) for subgraph in listed],
        "more_subgraphs": len(explanation.subgraphs) - len(listed),
        "whole": None if explanation.whole_prediction is None else rounded(np.array(explanation.whole_prediction), 4),
        "held": explanation.explained_class,
        "classes": None if case.classes is None else [str(name) for name in case.classes],
        "facts": [
            _origin(explanation),
            _certificate(explanation),
        ],
    }


def _origin(explanation: Any) -> str:
    """Returns how many subgraphs there are, and how right their probabilities."""
    number, error = len(explanation.subgraphs), explanation.error
    sure = "exact" if error == 0 else f"off by about {error:.2f} in total variation"
    return f"{number} different subgraph{'' if number == 1 else 's'}; their probabilities are {sure}."


def _certificate(explanation: Any) -> str:
    known = explanation.known_certificate
    return f"Certificate: {known}" if known.asked else "No certificate was computed."


def _slots(scene: Scene, name: str) -> list[int]:
    return scene.focus[name].tolist() if name in scene.focus else []


def _beside(case: Case, name: str, scene: Scene, slot: Mapping[int, int]) -> dict[str, Any]:
    """Returns what another explanation of the same instance says, and how many nodes both share."""
    mine, theirs = case.explanation.subgraphs[0], case.beside[name].subgraphs[0]
    both = len({*mine.nodes} & {*theirs.nodes})
    return {"first": _subgraph(theirs, scene, slot), "shared": [both, len({*mine.nodes} | {*theirs.nodes})]}


def _undrawn(scene: Scene, level: int) -> list[tuple[int, int]]:
    """Returns the nodes of the explanation that have neighbours which are not drawn at a level, and how many."""
    count = scene.undrawn(level)
    return [(int(slot), int(count[slot])) for slot in np.flatnonzero((scene.levels == 0) & (count > 0))]


def _subgraph(subgraph: Any, scene: Scene, slot: Mapping[int, int]) -> dict[str, Any]:
    try:
        only, without = (rounded(np.array(p), 4) for p in (subgraph.prediction_only, subgraph.prediction_without))
    except ModelError:  # the model has changed since; a drawing is still one
        only, without = None, None
    return {
        **_named(subgraph.nodes, scene, slot),
        "p": finite(subgraph.probability),
        "r": finite(subgraph.reward),
        "only": only,
        "without": without,
    }


def _named(nodes: Sequence[int], scene: Scene, slot: Mapping[int, int]) -> dict[str, Any]:
    """Returns nodes as text, and where they are drawn."""
    # Words are read in their own order, nodes in that of their weight.
    ordered = sorted(nodes) if scene.kind == "sentence" else list(nodes)
    names = [scene.names[slot[node]] if node in slot else str(node) for node in ordered]
    text = (" " if scene.kind == "sentence" else ", ").join(names)
    return {"text": text, "slots": [slot[node] for node in nodes if node in slot]}


def _parts(explanation: Any, scene: Scene, slot: Mapping[int, int]) -> dict[str, Any] | None:
    """Returns the parts, what the model says with and without each, and whether they hold; ``None`` if not known."""
    parts = explanation.known_parts
    if parts is None:
        return None

    def entry(one: Any) -> dict[str, Any]:
        said = {name: rounded(np.array(getattr(one, f"prediction_{name}")), 4) for name in ("only", "without")}
        return _named(one.nodes, scene, slot) | said

    listed = [entry(part) for part in parts]
    return entry(parts) | {"list": listed, "holds": parts.holds, "verdict": parts.verdict()}


def _change(case: Case, scene: Scene, slot: Mapping[int, int]) -> dict[str, Any] | None:
    """Returns what would change the prediction, as far as that is known; ``None`` where it was not computed."""
    known = case.explanation.studies.knows("counterfactual")
    found = next((one for one in known if one is not None), None)
    if found is None:
        return None if not known else {"found": False}
    text = _named(found.nodes, scene, slot)
    if found.by == "edges":
        text["text"] = ", ".join(
            "–".join(scene.names[slot[end]] if end in slot else str(end) for end in pair) for pair in found.edges
        )
    proof = "no smaller set does" if found.minimal else "smaller sets were not all tried"
    return text | {
        "found": True,
        "by": found.by,
        "count": len(found),
        "prediction": rounded(np.array(found.prediction), 4),
        "proof": proof,
        "others": len(found.alternatives),
    }


def _contributions(case: Case) -> dict[str, Any] | None:
    """Returns the features that count most, as far as that is known."""
    known = case.explanation.studies.knows("features")
    if not known:
        return None
    found, names = known[0], case.feature_names
    return {
        "bars": [
            [str(names[f]) if names is not None and found.of == "x" else f"{found.of}[{f}]", finite(value)]
            for f, value in found.top(MOST_FEATURES)
        ],
        "said": "exact Shapley values" if found.exact else f"Shapley values, standard error {found.error:.3f}",
    }


def rounded(values: np.ndarray, digits: int = 3) -> list[float | None]:
    """Returns rounded numbers ``[k]``."""
    return [finite(value, digits) for value in np.asarray(values, dtype=float).tolist()]


def finite(value: float, digits: int = 4) -> float | None:
    """Returns a rounded number; JSON knows neither NaN nor infinity."""
    return round(value, digits) if math.isfinite(value) else None
