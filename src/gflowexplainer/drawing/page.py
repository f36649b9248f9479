"""Drawings inside HTML: what the script of a page draws of a case, what a policy allows, and frames for notebooks."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from gflowexplainer.drawing.answer import called, enough, lines, main_set, needed, predictions, sentences
from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.painting import TYPES, still
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.storage.files import write_text

SCRIPTS = ("drawing.js", "stage.js", "case.js")
MOST_SUBGRAPHS, MOST_FEATURES = 25, 8
"""Ranked subgraphs that are listed of one case, and features whose contributions are shown."""
FRAME_HEIGHT, FRAME_NODES, FRAME_SUBGRAPHS = 640, 120, 10
"""Pixels that a frame is high until it knows its content, and what is drawn of a case inside it at most."""


def case_data(case: Case, scene: Scene, most_subgraphs: int = MOST_SUBGRAPHS) -> dict[str, Any]:
    """Returns what a page shows of a case, as plain values: the scene, and what is said of it."""
    explanation, slot = case.explanation, {node: place for place, node in enumerate(scene.ids)}

    def named(nodes: Iterable[int], only: Any = None, without: Any = None) -> dict[str, Any]:
        # Words are read in their own order, nodes in that of their weight.
        ordered = sorted(nodes) if scene.kind == "sentence" else list(nodes)
        names = [scene.names[slot[node]] if node in slot else case.node_name(node) for node in ordered]
        text = (" " if scene.kind == "sentence" else ", ").join(names)
        said = {"only": _rounded(only), "without": _rounded(without)}
        return {"text": text, "slots": [slot[node] for node in ordered if node in slot]} | said

    def ranked(subgraph: Any) -> dict[str, Any]:
        more = {"p": _finite(subgraph.probability), "r": _finite(subgraph.reward)}
        return named(subgraph.nodes, *predictions(subgraph)) | more

    main, listed = main_set(explanation), explanation.top(most_subgraphs)
    others = []
    for other in scene.others:
        found = None if other["name"] not in case.beside else main_set(case.beside[other["name"]])
        both = [] if found is None else [len({*main.nodes} & {*found.nodes}), len({*main.nodes} | {*found.nodes})]
        first = {} if found is None else {"first": named(found.nodes, *predictions(found)), "shared": both}
        others.append(other | first)
    return vars(scene) | {
        "name": case.name,
        "title": called(case),
        "note": case.note,
        "warnings": list(explanation.warnings),
        "colours": [TYPES[number % len(TYPES)] for number in range(len(scene.types))],
        "lines": lines(case),
        "answers": {"enough?": enough(explanation), "needed?": needed(explanation)},
        "main": named(main.nodes, *predictions(main)),
        "list": [named(part.nodes, *predictions(part)) for part in getattr(main, "parts", ())],
        "change": _change(case, named),
        "features_of": _contributions(case),
        "subgraphs": [ranked(subgraph) for subgraph in listed],
        "more_subgraphs": len(explanation.subgraphs) - len(listed),
        "whole": _rounded(explanation.whole_prediction),
        "held": explanation.explained_class,
        "classes": None if case.classes is None else list(case.classes),
        "others": others,
    }


def _change(case: Case, named: Any) -> dict[str, Any] | None:
    """Returns what would change the prediction, as far as that is known; ``None`` where it was not computed."""
    known = case.explanation.known("counterfactual")
    found = next((one for one in known if one is not None), None)
    if found is None:
        return {"found": False} if known else None
    text = named(found.nodes)
    if found.by == "edges":
        text["text"] = ", ".join("–".join(map(case.node_name, pair)) for pair in found.edges)
    return text | {
        "found": True,
        "by": found.by,
        "count": len(found),
        "prediction": _rounded(found.prediction),
        "proof": "no smaller set does" if found.minimal else "smaller sets were not all tried",
        "others": len(found.alternatives),
    }


def _contributions(case: Case) -> dict[str, Any] | None:
    """Returns the features that count most, as far as that is known."""
    known = case.explanation.known("features")
    if not known:
        return None
    found, names = known[0], case.feature_names
    bars = [
        [names[f] if names is not None and found.of == "x" else found.name(f), _finite(value)]
        for f, value in found.top(MOST_FEATURES)
    ]
    said = "exact Shapley values" if found.exact else f"Shapley values, standard error {found.error:.3f}"
    return {"bars": bars, "said": said}


def _rounded(prediction: Sequence[float] | None) -> list[float | None] | None:
    return None if prediction is None else [_finite(value) for value in prediction]


def _finite(value: float) -> float | None:
    """Returns a rounded number; JSON knows neither NaN nor infinity."""
    return round(value, 4) if math.isfinite(value) else None


def asset(name: str) -> str:
    """Reads a script or a style of the drawing."""
    return (files("gflowexplainer.drawing") / "assets" / name).read_text(encoding="utf-8")


def embedded_json(data: Any) -> str:
    """Writes JSON that cannot end the script element it stands in, nor begin a comment or an entity there."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy(script: str, style: str) -> str:
    """Writes the policy of a page that runs this one inline script and style, and loads nothing."""
    script, style = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style))
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@dataclass(frozen=True, eq=False)
class View:
    """A drawing to be looked at: as the last line of a notebook's cell, or saved as a page.

    Attributes:
        cases: What is drawn.
    """

    cases: Sequence[Case]

    def __repr__(self) -> str:
        return "\n".join(map(sentences, self.cases))

    def _repr_html_(self) -> str:
        return frame(self.cases, repr(self))

    def save(self, path: str | Path) -> None:
        """Writes a page that holds nothing but the drawing."""
        head = f'<meta charset="utf-8"><title>{escape(self.cases[0].name)}</title>'
        write_text(
            path, f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{self._repr_html_()}</body></html>\n'
        )


