"""Whether masks of a class of graphs follow the distribution, or show what single nodes do wherever they are.

Samples are connected. Where a class rests on nodes here and there, such as two groups of a molecule of which each may
be there twice, a subgraph that holds some of them holds what lies between them too. What evidence says of single nodes
and what the model loses without them then rank them better. Nobody has to know the truth to see that: the nodes that a
mask puts first are tried on the model, with only them and without them, in graphs that were fitted. Graphs of a class
that is never lost, as it is the lack of something, do not count.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import torch
from torch import Tensor

from gflowexplainer.errors import ModelError
from gflowexplainer.inference.explaining import explain_instances
from gflowexplainer.inference.masks import Masks
from gflowexplainer.inference.needed_places import LOST
from gflowexplainer.inference.preservation import measure_preservation
from gflowexplainer.inference.random_parts import NodeSet
from gflowexplainer.sampler import FlowSampler, SamplerState

BETTER = 0.03
"""How much more the nodes that evidence of single ones puts first must do, with only them and without them."""
_SIZES = (1, 2, 3, 4, 6, 8, 12)
_GRAPHS, _NODES = 32, 500
"""Graphs that are tried at most, and nodes of the largest of them: the model is asked what it loses without each."""


@torch.no_grad()
def settle_masks(sampler: FlowSampler, num_samples: int, inference: str) -> SamplerState:
    """Returns what a sampler has learned, with the masks that say more about the model.

    Args:
        sampler: The trained sampler, with the instances that were fitted.
        num_samples: Subgraphs that masks are estimated from.
        inference: ``"flow"`` or ``"search"``.
    """
    state, inputs = sampler.state(), sampler.inputs
    by_class = inputs.target.label is not None
    if state.consensus is None or inputs.instances.level != "graph" or not by_class:
        return state
    counts = inputs.instances.node_counts
    able = torch.nonzero((counts > _SIZES[0] + 1) & (counts <= _NODES)).flatten()
    if not able.numel():
        return state
    some = inputs.select(able[:: -(-able.numel() // _GRAPHS)])
    apart = replace(state, consensus=replace(state.consensus, apart=True))
    usual = FlowSampler(sampler.settings, some, state)
    found = explain_instances(
        usual, num_samples=num_samples, weighting="policy", certificate_limit=0, model_name="", inference=inference
    )
    try:
        other = FlowSampler(sampler.settings, some, apart)
        before = _done_by_first(usual, found.masks.node)
        after = _done_by_first(other, Masks(other, found.estimates).node)
    except ModelError:  # of a model that takes no graph so small
        return state
    is_lost = torch.maximum(before, after)[:, :, 1].nan_to_num().amax(dim=1) > 1 - LOST
    gain = (after - before).nanmean(dim=1)[is_lost].mean(dim=0)
    return apart if bool(is_lost.any()) and float(gain.min()) >= 0 and float(gain.mean()) >= BETTER else state


def _done_by_first(sampler: FlowSampler, mask: Tensor) -> Tensor:
    """Says what the first nodes of a mask ``[n]`` preserve, and how much is lost without them.

    Returns:
        Shares of the prediction, shape ``[I, len(_SIZES), 2]``; ``nan`` where a graph has no more nodes than that.
    """
    instances = sampler.instances
    asked, places = list[tuple[int, NodeSet]](), list[tuple[int, int]]()
    for i, (begin, end) in enumerate(pairwise(instances.ptr.tolist())):
        order = (torch.argsort(mask[begin:end], descending=True, stable=True) + begin).tolist()
        sizes = [size for size in _SIZES if size < end - begin]
        asked += [(i, frozenset(order[:size])) for size in sizes]
        places += [(i, place) for place in range(len(sizes))]
    with_only, without = (measure_preservation(sampler.reward, asked, without=way).preserved for way in (False, True))
    done = with_only.new_full((len(instances), len(_SIZES), 2), torch.nan)
    done[tuple(torch.tensor(places, device=done.device).t())] = torch.stack([with_only, 1 - without], dim=1)
    return done
