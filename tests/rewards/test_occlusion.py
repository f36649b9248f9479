"""What is lost without a node, held against a loop over PyG's own subgraphs."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards import occlusion
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel, random_graph

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


class Reads(torch.nn.Module):
    """Adds up one of many features."""

    def forward(self, x, edge_index, batch=None):
        batch = x.new_zeros(x.size(0), dtype=torch.long) if batch is None else batch
        total = x.new_zeros(int(batch.max()) + 1).index_add_(0, batch, 2.0 * x[:, 29])
        return torch.stack([1 - total, total], dim=1)


def graphs(width=20):
    return [random_graph(size, 0.2, seed, width=width) for seed, size in enumerate((7, 11, 2))]


def without(model, graph, gone):
    kept = torch.tensor([node for node in range(graph.num_nodes) if node not in gone])
    edges, _ = subgraph(kept, graph.edge_index, relabel_nodes=True, num_nodes=graph.num_nodes)
    with torch.no_grad():
        return model(graph.x[kept], edges).softmax(dim=1)[0]


@pytest.mark.parametrize("budget", [1, 1 << 30])
def test_it_is_the_fall_of_the_log_odds(budget):
    model, data = GraphModel(20, num_classes=3, seed=2), graphs()
    instances = Instances.of_graphs(data)
    predictor = Predictor(model, level="graph", memory_budget=budget)
    target = Target.of(predictor, instances, label=torch.tensor([0, 2, 1]))
    found = occlusion.losses(predictor, instances, target)
    expected = []
    for graph, label in zip(data, (0, 2, 1), strict=True):
        whole = without(model, graph, ())[label].logit()
        expected += [whole - without(model, graph, (node,))[label].logit() for node in range(graph.num_nodes)]
    assert found.shape == (20, 1)
    torch.testing.assert_close(found[:, 0], torch.stack(expected).double(), rtol=1e-3, atol=1e-4)
    assert float(found.std()) > 1e-3


def test_neighbours_in_the_list_go_together_where_nodes_are_many(monkeypatch):
    monkeypatch.setattr(occlusion, "MOST", 4)
    model, data = GraphModel(20, seed=2), graphs()
    instances, predictor = Instances.of_graphs(data), Predictor(model, level="graph")
    target = Target.of(predictor, instances)
    asked = predictor.num_evaluations
    found = occlusion.losses(predictor, instances, target)[:, 0]
    assert predictor.num_evaluations - asked == 3 + 4 + 4 + 2
    label = int(target.label[0])
    whole = without(model, data[0], ())[label].logit()
    expected = whole - without(model, data[0], (0, 1))[label].logit()
    assert torch.allclose(found[:2], expected.double().expand(2), rtol=1e-3, atol=1e-4)
    assert len(set(found[:7].tolist())) == 4


@pytest.mark.parametrize("asked", [False, True])
def test_values_are_lost_too(asked):
    graph, model = random_graph(6, 0.3, 1), EdgeFeatureModel()
    graph.edge_attr = torch.rand(graph.num_edges, 2)
    instances = Instances.of_graphs([graph], arguments=["edge_attr"])
    predictor = Predictor(model, level="graph", mode="regression")
    target = Target.of(predictor, instances)
    if asked:
        target = Target.of(predictor, instances, label=target.prediction + 0.7 * target.scale)

    def hold(gone):
        kept = torch.tensor([node for node in range(6) if node != gone])
        edges, attr = subgraph(kept, graph.edge_index, graph.edge_attr, relabel_nodes=True, num_nodes=6)
        with torch.no_grad():
            return float(model(graph.x[kept], edges, attr))

    # With its sign, and whatever value was asked to be held.
    expected = torch.tensor([hold(None) - hold(node) for node in range(6)]).double()
    found = occlusion.losses(predictor, instances, target)[:, 0]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", [1, 3])
def test_an_explainer_finds_the_word_that_decides(seed):
    """Nodes with 40 features, of which the model reads one: only the model can tell which.

    With seed 3 the random subgraphs that rewards are scaled by miss the word in one of the graphs.
    """
    data = [random_graph(12, 0.1, seed, width=40) for seed in range(24)]
    for number, graph in enumerate(data):
        graph.x[:, 29] = 0.0
        graph.x[number % 12, 29] = 2.0
    algorithm = GFlowExplainer(max_nodes=3, max_updates=20, num_hops=1, model_embeddings=False, seed=seed)
    algorithm.fit(Reads(), data, progress=False, model_config=CONFIG)
    found = algorithm.explain(Reads(), data, range(12), progress=False, model_config=CONFIG)
    assert [int(explanation.node_mask[:, 0].argmax()) for explanation in found] == list(range(12))
    assert sum(float(explanation.node_mask[number, 0]) for number, explanation in enumerate(found)) > 0.8 * 12


def test_the_lower_size_bound_holds_where_one_node_is_worth_all_others():
    """The mean of one word is far above that of any eight; without the bound it would be the whole explanation."""
    data = [random_graph(30, 0.02, seed, width=40) for seed in range(16)]
    for number, graph in enumerate(data):
        graph.x[:, 29] = 0.0
        graph.x[number, 29] = 3.0
    algorithm = GFlowExplainer(
        max_nodes=10, min_nodes=8, max_updates=10, num_hops=1, model_embeddings=False, beta=20.0, seed=1
    )
    algorithm.fit(Reads(), data, progress=False, model_config=CONFIG)
    found = algorithm.explain(Reads(), data, range(4), progress=False, model_config=CONFIG)
    assert min(len(part.nodes) for explanation in found for part in explanation.subgraphs) >= 8


def test_nodes_are_asked_about_once_and_only_where_somebody_wants_to_know():
    inputs = TaskInputs.of(
        Predictor(GraphModel(seed=0), level="graph"),
        Instances.of_graphs([random_graph(9, 0.3, seed=seed) for seed in range(3)]),
    )
    predictor, number = inputs.predictor, inputs.instances.num_nodes
    wanted = occlusion.losses(predictor, inputs.instances, inputs.target)
    lost, some = occlusion.NodeLosses(inputs), torch.arange(number) % 3 == 0
    asked = predictor.num_evaluations
    assert torch.allclose(lost.at(some)[some], wanted[some], atol=1e-6)
    few = predictor.num_evaluations - asked
    assert few == int(some.sum()) + len(inputs.instances)
    lost.at(some)
    assert predictor.num_evaluations - asked == few
    assert torch.allclose(lost.at(), wanted, atol=1e-6)
    assert predictor.num_evaluations - asked == number + len(inputs.instances)


@pytest.mark.parametrize("budget", [1, 1 << 30])
def test_a_gain_is_what_one_neighbour_alone_adds(budget):
    model, graph, index = NodeModel(seed=3), random_graph(30, 0.1, seed=4), [2, 11, 20]
    instances = Instances.around_nodes(graph.x, graph.edge_index, torch.tensor(index), 2)
    predictor = Predictor(model, memory_budget=budget)
    target = Target.of(predictor, instances)
    found = occlusion.gains(predictor, instances, target)[:, 0]
    neighbours = [set(graph.edge_index[0, graph.edge_index[1] == node].tolist()) - {node} for node in index]
    assert all(neighbours)

    def alone(root, *others):
        kept = torch.tensor(sorted({root, *others}))
        edges, _ = subgraph(kept, graph.edge_index, relabel_nodes=True, num_nodes=graph.num_nodes)
        with torch.no_grad():
            return model(graph.x[kept], edges).softmax(dim=1)[kept.tolist().index(root)]

    for place, (node, owner) in enumerate(zip(instances.node_id.tolist(), instances.owner.tolist(), strict=True)):
        root, label = index[owner], int(target.label[owner])
        wanted = 0.0
        if node in neighbours[owner]:
            wanted = float(alone(root, node)[label].logit() - alone(root)[label].logit())
        assert float(found[place]) == pytest.approx(wanted, abs=1e-4)


def test_a_node_that_speaks_against_the_class_does_not_belong():
    """The model adds up one feature over a node and its neighbours: some add to the class, some take away."""

    class Votes(torch.nn.Module):
        def forward(self, x, edge_index):
            total = x[:, 0].index_add(0, edge_index[1], x[edge_index[0], 0])
            return torch.stack([-total, total], dim=1)

    votes = torch.tensor([0.5, 2.0, -1.0, 1.0, -0.5, 0.0])
    star = torch.stack([torch.arange(1, 6), torch.zeros(5, dtype=torch.long)])
    data = Data(x=votes[:, None], edge_index=torch.cat([star, star.flip(0)], dim=1))
    explainer = GFlowExplainer(evidence="own", num_hops=1, epochs=2, num_samples=64, seed=0)
    (found,) = explainer.explain(Votes(), data, 0, model_config=CONFIG | {"task_level": "node"}, progress=False)
    mask = found.node_mask.flatten()
    assert mask[[2, 4]].tolist() == [0, 0]
    assert mask[0] == 1
    assert mask[1] > mask[3] > 0
    # What is lost without a node and what it brings to the explained one alone are the same where votes add up.
    assert torch.as_tensor(found.node_contributions).flatten()[1:].tolist() == pytest.approx(
        (2 * votes[1:]).tolist(), abs=1e-4
    )


def test_masks_count_losses_most_and_samples_gains():
    """Two neighbours are copies of each other, either of which says much alone; a third is missed, and says less."""

    class Either(torch.nn.Module):
        def forward(self, x, edge_index):
            total = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
            odds = 4 * total[:, 0].clamp(max=1) + 1.5 * total[:, 1]
            return torch.stack([-odds, odds], dim=1) / 2

    x = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    star = torch.stack([torch.arange(1, 4), torch.zeros(3, dtype=torch.long)])
    data = Data(x=x, edge_index=torch.cat([star, star.flip(0)], dim=1))
    explainer = GFlowExplainer(evidence="own", num_hops=1, epochs=20, num_samples=256, max_nodes=2, seed=0)
    config = CONFIG | {"task_level": "node"}
    (found,) = explainer.explain(Either(), data, 0, model_config=config, progress=False)
    # Without a copy nothing is lost, but it gains 4; without the third node is lost what it gains.
    assert torch.as_tensor(found.node_contributions).flatten()[1:].tolist() == pytest.approx(
        [4 / 3, 4 / 3, 1.5], abs=1e-4
    )
    often = {subgraph.nodes: subgraph.probability for subgraph in found.subgraphs}
    assert min(often[0, 1], often[0, 2]) > 2 * often.get((0, 3), 0)


def test_gains_are_asked_once_and_only_where_they_are_wanted():
    graph = random_graph(30, 0.1, seed=4)
    instances = Instances.around_nodes(graph.x, graph.edge_index, torch.tensor([2, 11]), 2)
    predictor = Predictor(NodeModel(seed=3))
    inputs = TaskInputs(predictor, instances, Target.of(predictor, instances))
    lost = occlusion.NodeLosses(inputs)
    assert torch.equal(lost.evidence(), lost.at())
    asked = predictor.num_evaluations
    both = lost.evidence(gained=1 / 3)
    assert predictor.num_evaluations == asked + 2 + int(instances.degree[instances.roots].sum())
    gains = occlusion.gains(predictor, instances, inputs.target)
    torch.testing.assert_close(both, (2 * lost.at() + gains) / 3)
    asked = predictor.num_evaluations
    torch.testing.assert_close(lost.evidence(gained=3 / 4), (lost.at() + 3 * gains) / 4)
    assert predictor.num_evaluations == asked
