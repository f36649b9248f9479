"""A GPU answers as the CPU does."""

import pytest
import torch
from torch_geometric.explain import Explainer

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import GraphModel, NodeModel, random_graph

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
SMALL = {"max_nodes": 5, "epochs": 6, "rollouts": 4, "num_contexts": 8, "hidden": 16, "seed": 3}


def fitted(device, preset="default"):
    graph, model = random_graph(40, 0.1, seed=2).to(device), NodeModel(seed=6).to(device)
    settings = SMALL | ({"max_nodes": 6} if preset == "paper" else {})
    return GFlowExplainer(preset=preset, **settings).fit(model, graph, range(12), progress=False), model, graph


@pytest.mark.parametrize("preset", ["default", "context", "paper", "sequence"])
def test_the_same_weights_explain_alike(tmp_path, preset):
    here, model, graph = fitted("cpu", preset)
    here.save(tmp_path / "fitted")
    there = GFlowExplainer.load(tmp_path / "fitted")
    ours = here.explain(model, graph, range(20))
    theirs = there.explain(model.to("cuda"), graph.to("cuda"), range(20))
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one.node_mask, other.node_mask.cpu(), atol=1e-4)
        assert torch.allclose(one.edge_mask, other.edge_mask.cpu(), atol=1e-4)


def test_the_same_seed_trains_alike():
    (here, model, graph), (there, *_) = fitted("cpu"), fitted("cuda")
    ours = here.explain(model, graph, range(20))
    theirs = there.explain(model.to("cuda"), graph.to("cuda"), range(20))
    gaps = [(one.node_mask - other.node_mask.cpu()).abs().max() for one, other in zip(ours, theirs, strict=True)]
    assert max(gaps) < 0.02


@pytest.mark.parametrize("at_once", [3, 20])
def test_few_and_many_are_explained_where_the_user_is(at_once):
    there, model, graph = fitted("cuda")
    few = [there.explain(model, graph, [node])[0] for node in range(3)]
    many = there.explain(model, graph, range(at_once))
    assert many.node_mask.is_cuda
    assert there.explain(model, graph, 1).edge_mask.is_cuda
    for one, other in zip(few, many, strict=False):
        assert one.x is graph.x
        assert one.edge_index is graph.edge_index
        fields = (one.node_mask, one.edge_mask, one.prediction, one.target, one.index, one.node_contributions)
        assert all(value.is_cuda for value in fields)
        assert torch.allclose(one.node_mask, other.node_mask, atol=1e-4)
        assert torch.allclose(one.prediction, other.prediction, atol=1e-5)
        assert one.subgraphs[0].nodes == other.subgraphs[0].nodes
        for name in ("prediction_only", "prediction_without"):
            ours, theirs = getattr(one.subgraphs[0], name), getattr(other.subgraphs[0], name)
            assert torch.allclose(torch.tensor(ours), torch.tensor(theirs), atol=1e-5)
        assert one.get_explanation_subgraph().x.is_cuda
        assert one.best().edge_mask.is_cuda


def test_a_graph_that_was_written_to_is_copied_again():
    there, model, graph = fitted("cuda")
    before = there.explain(model, graph, 3)[0].prediction
    graph.x.mul_(-1)
    after = there.explain(model, graph, 3)[0].prediction
    with torch.no_grad():
        wanted = model(graph.x, graph.edge_index)
    assert not torch.allclose(before, after, atol=1e-3)
    assert torch.allclose(after, wanted, atol=1e-5)


def test_few_graphs_are_explained_where_the_user_is():
    graphs = [random_graph(12, 0.2, seed=seed).to("cuda") for seed in range(20)]
    model = GraphModel(seed=1).to("cuda")
    config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    there = GFlowExplainer(**SMALL).fit(model, graphs, model_config=config, progress=False)
    many = there.explain(model, graphs, model_config=config)
    for position in (0, 7):
        one = there.explain(model, graphs, [position], model_config=config)[0]
        assert one.node_mask.is_cuda
        assert one.prediction.is_cuda
        assert torch.allclose(one.node_mask, many[position].node_mask, atol=1e-4)
        assert one.subgraphs[0].prediction_only == pytest.approx(many[position].subgraphs[0].prediction_only, abs=1e-5)


@pytest.mark.parametrize("kind", ["object", "attributes", "common_attributes"])
def test_one_call_of_pyg_answers_on_the_gpu(kind):
    there, model, graph = fitted("cuda")
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    explainer = Explainer(
        model, there, explanation_type="model", node_mask_type=kind, edge_mask_type="object", model_config=config
    )
    found = explainer(graph.x, graph.edge_index, index=4)
    assert found.validate()
    assert found.node_mask.is_cuda
    assert len(found.counterfactual() or (0,)) >= 1
    assert isinstance(str(found.summary()), str)
    several = explainer(graph.x, graph.edge_index, index=torch.tensor([4, 5], device="cuda"))
    assert several.node_mask.is_cuda
