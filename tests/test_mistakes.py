"""Mistakes that once ended in an error from deep inside, or in none: each says what is wrong and what to do."""

import json
import re

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

from gflowexplainer import GFlowExplainer, SubgraphExplanation, adapt
from gflowexplainer.errors import (
    CheckpointError,
    ConfigError,
    DatasetError,
    GFlowExplainerError,
    InstanceError,
    ModelError,
)
from gflowexplainer.sources import load_graphs
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.testing import GraphModel, LinkModel, NodeModel, random_graph

CLASSES = {"mode": "multiclass_classification", "return_type": "raw"}
QUICK = {"max_nodes": 3, "epochs": 2, "num_contexts": 2}


def explain(model=None, data=None, **more):
    return GFlowExplainer(**QUICK).explain(
        model or NodeModel(), random_graph(10) if data is None else data, 3, progress=False, **more
    )[0]


@pytest.mark.parametrize("change", [lambda x: x.to_sparse(), lambda x: x[:, :0]])
def test_features_that_are_sparse_or_have_no_columns(change):
    data = random_graph(10)
    data.x = change(data.x)
    with pytest.raises(InstanceError, match=r"sparse|no columns"):
        explain(data=data)


@pytest.mark.parametrize("setting", [{"num_samples": 16}, {"max_nodes": 3}, {"preset": "paper"}])
def test_settings_passed_to_a_call(setting):
    ((name, value),) = setting.items()
    algorithm, graph, model = GFlowExplainer(**QUICK), random_graph(10), NodeModel()
    for call in (
        lambda: algorithm.explain(model, graph, 3, progress=False, **setting),
        lambda: algorithm.fit(model, graph, [3], progress=False, **setting),
        lambda: algorithm(model, graph.x, graph.edge_index, target=None, index=3, **setting),
    ):
        with pytest.raises(ConfigError, match=re.escape(f"GFlowExplainer({name}={value!r})")):
            call()


def test_a_model_may_take_arguments_that_are_called_like_settings():
    class Tempered(NodeModel):
        def forward(self, x, edge_index, beta=1.0):
            return beta * super().forward(x, edge_index)

    class Open(NodeModel):
        def forward(self, x, edge_index, **more):
            return more["beta"] * super().forward(x, edge_index)

    assert explain(Tempered(), beta=2.0).whole_prediction == explain(Open(), beta=2.0).whole_prediction


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_values_of_edges_that_are_too_few(name):
    class Weighted(NodeModel):
        def forward(self, x, edge_index, edge_weight=None, edge_attr=None):
            return super().forward(x, edge_index, edge_weight)

    data = random_graph(10)
    few, said = torch.ones(data.num_edges - 3), f"'{name}' has {data.num_edges - 3} rows, but the graph has"
    with pytest.raises(InstanceError, match=f"{said} {data.num_edges} edges"):
        explain(Weighted(), data, **{name: few})
    data[name] = few
    with pytest.raises(InstanceError, match=f"{said} {data.num_edges} edges"):
        explain(Weighted(), data)


def test_a_single_row_of_edges_is_meant_for_all():
    class Scaled(NodeModel):
        def forward(self, x, edge_index, edge_attr):
            return super().forward(x, edge_index, edge_attr.mean().expand(edge_index.size(1)))

    assert explain(Scaled(), edge_attr=torch.full((1, 3), 0.5)).subgraphs


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (["x"], r"The graph has no 'x'\. Set 'x'"),
        (["edge_index"], r"The graph has no 'edge_index'\. Set 'edge_index'"),
        (["x", "edge_index"], "The graph has no 'x' and no 'edge_index'"),
    ],
)
def test_what_a_graph_lacks_is_named(gone, said):
    data = random_graph(10)
    data.num_nodes = 10
    for name in gone:
        del data[name]
    with pytest.raises(InstanceError, match=said):
        explain(data=data)


def test_features_and_edges_that_are_no_data():
    data = random_graph(10)
    with pytest.raises(InstanceError, match=r"a tuple of tensors.*Data\(x=x, edge_index=edge_index\)"):
        explain(data=(data.x, data.edge_index))


@pytest.mark.parametrize("kind", [NodeModel, GraphModel])
def test_a_model_that_takes_edges_before_features(kind):
    class Turned(kind):
        def forward(self, edge_index, x, **more):
            return super().forward(x, edge_index, **more)

    call = r"adapt\(model, call=lambda model, data: model\(data\.edge_index, data\.x\)\)"
    asked = {} if kind is NodeModel else {"model_config": {**CLASSES, "task_level": "graph"}}
    with pytest.raises(ModelError, match=call):
        GFlowExplainer(**QUICK).explain(Turned(), random_graph(10), 0, progress=False, **asked)
    adapted = adapt(Turned(), call=lambda model, data: model(data.edge_index, data.x))
    assert GFlowExplainer(**QUICK).explain(adapted, random_graph(10), 0, progress=False, **asked)[0].subgraphs


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda model, data: data.update({"x": data.x.double()}), r"'x' is torch\.float64\. .* data\.x\.float\(\)"),
        (lambda model, data: model.bfloat16(), r"bfloat16, which NumPy does not know\. Explain model\.float\(\)"),
        (lambda model, data: model.double(), r"'x' is torch\.float32\. Convert it: data\.x\.to\(torch\.float64\)"),
    ],
)
def test_features_of_another_type_than_the_weights(change, said):
    model, data = NodeModel(), random_graph(10)
    change(model, data)
    with pytest.raises(ModelError, match=said):
        explain(model, data)


