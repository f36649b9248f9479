"""What is kept of results: small summaries that say where they come from, and figures that a page shows."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MOST_BYTES = 2_000_000


def kept():
    try:
        listed = subprocess.run(
            ["git", "ls-files", "results"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return []
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


KEPT = kept()
pytestmark = pytest.mark.skipif(not KEPT, reason="not a checkout of the repository")


def test_results_are_small():
    assert sum(path.stat().st_size for path in KEPT) < MOST_BYTES


def test_only_summaries_tables_and_figures_are_kept():
    assert {path.suffix for path in KEPT} == {".json", ".md", ".png"}
    assert not {"values.json", "config.json", "environment.json"} & {path.name for path in KEPT}
    assert not {"cells", "gnns", "runs"} & {part for path in KEPT for part in path.parts}


def test_every_figure_is_shown_by_a_page():
    pages = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert [path.name for path in KEPT if path.suffix == ".png" and str(path.relative_to(ROOT)) not in pages] == []


@pytest.mark.parametrize("path", [p for p in KEPT if p.name == "summary.json"], ids=lambda path: path.parent.name)
def test_a_summary_says_where_it_comes_from(path):
    found = json.loads(path.read_text())
    assert not {"values", "cells"} & set(found)
    parts = found["computed"] if "bench" in path.parts else [found]
    for part in parts:
        assert {"command", "code", "versions", "device"} <= set(part)
        assert part.get("created") or part["dates"]
        assert part["code"] is not None or "code_note" in part
    if "summaries" in found:
        assert all("seeds" in summary for summary in found["summaries"])
    elif "bench" not in path.parts:
        assert isinstance(found["seeds_used"], list)
