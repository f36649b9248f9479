"""Random connected subgraphs of every instance, which rewards are measured on before anything is trained.

They are small, whatever the bound on explanations: nothing that is learned or calibrated depends on it.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from gflowexplainer.choices import Removal
from gflowexplainer.flow.growth import grow_at_random
from gflowexplainer.flow.sampling import grow_uniformly, roll_out, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import repeated
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.base import REMOVALS, Reward
from gflowexplainer.rewards.belief import says_little
from gflowexplainer.rewards.candidates import KEPT, Candidates
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.learning import learn_consensus
from gflowexplainer.rewards.measuring import Measuring
from gflowexplainer.rewards.occlusion import NodeLosses
from gflowexplainer.settings import Settings

MEASURED_NODES = 8
"""Nodes of the random subgraphs, at most."""
CALIBRATED = 32
"""Rollouts of each instance that show how much its rewards differ."""
_MEASURED, _WORK = (256, 2048), 20 << 30
"""Rollouts that a consensus is learned from, about, over all instances: so many at least and at most, and in between as
many as the model is asked about in so many bytes, one batch after the other."""
_FOLDS_OF_FEW, _ENOUGH = 6, 2000
"""Folds of few instances, and subgraphs of them that would have to be measured for weights to be trusted as usual."""


def random_subgraphs(
    instances: Instances, settings: Settings, rollouts: int, stream: int, *, ends: bool = False
) -> Subgraphs:
    """Grows so many ``rollouts`` of each instance at random and gives every state on their way, repeats included.

    They grow from the explained node, or from anywhere in a graph. With ``ends``, only what they grew to is given, and
    of a small instance no more than half of it: whole instances do not differ.
    """
    every = repeated(len(instances), rollouts, instances.device)
    keys = rollout_keys(instances, every, settings.seed, stream)
    start = None
    if instances.level != "graph":
        start = instances.center.expand(rollouts) if len(instances) == 1 else instances.center.index_select(0, every)
    bound = MEASURED_NODES
    if instances.within is not None:
        # Both ends of a link have to be reached.
        bound = max(bound, int(instances.within.max()))
    elif ends:
        most = min(bound, max(2, instances.largest // 2))
        # As wide as if they had grown on: sums over the members of an instance round alike beside any others.
        found = grow_at_random(instances, every, start, most, keys, width=min(bound, instances.largest))
        if len(instances) == 1:
            return found
        members = found.members
        half = (instances.node_counts // 2).clamp(min=2)[every, None]
        place = torch.arange(members.size(1), device=half.device)
        return Subgraphs(every, torch.where(place < half, members, -1))
    grown = roll_out(instances, every, start, bound, grow_uniformly, keys, cuts=False)
    if ends:
        return grown.subgraphs
    visited = grown.state[grown.states.complete[grown.state]]
    return grown.states.subgraphs[visited]


def candidates_of(settings: Settings, inputs: TaskInputs) -> Candidates:
    """Returns what the settings leave a consensus to choose from."""
    either = settings.removal == Removal.auto and inputs.instances.level == "graph"
    removal = Removal.induced if settings.removal == Removal.auto else settings.removal
    return Candidates(
        evidence=settings.evidence,
        keep_probabilities=(settings.keep_probability,) if settings.keep_probability else KEPT,
        removals=REMOVALS if either else (removal.value,),
        pooling=settings.pooling,
        gradients=not settings.keep_probability and (either or inputs.target.label is None),
    )


def find_consensus(
    settings: Settings, inputs: TaskInputs, lost: NodeLosses | None = None, *, most: int | None = None
) -> Consensus:
    """Learns what preserves predictions in general from random subgraphs of all instances.

    Where evaluating the model is dear, few are measured; as many again where what is learned from them says little.

    Args:
        settings: All settings.
        inputs: The instances, with what the model predicts for them.
        lost: What the model loses without nodes of these instances, as far as it was asked already.
        most: Rollouts that it is learned from at most, over all instances, of which there are few; two of each at
            least.
    """
    candidates = candidates_of(settings, inputs)
    rollouts, dear = _num_measured(inputs.predictor, inputs.instances, settings)
    if most is not None:
        rollouts, dear = min(rollouts, most // len(inputs)), False
        # Half of a few would be too few to tell what all of them teach.
        candidates = replace(candidates, folds=_FOLDS_OF_FEW, enough=_ENOUGH)
    rollouts = max(2, rollouts // len(candidates.keep_probabilities))
    measuring = Measuring(inputs, settings.num_contexts, settings.seed)

    def learned_from(rollouts: int) -> Consensus:
        subgraphs = random_subgraphs(inputs.instances, settings, rollouts, Stream.measuring)
        return learn_consensus(inputs, subgraphs, candidates, measuring, lost)

    consensus = learned_from(rollouts)
    return learned_from(2 * rollouts) if dear and says_little(consensus.chosen) else consensus


def _num_measured(predictor: Predictor, instances: Instances, settings: Settings) -> tuple[int, bool]:
    """Returns how many rollouts of each instance a consensus is learned from, and whether more would be dear."""
    each = float(predictor.cost(instances).double().mean()) * MEASURED_NODES * settings.num_contexts
    least, most = _MEASURED
    total = min(max(int(_WORK / each), least), most)
    return min(max(total // len(instances), 2), 64), total < most


def calibrate(reward: Reward, settings: Settings) -> None:
    """Lets a reward whose exponent is relative measure how much it differs in each instance."""
    if reward.relative:
        # As large as they may become: smaller ones differ by their size above all, and there are few of them.
        reward.calibrate(random_subgraphs(reward.instances, settings, CALIBRATED, Stream.calibrating, ends=True))
    reward.settle_spread()
