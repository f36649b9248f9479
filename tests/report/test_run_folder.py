import json

import pytest
import torch

from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.explainer import GFlowExplainer
from gflowexplainer.report import Case
from gflowexplainer.report.run_folder import Run
from gflowexplainer.report.tables import Table
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.testing import GraphModel, NodeModel, cycle, house, random_graph

QUICK = {"max_nodes": 3, "epochs": 2, "num_contexts": 2}


@pytest.fixture(scope="module")
def explanations():
    return GFlowExplainer(**QUICK).explain(NodeModel(), random_graph(10), [2, 7], progress=False)


def test_a_case_comes_back_whole(tmp_path, explanations):
    run = Run.begin(tmp_path / "run", "explain", {"index": "2"})
    edges = explanations[0].edge_index.size(1)
    case = Case(
        "node 2",
        explanations[0],
        truth=torch.arange(edges) % 2 == 0,
        others={"peer": torch.rand(edges, generator=torch.Generator().manual_seed(0))},
        labels=[f"n{i}" for i in range(10)],
        classes=["a", "b", "c"],
        note="look",
    )
    run.store(case)
    (found,) = Run.open(tmp_path / "run").cases()
    assert torch.equal(found.truth, case.truth)
    assert torch.equal(found.others["peer"], case.others["peer"])
    assert (found.name, list(found.labels), list(found.classes), found.note) == (
        "node 2",
        case.labels,
        ["a", "b", "c"],
        "look",
    )
    assert found.explanation.subgraphs == explanations[0].subgraphs
    for name in explanations[0].keys():  # noqa: SIM118
        assert torch.equal(found.explanation[name], explanations[0][name]), name
    assert found.explanation.whole_prediction == explanations[0].whole_prediction
    assert "x" in explanations[0]


def test_the_graph_is_stored_once(tmp_path, explanations):
    run = Run.begin(tmp_path, "explain", {})
    sizes = []
    for explanation in explanations:
        run.store(Case(f"node {explanation.explained_node}", explanation))
        sizes.append((tmp_path / "graph.safetensors").stat().st_mtime_ns)
    assert sizes[0] == sizes[1]
    tensors, _ = read_checkpoint(tmp_path / "explanations" / "node-7.safetensors")
    assert "x" not in tensors
    assert "edge_index" not in tensors
    found = {case.name: case.explanation for case in run.cases()}
    assert torch.equal(found["node 7"].x, explanations[1].x)


def test_graphs_of_their_own_stay_with_their_explanations(tmp_path):
    graphs = [house(), cycle(6)]
    run = Run.begin(tmp_path, "explain", {})
    for number, explanation in enumerate(GFlowExplainer(**QUICK).explain(GraphModel(), graphs, progress=False)):
        run.store(Case(f"graph {number}", explanation))
    assert [case.explanation.x.size(0) for case in run.cases()] == [5, 6]
    assert not (tmp_path / "graph.safetensors").exists()


def test_cases_stand_in_the_order_of_their_numbers(tmp_path, explanations):
    run = Run.begin(tmp_path, "explain", {})
    for number in (10, 9, 100):
        run.store(Case(f"node {number}", explanations[0]))
    assert [case.name for case in run.cases()] == ["node 9", "node 10", "node 100"]
    assert run.has("node 9")
    assert not run.has("node 8")


def test_the_same_question_goes_on_and_another_is_refused(tmp_path):
    Run.begin(tmp_path, "fit", {"index": (1, 2)})
    Run.begin(tmp_path, "fit", {"index": (1, 2)})
    with pytest.raises(ConfigError, match="other inputs"):
        Run.begin(tmp_path, "fit", {"index": (1, 3)})
    with pytest.raises(ConfigError, match="holds a run of 'fit', not of 'explain'"):
        Run.begin(tmp_path, "explain", {"index": (1, 2)})
    (tmp_path / "config.json").write_text("[]")
    for begin in (lambda: Run.open(tmp_path), lambda: Run.begin(tmp_path, "fit", {}, overwrite=True)):
        with pytest.raises(ConfigError, match="not of a run"):
            begin()
    assert (tmp_path / "config.json").read_text() == "[]"


