"""Makes the reward that settings describe for some instances."""

from __future__ import annotations

from typing import Any

from gflowexplainer.choices import RewardType
from gflowexplainer.errors import CheckpointError
from gflowexplainer.evidence.learned import Learned
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.rewards.prediction import PredictionReward, RegularizedReward
from gflowexplainer.settings import Settings


def build_reward(settings: Settings, inputs: TaskInputs, learned: Learned | None = None) -> Reward:
    """Makes the reward that ``settings`` describe.

    Args:
        settings: All settings.
        inputs: The instances, with what the model predicts for them.
        learned: What kinds of nodes usually bring, for the evidence reward.
    """
    common: dict[str, Any] = {"beta": settings.beta, "min_nodes": settings.min_nodes}
    if settings.reward == RewardType.evidence:
        if learned is None:
            raise CheckpointError("What was stored holds no evidence, or that of another version. Fit again.")
        return EvidenceReward(inputs, learned, direction=settings.direction, **common)
    common |= {"target": inputs.target, "removal": settings.removal.value}
    common |= {"predictor": inputs.predictor, "instances": inputs.instances}
    if settings.reward == RewardType.context:
        common |= {"num_contexts": settings.num_contexts, "keep_probability": settings.keep_probability}
        return ContextReward(seed=settings.seed, **common)
    if settings.reward == RewardType.prediction:
        return PredictionReward(expectation=settings.expectation, **common)
    return RegularizedReward(embedding=inputs.require_embedding(), **common)
