"""Each instance is explained exactly once, whoever is killed and however often it is begun again."""

import os
import signal

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import (
    CheckpointError,
    ConfigError,
    GFlowExplainerError,
    InstanceError,
    ModelError,
)
from gflowexplainer.testing import NodeModel, TypedNodeModel, random_graph, typed_graph
from gflowexplainer.training.interrupts import handlers_return

ray = pytest.importorskip("ray")
parquet = pytest.importorskip("pyarrow.parquet")
from gflowexplainer.bulk import Source, explain_in_bulk, read_rows  # noqa: E402
from gflowexplainer.bulk.worker import Worker, part_of  # noqa: E402

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")
FEW = {"max_nodes": 4, "epochs": 3, "num_contexts": 4, "hidden": 8, "num_samples": 16}


@pytest.fixture(scope="module")
def cluster():
    """A Ray of two processors on this machine."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
    with handlers_return():
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model, a graph, and the folder of an explainer that was fitted to some of its nodes."""
    folder = tmp_path_factory.mktemp("fitted")
    model, graph = NodeModel(seed=1), random_graph(60, 0.02, seed=2)
    GFlowExplainer(**FEW).fit(model, graph, [0, 7, 30], folder=folder, progress=False)
    return model, graph, folder


@pytest.fixture(scope="module")
def done(cluster, fitted, tmp_path_factory):
    """All but five nodes, explained by two workers, one of which is killed while it explains its third part."""
    _, graph, folder = fitted
    out, notes, here = tmp_path_factory.mktemp("bulk"), tmp_path_factory.mktemp("notes"), os.getpid()

    def load():
        calls = []

        def die():
            parts = len(list((out / "explanations").glob("part*.parquet")))
            calls.append(parts)
            # Of two workers that want to die, one comes first.
            if len(set(calls)) >= 3 and not list(notes.iterdir()):
                try:
                    (notes / "killed").touch(exist_ok=False)
                except FileExistsError:
                    return
                (notes / "killed").write_text(f"{os.getpid()} {parts}")
                os.kill(os.getpid(), signal.SIGKILL)

        def explain(*words, **more):
            die()
            return usual(*words, **more)

        usual = GFlowExplainer.explain
        if os.getpid() != here:
            # Called for every part.
            GFlowExplainer.explain = explain
        return Source(NodeModel(seed=1), graph)

    index = [node for node in range(60) if node % 12 != 3]
    result = explain_in_bulk(folder, load, index, out=out, workers=2, part_size=2, progress=False, smallest=0.0)
    killed, parts = map(int, (notes / "killed").read_text().split())
    return result, index, killed, parts


def test_a_worker_was_killed_in_the_middle(done):
    result, _, killed, parts = done
    assert 0 < parts < 27
    assert result.processes >= 1
    with pytest.raises(ProcessLookupError):
        os.kill(killed, 0)


def test_nothing_is_lost_and_nothing_is_there_twice(done):
    result, index, _, _ = done
    assert result.instances == len(index) == 55
    assert sorted(read_rows(result.folder)["instance"].to_pylist()) == index
    assert len(list((result.folder / "explanations").iterdir())) == 28  # and no temporary file


def test_the_rows_are_what_one_process_answers(done, fitted):
    model, graph, folder = fitted
    result, index, _, _ = done
    alone = GFlowExplainer.load(folder).explain(model, graph, index, progress=False)
    rows = {row["instance"]: row for row in read_rows(result.folder).to_pylist()}
    for node, explanation in zip(index, alone, strict=True):
        row = rows[node]
        best = explanation.top(10)
        # Ways to grow a subgraph that are worth the same may begin with either node.
        assert [sorted(s["nodes"]) for s in row["subgraphs"]] == [sorted(s.nodes) for s in best]
        assert [s["probability"] for s in row["subgraphs"]] == pytest.approx([s.probability for s in best], rel=1e-4)
        assert [s["size"] for s in row["subgraphs"]] == [len(s) for s in best]
        assert row["class"] == explanation.explained_class
        assert row["error"] == pytest.approx(explanation.error, abs=1e-4)
        dense = torch.zeros(60)
        for entry in row["nodes"]:
            dense[entry["node"]] = entry["probability"]
        assert torch.allclose(dense, explanation.node_mask[:, 0], atol=1e-5)
        edges = {(e["source"], e["target"]): e["probability"] for e in row["edges"]}
        mask = dict(zip(map(tuple, graph.edge_index.t().tolist()), explanation.edge_mask.tolist(), strict=True))
        assert all(abs(edges.get(pair, 0.0) - value) < 1e-5 for pair, value in mask.items())


