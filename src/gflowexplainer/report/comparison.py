"""Explanations of the same instances compared: what the first subgraphs of each run do to the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gflowexplainer.drawing.case import Case
from gflowexplainer.report.tables import NOT_THERE, Table, number


def comparison(cases: Sequence[Case]) -> list[Table]:
    """Makes a table of the runs that cases are compared with; none if there are none.

    Each run is counted over the instances that it explains; shared nodes are those of both first subgraphs over those
    of either (the Jaccard index).
    """
    names = list(dict.fromkeys(name for case in cases for name in case.beside))
    if not names:
        return []
    heads = ("run", "instances", "class kept with only it", "class changed without it", "nodes", "nodes shared")
    rows = [_row("this run", [(case.explanation, case.explanation) for case in cases], alone=True)]
    for name in names:
        rows.append(_row(name, [(case.explanation, case.beside[name]) for case in cases if name in case.beside]))
    return [Table("Comparison of the first subgraphs", heads, tuple(rows))]


def _row(name: str, pairs: Sequence[tuple[Any, Any]], *, alone: bool = False) -> tuple[str, ...]:
    first = [theirs.subgraphs[0] for _, theirs in pairs]
    classes = [theirs.explained_class for _, theirs in pairs]
    known = [(best, explained) for best, explained in zip(first, classes, strict=True) if explained is not None]
    kept = [best.class_only == explained for best, explained in known]
    changed = [best.class_without != explained for best, explained in known]
    shared = [
        len({*mine.subgraphs[0].nodes} & {*best.nodes}) / len({*mine.subgraphs[0].nodes} | {*best.nodes})
        for (mine, _), best in zip(pairs, first, strict=True)
    ]
    return (
        name,
        str(len(pairs)),
        _share(kept),
        _share(changed),
        number(float(np.mean([len(best) for best in first])), digits=1),
        NOT_THERE if alone else number(float(np.mean(shared)), digits=2),
    )


def _share(hits: Sequence[bool]) -> str:
    return f"{sum(hits)} of {len(hits)}" if hits else NOT_THERE