@pytest.mark.parametrize("level", [None, "edge"])
def test_links_that_are_not_said(level):
    binary = {"mode": "binary_classification", "task_level": level, "return_type": "raw"}
    config = {} if level is None else {"model_config": binary}
    with pytest.raises(InstanceError, match=r"edge_label_index=torch\.tensor\(\[\[0\], \[4\]\]\)"):
        explain(LinkModel(), **config)


@pytest.mark.parametrize("hops", [1.5, "2", True, -1])
def test_hops_that_are_no_number(hops):
    with pytest.raises(ConfigError, match="'num_hops' must be a whole number"):
        GFlowExplainer(num_hops=hops)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda y: y[:, :0], "no columns"),
        (lambda y: y.long(), "floating-point numbers"),
        (lambda y: y > 0, "floating-point numbers"),
        (lambda y: y.to(torch.complex64), "floating-point numbers"),
        (lambda y: y.to_sparse(), "floating-point numbers"),
    ],
)
def test_outputs_that_are_no_scores(change, said):
    class Model(NodeModel):
        def forward(self, x, edge_index):
            return change(super().forward(x, edge_index))

    with pytest.raises(ModelError, match=said):
        explain(Model())


@pytest.mark.parametrize("kind", ["probs", "log_probs"])
def test_probabilities_that_do_not_add_up(kind):
    class Model(NodeModel):
        def forward(self, x, edge_index):
            share = super().forward(x, edge_index).sigmoid()
            return share if kind == "probs" else share.log()

    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": kind}
    with pytest.raises(ModelError, match=r"whose sum is .* instead of 1"):
        explain(Model(), model_config=config)


def test_a_lazy_model():
    with pytest.raises(ModelError, match="no shape yet"):
        explain(nn.Sequential(GCNConv(-1, 3)))


def test_weights_that_are_no_numbers_and_evidence_of_another_shape(tmp_path):
    data, model = random_graph(10), NodeModel()
    GFlowExplainer(**QUICK).fit(model, data, [0, 1], folder=tmp_path, progress=False)
    path = tmp_path / "explainer.safetensors"
    sections, meta = read_checkpoint(path)
    weight = sections["evidence"]["weight_0"]
    spoiled = sections["evidence"] | {"weight_0": torch.full_like(weight, torch.nan)}
    write_checkpoint(path, sections | {"evidence": spoiled}, meta)
    with pytest.raises(CheckpointError, match="NaN or infinity"):
        GFlowExplainer.load(tmp_path)
    write_checkpoint(path, sections | {"evidence": sections["evidence"] | {"weight_0": weight[:, :1].clone()}}, meta)
    with pytest.raises(GFlowExplainerError, match="fit again"):
        _ = GFlowExplainer.load(tmp_path).explain(model, data, 3)[0].subgraphs


@pytest.mark.parametrize("meta", [[], None, [[1]], "text"])
def test_metadata_that_is_none(tmp_path, meta):
    write_checkpoint(tmp_path / "explainer.safetensors", {"network": {"a": torch.ones(1)}}, meta)
    with pytest.raises(CheckpointError, match="metadata is a"):
        GFlowExplainer.load(tmp_path)
    with pytest.raises(CheckpointError, match="metadata is a"):
        SubgraphExplanation.load(tmp_path / "explainer.safetensors")


@pytest.mark.parametrize("end", [-1, 3, 10**30, None])
def test_ids_in_json_that_no_node_has(tmp_path, end):
    (tmp_path / "g.json").write_text(json.dumps({"features": [[1.0]] * 3, "edges": [[0, end]]}))
    with pytest.raises(DatasetError, match=r"which is no node|names node"):
        load_graphs(tmp_path / "g.json")


@pytest.mark.parametrize(
    "data", [torch.ones(4, 3), torch.tensor(1.0), torch.ones(4, 3).numpy(), {"x": torch.ones(4, 3)}, "graph", 7, [None]]
)
@pytest.mark.parametrize("level", ["node", "graph"])
def test_data_that_are_no_graphs(data, level):
    with pytest.raises(InstanceError, match=r"must be a Data or HeteroData|explained on one graph|names graph 3"):
        explain(data=data, model_config={**CLASSES, "task_level": level})
