"""Random connected subgraphs of every instance, which rewards are measured on before anything is trained."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gflowexplainer.choices import Removal
from gflowexplainer.flow.growth import grow_at_random
from gflowexplainer.flow.sampling import grow_uniformly, roll_out, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.base import REMOVALS, Reward
from gflowexplainer.rewards.consensus import Consensus, learn_consensus
from gflowexplainer.settings import Settings

CALIBRATED = 16
"""Rollouts of each instance that show how much its rewards differ."""
_MEASURED, _WORK = (256, 1024), 20 << 30
"""Rollouts that a consensus is learned from, about, over all instances: so many at least and at most, and in between as
many as the model is asked about in so many bytes, one batch after the other."""


def random_subgraphs(
    instances: Instances, settings: Settings, rollouts: int, stream: int, *, ends: bool = False
) -> Subgraphs:
    """Grows so many ``rollouts`` of each instance at random and gives every state on their way, repeats included.

    They grow from the explained node, or from anywhere in a graph. With ``ends``, only what they grew to is given.
    """
    every = torch.arange(len(instances), device=instances.device).repeat_interleave(rollouts)
    keys = rollout_keys(instances, every, settings.seed, stream)
    start = None if instances.level == "graph" else instances.center[every]
    if ends and instances.other_end is None:
        return grow_at_random(instances, every, start, settings.max_nodes, keys)
    grown = roll_out(instances, every, start, settings.max_nodes, grow_uniformly, keys, cuts=False)
    if ends:
        return grown.subgraphs
    visited = grown.state[grown.states.complete[grown.state]]
    return grown.states.subgraphs[visited]


def find_consensus(settings: Settings, inputs: TaskInputs, evidence: Tensor) -> Consensus:
    """Learns what preserves predictions in general from random subgraphs of all instances.

    Args:
        settings: All settings.
        inputs: The instances, with what the model says of them.
        evidence: Raw evidence of every node, shape ``[n, R]``.
    """
    predictor, instances = inputs.predictor, inputs.instances
    either = settings.removal == Removal.auto and instances.level == "graph"
    chosen = Removal.induced if settings.removal == Removal.auto else settings.removal
    rollouts = _num_measured(predictor, instances, settings)
    return learn_consensus(
        predictor,
        instances,
        evidence,
        inputs.target,
        random_subgraphs(instances, settings, rollouts, Stream.measuring),
        removals=REMOVALS if either else (chosen,),
        # A graph's default class is preserved by nothing in it: only the other classes show what the model looks at.
        pooling=math.inf if instances.level == "graph" else settings.pooling,
        num_contexts=settings.num_contexts,
        keep_probability=settings.keep_probability,
        seed=settings.seed,
    )


def _num_measured(predictor: Predictor, instances: Instances, settings: Settings) -> int:
    """Says how many rollouts of each instance a consensus is learned from."""
    each = float(predictor.cost(instances).double().mean()) * settings.max_nodes * settings.num_contexts
    least, most = _MEASURED
    total = min(max(int(_WORK / each), least), most)
    return min(max(total // len(instances), 2), 32)


def calibrate(reward: Reward, settings: Settings) -> None:
    """Lets a reward whose exponent is relative measure how much it differs in each instance."""
    if reward.relative:
        # Of full size: smaller ones differ by their size above all, and there are few of them.
        reward.calibrate(random_subgraphs(reward.instances, settings, CALIBRATED, Stream.calibrating, ends=True))
    reward.settle_spread()
