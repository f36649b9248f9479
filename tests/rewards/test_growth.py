"""How large explanations of nodes become: the model is asked whether more evidence does more."""

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer.choices import EvidenceType
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.belief import GROWTH
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.learning import Description, Fitting, growth_of
from gflowexplainer.testing import graph_of

# Of a center, 0, with a strong neighbour, 1, and a weak one, 2. The strong one says more per node than both do.
MEMBERS = [[0, -1, -1], [0, 1, -1], [0, 1, 2]]
EVIDENCE = [0.0, 4.0, 5.5]


class TwoNeighbors(nn.Module):
    """Log-odds of class 1 of a node: 4 for a strong neighbour and 1.5 for a weak one, less a threshold."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        odds = torch.zeros(len(x)).index_add(0, target, x[source, 0]) - self.threshold
        return torch.stack([torch.zeros_like(odds), odds], dim=1)


def chosen_growth(threshold: float, evidence: EvidenceType = EvidenceType.shared) -> float:
    graph = graph_of([(0, 1), (0, 2), (0, 3)], 4)
    graph.x = torch.tensor([[0.0], [4.0], [1.5], [0.0]])
    predictor = Predictor(TwoNeighbors(threshold), level="node", num_hops=1)
    inputs = TaskInputs.of(predictor, Instances.around_nodes(graph.x, graph.edge_index, [0], 1))
    subgraphs = Subgraphs(torch.zeros(3, dtype=torch.long), torch.tensor(MEMBERS))
    fitting = Fitting(inputs, subgraphs, torch.zeros(3, dtype=torch.long))
    description = Description(torch.eye(1), torch.tensor(EVIDENCE).double()[:, None], torch.zeros(1))
    weights = torch.ones(3, 1).double()
    trial = EvidenceTrial(evidence, 0.8, "induced", False, 0.5, 0.9)
    return growth_of(fitting, description, weights, trial)


@pytest.mark.parametrize(
    ("threshold", "wanted"),
    [
        (5.2, GROWTH),  # both together hold the class, the strong one alone does not
        (2.5, 0.0),  # it does
        (12.0, 0.0),  # the other class is predicted, which needs nothing
    ],
)
def test_size_counts_where_the_neighbour_that_says_most_is_not_enough(threshold: float, wanted: float) -> None:
    assert chosen_growth(threshold) == wanted


def test_what_single_nodes_do_adds_up_whatever_the_model_says() -> None:
    assert chosen_growth(2.5, EvidenceType.own) == GROWTH
