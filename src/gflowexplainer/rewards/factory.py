"""Makes the reward that settings describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.consensus import Consensus, ConsensusReward
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.evidence import MAX_KINDS
from gflowexplainer.rewards.occlusion import losses
from gflowexplainer.rewards.prediction import PredictionReward, RegularizedReward

if TYPE_CHECKING:
    from gflowexplainer.settings import Settings


def build_reward(
    settings: Settings,
    predictor: Predictor,
    instances: Instances,
    *,
    embedding: Tensor | None = None,
    raw: Tensor | None = None,
    target: Target | None = None,
    consensus: Consensus | None = None,
) -> Reward:
    """Makes the reward that ``settings`` describe, for these instances.

    Args:
        settings: All settings.
        predictor: The explained model.
        instances: The instances.
        embedding: The model's embeddings at their nodes, shape ``[n, H]``; the regularised reward needs them.
        raw: The :func:`raw_evidence` of their nodes, shape ``[n, R]``, for the consensus reward.
        target: What is held; asked from the model if not given.
        consensus: What :func:`learn_consensus` found, for the consensus reward.
    """
    shared: dict[str, Any] = {
        "target": target,
        "beta": settings.beta,
        "relative": settings.relative_beta,
        "min_nodes": settings.min_nodes,
        "removal": "induced" if settings.removal == "auto" else settings.removal,
    }
    if settings.reward == "consensus":
        if consensus is None or raw is None:
            raise ConfigError(
                "The consensus reward has to be learned first. Pass 'consensus', from learn_consensus, and the 'raw' "
                "evidence."
            )
        return ConsensusReward(predictor, instances, consensus=consensus, raw=raw, **shared)
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


def raw_evidence(predictor: Predictor, instances: Instances, target: Target, evidence: Tensor | None) -> Tensor:
    """Gives what the consensus tells nodes apart by, shape ``[n, R]``.

    At node level it is what the model predicts there. At graph level it is the node's features if they are few, and
    else what the model loses without it, for which it is asked.

    Args:
        predictor: The explained model.
        instances: The instances.
        target: What is held.
        evidence: What the model predicts at the nodes, shape ``[n, C]``; needed at node level.
    """
    if instances.level == "graph":
        return instances.x if instances.x.size(1) <= MAX_KINDS else losses(predictor, instances, target)
    if evidence is None:
        raise ConfigError(
            "The consensus reward needs what the model predicts at every node. Pass 'evidence' or reward='context'."
        )
    return evidence
