"""How long a catalogue of 1,000 explanations takes, beside explaining them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import environment, results_folder, threads, write_json
from gflowbench.suites.catalogue_study import catalogue_task
from gflowexplainer import GFlowExplainer, motifs
from gflowexplainer.report.tables import Table, join
from gflowexplainer.storage.files import write_text

NAMES = ("mutagenicity", "ba-2motifs", "tree-grid")
NUMBER, FITTED = 1000, 60


def main(fast: bool = False) -> None:
    """Fits to a few predictions of each dataset, explains many, and measures the catalogue of these, on one thread."""
    folder = results_folder("catalogues", fast)
    with threads(1):
        found = [measure(name, 40 if fast else NUMBER, folder) for name in (NAMES[1:2] if fast else NAMES)]
    write_json(folder / "results.json", {"rows": found, **environment()})
    text = join([table(found)], "markdown", ["`python -m benchmarks catalogues`."])
    write_text(folder / "summary.md", text)
    print(text)


def table(found: Sequence[dict[str, Any]]) -> Table:
    """Makes the table of what was measured."""
    head = ("dataset", "explanations", "explaining, s", "finding their parts, s", "catalogue, s", "motifs")
    rows = tuple(tuple(str(one[name]) for name in head) for one in found)
    return Table("A catalogue of many explanations, one thread", head, rows)


def measure(name: str, number: int, folder: Path) -> dict[str, Any]:
    """Measures explaining and the catalogue of one dataset, in seconds."""
    few, many = (catalogue_task(name, count, folder) for count in (min(FITTED, number), number))
    explainer = GFlowExplainer(seed=0).fit(few.model, few.data, few.index, model_config=few.config, progress=False)
    begin = time.perf_counter()
    explanations = explainer.explain(many.model, many.data, many.index, model_config=many.config, progress=False)
    _ = [one.subgraphs for one in explanations]
    explained = time.perf_counter()
    _ = [one.known_parts for one in explanations]
    parted = time.perf_counter()
    made = motifs(explanations)
    return {
        "dataset": name,
        "explanations": len(explanations),
        "explaining, s": f"{explained - begin:.1f}",
        "finding their parts, s": f"{parted - explained:.1f}",
        "catalogue, s": f"{time.perf_counter() - parted:.1f}",
        "motifs": len(made.motifs),
    }
