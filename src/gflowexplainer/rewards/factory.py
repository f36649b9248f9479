"""Makes the reward that settings describe, ready to be used: learned from the instances and calibrated on them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gflowexplainer.choices import Removal, RewardType
from gflowexplainer.errors import ConfigError
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.calibration import calibrate, find_consensus
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.consensus_reward import ConsensusReward
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.evidence import raw_evidence
from gflowexplainer.rewards.occlusion import GAINED_IN_MASKS, GAINED_IN_SAMPLES, NodeLosses
from gflowexplainer.rewards.prediction import PredictionReward, RegularizedReward
from gflowexplainer.settings import Settings

_KEPT = 0.5
"""Share of the nodes that contexts of the context reward keep, where it is not given."""


def prepare_reward(settings: Settings, inputs: TaskInputs, consensus: Consensus | None = None) -> Reward:
    """Makes the reward that ``settings`` describe for some instances, and calibrates it on them.

    Args:
        settings: All settings.
        inputs: The instances, with what the model predicts for them.
        consensus: What preserves predictions in general, where it was learned before; otherwise it is learned from
            these instances. Only the consensus reward uses it.
    """
    raw = own = None
    if settings.reward == RewardType.consensus:
        lost = NodeLosses(inputs)
        consensus = find_consensus(settings, inputs, lost) if consensus is None else consensus
        sampled = None
        if consensus.needs_own:
            follow, gradients = consensus.uses_own, consensus.gradients
            own = lost.evidence(gained=GAINED_IN_MASKS * follow, gradients=gradients)
            own = consensus.likeness.shrink(inputs, own, consensus.names)
            sampled = lost.evidence(gained=GAINED_IN_SAMPLES * follow, gradients=gradients)
        raw = raw_evidence(inputs, consensus.chosen.evidence, sampled, consensus.names)
    reward = build_reward(settings, inputs, raw=raw, own=own, consensus=consensus)
    calibrate(reward, settings)
    return reward


def build_reward(
    settings: Settings,
    inputs: TaskInputs,
    *,
    raw: Tensor | None = None,
    own: Tensor | None = None,
    consensus: Consensus | None = None,
) -> Reward:
    """Makes the reward that ``settings`` describe; nothing is learned or calibrated.

    Args:
        settings: All settings.
        inputs: The instances, with what the model predicts for them.
        raw: The :func:`~gflowexplainer.rewards.evidence.raw_evidence` of their nodes, for the consensus reward.
        own: What the model loses without each of them, where the consensus needs it.
        consensus: What preserves predictions in general, for the consensus reward.
    """
    predictor, instances = inputs.predictor, inputs.instances
    shared: dict[str, Any] = {
        "target": inputs.target,
        "beta": settings.beta,
        "relative": settings.relative_beta,
        "min_nodes": settings.min_nodes,
        "removal": Removal.induced if settings.removal == Removal.auto else settings.removal,
    }
    if settings.reward == RewardType.consensus:
        if consensus is None or raw is None:
            raise ConfigError(
                "The consensus reward has to be learned first. Pass 'consensus', from learn_consensus, and the 'raw' "
                "evidence."
            )
        return ConsensusReward(
            predictor, instances, consensus=consensus, raw=raw, own=own, direction=settings.direction, **shared
        )
    if settings.reward == RewardType.prediction:
        return PredictionReward(predictor, instances, **shared)
    if settings.reward == RewardType.regularized:
        if inputs.embedding is None:
            raise ConfigError("The regularised reward needs the explained model's embeddings. Pass 'embedding'.")
        return RegularizedReward(predictor, instances, embedding=inputs.embedding, **shared)
    return ContextReward(
        predictor,
        instances,
        num_contexts=settings.num_contexts,
        keep_probability=settings.keep_probability or _KEPT,
        seed=settings.seed,
        **shared,
    )
