"""What is kept between calls, and when it is dropped."""

import gc
import pickle
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv, RGCNConv, SimpleConv

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.graphs.inputs import input_graph
from gflowexplainer.model.cache import ModelCache, facts_of
from gflowexplainer.model.one_graph import NodeTask
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.structure import KnownModel
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


class Deep(NodeModel):
    """Has attributes of many kinds."""

    def build(self):
        super().build()
        self.act, self.depth, self.weights = torch.relu, 1, {"a": [1.0, torch.ones(2)]}
        self.table, self.extra, self.scaled = np.ones(3), torch.zeros(2), scaling(1.0)
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("sparse", None)


def scaling(factor):
    return lambda x: factor * x


def written(model):
    model.scale.numpy()[0] = 3


CHANGES = {
    "in place": lambda model: model.second.bias.data.add_(1),
    "through numpy": written,
    "a layer": lambda model: setattr(model, "second", GCNConv(8, 3)),
    "one more": lambda model: setattr(model, "third", GCNConv(3, 3)),
    "a buffer": lambda model: model.register_buffer("other", torch.ones(1)),
    "a tensor": lambda model: model.extra.add_(1),
    "an array": lambda model: model.table.__setitem__(1, 2.0),
    "a plain value": lambda model: setattr(model.second, "improved", True),
    "a number": lambda model: setattr(model, "depth", 2),
    "another type": lambda model: setattr(model, "depth", True),
    "no attribute": lambda model: delattr(model, "depth"),
    "in a dict": lambda model: model.weights["a"].__setitem__(0, 2.0),
    "a tensor in a dict": lambda model: model.weights["a"][1].add_(1),
    "an activation": lambda model: setattr(model, "act", torch.tanh),
    "a closure": lambda model: setattr(model, "scaled", scaling(2.0)),
    "a hook": lambda model: model.first.register_forward_hook(lambda *_: None),
    "a class": lambda model: setattr(model.second, "__class__", nn.Identity),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_model_is_another(name):
    model, cache = Deep(seed=1), ModelCache()
    known = cache.model(model)
    assert cache.model(model) is known
    assert cache.model(model.train()) is known
    CHANGES[name](model)
    again = cache.model(model)
    assert again is not known
    assert again.num_hops == KnownModel(model).num_hops
    assert again.fingerprint == model_fingerprint(model)
    assert cache.model(model) is again
    assert cache.model(Deep(seed=1)) is not again


def test_a_scripted_model_is_known():
    model, cache = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))), ModelCache()
    known = cache.model(model)
    assert cache.model(model) is known
    with torch.no_grad():
        model[0].weight.add_(1)
    assert cache.model(model) is not known


def test_what_cannot_be_explained_is_refused_at_every_call():
    model, cache = NodeModel(seed=1), ModelCache()
    cache.model(model)
    model.second.flow = "target_to_source"
    for _ in range(2):
        with pytest.raises(ConfigError, match="target_to_source"):
            cache.model(model)
    with pytest.raises(ModelError, match="has no shape yet"):
        cache.model(nn.Sequential(nn.LazyLinear(3)))


def test_steps_relations_and_place_are_found():
    known = KnownModel(nn.Sequential(RGCNConv(3, 3, 4), GCNConv(3, 3), RGCNConv(3, 3, 5)))
    assert (known.num_hops, known.num_relations, known.device) == (3, 5, torch.device("cpu"))
    assert KnownModel(nn.ReLU()).device is None


LARGE = 300_000


@pytest.mark.parametrize("size", [12, LARGE])
@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.add_(1),
        lambda t: t.data.mul_(2),
        lambda t: setattr(t, "data", t.data + 1),
        lambda t: t.index_fill_(0, torch.tensor([5]), 9.0),
    ],
)
def test_a_written_tensor_is_another(change, size):
    tensor = torch.arange(float(size))
    before = facts_of(tensor)
    assert facts_of(tensor) == before
    change(tensor)
    assert facts_of(tensor) != before


def test_one_entry_of_a_small_tensor_counts_and_a_large_one_is_itself_only():
    small, large = torch.arange(99_999.0), torch.arange(float(LARGE))
    before = facts_of(small), facts_of(large)
    assert facts_of(small.clone()) == before[0]
    assert facts_of(large.clone()) != before[1]
    small.numpy()[77_777] += 1
    assert facts_of(small) != before[0]


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
    graph, model, cache = random_graph(10, seed=3), NodeModel(), ModelCache()
    weight = torch.ones(graph.num_edges)
    given = input_graph(graph.x, graph.edge_index, {"edge_weight": weight}, model)
    predictor = Predictor(model)
    known = cache.graph(predictor, given)
    assert cache.graph(predictor, given) is known
    assert cache.graph(Predictor(model, mode="regression"), given) is not known
    known = cache.graph(predictor, given)
    tensors = {"x": graph.x, "edge_index": graph.edge_index, "edge_weight": weight}
    tensors[name].view(-1).numpy()[-1] = 0
    assert cache.graph(predictor, given) is not known


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
    model, cache = NodeModel(), ModelCache()
    graphs = [random_graph(10, seed=seed) for seed in (3, 4)]
    tasks = [NodeTask(Predictor(model), input_graph(g.x, g.edge_index, {}, model), [0], cache=cache) for g in graphs]
    for task in tasks:
        task.inputs()
    for graph in graphs[::-1]:
        given = input_graph(graph.x, graph.edge_index, {}, model)
        inputs = NodeTask(Predictor(model), given, cache=cache).inputs()
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
