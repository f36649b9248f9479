"""Places elsewhere are shown where the class is lost without any node of theirs, though others hold it alone."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.needed_places import with_needed_places
from gflowexplainer.inference.random_parts import Neighbors
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.rewards.prediction import PredictionReward
from gflowexplainer.testing import graph_of

A, B, NOTHING = 0, 1, 2
SIZE = 12


class TwoOfEach(nn.Module):
    """Class 1 where there are two nodes of both kinds, and in graphs of at most three nodes, which it never saw."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        number = int(batch.max()) + 1
        kinds = torch.zeros(number, 2).index_add(0, batch, x[:, :2])
        few = torch.bincount(batch, minlength=number) <= 3
        odds = torch.where((kinds >= 2).all(dim=1) | few, 5.0, -5.0)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


class NotBothAlone(nn.Module):
    """Class 1 with two nodes of kind B, and in graphs of two nodes; but not in graphs of four."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        number = int(batch.max()) + 1
        kind = torch.zeros(number).index_add(0, batch, x[:, B])
        size = torch.bincount(batch, minlength=number)
        odds = torch.where((size == 2) | ((kind >= 2) & (size > 4)), 5.0, -5.0)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def path(kinds: dict[int, int]) -> Data:
    graph = graph_of([(i, i + 1) for i in range(SIZE - 1)], SIZE)
    graph.x = torch.eye(3)[[kinds.get(node, NOTHING) for node in range(SIZE)]]
    return graph


def shown(model: nn.Module, graph: Data, chosen: set[int], seen: dict[int, float] | None = None) -> set[int]:
    instances = Instances.of_graphs([graph])
    predictor = Predictor(model, level="graph", num_hops=1)
    reward = PredictionReward(predictor, instances, target=Target.of(predictor, instances))
    value = [(seen or {}).get(node, 0.5) for node in range(SIZE)]
    return set(with_needed_places(reward, Neighbors(instances), {0: frozenset(chosen)}, value)[0])


@pytest.mark.parametrize(
    ("kinds", "chosen", "wanted"),
    [
        pytest.param({1: A, 2: A, 7: B, 8: B}, {1, 2}, {1, 2, 7, 8}, id="the other kind is needed elsewhere"),
        pytest.param({1: A, 2: A, 7: B, 8: B, 9: B}, {1, 2}, {1, 2}, id="another one stands in for each"),
        pytest.param({1: A, 2: A, 3: B, 4: B}, {1, 2}, {1, 2, 4}, id="what stands beside is no other place"),
        pytest.param({1: A, 2: A, 7: B, 8: B}, {1, 2, 7, 8}, {1, 2, 7, 8}, id="it is there already"),
        pytest.param({}, {3, 4}, {3, 4}, id="nothing is needed"),
    ],
)
def test_places_without_which_the_class_is_lost_are_added(kinds, chosen, wanted) -> None:
    assert shown(TwoOfEach(), path(kinds), chosen) == wanted


def test_single_nodes_are_added_where_masks_show_them_too() -> None:
    apart, joined = ({1: A, 2: A, 6: B, other: B} for other in (8, 7))
    assert shown(TwoOfEach(), path(apart), {1, 2}, {6: 0.2, 8: 0.1}) == {1, 2, 6}
    assert shown(TwoOfEach(), path(joined), {1, 2}, {6: 0.0, 7: 0.0}) == {1, 2, 6, 7}


def test_what_makes_the_class_weaker_is_not_added() -> None:
    assert shown(NotBothAlone(), path({7: B, 8: B}), {1, 2}) == {1, 2}
    assert shown(NotBothAlone(), path({7: B, 8: B}), {1, 2, 3}) == {1, 2, 3, 7, 8}


def test_both_places_are_among_the_parts_though_one_holds_the_class_by_itself() -> None:
    places = [({here, here + 1}, {there, there + 1}) for here in range(3) for there in range(7, 11)]
    graphs = [path(dict.fromkeys(one, A) | dict.fromkeys(other, B)) for one, other in places]
    explainer = GFlowExplainer(seed=0, max_updates=20, num_hops=1)
    explainer.fit(TwoOfEach(), graphs, progress=False)
    found = explainer.explain(TwoOfEach(), graphs, progress=False)
    parts = [[set(part.nodes) for part in explanation.parts] for explanation in found]
    assert [
        all(any(part & place for part in named) for place in both) for both, named in zip(places, parts, strict=True)
    ] == [True] * 12
