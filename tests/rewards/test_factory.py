import pytest
import torch

from gflowexplainer.choices import EvidenceType
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards import ContextReward, PredictionReward, RegularizedReward
from gflowexplainer.rewards.candidates import Candidates
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.consensus_reward import ConsensusReward
from gflowexplainer.rewards.evidence import find_categories_of, has_shared, raw_evidence
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.factory import build_reward
from gflowexplainer.rewards.occlusion import losses
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, NodeModel, house, random_graph

TRIAL = EvidenceTrial(EvidenceType.shared, 0.5, "induced", False, 0.5, 0.9)
KINDS = {"context": ContextReward, "prediction": PredictionReward, "regularized": RegularizedReward}


@pytest.mark.parametrize("kind", KINDS)
def test_settings_reach_the_reward(kind):
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 2], 2)
    settings = Settings(
        reward=kind, beta=3.0, relative_beta=True, min_nodes=2, removal="isolate", num_contexts=5, keep_probability=0.3
    )
    embedding = torch.ones(instances.num_nodes, 2)
    reward = build_reward(settings, TaskInputs.of(Predictor(NodeModel()), instances, embedding=embedding))
    assert type(reward) is KINDS[kind]
    assert (reward.beta, reward.relative, reward.min_nodes, reward.removal) == (3.0, True, 2, "isolate")
    if kind == "context":
        assert (reward.num_contexts, reward.keep_probability) == (5, 0.3)


def test_settings_reach_the_consensus_reward_but_the_removal_is_what_was_learned():
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 2], 2)
    settings = Settings(beta=2.5, min_nodes=3, removal="isolate")
    consensus = Consensus(torch.eye(3, dtype=torch.double), torch.zeros(4, 5, dtype=torch.double), TRIAL)
    evidence = torch.rand(instances.num_nodes, 3)
    inputs = TaskInputs.of(Predictor(NodeModel()), instances)
    reward = build_reward(settings, inputs, raw=evidence, consensus=consensus)
    assert type(reward) is ConsensusReward
    assert (reward.beta, reward.relative, reward.min_nodes, reward.removal) == (2.5, True, 3, "induced")
    with pytest.raises(ConfigError, match="has to be learned first"):
        build_reward(settings, inputs, raw=evidence)
    with pytest.raises(ConfigError, match="and the 'raw' evidence"):
        build_reward(settings, inputs, consensus=consensus)


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_learned_auto_removes_nodes(kind):
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 2)
    embedding = torch.ones(instances.num_nodes, 2)
    settings = Settings(reward=kind)
    assert settings.removal == "auto"
    assert (
        build_reward(settings, TaskInputs.of(Predictor(NodeModel()), instances, embedding=embedding)).removal
        == "induced"
    )


def test_nodes_are_told_apart_by_predictions_and_graphs_by_features():
    graph, predictor = house(), Predictor(NodeModel())
    evidence = torch.rand(10, 3)
    around = Instances.around_nodes(graph.x, graph.edge_index, [0, 4], 3)
    target = Target.of(predictor, around, torch.tensor([2, 0]))
    inputs = TaskInputs.of(predictor, around, target, node_prediction=evidence)
    found = raw_evidence(inputs, EvidenceType.shared)
    assert torch.equal(found[:, :3], evidence.double())
    # The probability of the class that is explained, wherever the node lies.
    assert torch.equal(found[:, 3], torch.cat([evidence[:5, 2], evidence[5:, 0]]).double())
    with pytest.raises(ConfigError, match="Pass 'node_prediction' or use reward='context'"):
        raw_evidence(TaskInputs.of(predictor, around), EvidenceType.shared)
    of_graph = TaskInputs.of(Predictor(GraphModel(), level="graph"), Instances.of_graphs([graph]))
    assert torch.equal(raw_evidence(of_graph, EvidenceType.shared), graph.x.double())


def test_graphs_of_many_features_are_told_apart_by_what_is_lost_without_a_node():
    graph = random_graph(9, seed=4, width=17)
    predictor = Predictor(GraphModel(17), level="graph")
    instances = Instances.of_graphs([graph])
    inputs = TaskInputs.of(predictor, instances)
    own = losses(predictor, instances, inputs.target).double()
    names = find_categories_of(inputs)
    assert not has_shared(inputs, names)
    assert Candidates().kinds(inputs, names) == ("own",)
    assert torch.equal(raw_evidence(inputs, EvidenceType.own), own)
    both = raw_evidence(inputs, EvidenceType.both, own)
    assert torch.equal(both, torch.cat([graph.x.double(), own], dim=1))


def test_the_regularised_reward_asks_for_embeddings():
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 2)
    with pytest.raises(ConfigError, match="embedding"):
        build_reward(Settings(reward="regularized"), TaskInputs.of(Predictor(NodeModel()), instances))
