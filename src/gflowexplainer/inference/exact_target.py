"""The exact target of an enumeration."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.choices import Measure
from gflowexplainer.flow.exact import Enumeration
from gflowexplainer.flow.measure import log_growth
from gflowexplainer.rewards import Reward


def target_distribution(enumeration: Enumeration, reward: Reward, measure: str = "uniform") -> Tensor:
    """Returns the log-probability of every state under the target distribution, shape ``[S]``; an empty one has none.

    Args:
        enumeration: Every connected subgraph.
        reward: What they are worth.
        measure: What they count before that; see :mod:`~gflowexplainer.flow.measure`.
    """
    states = enumeration.states
    some = torch.nonzero(states.complete).flatten()
    log_reward = torch.zeros(len(states), dtype=torch.double, device=states.size.device)
    log_reward[some] = reward.log_reward(states.subgraphs[some], states.can_grow[some]).double()
    if Measure.of("measure", measure) == Measure.growth:
        log_reward += log_growth(states, enumeration.child, enumeration.level_ptr)
    return enumeration.normalize(log_reward)