def frame(cases: Sequence[Case], text: str) -> str:
    """Returns HTML for a notebook: the interactive drawing alone in a frame, and a still picture where there is none.

    The frame has an origin of its own: its script sees nothing of the page, the page's styles do not reach it, and its
    policy loads nothing. It tells the page how high it is. Where a viewer strips frames, the still picture and the
    ``text`` are what is left.

    Args:
        cases: What to show; several are chosen from by a list.
        text: The same in words.
    """
    scenes = [Scene.of(case, FRAME_NODES) for case in cases]
    data = [case_data(case, scene, FRAME_SUBGRAPHS) for case, scene in zip(cases, scenes, strict=True)]
    script = "\n".join(asset(name) for name in (*SCRIPTS, "frame.js"))
    style = asset("drawing.css") + asset("frame.css")
    names = "".join(f"<option>{escape(case.name)}</option>" for case in cases)
    choice = (
        '<div id="choice" class="screen" hidden><button type="button" id="back" aria-label="previous">‹</button>'
        f'<select id="list" aria-label="explanation">{names}</select>'
        '<button type="button" id="on" aria-label="next">›</button></div>'
    )
    name, drawn = escape(called(cases[0])), base64.b64encode(still(scenes[0]).encode()).decode()
    # As an image the still picture can neither run anything nor give its names to the page.
    picture = f'<img alt="{name}" src="data:image/svg+xml;base64,{drawn}"/>' if drawn else ""
    page = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(script, style))}">'
        f'<meta name="color-scheme" content="light dark"><title>{name}</title>'
        f"<style>{style}</style></head><body>{choice if len(cases) > 1 else ''}"
        f'<div id="case"><p>{name}</p>{picture}</div>'
        f'<script type="application/json" id="data">{embedded_json({"cases": data})}</script>'
        f"<script>{script}</script></body></html>"
    )
    # The rule only hides the still picture where there is a frame before it: whoever strips one of them, shows it.
    return (
        '<div class="gflowexplainer"><style>.gflowexplainer > iframe + div { display: none; }</style>'
        f'<iframe sandbox="allow-scripts" title="{name}" width="100%" height="{FRAME_HEIGHT}" '
        f'style="border: 0; width: 100%; height: {FRAME_HEIGHT}px" srcdoc="{escape(page)}"></iframe>'
        f"<div>{picture}<pre>{escape(text)}</pre></div><script>{asset('grow.js')}</script></div>"
    )
