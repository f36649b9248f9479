"""The shape of every reward: batched, cached, tempered, bounded in size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.choices import Removal
from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, kept_mask, size_penalty, subgraph_keys
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.ops.segments import ranges
from gflowexplainer.ops.sorting import first_of_each
from gflowexplainer.rewards.cache import KeyedCache

REMOVALS = (Removal.induced.value, Removal.isolate.value)
"""Meanings of "without the rest"."""


class Reward(ABC):
    r"""A positive function of subgraphs; the flow network samples in proportion to it.

    What is sampled from is :math:`P(s) \propto R(s)^\beta`, with :math:`\beta` in units of ``spread``.

    Args:
        predictor: The explained model.
        instances: The instances; every subgraph passed later refers to these.
        target: What is to be preserved; the model's own prediction if not given.
        beta: Reward exponent.
        min_nodes: Smaller subgraphs get a reward of practically zero
            (:func:`~gflowexplainer.graphs.subgraphs.size_penalty`).
        removal: What "without the rest" means: ``"induced"`` (nodes and edges go) or ``"isolate"`` (edges go,
            nodes stay: right for mean pooling over a graph).
        cache_size: Number of subgraphs whose reward is remembered.

    Attributes:
        spread: What one unit of ``beta`` is in each instance, shape ``[I]``; 1 by default.
    """

    def __init__(
        self,
        predictor: Predictor,
        instances: Instances,
        *,
        target: Target | None = None,
        beta: float = 1.0,
        min_nodes: int = 1,
        removal: str = "induced",
        cache_size: int = 4_000_000,
    ) -> None:
        if not beta > 0 or beta == float("inf"):
            raise ConfigError(f"'beta' must be a positive number (got {beta}).")
        if min_nodes < 1:
            raise ConfigError(f"'min_nodes' must be at least 1 (got {min_nodes}).")
        self.predictor = predictor
        self.instances = instances
        self.target = Target.of(predictor, instances) if target is None else target
        self.beta = beta
        self.min_nodes = min_nodes
        self.removal = one_of("removal", removal, REMOVALS)
        self.spread = torch.ones(len(instances), device=instances.device)
        self.num_requests = 0
        self._cache_size = cache_size

    @cached_property
    def _cache(self) -> KeyedCache:
        return KeyedCache(self._cache_size)

    @abstractmethod
    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        """Computes the logarithm of the bare reward of subgraphs that differ from one another, shape ``[B]``."""

    def log_score(self, subgraphs: Subgraphs) -> Tensor:
        r"""Returns :math:`\log R(s)`, without exponent and size bound, from the cache where known, shape ``[B]``."""
        self.num_requests += len(subgraphs)
        keys = subgraph_keys(self.instances, subgraphs)
        values, found = self._cache.find(keys)
        if not found.all():
            missing = torch.nonzero(~found).flatten()
            new_keys, first, group = first_of_each(keys[missing])
            with self.predictor.evaluating():
                scores = self._log_score(subgraphs[missing[first]])
            self._cache.add(new_keys, scores)
            values = values.to(scores)
            values[missing] = scores[group]
        return values

    def log_reward(self, subgraphs: Subgraphs, can_grow: Tensor | None = None) -> Tensor:
        r"""Returns :math:`\beta \log R(s)` with the lower size bound, shape ``[B]``.

        Args:
            subgraphs: ``B`` subgraphs.
            can_grow: Whether each could become larger, shape ``[B]``; one that cannot is never too small.
        """
        value = self.temper(self.log_score(subgraphs), subgraphs.instance)
        grows = torch.ones_like(subgraphs.instance, dtype=torch.bool) if can_grow is None else can_grow
        return value + size_penalty(subgraphs.size, grows, self.min_nodes)

    def temper(self, log_score: Tensor, instance: Tensor) -> Tensor:
        """Applies the exponent of each row's instance to log-scores ``[B]`` or ``[B, V]``."""
        exponent = self.beta / self.spread.index_select(0, instance)
        return log_score * (exponent if log_score.dim() == 1 else exponent[:, None])

    def exchange(self, gather: Callable[..., tuple[Tensor, ...]]) -> None:
        """Shares the scores that were computed since the last exchange among processes: none is computed twice.

        Args:
            gather: Puts columns of equal length from all processes below one another.
        """
        self._cache.exchange(gather)

    def tensors(self) -> dict[str, Tensor]:
        """Returns cached values, for a checkpoint: with them a resumed training sees the same numbers."""
        return self._cache.tensors("subgraph")

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Takes cached values from a checkpoint."""
        self._cache.load_tensors("subgraph", tensors)

    def kept_mask(self, subgraphs: Subgraphs) -> Tensor:
        """Marks the members as a flat mask over the nodes of each subgraph's instance."""
        return kept_mask(self.instances, subgraphs)

    def predict(self, subgraphs: Subgraphs, *, without: bool = False, removal: str | None = None) -> Tensor:
        """Predicts with only the subgraphs, or ``without`` them, shape ``[B, C]``.

        What is removed goes as the reward's own ``removal`` says, unless another one is given.
        """
        removal = self.removal if removal is None else removal

        def predict(chunk: slice) -> Tensor:
            part = subgraphs[chunk]
            kept = self.kept_mask(part)
            if without:
                kept = ~kept
                if self.predictor.level != "graph":
                    kept |= self._root_mask(part.instance)
            return self.predictor.predict(self.instances, part.instance, kept, removal, alone=not without)

        with self.predictor.evaluating():
            return self.predictor.in_chunks(self.instances, subgraphs.instance, predict)

    def _root_mask(self, instance: Tensor) -> Tensor:
        _, node = ranges(self.instances.ptr[instance], self.instances.node_counts[instance])
        is_root = torch.zeros(self.instances.num_nodes, dtype=torch.bool, device=node.device)
        is_root[self.instances.roots] = True
        return is_root[node]
