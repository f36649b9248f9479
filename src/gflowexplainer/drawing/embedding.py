"""Drawings inside HTML: scripts and styles that a page's policy allows, and frames that a notebook shows alone."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.data import case_data
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.drawing.still import still

SCRIPTS = ("drawing.js", "stage.js", "case.js")
FRAME_HEIGHT, FRAME_NODES, FRAME_SUBGRAPHS = 560, 120, 10
"""Pixels that a frame is high, and what is drawn of a case inside it at most."""
_FRAME_STYLE = """
body { margin: 0; padding: .4rem .6rem; background: var(--paper); color: var(--text);
  font: .875rem/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.stage > svg { height: 22rem; }
.ranked { max-height: 11rem; }
#choice { display: flex; gap: .5rem; align-items: center; margin-bottom: .4rem; }
#choice[hidden] { display: none; }
#choice select { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--rule);
  border-radius: .4rem; padding: .15rem .4rem; }
@media (max-width: 44rem) { .stage > svg { height: 16rem; } }
"""


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
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def frame(cases: Sequence[Case], text: str) -> str:
    """Returns HTML for a notebook: the interactive drawing alone in a frame, and a still picture where there is none.

    The frame has an origin of its own: its script sees nothing of the page, the page's styles do not reach it, and its
    policy loads nothing. Where a viewer strips frames, the still picture and the ``text`` are what is left.

    Args:
        cases: What to show; several are chosen from by a list.
        text: The same in words.
    """
    scenes = [Scene.of(case, FRAME_NODES) for case in cases]
    data = [case_data(case, scene, FRAME_SUBGRAPHS) for case, scene in zip(cases, scenes, strict=True)]
    script = "\n".join(asset(name) for name in (*SCRIPTS, "frame.js"))
    style = asset("drawing.css") + _FRAME_STYLE
    names = "".join(f"<option>{escape(case.name)}</option>" for case in cases)
    choice = (
        '<div id="choice" class="screen" hidden><button type="button" id="back" aria-label="previous">‹</button>'
        f'<select id="list" aria-label="explanation">{names}</select>'
        '<button type="button" id="on" aria-label="next">›</button></div>'
    )
    picture = _picture(scenes[0], cases[0].name)
    page = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(script, style))}">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(cases[0].name)}</title>'
        f"<style>{style}</style></head><body>{choice if len(cases) > 1 else ''}"
        f'<div id="case"><p>{escape(cases[0].name)}</p>{picture}</div>'
        f'<script type="application/json" id="data">{embedded_json({"cases": data})}</script>'
        f"<script>{script}</script></body></html>"
    )
    # The rule only hides the still picture where there is a frame before it: whoever strips one of them, shows it.
    return (
        '<div class="gflowexplainer"><style>.gflowexplainer > iframe + div { display: none; }</style>'
        f'<iframe sandbox="allow-scripts" title="{escape(cases[0].name)}" width="100%" height="{FRAME_HEIGHT}" '
        f'style="border: 0; width: 100%; height: {FRAME_HEIGHT}px" srcdoc="{escape(page)}"></iframe>'
        f"<div>{picture}<pre>{escape(text)}</pre></div></div>"
    )


def _picture(scene: Scene, name: str) -> str:
    """Returns the still picture as an image, which cannot run anything nor give its names to the page."""
    content = base64.b64encode(still(scene).encode()).decode()
    if not content:
        return ""
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{content}"/>'
