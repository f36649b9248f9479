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
    """Class 1 of a graph where a node with the first feature is, and class 0 elsewhere."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        held = torch.zeros(int(batch.max()) + 1).index_add(0, batch, x[:, 0]).clamp(max=1)
        return torch.stack([4 - 8 * held, 8 * held - 4], dim=1)


@pytest.mark.parametrize(("places", "best", "wanted"), [([0], 0, 1.0), ([0], 1, 0.0), ([0, 2], 0, 0.5)])
def test_the_effect_of_what_is_rated_best_is_what_the_model_says_with_only_it_and_without_it(places, best, wanted):
    graph = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]]))
    graph.x[places] = 1
    inputs = TaskInputs.of(Predictor(OneFeature(), level="graph", num_hops=1), Instances.of_graphs([graph]))
    single = Subgraphs(torch.zeros(4, dtype=torch.long), torch.arange(4)[:, None])
    rating = torch.zeros(4)
    rating[best] = 1
    # With the class certain and nothing else to hold it, the probability is 1 with it and falls by 1 without it.
    assert effect_of_best(inputs, single, rating) == pytest.approx(wanted, abs=0.01)
