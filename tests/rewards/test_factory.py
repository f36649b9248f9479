import pytest
import torch

from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.evidence.learned import learn
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards import ContextReward, PredictionReward, RegularizedReward
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.rewards.factory import build_reward
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, NodeModel, house

KINDS = {"context": ContextReward, "prediction": PredictionReward, "regularized": RegularizedReward}


@pytest.mark.parametrize("kind", KINDS)
def test_settings_reach_the_reward(kind):
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 2], 2)
    settings = Settings(reward=kind, beta=3.0, min_nodes=2, removal="isolate", num_contexts=5, keep_probability=0.3)
    embedding = torch.ones(instances.num_nodes, 2)
    reward = build_reward(settings, TaskInputs.of(Predictor(NodeModel()), instances, embedding=embedding))
    assert type(reward) is KINDS[kind]
    assert (reward.beta, reward.min_nodes, reward.removal) == (3.0, 2, "isolate")
    if kind == "context":
        assert (reward.num_contexts, reward.keep_probability) == (5, 0.3)


def test_settings_reach_the_evidence_reward_but_the_removal_is_what_was_learned():
    inputs = TaskInputs.of(Predictor(GraphModel(), level="graph"), Instances.of_graphs([house(seed=s) for s in (0, 1)]))
    learned = learn(inputs, 0, "isolate")
    reward = build_reward(Settings(beta=2.5, min_nodes=3, removal="induced"), inputs, learned)
    assert type(reward) is EvidenceReward
    assert (reward.beta, reward.min_nodes, reward.removal) == (2.5, 3, "isolate")
    with pytest.raises(CheckpointError, match="no evidence"):
        build_reward(Settings(), inputs)
    with pytest.raises(ConfigError, match="direction='up'"):
        build_reward(Settings(direction="up"), inputs, learned)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_gone_goes_with_its_edges_where_nothing_else_is_said(kind):
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 2)
    embedding = torch.ones(instances.num_nodes, 2)
    settings = Settings(reward=kind)
    assert (
        build_reward(settings, TaskInputs.of(Predictor(NodeModel()), instances, embedding=embedding)).removal
        == "induced"
    )


def test_the_regularised_reward_asks_for_embeddings():
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 2)
    with pytest.raises(ConfigError, match="embedding"):
        build_reward(Settings(reward="regularized"), TaskInputs.of(Predictor(NodeModel()), instances))
