"""The additive policy on a CPU: NumPy where there are few rows, torch where there are many.

Rollouts ask the policy once a step. Torch takes longer to begin each of its calls than to look at a few states.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from gflowexplainer.flow.policy import AdditiveEncoding, AdditivePolicy

Array = NDArray[Any]
_ENTRIES_AT_ONCE = 1 << 16
"""Frontier nodes that the network looks at together."""
_LOG_OF_TWO = np.log1p(1)
_MANY = 256
"""Rows from which on torch computes them."""


class CpuPolicy:
    """The additive policy on one state after the other: sums over members are carried along."""

    def __init__(self, policy: AdditivePolicy, encoding: AdditiveEncoding) -> None:
        candidate, self.member, self.root = (
            part.detach().numpy() for part in (encoding.candidate, encoding.member, encoding.root)
        )
        self.row = None if encoding.row is None else encoding.row.numpy()
        self.width = candidate.shape[1]
        weights = _weights_of(policy)
        self.by_links, self.by_size, self.heads = weights.by_links, weights.by_size, weights.heads
        self.none = np.zeros((), dtype=candidate.dtype)
        self.degree = np.maximum(encoding.degree.numpy(), 1).astype(candidate.dtype)
        degree = self.degree
        if self.row is not None:
            degree = np.ones(candidate.shape[0], dtype=candidate.dtype)
            known = (self.row >= 0).nonzero()[0]
            degree[self.row[known]] = self.degree[known]
        # Nearly all frontier nodes are joined to one member: what that means is added once.
        once = np.ones(candidate.shape[0], dtype=candidate.dtype)
        self.joined_once = candidate + self._told(once, np.log1p(once), once / degree)

    def _told(self, *columns: Array) -> Array:
        """Returns what the policy makes of numbers of links, their logarithms and their shares, shape ``[N, H]``."""
        told = np.empty((columns[0].size, 3), dtype=self.by_links.dtype)
        told[:, 0], told[:, 1], told[:, 2] = columns
        return told @ self.by_links.T

    def place(self, node: Array) -> Array:
        """Finds nodes, given as flat positions, among those that the encoding knows."""
        return node if self.row is None else self.row.take(node)

    def begin(self, start: Array | None, count: int) -> Array:
        """Returns the sums of states that hold one start node, or nothing, shape ``[U, 2 H]``."""
        if start is None:
            return np.zeros((count, 2 * self.width), dtype=self.member.dtype)
        place = self.place(start)
        return self.root.take(place, axis=0) + self.member.take(place, axis=0)

    def add(self, sums: Array, parent: Array, node: Array) -> Array:
        """Returns the sums of states that have one member more than their parents."""
        return sums.take(parent, axis=0) + self.member.take(self.place(node), axis=0)

    def log_flows(self, sums: Array, size: int, state: Array, node: Array, links: Array) -> tuple[Array, Array]:
        """Returns the log-flow of adding each frontier node ``[F]`` and of stopping ``[U]``, without size bound."""
        whole = sums + self.by_size[size]
        for_action, for_stop = whole[:, : self.width], whole[:, self.width :]
        if node.size <= _ENTRIES_AT_ONCE:
            action = self._actions(for_action, state, node, links)
        else:
            parts = (slice(begin, begin + _ENTRIES_AT_ONCE) for begin in range(0, node.size, _ENTRIES_AT_ONCE))
            action = np.concatenate([self._actions(for_action, state[p], node[p], links[p]) for p in parts])
        return action, self.heads[1](np.maximum(for_stop, self.none))

    def _actions(self, for_action: Array, state: Array, node: Array, links: Array) -> Array:
        hidden = self.joined_once.take(self.place(node), axis=0)
        hidden += for_action.take(state, axis=0)
        other = (links != 1).nonzero()[0]
        if other.size:
            count, degree = links[other], self.degree[node[other]]
            more = count - 1
            hidden[other] += self._told(more, np.log1p(count) - _LOG_OF_TWO, more / degree)
        return self.heads[0](np.maximum(hidden, self.none, out=hidden))


class _Head:
    """The two layers behind the first activation; torch computes many rows faster, NumPy begins few sooner."""

    def __init__(self, head: nn.Sequential) -> None:
        _, first, _, second = head
        assert isinstance(first, nn.Linear)
        assert isinstance(second, nn.Linear)
        self.first = first.weight.detach(), first.bias.detach()
        self.second = second.weight.detach(), second.bias.detach()
        self.weight, self.bias = np.ascontiguousarray(self.first[0].numpy().T), self.first[1].numpy()
        self.last, self.shift = self.second[0].numpy()[0], self.second[1].numpy().reshape(())
        self.none = np.zeros((), dtype=self.bias.dtype)

    def __call__(self, rows: Array) -> Array:
        """Applies the head to activated rows ``[N, H]``, shape ``[N]``."""
        if rows.shape[0] >= _MANY:
            hidden = functional.linear(torch.from_numpy(np.ascontiguousarray(rows)), *self.first).relu_()
            return functional.linear(hidden, *self.second)[:, 0].numpy()
        hidden = rows.dot(self.weight)
        hidden += self.bias
        np.maximum(hidden, self.none, out=hidden)
        return hidden.dot(self.last) + self.shift


class _Weights:
    """What a policy has learned, as NumPy takes it; good as long as nothing is written to the weights."""

    def __init__(self, policy: AdditivePolicy) -> None:
        self.by_links, self.by_size = policy.by_links.weight.detach().numpy(), policy.by_size.weight.detach().numpy()
        self.heads = [_Head(policy.action_head), _Head(policy.stop_head)]


_settled: WeakKeyDictionary[AdditivePolicy, _Weights] = WeakKeyDictionary()


def _weights_of(policy: AdditivePolicy) -> _Weights:
    """Returns the weights of a policy; where they need no gradient any more, they are settled and prepared once."""
    if policy.by_size.weight.requires_grad:
        return _Weights(policy)
    if policy not in _settled:
        _settled[policy] = _Weights(policy)
    return _settled[policy]
