"""What hangs on a ring goes where nobody misses it; what closes one, is missed or belongs to a tree stays."""

import pytest

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.loose_ends import without_loose_ends
from gflowexplainer.inference.random_parts import Neighbors
from gflowexplainer.testing import graph_of

RING_WITH_TAIL = graph_of([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (5, 6)], 7)
PROBABILITY = (0.9, 0.9, 0.9, 0.9, 0.4, 0.3, 0.2)


class Adds:
    """Nodes add up to a strength; the prediction is preserved from some strength on."""

    def __init__(self, worth: dict[int, float], needed: float = 0.0) -> None:
        self.worth, self.needed, self.asked = worth, needed, 0

    def __call__(self, asked):
        self.asked += len(asked)
        strengths = [sum(self.worth.get(node, 0.0) for node in nodes) for _, nodes in asked]
        return [(strength, strength >= self.needed) for strength in strengths]


def left_of(measure: Adds, *sets: set[int], value: tuple[float, ...] = PROBABILITY) -> list[set[int]]:
    neighbors = Neighbors(Instances.of_graphs([RING_WITH_TAIL] * len(sets)))
    given = {i: frozenset(node + 7 * i for node in nodes) for i, nodes in enumerate(sets)}
    found = without_loose_ends(measure, neighbors, given, value * len(sets))
    return [{node - 7 * i for node in found[i]} for i in given]


@pytest.mark.parametrize(
    ("worth", "given", "left"),
    [
        pytest.param({0: 5, 1: 5, 2: 5, 3: 5}, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3}, id="a tail goes node by node"),
        pytest.param({0: 5, 1: 5, 2: 5, 3: 5, 4: 4}, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4}, id="an end that is missed"),
        pytest.param({0: 5, 2: 5, 3: 5}, {0, 1, 2, 3}, {0, 1, 2, 3}, id="nothing of a ring goes"),
        pytest.param({0: 5, 1: 5, 2: 5, 3: 5}, {0, 1, 2, 3, 6}, {0, 1, 2, 3, 6}, id="a node by itself is a part"),
        pytest.param({0: 5, 1: 5, 2: 5, 3: 5}, {0, 1, 3, 4, 5}, {0, 1, 3, 4, 5}, id="a tree has nothing but ends"),
        pytest.param({}, {4, 5, 6}, {4, 5, 6}, id="where nothing is missed, nothing goes"),
    ],
)
def test_ends_go_that_nobody_misses(worth, given, left) -> None:
    assert left_of(Adds(worth), given) == [left]


def test_what_preserves_the_prediction_stays() -> None:
    worth = {0: 5, 1: 5, 2: 5, 3: 5, 4: 1}
    assert left_of(Adds(worth, needed=20.5), {0, 1, 2, 3, 4}) == [{0, 1, 2, 3, 4}]
    assert left_of(Adds(worth, needed=19.5), {0, 1, 2, 3, 4}) == [{0, 1, 2, 3}]


def test_what_the_evidence_names_stays_though_nobody_misses_it() -> None:
    measure = Adds({0: 5, 1: 5, 2: 5, 3: 5})
    for probability, left in ((0.95, {0, 1, 2, 3, 4}), (0.65, {0, 1, 2, 3, 4}), (0.55, {0, 1, 2, 3})):
        value = (0.9, 0.9, 0.9, 0.9, probability, 0.3, 0.2)
        assert left_of(measure, {0, 1, 2, 3, 4}, value=value) == [left]


def test_sets_without_ends_cost_nothing_and_others_do_not_matter() -> None:
    measure = Adds({0: 5, 1: 5, 2: 5, 3: 5, 7: 5, 8: 5, 9: 5, 10: 5})
    assert left_of(measure, {0, 1, 2, 3}) == [{0, 1, 2, 3}]
    assert measure.asked == 0
    assert left_of(measure, {0, 1, 2, 3}, {0, 1, 2, 3, 4}) == [{0, 1, 2, 3}] * 2
