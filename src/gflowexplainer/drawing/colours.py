"""Colours of probabilities, the same in every painter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gflowexplainer.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable

_IMPROBABLE, _CERTAIN = (0xE6, 0xEB, 0xF0), (0xC2, 0x41, 0x0C)
OUTLINE, TRUTH = "#7a8794", "#1d4ed8"
"""Colours of the outline of a node, and of the dashes around the ground truth."""
PARTS = (("#bfe6df", "#0f766e"), ("#e4d4f7", "#6d28d9"), ("#dcebb8", "#4d7c0f"), ("#fbd5e5", "#be185d"))
"""Colours of the bands around the parts of an explanation, and of their numbers; they begin anew after the last."""
TYPES = ("#0072b2", "#009e73", "#a855a0", "#6b7280", "#8b5cf6", "#a16207", "#0891b2", "#be123c")
"""Colours of the outlines of typed nodes, in the order of the names of the types."""


def colour(value: float) -> str:
    """Returns the colour of a probability."""
    share = min(max(float(value), 0.0), 1.0)
    mixed = (round(a + (b - a) * share) for a, b in zip(_IMPROBABLE, _CERTAIN, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def edge_colour(value: float) -> str:
    """Returns the colour of an edge: grey where it is improbable, as it must show on white."""
    return "#c3ccd5" if value <= 0 else colour(0.25 + 0.75 * value)


def ink(value: float) -> str:
    """Returns the colour of a label that can be read on the colour of ``value``."""
    return "white" if value > 0.75 else "#1f2933"


def colour_scale() -> ScalarMappable:
    """Returns the colours of probabilities, for a colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    return ScalarMappable(Normalize(0, 1), LinearSegmentedColormap.from_list("probability", [colour(0), colour(1)]))


def require_matplotlib() -> None:
    """Raises an error that says what to install where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "Drawing needs matplotlib. Install it with 'pip install \"gflowexplainer[figures]\"'."
        ) from error
