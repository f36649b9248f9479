"""The catalogue of motifs as one HTML page with pictures; no network, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from gflowexplainer.catalogue.canonical_form import CanonicalForm
from gflowexplainer.catalogue.motif_catalogue import Motif, MotifCatalogue
from gflowexplainer.drawing.layout import layout, turned
from gflowexplainer.explanation.ranked_subgraphs import counted

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
_SIZE = 180
"""Width and height of the picture of a motif."""


def motif_page(catalogue: MotifCatalogue, title: str, classes: Sequence[str] | None = None) -> str:
    """Writes the page.

    Args:
        catalogue: The catalogue.
        title: What stands above it.
        classes: Names of the classes.
    """
    kinds = sorted({label for motif in catalogue.motifs for label in motif.form.labels})
    body = []
    for label, found in catalogue.by_class.items():
        name = "All explanations" if label is None else f"Class {classes[label] if classes else label}"
        count = counted(catalogue.num_explanations[label], "explanation")
        body.append(f"<h2>{escape(name)} <small>{count}</small></h2>")
        cards = "".join(_card(motif, kinds) for motif in found)
        body.append(f'<div class="cards">{cards}</div>' if cards else "<p>Nothing recurs in its explanations.</p>")
    if catalogue.rules:
        rules = "".join(f"<li>{escape(str(rule))}</li>" for rule in catalogue.rules)
        body.append(f"<h2>Rules</h2><ul>{rules}</ul>")
    style = (
        ":root{color-scheme:light dark;--quiet:#666;--line:#555;--rule:#ccc}"
        "@media screen and (prefers-color-scheme:dark){:root{--quiet:#a3b0bd;--line:#a3b0bd;--rule:#36414d}}"
        "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;background:Canvas;"
        "color:CanvasText}svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}line{stroke:var(--line)}"
        "h2 small{font-weight:normal;color:var(--quiet)}"
        ".cards{display:flex;flex-wrap:wrap;gap:1rem}"
        ".card{border:1px solid var(--rule);break-inside:avoid;border-radius:6px;padding:.8rem;width:13rem}"
        ".card dl{margin:0;font-size:13px;display:grid;grid-template-columns:auto auto}"
        ".card dd{margin:0;text-align:right}.card h3{margin:0}"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{style}</style></head><body><h1>{escape(title)}</h1>{''.join(body)}</body></html>\n"
    )


def _card(motif: Motif, kinds: Sequence[str]) -> str:
    facts = [
        ("support", f"{motif.support:.0%}"),
        ("in graphs of the class", f"{motif.present:.0%}"),
        ("in other graphs", "-" if motif.elsewhere is None else f"{motif.elsewhere:.0%}"),
        ("model with only it", f"{motif.probability_with:.2f}"),
        ("model without it", f"{motif.probability_without:.2f}"),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    return f'<div class="card"><h3>motif {motif.number}</h3>{motif_svg(motif.form, kinds)}<dl>{listed}</dl></div>'


def motif_svg(form: CanonicalForm, kinds: Sequence[str]) -> str:
    """Draws a motif as SVG; the colour of a node is the place of its label in ``kinds``."""
    places = _places(form)
    lines = "".join(
        f'<line x1="{places[i][0]:.1f}" y1="{places[i][1]:.1f}" x2="{places[j][0]:.1f}" y2="{places[j][1]:.1f}" '
        'stroke="#555" stroke-width="2"/>'
        for i, j, _ in form.edges
    )
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="11" fill="{_COLOURS[kinds.index(label) % len(_COLOURS)]}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" font-size="11" fill="#fff">{escape(label[:6])}</text>'
        for (x, y), label in zip(places, form.labels, strict=True)
    )
    words = f"A motif of {counted(len(form), 'node')}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" width="{_SIZE}" height="{_SIZE}" '
        f'role="img" aria-label="{words}">{lines}{dots}</svg>'
    )


def _places(form: CanonicalForm) -> np.ndarray:
    """Places nodes true to their distances, shape ``[n, 2]``, always in the same way."""
    place = turned(layout(len(form), [(i, j) for i, j, _ in form.edges]))
    scale = (_SIZE - 40) / max(float(np.ptp(place, axis=0).max()), 1e-9) if len(form) > 1 else 0.0
    return _SIZE / 2 + scale * (place - (place.max(axis=0) + place.min(axis=0)) / 2)
