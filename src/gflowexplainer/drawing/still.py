"""The drawing as one still SVG, for places where scripts are off; painted by matplotlib, where that is installed."""

from __future__ import annotations

import io
from importlib.util import find_spec

from gflowexplainer.drawing.scene import Scene


def still(scene: Scene) -> str:
    """Returns what is shown at first, the explanation and what stands beside it, as SVG; empty without matplotlib."""
    if find_spec("matplotlib") is None:
        return ""
    import matplotlib
    from matplotlib.figure import Figure

    from gflowexplainer.drawing.painting import paint, panel_size

    shown, content = scene.up_to(1), io.StringIO()
    figure = Figure(figsize=panel_size(shown), layout="constrained")
    paint(figure.add_subplot(), shown)
    # No date and no random ids inside: the same scene gives the same text.
    with matplotlib.rc_context({"svg.hashsalt": "gflowexplainer", "svg.fonttype": "none"}):
        figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()[content.getvalue().index("<svg") :]
