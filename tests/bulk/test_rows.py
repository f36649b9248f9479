import pytest
import torch
from torch_geometric.data import Data

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, cycle, house

pa = pytest.importorskip("pyarrow")
from gflowexplainer.bulk.rows import FOLDER, read_rows, row_of, schema, write_rows  # noqa: E402
from gflowexplainer.storage.manifest import Manifest  # noqa: E402


def stored(folder, row):
    """Writes a row as a run does, and reads it."""
    with Manifest(folder).writing(f"{FOLDER}/one.parquet") as path:
        write_rows(path, [row])
    table = read_rows(folder)
    assert table.schema == schema()
    return table.to_pylist()[0]


FEW = {"max_nodes": 3, "epochs": 2, "num_contexts": 2, "hidden": 8, "num_samples": 8}


@pytest.fixture(scope="module")
def explanation():
    graphs = [house(), cycle(6)]
    return GFlowExplainer(**FEW).fit(GraphModel(), graphs, progress=False).explain(GraphModel(), graphs)[1]


def test_a_row_holds_what_the_explanation_says(explanation, tmp_path):
    row = row_of(1, explanation, top=2, smallest=0.0)
    found = stored(tmp_path, row)
    assert found["instance"] == 1
    assert found["class"] == explanation.explained_class
    assert found["prediction"] == pytest.approx(explanation.whole_prediction)
    assert [tuple(s["nodes"]) for s in found["subgraphs"]] == [s.nodes for s in explanation.top(2)]
    assert found["num_subgraphs"] == len(explanation.subgraphs) >= 2
    assert [n["node"] for n in found["nodes"]] == list(range(6))
    assert [n["probability"] for n in found["nodes"]] == pytest.approx(explanation.node_mask[:, 0].tolist())
    ends = [[e["source"], e["target"]] for e in found["edges"]]
    assert ends == explanation.edge_index.t().tolist()
    assert [e["probability"] for e in found["edges"]] == pytest.approx(explanation.edge_mask.tolist())


def test_improbable_nodes_and_edges_are_left_out(explanation):
    bound = float(explanation.node_mask.median())
    row = row_of(1, explanation, top=1, smallest=bound)
    assert [n["node"] for n in row["nodes"]] == torch.nonzero(explanation.node_mask[:, 0] >= bound).flatten().tolist()
    assert 0 < len(row["nodes"]) < 6
    assert all(e["probability"] >= bound for e in row["edges"])


def test_a_value_has_no_class(tmp_path):
    graph = cycle(5)
    data = Data(x=graph.x, edge_index=graph.edge_index, edge_attr=torch.ones(graph.edge_index.size(1), 2))
    config = {"mode": "regression", "task_level": "graph", "return_type": "raw"}
    model = EdgeFeatureModel()
    algorithm = GFlowExplainer(**FEW).fit(model, [data], progress=False, model_config=config)
    found = stored(tmp_path, row_of(0, algorithm.explain(model, [data])[0], top=1, smallest=0.1))
    assert found["class"] is None
    assert found["prediction"] == pytest.approx(model(data.x, data.edge_index, data.edge_attr).flatten().tolist())


def test_nothing_explained_is_an_empty_table(tmp_path):
    assert read_rows(tmp_path).num_rows == 0
    assert read_rows(tmp_path, ["instance"]).column_names == ["instance"]


def test_without_ray_it_says_what_to_install(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(ConfigError, match=r"gflowexplainer\[ray\]"):
        read_rows(tmp_path)
