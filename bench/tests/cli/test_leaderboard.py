from pathlib import Path

import pytest
from typer.testing import CliRunner

from gflowbench.cli.leaderboard import leaderboard
from gflowbench.suites import logic_suite
from gflowbench.typed import motif_links

MINE = """
from gflowbench.explainers.floors import Degree


class Mine(Degree):
    name = "mine"
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import typer

    monkeypatch.setattr(logic_suite, "NUM_GRAPHS", dict.fromkeys(logic_suite.NAMES, 60))
    monkeypatch.setattr("gflowbench.suites.run.LEARNED", 0.0)
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(leaderboard)
    return lambda *arguments: CliRunner().invoke(app, [*arguments, "--quiet", "--contexts", "0"])


def test_one_page_with_an_explainer_of_ones_own(run, tmp_path: Path):
    (tmp_path / "my_module_of_degrees.py").write_text(MINE)
    result = run("--suite", "logic", "--tasks", "or", "--fast", "--explainers", "degree,random", "--explainer",
                 "my_module_of_degrees:Mine")  # fmt: skip
    assert result.exit_code == 0, result.output
    text = (tmp_path / "runs/leaderboard/leaderboard.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith(("| mine", "| degree"))]
    assert lines[0].split("|")[2].split("(")[0] == lines[1].split("|")[2].split("(")[0]


def test_links_come_on_the_same_page(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_neighbours):
    monkeypatch.setattr(motif_links, "load_motif_links", lambda seed, num_train: shared_neighbours)
    arguments = ("--suite", "logic,links", "--tasks", "or,motif-links", "--fast", "--explainers",
                 "random,shortest-ways,nothing", "--explainer", "torch_geometric.explain:DummyExplainer")  # fmt: skip
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "runs/leaderboard/leaderboard.md").read_text()
    logic, links = text.split("## Suite ")[1:]
    assert "| shortest-ways |" in links
    assert "| shortest-ways |" not in logic
    assert "| DummyExplainer |" in logic
    assert "| DummyExplainer |" in links
    assert "left out: nothing on motif-links: it explains nodes and graphs, not links" in links
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "runs/leaderboard/links/cells").iterdir()}
    assert len(before) == 3
    assert run(*arguments).exit_code == 0
    assert before == {file: file.stat().st_mtime_ns for file in (tmp_path / "runs/leaderboard/links/cells").iterdir()}


def test_what_is_not_there_is_refused(run):
    for arguments, message in [
        (("--suite", "nowhere"), "suite"),
        (("--suite", "logic", "--tasks", "tree-grid"), "task"),
        (("--explainer", "gflowbench.explainers.floors:Degree"), "Give it another name"),
        (("--suite", "logic", "--explainers", "shortest-ways"), "explainer"),
        (("--suite", "links", "--explainers", "subgraphx"), "not links"),
    ]:
        result = run(*arguments)
        assert result.exit_code != 0
        assert message in result.output