def test_the_same_call_only_does_what_is_missing_and_tells_of_progress(done, fitted, capfd):
    model, graph, folder = fitted
    result, index, _, _ = done
    files = sorted((result.folder / "explanations").iterdir())
    before = {path.name: path.read_bytes() for path in files}
    again = {"out": result.folder, "part_size": 2, "progress": False, "smallest": 0.0}
    nothing = explain_in_bulk(folder, Source(model, graph), index, workers=1, **again)
    assert (nothing.instances, nothing.explained, nothing.processes) == (55, 0, 0)
    for path in (files[3], files[-1]):
        path.unlink()
    manifest = result.folder / "files.jsonl"  # as if the driver was killed before it had recorded a part
    lines = [line for line in manifest.read_text().splitlines() if files[5].name not in line or "digest" not in line]
    manifest.write_text("\n".join(lines))
    kept = {path.name: path.stat().st_mtime_ns for path in files if path.exists() and path != files[5]}
    some = explain_in_bulk(folder, Source(model, graph), index, workers=1, **{**again, "progress": True})
    assert "explained 55 of 55" in capfd.readouterr().err
    assert (some.instances, some.explained, some.processes) == (55, 5, 1)  # the last file holds one
    assert {path.name: path.read_bytes() for path in files} == before
    assert {name: (result.folder / "explanations" / name).stat().st_mtime_ns for name in kept} == kept


def test_another_question_in_the_same_folder_is_refused(done, fitted):
    model, graph, folder = fitted
    result, index, _, _ = done
    same = {"out": result.folder, "part_size": 2, "progress": False, "smallest": 0.0}
    for change in ({"top": 3}, {"num_samples": 8}, {"part_size": 4}):
        with pytest.raises(ConfigError, match="other inputs"):
            explain_in_bulk(folder, Source(model, graph), index, **{**same, **change})
    with pytest.raises(ConfigError, match="other inputs"):
        explain_in_bulk(folder, Source(model, graph), index[1:], **same)


@pytest.mark.parametrize("damage", ["flipped", "edited", "cut"])
def test_a_part_that_is_not_as_it_was_written_is_noticed_and_made_again(done, fitted, damage):
    model, graph, folder = fitted
    result, index, _, _ = done
    path = sorted((result.folder / "explanations").iterdir())[5]
    content = path.read_bytes()
    if damage == "edited":
        table = parquet.read_table(path)
        rows = table.to_pylist()
        rows[0]["class"] += 1
        parquet.write_table(table.from_pylist(rows, schema=table.schema), path)
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes(flipped if damage == "flipped" else content[:middle])
    with pytest.raises(CheckpointError, match="has changed since this run wrote it"):
        read_rows(result.folder)
    same = {"out": result.folder, "part_size": 2, "progress": False, "smallest": 0.0}
    again = explain_in_bulk(folder, Source(model, graph), index, workers=1, **same)
    assert again.explained == 2
    assert path.read_bytes() == content


def test_a_file_that_does_not_belong_there_is_noticed(done, fitted):
    model, graph, folder = fitted
    result, index, _, _ = done
    foreign = result.folder / "explanations" / "part-foreign.parquet"
    foreign.write_bytes(next((result.folder / "explanations").iterdir()).read_bytes())
    same = {"out": result.folder, "part_size": 2, "progress": False, "smallest": 0.0}
    try:
        with pytest.raises(CheckpointError, match="was not written by this run"):
            explain_in_bulk(folder, Source(model, graph), index, **same)
    finally:
        foreign.unlink()


