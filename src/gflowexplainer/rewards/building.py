"""Makes the reward that settings describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from gflowexplainer.errors import ConfigError
from gflowexplainer.instances import Instances
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.model import Predictor
from gflowexplainer.rewards.prediction import PredictionReward, RegularizedReward
from gflowexplainer.rewards.reward import Reward
from gflowexplainer.rewards.target import Target

if TYPE_CHECKING:
    from gflowexplainer.settings import Settings


def build_reward(
    settings: Settings,
    predictor: Predictor,
    instances: Instances,
    *,
    embedding: Tensor | None = None,
    target: Target | None = None,
) -> Reward:
    """Makes the reward that ``settings`` describe, for these instances."""
    shared: dict[str, Any] = {
        "target": target,
        "beta": settings.beta,
        "relative": settings.relative_beta,
        "min_nodes": settings.min_nodes,
        "removal": settings.removal,
    }
    if settings.reward == "prediction":
        return PredictionReward(predictor, instances, **shared)
    if settings.reward == "regularized":
        if embedding is None:
            raise ConfigError("The regularised reward needs the explained model's embeddings. Pass 'embedding'.")
        return RegularizedReward(predictor, instances, embedding=embedding, **shared)
    return ContextReward(
        predictor,
        instances,
        num_contexts=settings.num_contexts,
        keep_probability=settings.keep_probability,
        seed=settings.seed,
        **shared,
    )
