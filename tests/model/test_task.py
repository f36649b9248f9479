from collections.abc import Sequence

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_torch_coo_tensor

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.inputs import input_graph
from gflowexplainer.model.one_graph import NodeTask
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import GraphTask
from gflowexplainer.testing import GraphModel, NodeModel, random_graph


class Value(NodeModel):
    """Regresses one value a node."""

    def build(self):
        self.first, self.second = GCNConv(3, 8), GCNConv(8, 1)


class Shifted(GraphModel):
    """Adds what the user gives for the whole graph to the scores."""

    def forward(self, x, edge_index, batch, shift=0.0):
        return super().forward(x, edge_index, batch) + shift


def test_what_differs_between_graphs_is_not_taken_from_one_of_them():
    graphs = [random_graph(10, 0.2, seed=seed) for seed in range(2)]
    model = Shifted().eval()
    settings = {"task_level": "graph", "mode": "multiclass_classification", "return_type": "raw"}
    for graph, shift in zip(graphs, ([50.0, 0.0], [0.0, 50.0]), strict=True):
        graph.shift = torch.tensor([shift])
    quick = GFlowExplainer(max_nodes=3, epochs=2, rollouts=4, num_contexts=2, seed=0)
    with pytest.raises(InstanceError, match=r"'shift' differs between graphs.*one at a time"):
        quick.fit(model, graphs, model_config=settings, progress=False)
    alone = [quick.explain(model, [graph], model_config=settings, progress=False)[0] for graph in graphs]
    assert [e.explained_class for e in alone] == [0, 1]
    graphs[1].shift = graphs[0].shift.clone()
    quick.fit(model, graphs, model_config=settings, progress=False)
    for lacking in graphs:
        some = [Data(x=graph.x, edge_index=graph.edge_index, shift=graph.shift) for graph in graphs]
        del some[graphs.index(lacking)].shift
        with pytest.raises(InstanceError, match=r"'shift' differs between graphs, or some lack it"):
            quick.fit(Shifted().eval(), some, model_config=settings, progress=False)


@pytest.mark.parametrize("which", [slice(None), slice(1, 2)])
def test_evidence_of_nodes_is_what_the_model_predicts_there_in_the_whole_graph(which):
    graph, model = random_graph(12, 0.15, seed=1), NodeModel(seed=1)
    task = NodeTask(Predictor(model), input_graph(graph.x, graph.edge_index, {}, model), [0, 7], None)
    inputs = task.inputs(which)
    with torch.no_grad():
        whole = model(graph.x, graph.edge_index).softmax(dim=1)
    torch.testing.assert_close(inputs.node_prediction, whole[inputs.instances.node_id])
    assert inputs.node_prediction.shape == (inputs.instances.num_nodes, 3)
    assert not inputs.node_prediction.requires_grad


def test_evidence_of_values_is_the_value():
    graph, model = random_graph(12, 0.15, seed=1), Value(seed=1)
    predictor = Predictor(model, mode="regression")
    inputs = NodeTask(predictor, input_graph(graph.x, graph.edge_index, {}, model), [3], None).inputs()
    with torch.no_grad():
        whole = model(graph.x, graph.edge_index)
    torch.testing.assert_close(inputs.node_prediction, whole[inputs.instances.node_id])


def test_evidence_does_not_depend_on_the_target():
    graph, model = random_graph(12, 0.15, seed=1), NodeModel(seed=1)
    given = input_graph(graph.x, graph.edge_index, {}, model)
    one, other = (NodeTask(Predictor(model), given, [3], [label]).inputs() for label in (0, 1))
    assert torch.equal(one.node_prediction, other.node_prediction)
    assert one.target.label.tolist() != other.target.label.tolist()


def test_graphs_have_no_evidence_but_their_features():
    graphs, model = [random_graph(6, seed=seed) for seed in range(2)], GraphModel()
    given = [input_graph(graph.x, graph.edge_index, {}, model) for graph in graphs]
    inputs = GraphTask(Predictor(model, level="graph"), given, None, None).inputs()
    assert inputs.node_prediction is None


class Shelf(Sequence):
    """Graphs, and which of them were looked at."""

    def __init__(self, graphs):
        self.graphs, self.seen = graphs, set()

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, place):
        self.seen.add(place)
        return self.graphs[place]


@pytest.mark.parametrize("explainer", [GFlowExplainer(num_samples=4), "fitted"])
def test_graphs_that_nobody_asks_about_are_not_looked_at(explainer):
    graphs, model = [random_graph(6, seed=seed) for seed in range(20)], GraphModel()
    if explainer == "fitted":
        explainer = GFlowExplainer(num_samples=4, max_updates=2).fit(model, graphs[:4], progress=False)
    graphs[5] = "no graph"
    shelf = Shelf(graphs)
    (found,) = explainer.explain(model, shelf, [12])
    # The first one shows in which form they all are.
    assert shelf.seen <= {0, 12}
    (alone,) = explainer.explain(model, [graphs[12]])
    torch.testing.assert_close(found.node_mask, alone.node_mask)
    with pytest.raises(InstanceError, match="must be a Data or HeteroData"):
        explainer.explain(model, shelf)


def test_a_batch_is_the_list_of_its_graphs():
    graphs, model = [random_graph(6, seed=seed) for seed in range(4)], GraphModel()
    explainer = GFlowExplainer(num_samples=4)
    both = explainer.explain(model, Batch.from_data_list(graphs), [2, 0]), explainer.explain(model, graphs, [2, 0])
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one.node_mask, other.node_mask)


@pytest.mark.parametrize("several", [list, Shelf, iter])
def test_several_graphs_may_be_in_another_form(several):
    class Adjacent(GraphModel):
        def forward(self, x, adj_t, batch):
            return super().forward(x, torch.stack(adj_t.to_sparse_coo().indices().unbind()[::-1]), batch)

    usual = [random_graph(6, seed=seed) for seed in range(3)]
    matrices = [Data(x=graph.x, adj_t=to_torch_coo_tensor(graph.edge_index.flip(0), size=6)) for graph in usual]
    explainer = GFlowExplainer(num_samples=4)
    (found,) = explainer.explain(Adjacent(), several(matrices), [1])
    (expected,) = explainer.explain(GraphModel(), usual, [1])
    assert found.whole_prediction == pytest.approx(expected.whole_prediction, abs=1e-5)
