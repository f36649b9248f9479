"""Pages are what the result files say; the committed ones are up to date."""

import importlib.util
import re
from pathlib import Path

import pytest

from gflowbench.paper import Scope, run
from gflowbench.paper.pages import all_pages, origin_of, overview, page, size_of

ROOT = Path(__file__).parents[3]
SPEC = importlib.util.spec_from_file_location("reproduction_pages", ROOT / "docs" / "reproduction_pages.py")
reproduction_pages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(reproduction_pages)


def test_the_committed_pages_say_what_the_committed_results_say():
    stale = [str(path.relative_to(ROOT)) for path in reproduction_pages.stale()]
    assert stale == [], "run python docs/reproduction_pages.py"


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "reproduction").glob("*.md")), ids=lambda path: path.name)
def test_links_and_figures_of_pages_are_there(path):
    targets = re.findall(r"\]\(([^)#]+)\)", path.read_text())
    assert targets
    for target in targets:
        assert (path.parent / target).exists(), target


def test_a_page_has_prose_verdicts_tables_and_figures(toy, tmp_path):
    text = page(toy.experiment(), run(toy.experiment(), Scope(), tmp_path))
    assert "# The toy toy" in text
    assert "It *grows*." in text
    assert "By counting." in text
    assert "**Holds:** Squares grow. They add up to 14." in text
    assert "| 3 | 9 |" in text
    assert "![A line](../../results/toy/figures/plot.png)\n\n*A line. It rises.*" in text
    assert "```bash\ngflowexplainer reproduce toy\n```" in text
    assert "Full run." in text
    assert "4 steps in 0 s on CPU" in text
    assert text.endswith("- A note.\n")


def test_a_fast_run_is_called_one_everywhere(toy, tmp_path):
    record = run(toy.experiment(), Scope(fast=True, num_seeds=2), tmp_path)
    assert "**Fast run, 2 seeds:**" in page(toy.experiment(), record)
    assert "[first](reproduction/first.md) (fast run)" in overview({"first": record})
    assert size_of(record | {"fast": False}) == "Full run, 2 seeds."


def test_the_overview_counts_verdicts_and_names_what_is_missing(toys, tmp_path):
    for name in ("first", "third"):
        run(toys[name].experiment(name), Scope(), tmp_path / name)
    pages = all_pages(tmp_path)
    assert set(pages) == {"reproduction.md", "reproduction/first.md", "reproduction/third.md"}
    text = pages["reproduction.md"]
    assert "2 claims: *holds* 2, *holds in part* 0, *does not hold* 0, *cannot be told* 0." in text
    assert "| [third](reproduction/third.md) | Squares grow. | **holds** | They add up to 14. |" in text
    assert "Without results so far: `second`." in text


def test_pages_are_made_stale_by_new_results_and_left_over_ones_are_found(toys, tmp_path):
    run(toys["first"].experiment("first"), Scope(), tmp_path / "results" / "first")
    folder = tmp_path / "docs" / "reproduction"
    wrong = reproduction_pages.stale(tmp_path)
    assert set(wrong) == {tmp_path / "docs" / "reproduction.md", folder / "first.md"}
    for path, text in wrong.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert reproduction_pages.stale(tmp_path) == {}
    (folder / "old.md").write_text("")
    assert reproduction_pages.stale(tmp_path) == {folder / "old.md": None}


def test_where_values_come_from_is_said_for_each_machine():
    group = {"steps": 1, "first": "2030-01-02T03", "last": "2030-01-02T05", "seconds": 300.0}
    cpu = {"device": {"machine": "x86_64", "threads": 2}, "versions": {"torch": "2.9"}}
    gpu = {"device": {"machine": "x86_64", "threads": 1, "gpu": "Some GPU"}, "versions": {"torch": "2.8"}}
    text = origin_of({"computed": [group | cpu, group | gpu | {"steps": 7, "last": "2030-01-03T05", "seconds": 2.0}]})
    assert text == (
        "1 step in 5 minutes on CPU (x86_64), 2 threads, torch 2.9, 2030-01-02. "
        "7 steps in 2 s on Some GPU, torch 2.8, 2030-01-02 to 2030-01-03."
    )
