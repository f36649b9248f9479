"""Motifs as cards with pictures, for a page and for a notebook; no network, all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from gflowexplainer.drawing.layout import layout, turned

_COLOURS = ("#4477aa", "#b5475a", "#228833", "#8a7a1f", "#2f7f99", "#aa3377", "#6b7280")
_SIZE = 180
"""Width and height of the picture of a motif."""
_STYLE = (
    ".motifs h2 small{font-weight:normal;opacity:.7}.cards{display:flex;flex-wrap:wrap;gap:1rem}"
    ".card{border:1px solid #8885;break-inside:avoid;border-radius:6px;padding:.8rem;width:13rem}"
    ".card svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}.card line{stroke:#7a8794}"
    ".card dl{margin:0;font-size:13px;display:grid;grid-template-columns:auto auto}"
    ".card dd{margin:0;text-align:right}.card h3{margin:0}"
)


def motif_cards(catalogue: Any, classes: Sequence[str] | None = None) -> str:
    """Writes the cards of a :class:`~gflowexplainer.catalogue.MotifCatalogue`, by class, as HTML; then its rules."""
    kinds = sorted({label for motif in catalogue.motifs for label in motif.form.labels})
    body = []
    for label, found in catalogue.by_class.items():
        name = "All explanations" if label is None else f"Class {classes[label] if classes else label}"
        count = catalogue.num_explanations[label]
        body.append(f"<h2>{escape(name)} <small>{count} explanation{'' if count == 1 else 's'}</small></h2>")
        cards = "".join(_card(motif, kinds) for motif in found)
        body.append(f'<div class="cards">{cards}</div>' if cards else "<p>Nothing recurs in its explanations.</p>")
    if catalogue.rules:
        body.append(f"<h2>Rules</h2><ul>{''.join(f'<li>{escape(str(rule))}</li>' for rule in catalogue.rules)}</ul>")
    return f'<div class="motifs"><style>{_STYLE}</style>{"".join(body)}</div>'


def motif_page(catalogue: Any, title: str, classes: Sequence[str] | None = None) -> str:
    """Writes a page of the cards, under a title."""
    style = (
        ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;"
        "padding:0 1rem;background:Canvas;color:CanvasText}"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{style}</style></head><body><h1>{escape(title)}</h1>{motif_cards(catalogue, classes)}</body></html>\n"
    )


def _card(motif: Any, kinds: Sequence[str]) -> str:
    facts = [
        ("support", f"{motif.support:.0%}"),
        ("in graphs of the class", f"{motif.present:.0%}"),
        ("in other graphs", "-" if motif.elsewhere is None else f"{motif.elsewhere:.0%}"),
        ("model with only it", f"{motif.probability_with:.2f}"),
        ("model without it", f"{motif.probability_without:.2f}"),
    ]
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    return f'<div class="card"><h3>motif {motif.number}</h3>{_svg(motif.form, kinds)}<dl>{listed}</dl></div>'


def _svg(form: Any, kinds: Sequence[str]) -> str:
    """Draws a motif; the colour of a node is the place of its label in ``kinds``."""
    place = turned(layout(len(form), [(i, j) for i, j, _ in form.edges]))
    scale = (_SIZE - 40) / max(float(np.ptp(place, axis=0).max()), 1e-9) if len(form) > 1 else 0.0
    place = _SIZE / 2 + scale * (place - (place.max(axis=0) + place.min(axis=0)) / 2)
    lines = "".join(
        '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke-width="2"/>'.format(*place[i], *place[j])
        for i, j, _ in form.edges
    )
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="11" fill="{_COLOURS[kinds.index(label) % len(_COLOURS)]}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" font-size="11" fill="#fff">{escape(label[:6])}</text>'
        for (x, y), label in zip(place, form.labels, strict=True)
    )
    said = f"A motif of {len(form)} node{'' if len(form) == 1 else 's'}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" width="{_SIZE}" height="{_SIZE}" '
        f'role="img" aria-label="{said}">{lines}{dots}</svg>'
    )
