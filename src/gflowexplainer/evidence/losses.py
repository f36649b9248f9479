"""What a model loses without a single node: an instance's own evidence."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import pointers, ranges, segment_ids

MOST_LOSSES = 256
"""Removals evaluated for an instance, at most."""


@torch.no_grad()
def node_losses(inputs: TaskInputs, removal: str) -> Tensor:
    """Returns how much weaker the model speaks for its answer where each node is gone, shape ``[n]``.

    In an instance of more than :data:`MOST_LOSSES` nodes, some that stand beside each other in the list go together.
    Of a link, only nodes on ways that may join both ends are tried. What is explained itself is never removed.

    Args:
        inputs: The instances, with what the model predicts for them.
        removal: What it means that a node is gone: ``"induced"`` or ``"isolate"``.
    """
    predictor, instances, target = inputs.predictor, inputs.instances, inputs.target
    which = torch.ones(instances.num_nodes, dtype=torch.bool, device=instances.device)
    if instances.other_end is not None:
        which = _on_ways(instances)
    which[instances.roots] = False
    counts = instances.node_counts
    tried = torch.arange(instances.num_nodes, device=instances.device)
    tried = tried[which]
    owner = instances.owner[tried]
    number = torch.bincount(owner, minlength=len(instances))
    queries = number.clamp(max=MOST_LOSSES)
    place = torch.arange(tried.numel(), device=instances.device) - pointers(number)[owner]
    # The query in which a node is missing.
    missing = torch.full((instances.num_nodes,), -1, device=instances.device)
    missing[tried] = pointers(queries)[owner] + place * queries[owner] // number[owner]
    instance = segment_ids(queries)

    def strength(part: slice) -> Tensor:
        evaluated = instance[part]
        query, node = ranges(instances.ptr[evaluated], counts[evaluated])
        kept = missing[node] != query + part.start
        return target.strength(predictor.predict(instances, evaluated, kept, removal, log=True), evaluated)

    with predictor.evaluating():
        left = predictor.in_chunks(instances, instance, strength) if instance.numel() else None
        whole = predictor.whole(instances, log=True)
    whole = target.strength(whole, torch.arange(len(instances), device=instances.device))
    lost = whole.new_zeros(instances.num_nodes)
    if left is not None:
        lost[tried] = whole[owner] - left[missing[tried]]
    return lost.double()


def _on_ways(instances: Instances) -> Tensor:
    """Marks the nodes on ways by which both ends of a link are to be joined, shape ``[n]``."""
    assert instances.within is not None
    nodes = instances.hops_from(instances.center) + instances.hops_to_other_end + 1
    return (nodes <= instances.within[instances.owner]) & (nodes > 0)
