"""How well a subgraph holds a prediction."""

from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.model import Predictor, count_hops
from gflowexplainer.rewards.prediction import PredictionReward, RegularizedReward
from gflowexplainer.rewards.reward import Reward

__all__ = ["ContextReward", "PredictionReward", "Predictor", "RegularizedReward", "Reward", "count_hops"]
