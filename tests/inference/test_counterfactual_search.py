"""Counterfactuals against exhaustive search over all sets, on models whose answer is known."""

from itertools import combinations

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import subgraph, to_undirected

from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel, graph_of, random_graph

GRAPH = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


class CountRed(nn.Module):
    """Class 1 if the graph has more than ``bound`` red nodes (feature 0), weighed by the number of their edges."""

    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def forward(self, x, edge_index, batch=None):
        batch = x.new_zeros(x.size(0), dtype=torch.long) if batch is None else batch
        total = x.new_zeros(int(batch.max()) + 1).index_add_(0, batch, x[:, 0])
        score = 4 * (total - self.bound - 0.5)
        return torch.stack([-score, score], dim=1)


class CountEdges(nn.Module):
    """The number of undirected edges, as a value."""

    def forward(self, x, edge_index, batch=None):
        batch = x.new_zeros(x.size(0), dtype=torch.long) if batch is None else batch
        ones = torch.full((edge_index.size(1),), 0.5)
        return x.new_zeros(int(batch.max()) + 1, 1).index_add_(0, batch[edge_index[0]], ones[:, None])


def quick(num_hops=2):
    return GFlowExplainer(seed=0, epochs=4, num_samples=16, num_hops=num_hops)


def smallest_by_nodes(model, data, node, label):
    """Size of the smallest set of nodes whose removal changes the class of a node, by trying all."""
    others = [v for v in range(data.num_nodes) if v != node]
    for size in range(1, len(others) + 1):
        for gone in combinations(others, size):
            kept = torch.tensor([v for v in range(data.num_nodes) if v not in gone])
            edges, _ = subgraph(kept, data.edge_index, num_nodes=data.num_nodes)
            if int(model(data.x, edges)[node].argmax()) != label:
                return size
    return None


@pytest.mark.parametrize("seed", range(6))
def test_removed_nodes_change_the_class_and_are_as_few_as_exhaustive_search_finds(seed):
    data, model = random_graph(9, 0.15, seed=seed), NodeModel(seed=seed).eval()
    node = seed
    label = int(model(data.x, data.edge_index)[node].argmax())
    found = quick().explain(model, data, [node], progress=False)[0].counterfactual(exhaustive=1000)
    truth = smallest_by_nodes(model, data, node, label)
    assert (found is None) == (truth is None)
    if found is not None:
        kept = torch.tensor([v for v in range(data.num_nodes) if v not in found.nodes])
        edges, _ = subgraph(kept, data.edge_index, num_nodes=data.num_nodes)
        output = model(data.x, edges)[node].softmax(dim=0)
        assert int(output.argmax()) == found.predicted_class != label
        assert torch.allclose(output, torch.tensor(found.prediction), atol=1e-5)
        assert len(found) == truth
        assert found.minimal
        assert node not in found.nodes


@pytest.mark.parametrize("seed", range(4))
def test_removed_edges_change_the_class_on_the_real_model(seed):
    data, model = random_graph(8, 0.1, seed=seed), NodeModel(seed=seed).eval()
    label = int(model(data.x, data.edge_index)[2].argmax())
    found = quick().explain(model, data, [2], progress=False)[0].counterfactual(by="edges", exhaustive=5000)
    pairs = sorted({(min(e), max(e)) for e in data.edge_index.t().tolist()})

    def label_without(gone):
        stays = [i for i, (u, v) in enumerate(data.edge_index.t().tolist()) if (min(u, v), max(u, v)) not in gone]
        return int(model(data.x, data.edge_index[:, stays])[2].argmax())

    sizes = [s for s in range(1, 5) if any(label_without(set(g)) != label for g in combinations(pairs, s))]
    if found is None or len(found) > 4:
        assert not sizes
    else:
        assert label_without(set(found.edges)) == found.predicted_class != label
        assert len(found) == min(sizes)


def test_of_five_red_nodes_of_which_three_make_the_class_three_go_and_none_other():
    data = graph_of([(i, i + 1) for i in range(9)], 10, width=2)
    data.x = torch.zeros(10, 2)
    data.x[[0, 3, 4, 7, 9], 0] = 1
    found = quick().explain(CountRed(2), [data], model_config=GRAPH, progress=False)[0].counterfactual(to=0)
    assert len(found) == 3
    assert set(found.nodes) <= {0, 3, 4, 7, 9}
    assert found.prediction[0] > 0.5
    # Every choice of three of the five does; two of these are adjacent.
    assert {frozenset(found.nodes), *map(frozenset, found.alternatives)} <= set(
        map(frozenset, combinations((0, 3, 4, 7, 9), 3))
    )


