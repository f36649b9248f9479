"""What the best-rated subgraph does, by a model whose answers are known."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.effect import effect_of
from gflowexplainer.rewards.fitting import Description, Fitting


class OneFeature(nn.Module):
    """Class 1 of a graph where so many nodes with the first feature are, and class 0 elsewhere."""

    def __init__(self, needed: int = 1) -> None:
        super().__init__()
        self.needed = needed

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        held = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x[:, 0]).sub(self.needed - 1).clamp(0, 1)
        return torch.stack([4 - 8 * held, 8 * held - 4], dim=1)


# With the class certain and nothing else to hold it, the probability is 1 with it and falls by 1 without it.
@pytest.mark.parametrize(
    ("needed", "places", "best", "wanted"),
    [
        (1, [0], 0, (1.0, 0.0, 0.0, 1.0)),
        (1, [0], 1, (0.0, 0.0, 1.0, 0.0)),
        # Another place stands in for it: it is enough and not needed.
        (1, [0, 2], 0, (0.5, 0.0, 0.0, 0.0)),
        # Two places are needed, and it is one of them.
        (2, [0, 2], 0, (0.5, 1.0, 1.0, 1.0)),
        (2, [0, 2], 1, (0.0, 0.0, 1.0, 0.0)),
    ],
)
def test_the_effect_is_what_the_model_says_with_only_what_is_rated_best_and_without_it(
    needed: int, places: list[int], best: int, wanted: tuple[float, ...]
) -> None:
    graph = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]]))
    graph.x[places] = 1
    inputs = TaskInputs.of(Predictor(OneFeature(needed), level="graph", num_hops=1), Instances.of_graphs([graph]))
    rated_best = Subgraphs(torch.tensor([0]), torch.tensor([[best]]))
    assert effect_of(inputs, rated_best) == pytest.approx(wanted, abs=0.01)


def test_what_weights_rate_best_is_by_evidence_per_node_and_the_model_is_asked_about_it_once() -> None:
    graph = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]]))
    graph.x[0] = 1
    inputs = TaskInputs.of(Predictor(OneFeature(1), level="graph", num_hops=1), Instances.of_graphs([graph]))
    # The two together have more evidence, the one alone more per node.
    subgraphs = Subgraphs(torch.zeros(3, dtype=torch.long), torch.tensor([[0, -1], [2, 3], [1, -1]]))
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]]).double()
    description = Description(torch.eye(2), rows, torch.zeros(2))
    fitting = Fitting(inputs, subgraphs, torch.zeros(3, dtype=torch.long))
    weights = torch.tensor([[1.0, 1.5]]).double().expand(3, -1)
    found = fitting.effect(fitting.rating(description, weights))
    assert found == pytest.approx((1.0, 0.0, 0.0, 1.0), abs=0.01)
    asked = inputs.predictor.num_evaluations
    assert fitting.effect(fitting.rating(description, 7 * weights)) == found
    assert inputs.predictor.num_evaluations == asked
    other = fitting.effect(fitting.rating(description, weights * torch.tensor([1.0, 2.0])))
    assert other == pytest.approx((0.0, 0.0, 1.0, 0.0), abs=0.01)
    assert inputs.predictor.num_evaluations > asked
