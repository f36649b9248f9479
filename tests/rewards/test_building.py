import pytest
import torch

from gflowexplainer.errors import ConfigError
from gflowexplainer.instances import Instances
from gflowexplainer.rewards import ContextReward, PredictionReward, Predictor, RegularizedReward
from gflowexplainer.rewards.building import build_reward
from gflowexplainer.settings import Settings
from gflowexplainer.testing import NodeModel, house

KINDS = {"context": ContextReward, "prediction": PredictionReward, "regularized": RegularizedReward}


@pytest.mark.parametrize("kind", KINDS)
def test_settings_reach_the_reward(kind):
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 2], 2)
    settings = Settings(
        reward=kind, beta=3.0, relative_beta=True, min_nodes=2, removal="isolate", num_contexts=5, keep_probability=0.3
    )
    embedding = torch.ones(instances.num_nodes, 2)
    reward = build_reward(settings, Predictor(NodeModel()), instances, embedding=embedding)
    assert type(reward) is KINDS[kind]
    assert (reward.beta, reward.relative, reward.min_nodes, reward.removal) == (3.0, True, 2, "isolate")
    if kind == "context":
        assert (reward.num_contexts, reward.keep_probability) == (5, 0.3)


def test_the_regularised_reward_asks_for_embeddings():
    graph = house()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 2)
    with pytest.raises(ConfigError, match="embedding"):
        build_reward(Settings(reward="regularized"), Predictor(NodeModel()), instances)
