"""What the best-rated subgraph does, by a model whose answers are known."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.best_rated import effect_of_best


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
    ("needed", "places", "best", "size", "incomplete"),
    [
        (1, [0], 0, 1.0, 0.0),
        (1, [0], 1, 0.0, 0.0),
        # Another place stands in for it: it is enough and not needed.
        (1, [0, 2], 0, 0.5, 0.0),
        # Two places are needed, and it is one of them.
        (2, [0, 2], 0, 0.5, 1.0),
        (2, [0, 2], 1, 0.0, 0.0),
    ],
)
def test_the_effect_is_what_the_model_says_with_only_what_is_rated_best_and_without_it(
    needed: int, places: list[int], best: int, size: float, incomplete: float
) -> None:
    graph = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]]))
    graph.x[places] = 1
    inputs = TaskInputs.of(Predictor(OneFeature(needed), level="graph", num_hops=1), Instances.of_graphs([graph]))
    single = Subgraphs(torch.zeros(4, dtype=torch.long), torch.arange(4)[:, None])
    rating = torch.zeros(4)
    rating[best] = 1
    assert effect_of_best(inputs, single, rating) == pytest.approx((size, incomplete), abs=0.01)
