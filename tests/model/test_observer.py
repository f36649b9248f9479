"""What the model says in parts of a large graph is what it says of the whole, and only that part is read."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.explain import Explainer
from torch_geometric.explain.metric import fidelity
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model import observer as observer_module
from gflowexplainer.model.observer import KnownGraph, Observer
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.testing import NodeModel, graph_of

QUICK = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16}
LONG = 400


@pytest.fixture(autouse=True)
def every_graph_is_large(monkeypatch):
    """Small graphs are evaluated as a whole; here parts of a graph are looked at."""
    monkeypatch.setattr(observer_module, "SMALL", 0)


@pytest.fixture
def ladder():
    """Two long paths, joined rung by rung: far too long to be seen from one place."""
    sides = [(i, i + 2) for i in range(LONG - 2)]
    return graph_of([*sides, *((i, i + 1) for i in range(0, LONG, 2))], LONG)


class Two(NodeModel):
    """Two layers of a kind that sees degrees, attention or means."""

    def __init__(self, layer):
        self.layer = layer
        super().__init__()

    def build(self):
        self.first, self.second = self.layer(3, 8), self.layer(8, 3)


def cut(graph, nodes, predictor, limit=None, **arguments):
    index = GraphIndex.build(graph.edge_index, graph.num_nodes)
    instances = Instances.around_nodes(
        graph.x, graph.edge_index, nodes, predictor.num_hops, graph_index=index, limit=limit, **arguments
    )
    given = InputGraph(graph.x, graph.edge_index, arguments)
    return instances, Observer(predictor, given, index, KnownGraph(), limit)


def observe(model, graph, **arguments):
    """Evaluates a model on a whole graph."""
    return Predictor(model).observe(graph.x, graph.edge_index, arguments, graph.num_nodes)


@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv])
def test_a_part_says_what_the_whole_says(ladder, layer):
    model = Two(layer)
    instances, observer = cut(ladder, [40, 200, 202, 399], Predictor(model))
    seen = observer.at(instances)
    assert observer.known.whole is None
    output, embedding = observe(model, ladder)
    torch.testing.assert_close(seen.output, output[instances.node_id])
    torch.testing.assert_close(seen.embedding, embedding[instances.node_id])


def test_arguments_come_along(ladder):
    weight = torch.rand(ladder.num_edges, generator=torch.Generator().manual_seed(0))
    model = NodeModel()
    instances, observer = cut(ladder, [40, 200], Predictor(model), edge_weight=weight)
    output, _ = observe(model, ladder, edge_weight=weight)
    torch.testing.assert_close(observer.at(instances).output, output[instances.node_id])
    assert observer.known.whole is None


def test_where_most_is_needed_all_is_asked_once(ladder):
    calls, model = [], NodeModel()
    model.register_forward_pre_hook(lambda _, given, **more: calls.append(given[0].size(0)))
    instances, observer = cut(ladder, range(0, LONG, 8), Predictor(model))
    first, second = observer.at(instances), observer.at(instances.select(torch.tensor([3])))
    assert calls == [LONG]
    output, _ = observe(NodeModel(), ladder)
    torch.testing.assert_close(first.output, output[instances.node_id])
    assert second.output.size(0) == int(instances.node_counts[3])


def test_a_field_beyond_the_limit_is_asked_alone_and_the_same_in_every_batch(ladder, monkeypatch):
    # The fields of two explained nodes together are too much, each alone is not, then each alone is too much.
    monkeypatch.setattr(observer_module, "WIDER", 2)
    for limit, exact in ((10, True), (6, False)):
        predictor = Predictor(NodeModel())
        both, observer = cut(ladder, [40, 200], predictor, limit)
        seen = observer.at(both)
        parts = [cut(ladder, [node], predictor, limit) for node in (40, 200)]
        alone = torch.cat([one.at(instances).output for instances, one in parts])
        torch.testing.assert_close(seen.output, alone)
        output, _ = observe(predictor.model, ladder)
        error = (seen.output - output[both.node_id]).abs()
        assert (float(error.max()) < 1e-5) == exact
        assert float(error[both.center].max()) < 1e-5 or not exact


def test_only_rows_of_the_part_are_read(ladder, tmp_path):
    """Features in a file, mapped into memory, of which all that is far away is no number at all."""
    file = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(LONG, 3))
    file[:] = ladder.x.numpy()
    file[:100] = np.nan
    file.flush()
    stored = torch.from_numpy(np.lib.format.open_memmap(tmp_path / "x.npy", mode="c"))
    index = GraphIndex.build(ladder.edge_index, LONG)
    # The edges are never read either, but for a few that are compared.
    index.save(tmp_path / "i.npy")
    index = GraphIndex.open(tmp_path / "i.npy")
    far = Data(x=stored, edge_index=ladder.edge_index)
    algorithm = GFlowExplainer(**QUICK).fit(NodeModel(), far, [300, 310], graph_index=index, progress=False)
    (explanation,) = algorithm.explain(NodeModel(), far, 200, graph_index=index)
    near = GFlowExplainer(**QUICK).fit(NodeModel(), ladder, [300, 310], progress=False)
    (wanted,) = near.explain(NodeModel(), ladder, 200)
    # Rows that lie elsewhere in memory may be summed up in another order.
    torch.testing.assert_close(explanation.node_mask, wanted.node_mask, atol=1e-5, rtol=0)
    torch.testing.assert_close(explanation.edge_mask, wanted.edge_mask, atol=1e-5, rtol=0)
    with pytest.raises(InstanceError, match="NaN or infinity, first at node"):
        algorithm.explain(NodeModel(), far, 101, graph_index=index)


def test_explanations_in_a_large_graph_know_what_is_around(ladder, tmp_path):
    model, algorithm = NodeModel(), GFlowExplainer(**QUICK)
    with torch.no_grad():
        whole = model(ladder.x, ladder.edge_index)
    (explanation,) = algorithm.explain(model, ladder, 200, progress=False)
    fields = explanation._fields()
    for name in ("node_mask", "edge_mask", "prediction", "target"):
        assert fields[name].values.size(0) < 50
    assert explanation.explained_class == int(whole[200].argmax())
    assert explanation.whole_prediction == pytest.approx(whole[200].softmax(dim=0).tolist(), abs=1e-5)
    explanation.save(tmp_path / "e.safetensors")
    again = type(explanation).load(tmp_path / "e.safetensors")
    assert again.explained_class == explanation.explained_class
    assert torch.equal(again.node_mask, explanation.node_mask)
    assert explanation.node_mask.shape == (LONG, 1)
    assert explanation.validate()
    known = ~explanation.prediction.isnan().any(dim=1)
    torch.testing.assert_close(explanation.prediction[known], whole[known])
    assert torch.equal(explanation.target[known], whole[known].argmax(dim=1))
    assert explanation.target[~known].eq(-1).all()
    # PyG's own metrics read the row of the explained node.
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    masks = {"node_mask_type": "object", "edge_mask_type": "object"}
    explainer = Explainer(model, algorithm, explanation_type="model", model_config=config, **masks)
    inside = explainer(ladder.x, ladder.edge_index, index=200)
    assert fidelity(explainer, explanation) == fidelity(explainer, inside)


def test_targets_of_the_users_in_a_large_graph(ladder):
    algorithm = GFlowExplainer(**QUICK).fit(NodeModel(), ladder, [3, 5], progress=False)
    for label, explanation in enumerate(algorithm.explain(NodeModel(), ladder, [200] * 3, target=[0, 1, 2])):
        assert explanation.explained_class == int(explanation.target[200]) == label


def test_a_small_memory_budget_changes_nothing(ladder):
    answers = []
    for budget in (1, 1 << 30):
        algorithm = GFlowExplainer(**QUICK, memory_budget=budget)
        algorithm.fit(NodeModel(), ladder, [3, 5, 90], progress=False)
        answers.append(algorithm.explain(NodeModel(), ladder, [200, 300, 40]))
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one.node_mask, other.node_mask, atol=1e-5, rtol=0)
        assert [s.nodes for s in one.subgraphs] == [s.nodes for s in other.subgraphs]
        assert (one.explained_node, one.explained_class) == (other.explained_node, other.explained_class)


def test_a_field_beyond_the_limit_is_halved_until_it_fits(ladder, monkeypatch):
    monkeypatch.setattr(observer_module, "WIDER", 3)
    model = NodeModel()
    nodes = list(range(0, LONG, 10))
    instances, observer = cut(ladder, nodes, Predictor(model), limit=10)
    calls = []
    handle = model.register_forward_pre_hook(lambda *_: calls.append(1))
    seen = observer.at(instances)
    handle.remove()
    assert 1 < len(calls) < len(nodes)
    whole, _ = observe(model, ladder)
    assert torch.allclose(seen.output, whole[instances.node_id], atol=1e-6)
