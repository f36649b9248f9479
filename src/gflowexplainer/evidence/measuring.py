"""Measures what small connected pieces bring in random company: the only step that asks the model many times.

A piece is put into random parts of its instance, and taken out of them again. What it brings is how much stronger the
model speaks for its answer with it than without it, on average over these contexts: among half of the nodes by itself,
in four fifths of them together with others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gflowexplainer.errors import ModelError
from gflowexplainer.evidence.losses import MOST_LOSSES
from gflowexplainer.evidence.regression import added_up, reproducible, spread
from gflowexplainer.flow.sampling import grow_uniformly, roll_out, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, kept_mask, place_keys
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import Stream, uniform
from gflowexplainer.ops.segments import pointers, ranges
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.steering import FAR, NEAR, PIECE

_UNSURE = 1e-2
_DRAWS = 4
"""Random contexts of each share of the nodes."""
_ROLLOUTS, _EACH = (16, 1024), (2, 24)
"""Random growths over all instances, and of each, at least and at most; what work allows decides in between."""


_LEAST, _EVALUATIONS = 4, 2 * 2 * _DRAWS * PIECE * _EACH[0]
"""Instances that are measured at least, and evaluations of the model that pieces of an instance take at least."""


@dataclass(frozen=True)
class Measured:
    """What ``B`` pieces brought, measured in two independent halves of the contexts.

    Attributes:
        far, near: In contexts of few and of many nodes, both as two halves, ``[2, B]``.
        instance: Instance of each, shape ``[B]``.
    """

    far: Tensor
    near: Tensor
    instance: Tensor

    def together(self) -> tuple[Tensor, float]:
        """Returns what pieces brought ``[B]``, each kind of context in units of its spread, and how reproducible it is.

        What they bring among few nodes is told best, and counts by the share of its variance that it has in common
        with what they bring among many: where several motifs have to be there, that is little.
        """
        far, near = self.far.mean(dim=0), self.near.mean(dim=0)
        sure = reproducible(self.far, self.instance) * reproducible(self.near, self.instance)
        agreed = min(added_up(far, near, self.instance) / max(sure, _UNSURE), 1.0)
        units = agreed / spread(far, self.instance), (1 - agreed) / spread(near, self.instance)
        halves = units[0] * self.far + units[1] * self.near
        return halves.mean(dim=0), reproducible(halves, self.instance)


def affordable(inputs: TaskInputs, work: int) -> TaskInputs:
    """Keeps the instances that are cheapest to measure, as many as so many bytes of model input allow."""
    instances = inputs.instances
    queries = _EVALUATIONS + instances.node_counts.clamp(max=MOST_LOSSES)
    cost = inputs.predictor.cost(instances).double() * queries
    order = torch.argsort(cost, stable=True)
    fits = int((cost[order].cumsum(0) <= work).sum())
    return inputs if fits == len(inputs) else inputs.select(order[: max(_LEAST, fits)].sort().values)


def random_pieces(inputs: TaskInputs, seed: int, work: int) -> Subgraphs:
    """Grows connected pieces of every instance at random, those on the way included; no two are alike.

    Args:
        inputs: The instances.
        seed: Names the draws.
        work: Bytes of model input for which the model is to be evaluated, about.
    """
    instances = inputs.instances
    least, total = _ROLLOUTS
    dear = float(inputs.predictor.cost(instances).double().mean()) * PIECE * 4 * _DRAWS
    rollouts = min(max(int(work / dear), least), total)
    rollouts = min(max(rollouts // len(instances), _EACH[0]), _EACH[1])
    every = torch.arange(len(instances), device=instances.device).repeat_interleave(rollouts)
    keys = rollout_keys(instances, every, seed, Stream.measuring)
    start = None if instances.level == "graph" else instances.center.index_select(0, every)
    # Both ends of a link have to be reached.
    bound = PIECE if instances.within is None else max(PIECE, int(instances.within.max()))
    grown = roll_out(instances, every, start, bound, grow_uniformly, keys, cuts=False)
    found = grown.states.subgraphs[grown.state[grown.states.complete[grown.state]]]
    return found[first_of_each(place_keys(instances, found))[1]]


@torch.no_grad()
def measure(inputs: TaskInputs, pieces: Subgraphs, removal: str, seed: int) -> Measured:
    """Measures what pieces bring.

    Args:
        inputs: The instances, with what the model predicts for them.
        pieces: ``B`` pieces.
        removal: What happens to nodes that are taken out: they go (``"induced"``), or lose their edges (``"isolate"``).
        seed: Names the contexts.
    """
    instances, predictor, instance = inputs.instances, inputs.predictor, pieces.instance
    counts = instances.node_counts[instance]
    bounds, (_, node) = pointers(counts), ranges(instances.ptr[instance], counts)
    inside, always = kept_mask(instances, pieces), _always(instances)[node]

    def strength(kept: Tensor) -> Tensor:
        kept = kept | always

        def evaluate(chunk: slice) -> Tensor:
            nodes = slice(int(bounds[chunk.start]), int(bounds[chunk.stop]))
            said = predictor.predict(instances, instance[chunk], kept[nodes], removal, log=True)
            return inputs.target.strength(said, instance[chunk])

        return predictor.in_chunks(instances, instance, evaluate)

    def strength_without(kept: Tensor) -> Tensor:
        try:
            return strength(kept)
        except ModelError:  # as of a model with a norm, which takes no single node
            return torch.zeros(len(pieces), dtype=torch.double, device=kept.device)

    found = torch.zeros(2, 2, len(pieces), dtype=torch.double, device=node.device)
    with predictor.evaluating():
        for number, share in enumerate((FAR, NEAR)):
            for draw in range(_DRAWS):
                name = number * _DRAWS + draw
                chance = uniform(seed, Stream.contexts, name, instances.own_key[instances.owner], instances.key)
                context = (chance < share)[node]
                found[number, draw % 2] += strength(context | inside) - strength_without(context & ~inside)
    far, near = (found / (_DRAWS / 2)).unbind()
    return Measured(far, near, instance)


def _always(instances: Instances) -> Tensor:
    """Marks what is never removed: the explained node, or both ends of a link, shape ``[n]``."""
    marked = torch.zeros(instances.num_nodes, dtype=torch.bool, device=instances.device)
    marked[instances.roots] = True
    return marked