def test_together_are_all_nodes_of_which_one_would_do():
    data = graph_of([(i, i + 1) for i in range(5)], 6, width=2)
    data.x = torch.tensor([[0.0, 1.0], [1, 0], [1, 0], [0, 1], [1, 0], [0, 1]])
    e = quick().explain(CountRed(2), [data], model_config=GRAPH, progress=False)[0]
    assert sorted(e.counterfactual().together) == [1, 2, 4]
    assert e.counterfactual().evaluations <= 7


def test_a_value_moves_by_the_amount_or_reaches_what_is_wanted():
    data = graph_of([(0, 1), (0, 2), (0, 3), (0, 4), (5, 4)], 6)
    config = GRAPH | {"mode": "regression"}
    e = quick().explain(CountEdges(), [data], model_config=config, progress=False)[0]
    assert e.counterfactual(amount=4).nodes == (0,)
    assert e.counterfactual(to=1).nodes == (0,)
    assert len(e.counterfactual(amount=3, by="edges")) == 3
    assert e.counterfactual(to=6) is None
    with pytest.raises(ConfigError, match="either 'amount'"):
        e.counterfactual()
    with pytest.raises(ConfigError, match="positive"):
        e.counterfactual(amount=-1)


def test_where_nothing_changes_the_class_there_is_no_counterfactual():
    data = graph_of([(0, 1), (1, 2)], 3)
    e = quick().explain(CountRed(-1000), [data], model_config=GRAPH, progress=False)[0]
    assert e.counterfactual() is None


def test_wrong_questions_get_an_error_that_says_what_to_do():
    e = quick().explain(GraphModel(), [random_graph(6)], model_config=GRAPH, progress=False)[0]
    with pytest.raises(ConfigError, match="knows 2 classes"):
        e.counterfactual(to=7)
    with pytest.raises(ConfigError, match="already"):
        e.counterfactual(to=e.explained_class)
    with pytest.raises(ConfigError, match="for regression"):
        e.counterfactual(amount=1.0)
    with pytest.raises(ConfigError, match="'by' must be one of"):
        e.counterfactual(by="atoms")
    with pytest.raises(ConfigError, match="must be a number"):
        e.counterfactual(to="class 1")


def test_a_model_that_was_trained_on_is_not_asked_again():
    model = GraphModel()
    e = quick().explain(model, [random_graph(6)], model_config=GRAPH, progress=False)[0]
    with torch.no_grad():
        model.readout.weight.add_(1)
    with pytest.raises(ModelError, match="Explain it again"):
        e.counterfactual()


def test_what_was_asked_is_stored_and_what_was_not_says_so(tmp_path):
    data = graph_of([(i, i + 1) for i in range(5)], 6, width=2)
    data.x = torch.ones(6, 2)
    e = quick().explain(CountRed(4), [data], model_config=GRAPH, progress=False)[0]
    asked = e.counterfactual()
    e.save(tmp_path / "e.safetensors")
    again = SubgraphExplanation.load(tmp_path / "e.safetensors")
    assert again.counterfactual() == asked
    with pytest.raises(ConfigError, match="Explain again"):
        again.counterfactual(by="edges")


def test_edges_and_their_features_go_together():
    data = Data(x=torch.randn(5, 3), edge_index=to_undirected(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])))
    data.edge_attr = torch.randn(8, 2)
    model = EdgeFeatureModel().eval()
    config = GRAPH | {"mode": "regression"}
    e = quick().explain(model, [data], model_config=config, progress=False)[0]
    whole = e.whole_prediction[0]
    found = e.counterfactual(amount=0.05, by="edges")
    stays = [i for i, (u, v) in enumerate(data.edge_index.t().tolist()) if (min(u, v), max(u, v)) not in found.edges]
    value = model(data.x, data.edge_index[:, stays], data.edge_attr[stays]).item()
    assert value == pytest.approx(found.prediction[0], abs=1e-5)
    assert abs(value - whole) >= 0.05 * (1 - 1e-5)
