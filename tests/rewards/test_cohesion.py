"""Explanations of nodes that hold together: the model is asked whether a few nodes are enough."""

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.belief import COHESION
from gflowexplainer.rewards.learning import Description, Fitting, find_cohesion
from gflowexplainer.testing import graph_of

# A center, 0, with neighbours that are joined to each other, 1 and 2, and one apart. By evidence the first says 4 and
# the second 1, so that the first says more per node than both.
TRIANGLE = [(0, 1), (0, 2), (1, 2), (0, 3)]
MEMBERS = [[0, -1, -1], [0, 1, -1], [0, 1, 2]]
DESCRIPTION = [[0.0, 1.0, 0.0], [4.0, 2.0, 1.0], [5.0, 3.0, 3.0]]  # evidence of nodes, nodes and edges
STRONGEST = 4 / 2


class SumOfNeighbors(nn.Module):
    """Log-odds of class 1 of a node: four times what its neighbours add up to, less a threshold."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        odds = 4 * (torch.zeros(len(x)).index_add(0, target, x[source, 0]) - self.threshold)
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def found(
    threshold: float, second: float = 1.0, third: float = 0.0, *, edge: float = 0.0, level: str = "node"
) -> float:
    graph = graph_of(TRIANGLE, 4)
    graph.x = torch.tensor([[0.0], [4.0], [second], [third]])
    predictor = Predictor(SumOfNeighbors(threshold), level="node", num_hops=1)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 1)
    inputs = TaskInputs.of(predictor, instances)
    if level == "graph":
        object.__setattr__(instances, "level", "graph")
    subgraphs = Subgraphs(torch.zeros(3, dtype=torch.long), torch.tensor(MEMBERS))
    fitting = Fitting(inputs, subgraphs, torch.zeros(3, dtype=torch.long))
    description = Description(torch.eye(1), torch.tensor(DESCRIPTION).double(), torch.zeros(3))
    weights = torch.tensor([[1.0, 0.0, edge]]).double().expand(3, -1)
    return find_cohesion(fitting, description, weights)


@pytest.mark.parametrize(
    ("neighbors", "threshold", "wanted"),
    [
        ((1.0, 0.0), 4.8, COHESION * STRONGEST),  # both together hold the class, the first alone does not
        ((1.0, 0.0), 2.5, 0.0),  # it does
        ((1.0, 0.0), 12.0, 0.0),  # the other class is predicted, which needs nothing
        ((-0.5, 0.9), 4.2, 0.0),  # the second speaks against the class, whatever the evidence says
    ],
)
def test_edges_count_where_what_says_most_is_not_enough(neighbors, threshold: float, wanted: float) -> None:
    assert found(threshold, *neighbors) == pytest.approx(wanted)


def test_the_least_follows_what_a_node_of_the_best_says_and_graphs_have_none() -> None:
    # With edges that count already, the triangle says most: it is enough, and nothing is raised.
    assert found(4.8, edge=3.0) == 0
    assert found(4.8, edge=-0.5) == pytest.approx(COHESION * (4 - 0.5) / 2)
    assert found(4.8, level="graph") == 0
