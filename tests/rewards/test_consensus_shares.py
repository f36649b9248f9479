"""What nodes do by themselves, by a consensus: signed contributions, and shares of the strongest."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer.choices import Direction, EvidenceType
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.consensus_reward import ConsensusReward
from gflowexplainer.rewards.evidence import raw_evidence
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.testing import GraphModel, graph_of

TRIAL = EvidenceTrial(EvidenceType.shared, 0.5, "induced", False, 0.5, 0.9)


class SignedSum(nn.Module):
    """The value of a graph: the sum of the first feature over its nodes."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return torch.zeros(int(batch.max()) + 1, 1).index_add(0, batch, x[:, :1])


@pytest.mark.parametrize(("direction", "first"), [("any", 3), ("up", 0), ("down", 3)])
def test_a_value_is_raised_and_lowered_by_signed_contributions(direction: str, first: int) -> None:
    """Of a path whose nodes add 2, 0, 0 and -3 the best single node is the one that was asked for."""
    graph = graph_of([(0, 1), (1, 2), (2, 3)], 4)
    graph.x = torch.tensor([[2.0], [0.0], [0.0], [-3.0]])
    instances = Instances.of_graphs([graph])
    predictor = Predictor(SignedSum(), level="graph", mode="regression", num_hops=1)
    trial = replace(TRIAL, evidence=EvidenceType.own)
    inputs = TaskInputs.of(predictor, instances)
    raw = raw_evidence(inputs, EvidenceType.own)
    assert raw[:, 0].tolist() == pytest.approx([2, 0, 0, -3])
    weight = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).double()
    reward = ConsensusReward(
        predictor,
        instances,
        consensus=Consensus(torch.eye(1, dtype=torch.double), weight, trial),
        raw=raw,
        own=raw,
        target=inputs.target,
        direction=Direction(direction),
    )
    single = reward.log_score(Subgraphs(torch.zeros(4, dtype=torch.long), torch.arange(4)[:, None]))
    assert int(single.argmax()) == first
    assert reward.contributions().tolist() == pytest.approx([2, 0, 0, -3])
    shares = {"any": [2 / 3, 0, 0, 1], "up": [1, 0, 0, 0], "down": [0, 0, 0, 1]}
    assert reward.own_share().tolist() == pytest.approx(shares[direction])


def test_shares_are_small_where_little_is_lost_without_any_node() -> None:
    """Without the strongest node of the second graph a quarter is lost of what is usual: another stands in for it."""
    graphs = [graph_of([(0, 1), (1, 2)], 3) for _ in range(2)]
    graphs[0].x, graphs[1].x = torch.tensor([[4.0], [2.0], [0.0]]), torch.tensor([[1.0], [0.0], [-1.0]])
    instances = Instances.of_graphs(graphs)
    predictor = Predictor(SignedSum(), level="graph", mode="regression", num_hops=1)
    inputs = TaskInputs.of(predictor, instances)
    consensus = Consensus(
        torch.eye(1, dtype=torch.double), torch.zeros(1, 4).double(), TRIAL, beside=1.0, strongest_loss=4.0
    )
    own = raw_evidence(inputs, EvidenceType.own)
    settings = {"consensus": consensus, "raw": instances.x, "target": inputs.target, "direction": Direction.up}
    reward = ConsensusReward(predictor, instances, own=own, **settings)
    assert reward.own_share().tolist() == pytest.approx([1, 0.5, 0, 0.25, 0, 0])
    with pytest.raises(ConfigError, match="loses without each node"):
        ConsensusReward(predictor, instances, **settings)


def test_places_that_speak_are_shares_of_the_strongest_in_their_graph() -> None:
    """By hand: nodes are worth 2, 1 and -1, the edge between the first two 1, which each of them counts half."""
    graph = graph_of([(0, 1), (1, 2)], 3)
    graph.x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    instances = Instances.of_graphs([graph])
    weight = torch.zeros(3, 7).double()
    weight[:, 0], weight[:, 1], weight[:, 5] = 2, 1, 1  # kinds; then nodes, edges, and edges by pairs of kinds
    settings = {"consensus": Consensus(torch.eye(2, dtype=torch.double), weight, TRIAL), "raw": instances.x}
    predictor = Predictor(GraphModel(in_channels=2), level="graph")
    assert ConsensusReward(predictor, instances, **settings).said_share().tolist() == pytest.approx([1, 0.6, 0])
    values = TaskInputs.of(Predictor(SignedSum(), level="graph", mode="regression", num_hops=1), instances)
    reward = ConsensusReward(values.predictor, instances, target=values.target, **settings)
    assert reward.said_share() is None


def test_in_a_class_of_graphs_a_node_counts_half_by_its_neighbors() -> None:
    """By hand, a path whose single losses are 4, 0, 4 and 0: the second lies between what is needed."""
    instances = Instances.of_graphs([graph_of([(0, 1), (1, 2), (2, 3)], 4)])
    consensus = Consensus(torch.eye(1, dtype=torch.double), torch.zeros(3, 4).double(), TRIAL, beside=1.0)
    own = torch.tensor([[4.0], [0.0], [4.0], [0.0]])
    model = GraphModel(in_channels=instances.x.size(1))
    for strongest, scale in ((4.0, 1.0), (8.0, 0.5)):
        reward = ConsensusReward(
            Predictor(model, level="graph"),
            instances,
            consensus=replace(consensus, strongest_loss=strongest),
            raw=instances.x[:, :1],
            own=own,
        )
        # Halves of the own loss and of the mean of the neighbours: 2, 2, 2 and 2; where more is usual, less is told.
        assert reward.own_share().tolist() == pytest.approx([scale] * 4)
    reward.own = torch.tensor([4.0, 0.0, 0.0, -2.0]).double()
    assert reward.own_share().tolist() == pytest.approx([0.5, 0.25, 0, 0])
