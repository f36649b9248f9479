"""How well a subgraph preserves a prediction."""

from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.prediction import PredictionReward, RegularizedReward

__all__ = ["ContextReward", "PredictionReward", "RegularizedReward", "Reward"]
