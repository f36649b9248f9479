"""What a model loses without a node, and gains by it alone or by its features: an instance's own evidence."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import pointers, ranges, segment_ids
from gflowexplainer.rewards.gradients import GradientShare, integrated_gradients

MOST = 1000
"""Occlusions evaluated per instance, at most."""
GAINED_IN_MASKS = 1 / 3
"""Share of gains beside losses in masks, which rank all nodes: half as much, as only neighbours can gain."""
GAINED_IN_SAMPLES = 3 / 4
"""Share of gains beside losses in the distribution: what a few nodes do together is nearer to what one does alone."""


class NodeLosses:
    """Occlusion scores of nodes, evaluated lazily and once.

    Args:
        inputs: The instances, with what the model predicts for them.
    """

    def __init__(self, inputs: TaskInputs) -> None:
        self._inputs = inputs
        self._lost: Tensor | None = None
        self._gained: Tensor | None = None
        self._added: Tensor | None = None
        self._whole: Tensor | None = None

    @cached_property
    def _evaluated(self) -> Tensor:
        """Marks the nodes whose scores were evaluated, shape ``[n]``."""
        instances = self._inputs.instances
        return torch.zeros(instances.num_nodes, dtype=torch.bool, device=instances.device)

    def at(self, which: Tensor | None = None) -> Tensor:
        """Returns :func:`losses`, shape ``[n, 1]``, of the nodes ``which`` ``[n]`` at least; of all if not given."""
        new = ~self._evaluated if which is None else which & ~self._evaluated
        if self._lost is None or new.any():
            inputs = self._inputs
            if self._whole is None:
                self._whole = inputs.predictor.whole(inputs.instances)
            found = losses(inputs.predictor, inputs.instances, inputs.target, new, whole=self._whole)
            self._lost = found if self._lost is None else self._lost + found
            self._evaluated |= new
        return self._lost

    def evidence(
        self, which: Tensor | None = None, *, gained: float = 0.0, gradients: GradientShare | None = None
    ) -> Tensor:
        """Returns the own evidence of nodes, shape ``[n, 1]``: what is lost without them.

        Where the class of a node is explained, a share of it are the :func:`gains`: what is needed among all nodes is
        one thing, what suffices with few of them another, and both are to be shown. Of values, a share of it is what
        their features add.

        Args:
            which: The nodes that are wanted at least, shape ``[n]``; all if not given.
            gained: The share of the gains.
            gradients: What gradients count; nothing if not given.
        """
        if gradients is not None and gradients.share:
            return gradients.mix(self.at(which), self._by_features(gradients.baseline))
        instances = self._inputs.instances
        of_node = instances.level != "graph" and instances.other_end is None
        if not (gained and of_node and self._inputs.target.label is not None):
            return self.at(which)
        return torch.lerp(self.at(which), self._gains(), gained)

    def _by_features(self, baseline: Tensor) -> Tensor | None:
        """Returns the :func:`integrated_gradients` from a baseline, ``[n, 1]``, evaluated once."""
        if self._added is None:
            found = integrated_gradients(self._inputs, baseline)
            self._added = None if found is None else found[:, None]
        return self._added

    def _gains(self) -> Tensor:
        """Returns the :func:`gains`, evaluated once; the losses where the model cannot be evaluated on so little."""
        if self._gained is None:
            inputs = self._inputs
            try:
                self._gained = gains(inputs.predictor, inputs.instances, inputs.target)
            except ModelError:  # as one with a norm over a single node
                self._gained = self.at()
        return self._gained


@torch.no_grad()
def losses(
    predictor: Predictor,
    instances: Instances,
    target: Target,
    which: Tensor | None = None,
    *,
    whole: Tensor | None = None,
) -> Tensor:
    """Returns how much the strength of the target falls where each node is gone, shape ``[n, 1]``.

    In an instance of more than :data:`MOST` such nodes, some that stand beside each other in the list go together.

    Args:
        predictor: The explained model.
        instances: The instances.
        target: What is held.
        which: The nodes that are tried, shape ``[n]``; of the others nothing is lost. All if not given.
        whole: What the model predicts with all nodes there, ``[I, C]``, where it is known already.
    """
    counts = instances.node_counts
    tried = torch.arange(instances.num_nodes, device=instances.device)
    tried = tried if which is None else tried[which]
    owner = instances.owner[tried]
    number = torch.bincount(owner, minlength=len(instances))
    queries = number.clamp(max=MOST)
    place = torch.arange(tried.numel(), device=instances.device) - pointers(number)[owner]
    # The query in which a node is missing.
    missing = torch.full((instances.num_nodes,), -1, device=instances.device)
    missing[tried] = pointers(queries)[owner] + place * queries[owner] // number[owner]
    instance = segment_ids(queries)

    def strength(part: slice) -> Tensor:
        evaluated = instance[part]
        query, node = ranges(instances.ptr[evaluated], counts[evaluated])
        kept = missing[node] != query + part.start
        return target.strength(predictor.predict(instances, evaluated, kept), evaluated)

    with predictor.evaluating():
        left = predictor.in_chunks(instances, instance, strength) if instance.numel() else None
        whole = predictor.whole(instances) if whole is None else whole
    whole = target.strength(whole, torch.arange(len(instances), device=instances.device))
    lost = whole.new_zeros(instances.num_nodes)
    if left is not None:
        lost[tried] = whole[owner] - left[missing[tried]]
    return lost[:, None]


@torch.no_grad()
def gains(predictor: Predictor, instances: Instances, target: Target) -> Tensor:
    """Returns how much the strength of the target rises by a neighbour alone beside the explained node, ``[n, 1]``.

    Nodes further away do not reach it without those between them, and bring nothing.

    Args:
        predictor: The explained model.
        instances: Instances of nodes.
        target: What is held.
    """
    roots, every = instances.roots, torch.arange(len(instances), device=instances.device)
    _, near = instances.neighbors_of(roots)
    near = near[near != roots[instances.owner[near]]]
    instance, node = torch.cat([every, instances.owner[near]]), torch.cat([roots, near])

    def strength(part: slice) -> Tensor:
        evaluated, beside = instance[part], node[part]
        query, member = ranges(instances.ptr[evaluated], instances.node_counts[evaluated])
        kept = (member == beside[query]) | (member == roots[evaluated][query])
        return target.strength(predictor.predict(instances, evaluated, kept), evaluated)

    with predictor.evaluating():
        found = predictor.in_chunks(instances, instance, strength)
    alone, together = found.split([every.numel(), near.numel()])
    gained = alone.new_zeros(instances.num_nodes)
    gained[near] = together - alone[instances.owner[near]]
    return gained[:, None]