def test_what_is_no_run(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        Run.open(tmp_path / "none")
    with pytest.raises(ConfigError, match="holds no run"):
        Run.open(tmp_path)


def test_results_tables_and_curves(tmp_path, explanations):
    run = Run.begin(tmp_path, "explain", {"index": "2", "target": None}, settings={"beta": 3})
    table = Table("Title", ("a", "b"), (("x", "1"),))
    run.write_results({"value": float("nan")}, [table], ["a note"])
    assert '"value": null' in (tmp_path / "results.json").read_text()
    assert "| x | 1 |" in (tmp_path / "results.md").read_text()
    assert r"x & 1 \\" in (tmp_path / "results.tex").read_text()
    run.write_tables([table])
    assert "a note" not in (tmp_path / "results.md").read_text()
    assert (tmp_path / "results.json").is_file()
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 0, "loss": 2.0}\n{"iteration": 1, "lo')
    run.store(Case("node 2", explanations[0]))
    report = Run.open(tmp_path).report()
    assert list(report.tables) == [table]
    assert list(report.curves) == [{"iteration": 0, "loss": 2.0}]
    assert report.settings == {"beta": 3, "index": "2"}
    assert "versions.torch" in report.environment


@pytest.mark.parametrize("name", ["graph", "a\0b", "x" * 400, "a/b", "../up", "ä ö", "", "Node 2", "CON"])
def test_any_name_has_a_file_of_its_own(tmp_path, explanations, name):
    run = Run.begin(tmp_path, "explain", {})
    run.store(Case(name, explanations[0]))
    assert run.case(name).name == name
    assert {path.parent.name for path in tmp_path.glob("*/*.safetensors")} == {"explanations", "cases"}


def test_names_that_look_alike_do_not_share_a_file(tmp_path, explanations):
    names = ["a/b", "a-b", "a b", "a  b", "A b", "a_b", "-a b", "a b-"]
    run = Run.begin(tmp_path, "explain", {})
    for name in names:
        run.store(Case(name, explanations[0]))
    assert sorted(case.name for case in run.cases()) == sorted(names)
    files = [path.name.lower() for path in (tmp_path / "explanations").iterdir()]
    assert len(set(files)) == len(names)


def test_a_run_of_other_data_is_refused_with_what_differs_and_overwritten_on_demand(tmp_path, explanations):
    run = Run.begin(tmp_path, "explain", {}, identity={"x": "1", "edge_weight": "2"})
    run.store(Case("node 2", explanations[0]))
    with pytest.raises(ConfigError, match="'edge_weight' differs"):
        Run.begin(tmp_path, "explain", {}, identity={"x": "1", "edge_weight": "3"})
    (tmp_path / "mine.txt").write_text("of the user's")
    again = Run.begin(tmp_path, "explain", {}, identity={"x": "1", "edge_weight": "3"}, overwrite=True)
    assert again.cases() == []
    assert (tmp_path / "mine.txt").is_file()


def test_a_case_of_another_run_is_refused(tmp_path, explanations):
    for number in (1, 2):
        run = Run.begin(tmp_path / str(number), "explain", {}, identity={"x": str(number)})
        run.store(Case("node 2", explanations[number - 1]))
    for folder in ("cases", "explanations"):
        (tmp_path / "1" / folder / "node-2.safetensors").replace(tmp_path / "2" / folder / "node-2.safetensors")
    with pytest.raises(CheckpointError, match="has changed since this run wrote it"):
        Run.open(tmp_path / "2").cases()


def test_overwriting_deletes_what_the_run_wrote_and_nothing_else(tmp_path, explanations):
    run = Run.begin(tmp_path, "explain", {})
    run.store(Case("node 2", explanations[0]))
    run.write_results({}, [])
    mine = [tmp_path / "mine.txt", tmp_path / "explanations" / "mine.safetensors", tmp_path / "figures" / "mine.png"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("of the user's")
    again = Run.begin(tmp_path, "explain", {"other": 1}, overwrite=True)
    assert again.cases() == []
    assert all(path.read_text() == "of the user's" for path in mine)
    assert not (tmp_path / "cases").exists()
    assert not (tmp_path / "results.json").exists()


@pytest.mark.parametrize("name", ["report.html", "results.md", "results.json", "tables.json"])
@pytest.mark.parametrize("overwrite", [True, False])
def test_somebody_elses_files_are_not_replaced(tmp_path, name, overwrite):
    (tmp_path / name).write_text("of the user's")
    with pytest.raises(ConfigError, match=f"'{tmp_path / name}' was not written by this run"):
        Run.begin(tmp_path, "explain", {}, overwrite=overwrite)
    assert (tmp_path / name).read_text() == "of the user's"


def test_a_list_of_files_from_elsewhere_deletes_nothing_outside(tmp_path):
    (tmp_path / "precious.txt").write_text("do not touch")
    run = Run.begin(tmp_path / "run", "explain", {})
    for name in ("../precious.txt", str(tmp_path / "precious.txt")):
        with (run.folder / "files.jsonl").open("a") as file:
            file.write("\n" + json.dumps({"name": name}))
    Run.begin(run.folder, "explain", {"other": 1}, overwrite=True)
    assert (tmp_path / "precious.txt").is_file()


def test_what_was_edited_with_a_right_checksum_is_noticed(tmp_path, explanations):
    run = Run.begin(tmp_path, "explain", {})
    path = run.store(Case("node 2", explanations[0]))
    sections, meta = read_checkpoint(path)
    meta["distribution"]["num_samples"] = 7
    write_checkpoint(path, sections, meta)
    for again in (run, Run.begin(tmp_path, "explain", {})):
        with pytest.raises(CheckpointError, match="has changed since"):
            again.has("node 2")
    path.unlink()
    assert not run.has("node 2")


def test_a_run_killed_between_a_file_and_its_digest_writes_it_again(tmp_path, explanations):
    run = Run.begin(tmp_path, "explain", {})
    run.store(Case("node 2", explanations[0]))
    lines = (tmp_path / "files.jsonl").read_text()
    (tmp_path / "files.jsonl").write_text(lines[: lines.rindex("\n") + 9])
    again = Run.begin(tmp_path, "explain", {})
    assert not again.has("node 2")
    again.store(Case("node 2", explanations[0]))
    assert Run.open(tmp_path).has("node 2")


def test_explanations_without_the_question_they_are_of_are_not_taken(tmp_path, explanations):
    run = Run.begin(tmp_path, "explain", {"index": 1})
    run.store(Case("node 2", explanations[0]))
    (tmp_path / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"but not its config.json"):
        Run.begin(tmp_path, "explain", {"index": 2})
    assert Run.begin(tmp_path, "explain", {"index": 2}, overwrite=True).cases() == []


@pytest.mark.parametrize("name", ["kind", "command", "question", "identity"])
def test_a_damaged_question_is_told(tmp_path, name):
    Run.begin(tmp_path, "explain", {})
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({key: value for key, value in config.items() if key != name}))
    for read in (lambda: Run.open(tmp_path), lambda: Run.begin(tmp_path, "explain", {})):
        with pytest.raises(CheckpointError, match=r"damaged|has changed"):
            read()
