r"""Shapley values of subgraphs: what a subgraph adds to the prediction, in context of some of the nodes around it.

The players of SubgraphX's game (Yuan et al., ICML 2021) are the subgraph as one, and every other node within as many
steps of it as messages travel; nodes further away are always there, and so is an explained node. The Shapley value of
the subgraph :math:`S` among :math:`r` other players is

.. math:: \phi(S) = \sum_T \frac{|T|!\,(r - |T|)!}{(r + 1)!}\,\bigl(f(S \cup T) - f(T)\bigr)

The weights are those of :math:`T` when each player draws a uniform number and :math:`T` holds the players that drew
less than the subgraph did. So a sample needs no permutation, only one number for each node and a threshold, and these
are the same for all subgraphs of an instance: two subgraphs are compared in the same context. The thresholds of an
instance are spread evenly over (0, 1), which keeps the mean right and its variance small.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowbench.explainers.interface import Subject
from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import pointers, ranges, segment_sum
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.rewards.base import REMOVALS


class ShapleyValues:
    """Shapley values of subgraphs of some instances, by sampling; the same subgraph always gets the same value.

    What is shared out is the probability of the explained class, for regression a Gaussian of the deviation.

    Args:
        subject: The model and its instances.
        num_samples: Sets of other players drawn for each instance.
        radius: Steps from the subgraph within which a node is a player; the model's layers if not given.
        removal: ``"induced"``: nodes that are not there are gone. ``"isolate"``: they only lose their edges.
        seed: Names the random numbers.
        cache_size: Number of predictions that are remembered.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        num_samples: int = 100,
        radius: int | None = None,
        removal: str = "induced",
        seed: int = 0,
        cache_size: int = 1_000_000,
    ) -> None:
        if num_samples < 1:
            raise ConfigError(f"'num_samples' must be at least 1 (got {num_samples}).")
        if radius is not None and radius < 0:
            raise ConfigError(f"'radius' must not be negative (got {radius}).")
        self.subject = subject
        self.radius = subject.predictor.num_hops if radius is None else radius
        self.removal = one_of("removal", removal, REMOVALS)
        self.cache_size = cache_size
        self._known: dict[int, float] = {}
        self._present = self._draw(num_samples, seed)

    def __call__(self, instance: Tensor, inside: Tensor, num_samples: int | None = None) -> Tensor:
        """Computes the values of ``B`` subgraphs, shape ``[B]``.

        Args:
            instance: Instance of each subgraph, shape ``[B]``.
            inside: Its nodes, as a flat mask over the nodes of the subgraphs' instances, one behind the other.
            num_samples: Take only so many of the samples, evenly spread, for a coarser value.
        """
        instances, predictor = self.subject.instances, self.subject.predictor
        first, drawn = pointers(instances.node_counts[instance]), self._present.size(0)
        count = drawn if num_samples is None else min(num_samples, drawn)
        present = self._present[torch.arange(count, device=instances.device) * drawn // count]
        cost = predictor.cost(instances)[instance] * 2 * count
        parts = []
        with predictor.evaluating():
            for chunk in predictor.chunks(cost):
                rows = slice(int(first[chunk.start]), int(first[chunk.stop]))
                parts.append(self._values(instance[chunk], inside[rows], present))
        return torch.cat(parts) if parts else instance.new_zeros(0, dtype=torch.double)

    def _draw(self, num_samples: int, seed: int) -> Tensor:
        """Draws which nodes are there in each sample, if they are players, shape ``[num_samples, n]``."""
        instances = self.subject.instances
        sample = torch.arange(num_samples, device=instances.device)[:, None]
        keys = instances.own_key
        threshold = (sample + uniform(seed, keys, sample, 0)) / num_samples
        return uniform(seed, keys[instances.owner], instances.key, sample) < threshold[:, instances.owner]

    def _values(self, instance: Tensor, inside: Tensor, present: Tensor) -> Tensor:
        """Computes the values of subgraphs whose samples ``present`` fit into memory together."""
        instances, samples = self.subject.instances, present.size(0)
        region = self._region(instance, inside)
        first = pointers(instances.node_counts[instance])[:-1]
        subgraph = torch.arange(instance.numel(), device=instance.device).repeat_interleave(samples)
        sample = torch.arange(samples, device=instance.device).repeat(instance.numel())
        asked = instance[subgraph]
        owner, node = ranges(instances.ptr[asked], instances.node_counts[asked])
        place = node + (first - instances.ptr[instance])[subgraph][owner]
        member = inside[place]
        context = ~member & (present[sample[owner], node] | ~region[place])
        if instances.level == "node":
            context |= node == instances.center[asked][owner]
        worth = self._worth(asked.repeat(2), torch.cat([context | member, context]), node.repeat(2))
        together, without = worth.view(2, instance.numel(), samples)
        return (together - without).mean(dim=1)

    def _region(self, instance: Tensor, inside: Tensor) -> Tensor:
        """Marks the nodes within ``radius`` steps of each subgraph, in the form of ``inside``."""
        instances = self.subject.instances
        owner, node = ranges(instances.ptr[instance], instances.node_counts[instance])
        shift = (pointers(instances.node_counts[instance])[:-1] - instances.ptr[instance])[owner]
        region, newest = inside.clone(), torch.nonzero(inside).flatten()
        for _ in range(self.radius):
            row, neighbor = instances.neighbors_of(node[newest])
            reached = neighbor + shift[newest[row]]
            newest = torch.unique(reached[~region[reached]])
            region[newest] = True
        return region

    def _worth(self, instance: Tensor, kept: Tensor, node: Tensor) -> Tensor:
        """Evaluates how well the prediction is preserved with the nodes ``kept``, for ``Q`` queries, each set once."""
        instances, predictor, target = self.subject.instances, self.subject.predictor, self.subject.target
        counts = instances.node_counts[instance]
        query = torch.repeat_interleave(torch.arange(counts.numel(), device=counts.device), counts)
        keys = segment_sum(torch.where(kept, instances.key[node], 0), query, counts.numel())
        keys += instances.own_key[instance]
        unique, first, group = first_of_each(keys)
        listed = unique.tolist()
        if len(self._known) + len(listed) > self.cache_size:
            self._known = {}
        missing = torch.tensor([place for place, key in enumerate(listed) if key not in self._known], dtype=torch.long)
        if missing.numel():
            ask = first[missing.to(first.device)]
            rows = ranges(pointers(counts)[:-1][ask], counts[ask])[1]
            answer = predictor.predict(instances, instance[ask], kept[rows], self.removal)
            asked = target.log_preservation(answer, instance[ask]).exp().tolist()
            self._known |= {listed[place]: value for place, value in zip(missing.tolist(), asked, strict=True)}
        values = [self._known[key] for key in listed]
        return torch.tensor(values, dtype=torch.double, device=group.device)[group]
