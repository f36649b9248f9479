"""What every reward does: remember, temper, bound."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import TOO_SMALL, Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.rewards import ContextReward, PredictionReward, Reward
from gflowexplainer.testing import GraphModel, NodeModel, house, random_graph, star

KINDS = [PredictionReward, ContextReward]


class SumOfIds(Reward):
    """Rewards a subgraph by minus the sum of its node ids; notes what it was really asked."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.asked: list[int] = []

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        self.asked.append(len(subgraphs))
        ids = self.instances.node_id[subgraphs.members.clamp(min=0)]
        return -(ids * subgraphs.filled).sum(dim=1).double()


@pytest.fixture
def instances() -> Instances:
    graph = house()
    return Instances.around_nodes(graph.x, graph.edge_index, [0, 2], 4)


def subgraphs_of(*rows: tuple[int, list[int]], width: int = 4) -> Subgraphs:
    members = [nodes + [-1] * (width - len(nodes)) for _, nodes in rows]
    return Subgraphs(torch.tensor([instance for instance, _ in rows]), torch.tensor(members))


SOME = subgraphs_of((0, [0]), (0, [0, 1]), (1, [7, 6]), (0, [0, 1, 2]), (1, [7]))


@pytest.mark.parametrize("kind", KINDS)
def test_second_request_asks_the_model_nothing(kind: type[Reward], instances: Instances) -> None:
    reward = kind(Predictor(NodeModel()), instances)
    first = reward.log_score(SOME)
    asked = reward.predictor.num_evaluations
    turned = Subgraphs(SOME.instance, SOME.members.flip(1))
    assert reward.log_score(turned).equal(first)
    assert reward.log_score(SOME[torch.tensor([3, 0, 3])]).equal(first[[3, 0, 3]])
    assert reward.predictor.num_evaluations == asked
    assert reward.num_requests == 2 * len(SOME) + 3


def test_same_subgraphs_are_asked_about_once(instances: Instances) -> None:
    reward = SumOfIds(Predictor(NodeModel()), instances)
    repeated = SOME[torch.tensor([3, 3, 2, 0, 3])]
    assert reward.log_score(repeated).tolist() == [-3, -3, -3, 0, -3]
    assert reward.log_score(SOME).tolist() == [0, -1, -3, -3, -2]
    assert reward.asked == [3, 2]


def test_nothing_asked_is_nothing_answered(instances: Instances) -> None:
    reward = SumOfIds(Predictor(NodeModel()), instances)
    assert reward.log_score(SOME[torch.tensor([], dtype=torch.long)]).shape == (0,)
    assert reward.asked == []


@pytest.mark.parametrize("capacity", [0, 1, 2, 3, 4])
def test_full_cache_changes_no_answer(capacity: int, instances: Instances) -> None:
    reward = SumOfIds(Predictor(NodeModel()), instances, cache_size=capacity)
    reward.log_score(SOME[torch.tensor([0, 1])])
    # Some are known, some are new, and there is no room for both.
    assert reward.log_score(SOME).tolist() == [0, -1, -3, -3, -2]
    assert reward.log_score(SOME.cat([SOME, SOME])).tolist() == [0, -1, -3, -3, -2] * 2


def test_beta_is_an_exponent(instances: Instances) -> None:
    reward = SumOfIds(Predictor(NodeModel()), instances, beta=2.5)
    torch.testing.assert_close(reward.log_reward(SOME), 2.5 * reward.log_score(SOME))


def test_subgraphs_below_the_bound_are_worth_nothing_unless_they_cannot_grow(instances: Instances) -> None:
    reward = SumOfIds(Predictor(NodeModel()), instances, min_nodes=2, beta=2.0)
    bare = 2 * reward.log_score(SOME)
    assert (reward.log_reward(SOME) - bare).tolist() == [TOO_SMALL, 0, 0, 0, TOO_SMALL]
    grows = torch.tensor([False, True, False, True, True])
    assert (reward.log_reward(SOME, grows) - bare).tolist() == [0, 0, 0, 0, TOO_SMALL]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beta": 0}, "'beta' must be a positive number (got 0)."),
        ({"beta": -1.5}, "'beta' must be a positive number (got -1.5)."),
        ({"beta": float("inf")}, "'beta' must be a positive number (got inf)."),
        ({"beta": float("nan")}, "'beta' must be a positive number (got nan)."),
        ({"min_nodes": 0}, "'min_nodes' must be at least 1 (got 0)."),
        (
            {"removal": "isolated"},
            "'removal' must be one of 'induced', 'isolate' (got 'isolated'). Did you mean 'isolate'?",
        ),
    ],
)
def test_settings_that_make_no_sense(
    kind: type[Reward], settings: dict[str, Any], message: str, instances: Instances
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        kind(Predictor(NodeModel()), instances, **settings)


def test_given_target_is_taken(instances: Instances) -> None:
    predictor = Predictor(NodeModel())
    target = Target.of(predictor, instances, torch.tensor([2, 1]))
    asked = predictor.num_evaluations
    assert SumOfIds(predictor, instances, target=target).target is target
    assert predictor.num_evaluations == asked


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_measured_survives_a_checkpoint(kind: type[Reward], instances: Instances) -> None:
    reward, again = (kind(Predictor(NodeModel()), instances) for _ in range(2))
    reward.log_score(SOME)
    again.load_tensors(reward.tensors())
    asked = again.predictor.num_evaluations
    assert again.log_reward(SOME).equal(reward.log_reward(SOME))
    assert again.predictor.num_evaluations == asked


@pytest.mark.parametrize("budget", [1, 256 << 20])
def test_prediction_without_a_subgraph_keeps_the_explained_node(budget: int) -> None:
    graph, model = random_graph(), NodeModel()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [3, 5], 12)
    subgraphs = subgraphs_of((0, [3, 4]), (1, [12 + 5, 12 + 4, 12 + 6]))
    reward = SumOfIds(Predictor(model, memory_budget=budget), instances)
    for row, (center, gone) in enumerate([(3, {4}), (5, {4, 6})]):
        kept = torch.tensor([i for i in range(12) if i not in gone])
        inside = torch.isin(graph.edge_index, kept).all(dim=0)
        with torch.no_grad():
            wanted = model(graph.x, graph.edge_index[:, inside]).softmax(dim=1)[center]
        torch.testing.assert_close(reward.predict(subgraphs, without=True)[row], wanted)


@pytest.mark.parametrize("removal", ["induced", "isolate"])
def test_prediction_without_a_part_of_a_graph(removal: str) -> None:
    graph, model = house(), GraphModel()
    instances = Instances.of_graphs([star(), graph])
    reward = SumOfIds(Predictor(model, level="graph"), instances, removal=removal)
    ours = reward.predict(subgraphs_of((1, [6, 7])), without=True)
    # Nodes 0 and 1 of the house are gone: 2 - 3 is left, and node 4 alone.
    edge_index = torch.tensor([[2, 3], [3, 2]])
    with torch.no_grad():
        x, edge_index = (graph.x[2:], edge_index - 2) if removal == "induced" else (graph.x, edge_index)
        torch.testing.assert_close(ours, model(x, edge_index).softmax(dim=1))


def test_kept_mask_marks_the_members(instances: Instances) -> None:
    mask = SumOfIds(Predictor(NodeModel()), instances).kept_mask(subgraphs_of((1, [7, 6]), (0, [4]), (1, [])))
    assert torch.nonzero(mask).flatten().tolist() == [1, 2, 9]
    assert mask.numel() == 15
