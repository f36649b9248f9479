"""Random connected subgraphs of every instance, which rewards are measured on before anything is trained."""

from __future__ import annotations

import torch

from gflowexplainer.flow.sampling import grow_uniformly, roll_out, rollout_keys
from gflowexplainer.instances import Instances
from gflowexplainer.settings import Settings
from gflowexplainer.subgraphs import Subgraphs


def random_subgraphs(
    instances: Instances, settings: Settings, rollouts: int, stream: int, *, ends: bool = False
) -> Subgraphs:
    """Grows so many ``rollouts`` of each instance at random and gives every state on their way, repeats included.

    They grow from the explained node, or from anywhere in a graph. With ``ends``, only what they grew to is given.
    """
    every = torch.arange(len(instances), device=instances.device).repeat_interleave(rollouts)
    keys = rollout_keys(instances, every, settings.seed, stream)
    start = instances.center[every] if instances.level == "node" else None
    grown = roll_out(instances, every, start, settings.max_nodes, grow_uniformly, keys, cuts=False)
    if ends:
        return grown.subgraphs
    visited = grown.state[grown.states.size[grown.state] > 0]
    return grown.states.subgraphs[visited]
