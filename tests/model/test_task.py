import pytest
import torch
from torch_geometric.nn import GCNConv

from gflowexplainer.graphs.inputs import input_graph
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import GraphTask, NodeTask
from gflowexplainer.testing import GraphModel, NodeModel, random_graph


class Value(NodeModel):
    """Regresses one value a node."""

    def build(self):
        self.first, self.second = GCNConv(3, 8), GCNConv(8, 1)


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
