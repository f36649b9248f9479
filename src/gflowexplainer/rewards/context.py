"""The context reward: how strongly a subgraph preserves the prediction in context."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import TINY
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import pointers, ranges, segment_sum
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.cache import KeyedCache

AVERAGES = ("probability", "strength")


class ContextReward(Reward):
    r"""The mean probability of the prediction over graphs that hold the subgraph and a random part of the rest.

    .. math:: R(s) = \frac{1}{M} \sum_{m=1}^M P_\Phi(y \mid G[s \cup T_m])

    A small subgraph fed alone to a GNN is far from anything the GNN was trained on, and its answer says
    little. Here the subgraph is always evaluated in context: :math:`T_1, \dots, T_M` are random subsets of
    the instance's nodes, each node kept with probability :math:`\alpha`. They are a function of seed and node
    ids, so the reward is deterministic and can be cached, and no batch changes it.

    Args:
        average: ``"probability"``: the mean above. ``"strength"``: the mean of the log-odds, which do not saturate;
            for regression, of the value (:meth:`~gflowexplainer.model.target.Target.strength`).
        num_contexts: Number ``M`` of contexts of each instance.
        keep_probability: Probability :math:`\alpha` in (0, 1] that a context holds a node.
        seed: Names the draw of the contexts.
    """

    def __init__(
        self,
        predictor: Predictor,
        instances: Instances,
        *,
        num_contexts: int = 32,
        keep_probability: float = 0.5,
        average: str = "probability",
        seed: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(predictor, instances, **settings)
        self.average = one_of("average", average, AVERAGES)
        if not 0 < keep_probability <= 1:
            raise ConfigError(f"'keep_probability' (alpha) must lie in (0, 1] (got {keep_probability}).")
        if num_contexts < 1:
            raise ConfigError(f"'num_contexts' must be at least 1 (got {num_contexts}).")
        self.num_contexts = num_contexts
        self.keep_probability = keep_probability
        self._contexts = self._draw_contexts(seed)
        self._context_keys = self._hash_contexts()
        self._held = KeyedCache()

    def _draw_contexts(self, seed: int) -> Tensor:
        """Draws which nodes each context keeps, shape ``[M, n]``; the explained node is always kept."""
        instances = self.instances
        number = torch.arange(self.num_contexts, device=instances.device)[:, None]
        draw = uniform(seed, instances.own_key[instances.owner], instances.key, number)
        contexts = draw < self.keep_probability
        contexts[:, instances.roots] = True
        return contexts

    def _hash_contexts(self) -> Tensor:
        """Returns the key of every context's node set, shape ``[M, I]``."""
        instances = self.instances
        keys = torch.where(self._contexts, instances.key, 0)
        total = segment_sum(keys.t(), instances.owner, len(instances)).t()
        return total + instances.own_key

    def tensors(self) -> dict[str, Tensor]:
        """See :class:`Reward`."""
        return super().tensors() | self._held.tensors("union")

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """See :class:`Reward`."""
        super().load_tensors(tensors)
        self._held.load_tensors("union", tensors)

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        rows = max(1, self.predictor.memory_budget // (subgraphs.members.size(1) * self.num_contexts * 32))
        parts = [
            self._mean_held(subgraphs[torch.arange(i, min(i + rows, len(subgraphs)), device=subgraphs.instance.device)])
            for i in range(0, len(subgraphs), rows)
        ]
        return torch.cat(parts)

    def _mean_held(self, subgraphs: Subgraphs) -> Tensor:
        """Averages over the contexts, evaluating each distinct union once: the log-reward, ``[B]``."""
        members = subgraphs.members.clamp(min=0)
        new = subgraphs.filled & ~self._contexts[:, members]
        keys = torch.where(new, self.instances.key[members], 0).sum(dim=-1)
        keys += self._context_keys[:, subgraphs.instance]
        flat = keys.flatten()
        held, found = self._held.find(flat)
        if not found.all():
            missing = torch.nonzero(~found).flatten()
            new_keys, first, group = first_of_each(flat[missing])
            position = missing[first]
            answers = self._evaluate_unions(subgraphs, position // len(subgraphs), position % len(subgraphs))
            self._held.add(new_keys, answers)
            held = held.to(answers)
            held[missing] = answers[group]
        held = held.view(keys.shape)
        if self.average == "probability":
            return held.mean(dim=0).clamp(min=TINY).log()
        return held.mean(dim=0)

    def _evaluate_unions(self, subgraphs: Subgraphs, context: Tensor, row: Tensor) -> Tensor:
        """Returns how well or how strongly the unions of subgraph ``row`` and ``context`` hold the target, ``[Q]``."""
        instance = subgraphs.instance[row]

        def evaluate(chunk: slice) -> Tensor:
            part = instance[chunk]
            counts = self.instances.node_counts[part]
            owner, node = ranges(self.instances.ptr[part], counts)
            kept = self._contexts[context[chunk][owner], node]
            members = subgraphs.members[row[chunk]]
            shift = (pointers(counts)[:-1] - self.instances.ptr[part])[:, None]
            kept[(members + shift)[members >= 0]] = True
            log = self.average == "strength"
            prediction = self.predictor.predict(self.instances, part, kept, self.removal, log=log)
            if log:
                return self.target.strength(prediction, part)
            return self.target.log_preservation(prediction, part).exp()

        return self.predictor.in_chunks(self.instances, instance, evaluate)
