import json
import sys

import pytest

from gflowbench.paper import Scope, run
from gflowbench.paper.run_experiment import (
    ExperimentError,
    base_folder,
    command_of,
    read_summary,
    tables_of,
)
from gflowexplainer.errors import CheckpointError, ConfigError, DatasetError
from gflowexplainer.report.provenance import code_digest


def values_in(folder):
    return json.loads((folder / "values.json").read_text())


def test_a_run_writes_everything(toy, tmp_path):
    lines = []
    record = run(toy.experiment(), Scope(), tmp_path, tell=lines.append)
    assert lines[-1].startswith("[4/4] step 3/x: ")
    assert record == read_summary(tmp_path) == json.loads((tmp_path / "summary.json").read_text())
    assert record["command"] == "gflowexplainer reproduce toy"
    assert record["fast"] is False
    assert {"created", "versions", "device"} <= set(record)
    assert record["code"] == code_digest()
    assert record["seeds_used"] == []  # its steps have none
    (computed,) = record["computed"]
    assert computed["steps"] == 4
    assert computed["code"] == [code_digest()]
    assert computed["first"] <= computed["last"] <= record["created"]
    assert "values" not in record
    assert values_in(tmp_path)["step 3/x"] == {"square": 9, "pair": [3, None]}
    assert record["verdicts"] == [{"claim": "Squares grow.", "verdict": "holds", "evidence": "They add up to 14."}]
    assert tables_of(record)[0].rows[3] == ("3", "9")
    text = (tmp_path / "results.md").read_text()
    assert "| 3 | 9 |" in text
    assert "| Squares grow. | holds | They add up to 14. |" in text
    assert "![A line. It rises.](figures/plot.png)" in text
    assert "- A note." in text
    latex = (tmp_path / "results.tex").read_text()
    assert r"\caption{Squares | of\_all}" in latex
    assert "% holds: Squares grow." in latex
    assert (tmp_path / "figures" / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "figures" / "plot.svg").read_text()


def test_the_same_results_draw_the_same_figures(toy, tmp_path):
    pictures = []
    for _ in range(2):
        run(toy.experiment(), Scope(), tmp_path)
        pictures.append((tmp_path / "figures" / "plot.svg").read_bytes())
    assert pictures[0] == pictures[1]


def test_an_interrupted_run_goes_on_where_it_was(toy, tmp_path):
    toy.fails = {2: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        run(toy.experiment(), Scope(), tmp_path)
    assert toy.computed == [0, 1]
    assert not (tmp_path / "summary.json").exists()
    toy.fails = {}
    lines = []
    run(toy.experiment(), Scope(), tmp_path, tell=lines.append)
    assert toy.computed == [0, 1, 2, 3]
    assert [line.endswith("stored") for line in lines] == [True, True, False, False]


def test_a_failed_step_does_not_stop_the_others(toy, tmp_path):
    toy.fails = {1: ValueError("out of\nreach"), 2: DatasetError("No file.")}
    lines = []
    with pytest.raises(ExperimentError, match=r"2 of 4 steps failed.*step 1/x: ValueError: out of reach"):
        run(toy.experiment(), Scope(), tmp_path, tell=lines.append)
    assert toy.computed == [0, 3]
    assert any("Traceback" in line for line in lines)  # of the unexpected one only
    assert "[3/4] step 2/x: failed: No file." in lines
    assert sum("Traceback" in line for line in lines) == 1


def test_cells_only_computes_without_matplotlib(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigError, match="--cells-only"):
        run(toy.experiment(), Scope(), tmp_path)
    assert toy.computed == []
    assert run(toy.experiment(), Scope(), tmp_path, cells_only=True) is None
    assert toy.computed == [0, 1, 2, 3]
    assert [path.name for path in tmp_path.iterdir()] == ["cells"]


def test_parts_together_are_the_whole(toy, tmp_path):
    for k in (1, 2, 3):
        assert run(toy.experiment(), Scope(), tmp_path, part=(k, 3)) is None
    assert toy.computed == [0, 3, 1, 2]
    run(toy.experiment(), Scope(), tmp_path)
    assert values_in(tmp_path).keys() == {f"step {n}/x" for n in range(4)}
    assert len(toy.computed) == 4
    for wrong in ((0, 3), (4, 3)):
        with pytest.raises(ConfigError, match="'part' must be k/n"):
            run(toy.experiment(), Scope(), tmp_path, part=wrong)


def test_fast_results_never_replace_full_ones(toy):
    assert base_folder(fast=True) != base_folder(fast=False)
    assert command_of("toy", Scope(fast=True, num_seeds=2, device="cuda")) == (
        "gflowexplainer reproduce toy --fast --seeds 2 --device cuda"
    )


def test_a_fast_run_says_so(toy, tmp_path):
    record = run(toy.experiment(), Scope(fast=True), tmp_path)
    assert record["fast"] is True
    assert len(values_in(tmp_path)) == 2
    assert "Fast run." in (tmp_path / "results.md").read_text()


def test_results_of_something_else_are_refused(tmp_path):
    (tmp_path / "summary.json").write_text('{"format": "gflowexplainer-evaluation-1"}')
    with pytest.raises(CheckpointError, match="holds no results of an experiment"):
        read_summary(tmp_path)


def test_a_folder_that_cannot_be_written_ends_the_run_at_once(toy, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be made"):
        run(toy.experiment(), Scope(), tmp_path / "file")
    assert toy.computed == [0]
