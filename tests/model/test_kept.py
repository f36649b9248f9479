"""What is kept between calls, and when it is dropped."""

import gc
import pickle
import weakref

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs.inputs import input_graph
from gflowexplainer.model.kept import KeptForModel, TensorMark
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


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.add_(1),
        lambda t: t.data.mul_(2),
        lambda t: setattr(t, "data", t.data + 1),
        lambda t: t.index_fill_(0, torch.tensor([0]), 9.0),
    ],
)
def test_a_written_tensor_is_another(change):
    tensor = torch.arange(12.0).reshape(4, 3)
    mark = TensorMark({"x": tensor})
    assert mark.fits({"x": tensor})
    change(tensor)
    assert not mark.fits({"x": tensor})


def test_an_equal_tensor_is_another_and_so_is_another_name():
    tensor = torch.ones(3)
    mark = TensorMark({"x": tensor})
    assert not mark.fits({"x": tensor.clone()})
    assert not mark.fits({"y": tensor})
    assert not mark.fits({})
    with torch.inference_mode():
        uncounted = torch.ones(3)
    assert not TensorMark({"x": uncounted}).fits({"x": uncounted})


def test_the_fingerprint_follows_the_weights():
    model, kept = NodeModel(seed=1), KeptForModel()
    assert kept.fingerprint(model) == kept.fingerprint(model) == model_fingerprint(model)
    with torch.no_grad():
        model.second.lin.weight[0, 0] += 1
    assert kept.fingerprint(model) == model_fingerprint(model)
    other = NodeModel(seed=2)
    assert kept.fingerprint(other) == model_fingerprint(other)


def test_the_second_call_evaluates_the_model_nowhere_and_a_change_is_noticed():
    graph, model = random_graph(20, 0.1, seed=2), Counting(seed=1)
    algorithm = GFlowExplainer(**QUICK).fit(model, graph, range(8), progress=False)
    first = algorithm.explain(model, graph, [9])[0].node_mask
    model.sizes.clear()
    again = algorithm.explain(model, graph, [9])[0]
    assert torch.equal(again.node_mask, first)
    assert model.sizes == []
    with torch.no_grad():
        graph.x[:, 0] += 1
    changed = algorithm.explain(model, graph, [9])[0]
    assert model.sizes == [20]
    with torch.no_grad():
        torch.testing.assert_close(changed.prediction, model(graph.x, graph.edge_index))
    fresh = GFlowExplainer(**QUICK).fit(model, random_graph(20, 0.1, seed=2), range(8), progress=False)
    torch.testing.assert_close(fresh.explain(model, graph, [9])[0].node_mask, changed.node_mask)


@pytest.mark.parametrize("name", ["x", "edge_index", "edge_weight"])
def test_every_tensor_that_the_model_is_given_counts(name):
    graph, model, kept = random_graph(10, seed=3), NodeModel(), KeptForModel()
    weight = torch.ones(graph.num_edges)
    given = input_graph(graph.x, graph.edge_index, {"edge_weight": weight}, model)
    from gflowexplainer.graphs.index import GraphIndex

    index = GraphIndex.build(graph.edge_index, 10)
    kept.find(model, given)
    kept.keep(given, index, None)
    assert kept.find(model, given)[0] is index
    tensors = {"x": graph.x, "edge_index": graph.edge_index, "edge_weight": weight}
    tensors[name].copy_(tensors[name].flip(0))
    assert kept.find(model, given) == (None, None)


def test_no_graph_is_kept_alive_and_nothing_travels():
    graph, model = random_graph(20, 0.1, seed=2), NodeModel(seed=1)
    algorithm = GFlowExplainer(**QUICK).fit(model, graph, range(4), progress=False)
    assert len(algorithm.explain(model, graph, [9])) == 1
    alive = weakref.ref(graph.x)
    del graph
    gc.collect()
    assert alive() is None
    assert vars(pickle.loads(pickle.dumps(KeptForModel()))).keys() == vars(KeptForModel()).keys()