def test_a_model_that_fails_in_a_worker_says_so(cluster, fitted, tmp_path):
    _, graph, folder = fitted
    here = os.getpid()

    def load():
        if os.getpid() != here:

            def fail(*_, **__):
                raise ValueError("out of order")

            GCNConv.propagate = fail
        return Source(NodeModel(seed=1), graph)

    with pytest.raises(ModelError, match="out of order"):
        explain_in_bulk(folder, load, [1], out=tmp_path, workers=1, progress=False)
    assert not list((tmp_path / "explanations").glob("*"))


def test_a_part_that_ends_every_worker_is_given_up(fitted, tmp_path):
    model, graph, folder = fitted
    question = {"part_size": 2, "num_samples": 4, "top": 1, "smallest": 0.1}
    out = tmp_path / "explanations"
    job = (str(folder), lambda: Source(model, graph), lambda: np.arange(4), str(out), question)
    name = part_of(np.arange(4), 1, question)[0]
    for number in range(5):  # what five workers left that were killed
        traces = list((tmp_path / "attempts").glob("*"))
        assert len(traces) == number
        if number:
            assert Worker(*job)({"part": np.array([0])})["failure"].tolist() == [""]
        (tmp_path / "attempts").mkdir(exist_ok=True)
        (tmp_path / "attempts" / f"{name}.{number}").touch()
    told = Worker(*job)({"part": np.array([0, 1, 0])})
    assert told["failure"].tolist() == ["", "ClusterError", "ClusterError"]
    assert "5 workers ended while they explained 'part-000001" in told["message"][1]
    assert told["instances"].tolist() == [2, 0, 0]
    assert len(list(out.iterdir())) == 1


def test_wrong_uses_are_refused_before_anything_is_started(fitted, tmp_path):
    model, graph, folder = fitted
    source = Source(model, graph)
    for wrong in ({"workers": 0}, {"part_size": 1.5}, {"top": True}, {"smallest": 2.0}, {"gpus": -1.0}):
        with pytest.raises(ConfigError, match=f"'{next(iter(wrong))}'"):
            explain_in_bulk(folder, source, [1], out=tmp_path, **wrong)
    with pytest.raises(InstanceError, match="node 5 more than once"):
        explain_in_bulk(folder, source, [1, 5, 5], out=tmp_path)
    with pytest.raises(InstanceError, match="names node 60"):
        explain_in_bulk(folder, source, [60], out=tmp_path)
    with pytest.raises(ModelError, match="another model"):
        explain_in_bulk(folder, Source(NodeModel(seed=2), graph), [1], out=tmp_path)
    with pytest.raises(GFlowExplainerError):
        explain_in_bulk(folder, Source(model, [graph, graph]), [0], out=tmp_path)
    with pytest.raises(CheckpointError, match="holds no fitted explainer"):
        explain_in_bulk(tmp_path, source, [1], out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_typed_graphs_are_refused_with_what_to_do(tmp_path):
    model, graph = TypedNodeModel(), typed_graph()
    GFlowExplainer(**FEW).fit(model, graph, [3], node_type="paper", folder=tmp_path / "fitted", progress=False)
    with pytest.raises(ConfigError, match="does not take heterogeneous graphs"):
        explain_in_bulk(tmp_path / "fitted", Source(model, graph), out=tmp_path / "out")


def test_parts_cover_all_instances_and_their_names_follow_from_the_question():
    ids, question = np.array([4, 9, 2, 7, 1]), {"part_size": 2, "top": 3}
    parts = [part_of(ids, number, question) for number in range(3)]
    assert [part.tolist() for _, part in parts] == [[4, 9], [2, 7], [1]]
    assert len({name for name, _ in parts}) == 3
    assert part_of(ids, 0, question)[0] == parts[0][0]
    assert part_of(ids, 0, {**question, "top": 4})[0] != parts[0][0]
    assert part_of(ids[::-1].copy(), 0, question)[0] != parts[0][0]
