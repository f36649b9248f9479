"""The context reward, held against a mean worked out by calling the model on every union."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import subgraph

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.rewards import ContextReward, PredictionReward
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel, house, path, random_graph, star


def random_subgraphs(instances: Instances, count: int, width: int = 4, seed: int = 0) -> Subgraphs:
    """Draws node sets, connected or not; the explained node is the first of each."""
    generator = torch.Generator().manual_seed(seed)
    instance = torch.randint(0, len(instances), (count,), generator=generator)
    members = torch.full((count, width), -1)
    for row, i in enumerate(instance.tolist()):
        first, last = instances.ptr[i : i + 2].tolist()
        nodes = first + torch.randperm(last - first, generator=generator)
        if instances.center[i] >= 0:
            nodes = torch.cat([instances.center[i : i + 1], nodes[nodes != instances.center[i]]])
        size = int(torch.randint(1, min(width, nodes.numel()) + 1, (1,), generator=generator))
        members[row, :size] = nodes[:size]
    return Subgraphs(instance, members)


def mean_over_contexts(reward: ContextReward, subgraphs: Subgraphs) -> Tensor:
    """Calls the model on the graph induced by each union of subgraph and context."""
    instances, model, means = reward.instances, reward.predictor.model, []
    for i, members in zip(subgraphs.instance.tolist(), subgraphs.members.tolist(), strict=True):
        alone = instances.select(torch.tensor([i]))
        first = int(instances.ptr[i])
        held = []
        for context in reward._contexts:
            mask = context[first : first + alone.num_nodes].clone()
            mask[[node - first for node in members if node >= 0]] = True
            induced = reward.removal == "induced"
            edge_index, _ = subgraph(mask, alone.edge_index, relabel_nodes=induced, num_nodes=alone.num_nodes)
            with torch.no_grad():
                output = model(alone.x[mask] if induced else alone.x, edge_index)
            row = 0 if alone.level == "graph" else int(mask[: int(alone.center)].sum())
            held.append(output.softmax(dim=1)[row, reward.target.label[i]])
        means.append(torch.stack(held).mean())
    return torch.stack(means)


@pytest.mark.parametrize("budget", [1, 30_000, 256 << 20])
@pytest.mark.parametrize("alpha", [0.3, 0.7])
def test_node_level_is_the_mean_over_contexts(alpha: float, budget: int) -> None:
    graph = random_graph(10, 0.15)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 4, 9], 5)
    predictor = Predictor(NodeModel(), memory_budget=budget)
    reward = ContextReward(predictor, instances, num_contexts=5, keep_probability=alpha)
    subgraphs = random_subgraphs(instances, 12)
    torch.testing.assert_close(reward.log_score(subgraphs).exp(), mean_over_contexts(reward, subgraphs))


@pytest.mark.parametrize("removal", ["induced", "isolate"])
def test_graph_level_is_the_mean_over_contexts(removal: str) -> None:
    instances = Instances.of_graphs([house(), random_graph(8), path(3)])
    reward = ContextReward(Predictor(GraphModel(), level="graph"), instances, num_contexts=6, removal=removal)
    subgraphs = random_subgraphs(instances, 12)
    torch.testing.assert_close(reward.log_score(subgraphs).exp(), mean_over_contexts(reward, subgraphs))


def test_alpha_one_is_the_whole_prediction() -> None:
    graph = random_graph()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 4], 12)
    reward = ContextReward(Predictor(NodeModel()), instances, num_contexts=3, keep_probability=1.0)
    subgraphs = random_subgraphs(instances, 6)
    with torch.no_grad():
        whole = NodeModel()(graph.x, graph.edge_index).softmax(dim=1)[[0, 4]].max(dim=1).values
    torch.testing.assert_close(reward.log_score(subgraphs).exp(), whole[subgraphs.instance])


def test_tiny_alpha_is_the_subgraph_alone() -> None:
    graph = random_graph()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 4], 12)
    subgraphs = random_subgraphs(instances, 6)
    reward = ContextReward(Predictor(NodeModel()), instances, num_contexts=3, keep_probability=1e-9)
    alone = PredictionReward(Predictor(NodeModel()), instances, expectation="label")
    torch.testing.assert_close(reward.log_score(subgraphs), alone.log_score(subgraphs))


def test_neither_batch_nor_other_instances_change_a_reward() -> None:
    graph, index = random_graph(), torch.tensor([0, 3, 5, 11])
    together = Instances.around_nodes(graph.x, graph.edge_index, index, 3)
    subgraphs = random_subgraphs(together, 20)
    reward = ContextReward(Predictor(NodeModel()), together, num_contexts=4, seed=7)
    wanted = reward.log_score(subgraphs)
    for number in range(len(index)):
        rows = torch.nonzero(subgraphs.instance == number).flatten()
        shift = int(together.ptr[number])
        members = torch.where(subgraphs.filled, subgraphs.members - shift, -1)[rows]
        alone = together.select(torch.tensor([number]))
        again = ContextReward(Predictor(NodeModel()), alone, num_contexts=4, seed=7)
        for row, member in zip(rows, members, strict=True):
            asked = Subgraphs(torch.tensor([0]), member[None])
            torch.testing.assert_close(again.log_score(asked)[0], wanted[row])


def test_graphs_of_several_calls_have_contexts_of_their_own() -> None:
    graph = random_graph()
    both = ContextReward(Predictor(GraphModel(), level="graph"), Instances.of_graphs([graph, graph]))
    second = ContextReward(Predictor(GraphModel(), level="graph"), Instances.of_graphs([graph], first=1))
    assert both._contexts[:, 12:].equal(second._contexts)
    assert not both._contexts[:, :12].equal(second._contexts)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9])
def test_contexts_keep_nodes_with_the_asked_probability(alpha: float) -> None:
    graph = star(40)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 1], 2)
    reward = ContextReward(Predictor(NodeModel()), instances, num_contexts=500, keep_probability=alpha)
    contexts = reward._contexts.double()
    assert contexts[:, instances.center].all()
    others = torch.ones(82, dtype=torch.bool)
    others[instances.center] = False
    assert contexts[:, others].mean().item() == pytest.approx(alpha, abs=0.01)
    assert torch.unique(contexts, dim=0).size(0) == 500


def test_seed_names_the_contexts() -> None:
    instances = Instances.of_graphs([random_graph()])
    predictor = Predictor(GraphModel(), level="graph")
    one, again, other = (ContextReward(predictor, instances, seed=seed)._contexts for seed in (1, 1, 2))
    assert one.equal(again)
    assert not one.equal(other)


def test_fewer_contexts_are_the_first_of_many() -> None:
    instances = Instances.of_graphs([random_graph()])
    predictor = Predictor(GraphModel(), level="graph")
    few, many = (ContextReward(predictor, instances, num_contexts=count)._contexts for count in (3, 9))
    assert few.equal(many[:3])


def test_every_union_is_asked_about_once() -> None:
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 5)
    reward = ContextReward(Predictor(NodeModel()), instances, num_contexts=200)
    asked = reward.predictor.num_evaluations
    subsets = torch.tensor([[0, -1, -1], [0, 1, -1], [0, 2, 3], [0, 4, 1]])
    reward.log_score(Subgraphs(torch.zeros(4, dtype=torch.long), subsets))
    # Four nodes come and go beside node 0: there are 16 unions, however many contexts.
    assert reward.predictor.num_evaluations - asked <= 16


@pytest.mark.parametrize("capacity", [1, 3, 10])
def test_full_table_of_unions_changes_no_answer(capacity: int) -> None:
    instances = Instances.of_graphs([house(), random_graph(8)])
    subgraphs = random_subgraphs(instances, 12)
    predictor = Predictor(GraphModel(), level="graph")
    wanted = ContextReward(predictor, instances, num_contexts=4).log_score(subgraphs)
    reward = ContextReward(predictor, instances, num_contexts=4, cache_size=0)
    reward._held.capacity = capacity
    for rows in (torch.arange(3), torch.arange(12), torch.arange(11, -1, -1)):
        torch.testing.assert_close(reward.log_score(subgraphs[rows]), wanted[rows])


def test_hopeless_regression_stays_finite() -> None:
    graph = house()
    graph.edge_attr = torch.ones(12, 2)
    instances = Instances.of_graphs([graph], arguments=["edge_attr"])
    predictor = Predictor(EdgeFeatureModel(), level="graph", mode="regression")
    reward = ContextReward(predictor, instances, num_contexts=2)
    reward.target.prediction.add_(1e6)
    subgraphs = random_subgraphs(instances, 6)
    assert reward.log_reward(subgraphs).isfinite().all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep_probability": 0}, "'keep_probability' (alpha) must lie in (0, 1] (got 0)."),
        ({"keep_probability": 1.01}, "'keep_probability' (alpha) must lie in (0, 1] (got 1.01)."),
        ({"keep_probability": float("nan")}, "'keep_probability' (alpha) must lie in (0, 1] (got nan)."),
        ({"num_contexts": 0}, "'num_contexts' must be at least 1 (got 0)."),
        ({"num_contexts": -4}, "'num_contexts' must be at least 1 (got -4)."),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        ContextReward(Predictor(GraphModel(), level="graph"), Instances.of_graphs([house()]), **settings)
