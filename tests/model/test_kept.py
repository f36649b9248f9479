"""What is kept between calls, and when it is dropped."""

import gc
import pickle
import weakref

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv, SimpleConv

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import input_graph
from gflowexplainer.model.kept import ModelCache
from gflowexplainer.model.makeup import Makeup
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import NodeTask
from gflowexplainer.storage.identity import model_fingerprint
from gflowexplainer.testing import NodeModel, random_graph

QUICK = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16}


class Counting(NodeModel):
    """Counts on how many nodes it is called."""

    def __init__(self, **more):
        super().__init__(**more)
        self.sizes = []

    def forward(self, x, edge_index, edge_weight=None):
        self.sizes.append(x.size(0))
        return super().forward(x, edge_index, edge_weight)


def test_the_fingerprint_follows_the_weights():
    model, kept = NodeModel(seed=1), ModelCache()
    assert kept.fingerprint(model) == kept.fingerprint(model) == model_fingerprint(model)
    with torch.no_grad():
        model.second.lin.weight[0, 0] += 1
    assert kept.fingerprint(model) == model_fingerprint(model)
    other = NodeModel(seed=2)
    assert kept.fingerprint(other) == model_fingerprint(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model, "second", GCNConv(8, 3)),
        lambda model: setattr(model, "third", GCNConv(3, 3)),
        lambda model: setattr(model.second.lin, "weight", nn.Parameter(model.second.lin.weight.detach().clone())),
        lambda model: model.second.bias.data.add_(1),
        lambda model: model.register_buffer("scale", torch.ones(1)),
        lambda model: setattr(model, "scale", torch.ones(1)),
        lambda model: setattr(model.second, "improved", True),
    ],
)
def test_what_a_model_is_made_of_is_found_again_where_it_changed(change):
    model, kept = NodeModel(seed=1), ModelCache()
    assert kept.fingerprint_of(kept.predictor(model)) == model_fingerprint(model)
    first = kept.predictor(model)
    assert kept.predictor(model).makeup is first.makeup
    change(model)
    again = kept.predictor(model)
    assert again.makeup is not first.makeup
    assert again.num_hops == 2 + hasattr(model, "third")
    assert kept.fingerprint_of(again) == model_fingerprint(model)
    later = kept.predictor(model)
    assert later.makeup == again.makeup == Makeup.of(model)
    assert kept.predictor(model).makeup is later.makeup
    assert kept.fingerprint_of(later) == model_fingerprint(model)


def test_a_model_that_cannot_be_explained_any_more_is_refused_at_the_next_call():
    model, kept = NodeModel(seed=1), ModelCache()
    kept.fingerprint_of(kept.predictor(model))
    model.second.flow = "target_to_source"
    for _ in range(2):
        with pytest.raises(ConfigError, match="target_to_source"):
            kept.predictor(model)


def test_the_second_call_says_the_same_and_a_change_is_noticed():
    graph, model = random_graph(20, 0.1, seed=2), Counting(seed=1)
    algorithm = GFlowExplainer(**QUICK).fit(model, graph, range(8), progress=False)
    first = algorithm.explain(model, graph, [9])[0].node_mask
    again = algorithm.explain(model, graph, [9])[0]
    assert torch.equal(again.node_mask, first)
    with torch.no_grad():
        graph.x[:, 0] += 1
    changed = algorithm.explain(model, graph, [9])[0]
    with torch.no_grad():
        torch.testing.assert_close(changed.prediction, model(graph.x, graph.edge_index))
    fresh = GFlowExplainer(**QUICK).fit(model, random_graph(20, 0.1, seed=2), range(8), progress=False)
    torch.testing.assert_close(fresh.explain(model, graph, [9])[0].node_mask, changed.node_mask)


@pytest.mark.parametrize("name", ["x", "edge_index", "edge_weight"])
def test_every_tensor_that_the_model_is_given_counts(name):
    graph, model, kept = random_graph(10, seed=3), NodeModel(), ModelCache()
    weight = torch.ones(graph.num_edges)
    given = input_graph(graph.x, graph.edge_index, {"edge_weight": weight}, model)
    index = GraphIndex.build(graph.edge_index, 10)
    predictor = Predictor(model)
    kept.find(predictor, given)
    kept.keep(predictor, given, index, None)
    assert kept.find(predictor, given)[0] is index
    tensors = {"x": graph.x, "edge_index": graph.edge_index, "edge_weight": weight}
    tensors[name].copy_(tensors[name].flip(0))
    assert kept.find(predictor, given) == (None, None)


class Degree(nn.Module):
    """Says class 1 with log-odds ``factor`` times the neighbours; it has no weights."""

    def __init__(self, factor):
        super().__init__()
        self.factor, self.conv = factor, SimpleConv(aggr="sum")

    def forward(self, x, edge_index):
        count = self.factor * self.conv(torch.ones_like(x[:, :1]), edge_index)
        return torch.cat([torch.zeros_like(count), count], dim=1)


def test_models_without_weights_are_told_apart_and_their_attributes_count():
    graph, algorithm = random_graph(12, seed=2), GFlowExplainer(**QUICK)

    def said(model):
        return algorithm.explain(model, graph, [3], progress=False)[0].whole_prediction[1]

    one, other = Degree(0.5), Degree(-0.5)
    first = said(one)
    assert first > 0.5 > said(other)
    assert said(one) == first
    one.factor = -0.5
    assert said(one) == pytest.approx(1 - first, abs=1e-6)


def test_another_way_to_read_the_output_is_checked_again():
    graph, model, algorithm = random_graph(12, seed=2), NodeModel(), GFlowExplainer(**QUICK)
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    assert len(algorithm.explain(model, graph, [3], progress=False, model_config=config)) == 1
    with pytest.raises(ModelError, match="which are no probs"):
        algorithm.explain(model, graph, [3], progress=False, model_config=config | {"return_type": "probs"})


def test_two_graphs_in_turn_are_not_mixed():
    model, kept = NodeModel(), ModelCache()
    graphs = [random_graph(10, seed=seed) for seed in (3, 4)]
    tasks = [NodeTask(Predictor(model), input_graph(g.x, g.edge_index, {}, model), [0], kept=kept) for g in graphs]
    for task in tasks:
        task.inputs()
    for graph in graphs[::-1]:
        given = input_graph(graph.x, graph.edge_index, {}, model)
        inputs = NodeTask(Predictor(model), given, kept=kept).inputs()
        with torch.no_grad():
            whole = model(graph.x, graph.edge_index).softmax(dim=1)
        torch.testing.assert_close(inputs.target.prediction, whole)


def test_no_graph_is_kept_alive_and_nothing_travels():
    graph, model = random_graph(20, 0.1, seed=2), NodeModel(seed=1)
    algorithm = GFlowExplainer(**QUICK).fit(model, graph, range(4), progress=False)
    assert len(algorithm.explain(model, graph, [9])) == 1
    alive = weakref.ref(graph.x)
    del graph
    gc.collect()
    assert alive() is None
    assert vars(pickle.loads(pickle.dumps(ModelCache()))).keys() == vars(ModelCache()).keys()
