import pytest
import torch
from torch_geometric.explain import CaptumExplainer, Explainer

from gflowbench.explainers import Subject, create

METHODS = {"saliency": "Saliency", "integrated-gradients": "IntegratedGradients"}


@pytest.mark.parametrize("name", METHODS)
def test_captum_finds_the_same_on_the_whole_graph(name, random_nodes, node_subject):
    pytest.importorskip("captum")
    found, instances = create(name).explain(node_subject, 0).edge, node_subject.instances
    explainer = Explainer(
        node_subject.predictor.model,
        CaptumExplainer(METHODS[name]),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    for number in range(len(node_subject)):
        edges = slice(*instances.edge_ptr[number : number + 2].tolist())
        whole = explainer(random_nodes.x, random_nodes.edge_index, index=int(node_subject.index[number])).edge_mask
        expected = whole[instances.edge_id[edges]]
        torch.testing.assert_close(found[edges].float(), expected.float(), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_captum_finds_the_same_on_graphs(name, graph_subject):
    pytest.importorskip("captum")
    found, instances = create(name).explain(graph_subject, 0).edge, graph_subject.instances
    explainer = Explainer(
        graph_subject.predictor.model,
        CaptumExplainer(METHODS[name]),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"},
    )
    for number in range(len(graph_subject)):
        nodes = slice(*instances.ptr[number : number + 2].tolist())
        edges = slice(*instances.edge_ptr[number : number + 2].tolist())
        mask = explainer(instances.x[nodes], instances.edge_index[:, edges] - nodes.start).edge_mask
        torch.testing.assert_close(found[edges].float(), mask.float(), atol=1e-4, rtol=1e-3)


def test_by_hand_on_a_model_that_counts_neighbours(triangle_subject):
    # The score of class 1 at node 0 is its number of neighbours minus one, linear in the masks of 1-0 and 2-0.
    target = triangle_subject.instances.edge_index[1]
    for name in METHODS:
        edge = create(name).explain(triangle_subject, 0).edge
        torch.testing.assert_close(edge, (target == 0).double())
    assert int((target == 0).sum()) == 2


def test_a_graph_model_that_takes_no_batch(graph_subject):
    """Such a model is asked about one graph at a time."""

    class Alone(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x, edge_index):
            return self.inner(x, edge_index)

    predictor = type(graph_subject.predictor)(Alone(graph_subject.predictor.model), level="graph")
    alone = Subject(**{**vars(graph_subject), "predictor": predictor})
    for name in METHODS:
        expected = create(name).explain(graph_subject, 0).edge
        torch.testing.assert_close(create(name).explain(alone, 0).edge, expected, atol=1e-5, rtol=1e-4)
