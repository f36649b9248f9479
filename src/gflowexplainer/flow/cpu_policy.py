"""The additive policy on a CPU: NumPy where there are few rows, torch where there are many.

Rollouts ask the policy once a step. Torch takes longer to begin each of its calls than to look at a few states.

Rows have a column more here than there: one that is 1 where a layer looks at them, so that it adds its bias as it
multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from gflowexplainer.flow.additive_policy import AdditiveEncoding, AdditivePolicy
from gflowexplainer.graphs.instances import Instances

Array = NDArray[Any]
_ENTRIES_AT_ONCE = 1 << 16
"""Frontier nodes that the network looks at together."""
_MANY = 256
"""Rows from which on torch computes them."""
_ONE_LINK = np.ones((), dtype=np.int16)
_PRODUCTS = (1 << 19) - 1
"""Multiplications that NumPy does in one thread. Another would go on waiting, at full speed, long after it has helped,
and torch's threads would have to share the cores with it."""


class CpuEncoding(NamedTuple):
    """An :class:`~gflowexplainer.flow.additive_policy.AdditiveEncoding`, what the policy knows of nodes, as arrays.

    Attributes:
        candidate: The same, and a column of ones, shape ``[N, H + 1]``.
        member: The same, both halves with a column of zeros, shape ``[N, 2 (H + 1)]``.
        root: Returns what it knows of start nodes, given by their places among the ``N``; as wide as ``member``.
        degree, row: The same.
    """

    candidate: Array
    member: Array
    root: Callable[[Array], Array]
    degree: Array
    row: Array | None = None

    @classmethod
    def of(cls, encoding: AdditiveEncoding) -> CpuEncoding:
        """Takes what torch has encoded."""
        candidate, member, root = (
            part.detach().numpy() for part in (encoding.candidate, encoding.member, encoding.root)
        )
        row, width = None if encoding.row is None else encoding.row.numpy(), candidate.shape[1]
        return cls(
            _widened(candidate, width, 1),
            _widened(member, width),
            lambda place: _widened(root.take(place, axis=0), width),
            encoding.degree.numpy(),
            row,
        )


def encode_on_cpu(policy: AdditivePolicy, instances: Instances, features: Tensor, only: Tensor) -> CpuEncoding:
    """Does what :meth:`AdditivePolicy.encode` does: by NumPy where there are few nodes and the weights are settled."""
    settled = not policy.by_size.weight.requires_grad and policy.identity is None
    if not settled or instances.num_nodes >= _MANY or only.numel() < len(instances):
        return CpuEncoding.of(policy.encode(instances, features, only))
    return _weights_of(policy).encode(features.numpy(), instances.array("degree"))


class CpuPolicy:
    """The additive policy on one state after the other: sums over members are carried along."""

    def __init__(self, policy: AdditivePolicy, encoding: CpuEncoding) -> None:
        candidate, self.member, self.root, known_degree, self.row = encoding
        self.width = candidate.shape[1]
        weights = _weights_of(policy)
        self.by_links, self.by_size, self.heads = weights.by_links, weights.by_size, weights.heads
        self.beside_one = weights.beside_one
        self.degree = np.maximum(known_degree, 1).astype(candidate.dtype)
        degree = self.degree
        if self.row is not None:
            degree = np.ones(candidate.shape[0], dtype=candidate.dtype)
            known = (self.row >= 0).nonzero()[0]
            degree[self.row[known]] = self.degree[known]
        # Nearly all frontier nodes are joined to one member: what that means is added once.
        once = np.ones(candidate.shape[0], dtype=candidate.dtype)
        self.joined_once = candidate + self._told(once, np.log1p(once), once / degree)

    def _told(self, *columns: Array) -> Array:
        """Returns what the policy makes of numbers of links, their logarithms and their shares, ``[N, H + 1]``."""
        told = np.empty((columns[0].size, 3), dtype=self.by_links.dtype)
        told[:, 0], told[:, 1], told[:, 2] = columns
        return _multiplied(told, self.by_links)

    def place(self, node: Array) -> Array:
        """Finds nodes, given as flat positions, among those that the encoding knows."""
        return node if self.row is None else self.row.take(node)

    def begin(self, start: Array | None, count: int) -> Array:
        """Returns the sums of states that hold one start node, or nothing, shape ``[U, 2 (H + 1)]``."""
        if start is None:
            return np.zeros((count, 2 * self.width), dtype=self.member.dtype)
        place = self.place(start)
        return self.root(place) + self.member.take(place, axis=0)

    def add(self, sums: Array, parent: Array, node: Array) -> Array:
        """Returns the sums of states that have one member more than their parents."""
        grown = sums.take(parent, axis=0)
        grown += self.member.take(self.place(node), axis=0)
        return grown

    def log_flows(self, sums: Array, size: int, state: Array, node: Array, links: Array) -> tuple[Array, Array]:
        """Returns the log-flow of adding each frontier node ``[F]`` and of stopping ``[U]``, without size bound."""
        whole = sums + self.by_size[size]
        for_action, for_stop = whole[:, : self.width], _activated(whole[:, self.width :])
        if node.size <= _ENTRIES_AT_ONCE:
            action = self._actions(for_action, state, node, links)
        else:
            parts = (slice(begin, begin + _ENTRIES_AT_ONCE) for begin in range(0, node.size, _ENTRIES_AT_ONCE))
            action = np.concatenate([self._actions(for_action, state[p], node[p], links[p]) for p in parts])
        return action, self.heads[1](for_stop)

    def _actions(self, for_action: Array, state: Array, node: Array, links: Array) -> Array:
        hidden = self.joined_once.take(self.place(node), axis=0)
        hidden += for_action.take(state, axis=0)
        other = (links != _ONE_LINK).nonzero()[0]
        if other.size:
            rows = hidden.take(other, axis=0)
            rows += self._told_beside(links[other].astype(np.int64), self.degree[node[other]])
            hidden[other] = rows
        return self.heads[0](_activated(hidden, out=hidden))

    def _told_beside(self, count: Array, degree: Array) -> Array:
        """Returns what ``count`` links tell of nodes of some degree beside what one link does, ``[N, H + 1]``."""
        told = self.beside_one.take(count, axis=0)
        told[:, 2] = (count - 1) / degree
        return _multiplied(told, self.by_links)


def _widened(rows: Array, width: int, last: float = 0.0) -> Array:
    """Puts a column of ``last`` behind every ``width`` columns of rows ``[N, P * width]``."""
    parts = rows.reshape(rows.shape[0], -1, width)
    wider = np.full((*parts.shape[:2], width + 1), last, dtype=rows.dtype)
    wider[:, :, :width] = parts
    return wider.reshape(rows.shape[0], -1)


@lru_cache(maxsize=8)
def _zeros(width: int) -> Array:
    return np.zeros((_MANY, width), dtype=np.float32)


def _activated(rows: Array, out: Array | None = None) -> Array:
    """Puts 0 in the place of what is negative in rows ``[N, D]``."""
    if rows.shape[0] > _MANY:
        return np.maximum(rows, np.zeros((), dtype=rows.dtype), out=out)
    # Two arrays of a kind are compared many numbers at a time, an array and a number one by one.
    return np.maximum(rows, _zeros(rows.shape[1])[: rows.shape[0]], out=out)


class _Head:
    """The two layers behind the first activation; torch computes many rows faster, NumPy begins few sooner."""

    def __init__(self, head: nn.Sequential) -> None:
        _, first, _, second = head
        assert isinstance(first, nn.Linear)
        assert isinstance(second, nn.Linear)
        self.first = first.weight.detach(), first.bias.detach()
        self.second = second.weight.detach(), second.bias.detach()
        # What is added to all goes through both layers as a number more, which is 1.
        weight, bias = (part.numpy() for part in self.first)
        self.weight = np.zeros((weight.shape[1] + 1, weight.shape[0] + 1), dtype=weight.dtype)
        self.weight[:-1, :-1], self.weight[-1, :-1], self.weight[-1, -1] = weight.T, bias, 1
        self.last = np.append(self.second[0].numpy()[0], self.second[1].numpy())

    def __call__(self, rows: Array) -> Array:
        """Applies the head to activated rows ``[N, H + 1]``, shape ``[N]``."""
        if rows.shape[0] >= _MANY:
            said = functional.linear(torch.from_numpy(rows)[:, :-1], *self.first).relu_()
            return functional.linear(said, *self.second)[:, 0].numpy()
        hidden = _multiplied(rows, self.weight)
        return _activated(hidden, out=hidden).dot(self.last)


def _multiplied(rows: Array, weight: Array) -> Array:
    """Multiplies rows ``[N, D]`` by weights ``[D, H]``, in parts that one thread does."""
    at_once = max(1, _PRODUCTS // weight.size)
    if rows.shape[0] <= at_once:
        return rows.dot(weight)
    found = np.empty((rows.shape[0], weight.shape[1]), dtype=rows.dtype)
    for begin in range(0, rows.shape[0], at_once):
        np.dot(rows[begin : begin + at_once], weight, out=found[begin : begin + at_once])
    return found


class _Weights:
    """What a policy has learned, as NumPy takes it; good as long as nothing is written to the weights."""

    def __init__(self, policy: AdditivePolicy) -> None:
        width = policy.by_links.out_features
        self.by_links = _widened(policy.by_links.weight.detach().numpy().T, width)
        self.by_size = _widened(policy.by_size.weight.detach().numpy(), width)
        # Rows of the action head begin with a node, which has the 1; those of the stop head with a size.
        self.by_size[:, -1] = 1
        # What numbers of links, and their logarithms, are beside those of one, and room for the share that they are. No
        # node has more links than a state has members.
        count = np.arange(self.by_size.shape[0])
        self.beside_one = np.zeros((count.size, 3), dtype=self.by_links.dtype)
        self.beside_one[:, 0], self.beside_one[:, 1] = count - 1, np.log1p(count) - np.log1p(1)
        self.heads = [_Head(policy.action_head), _Head(policy.stop_head)]
        self.mean, self.scale = policy.feature_mean.numpy(), policy.feature_scale.numpy()
        # Only start nodes are asked what they are as such, so that part of the layer stands by itself.
        self.shrink, own = policy.max_nodes**0.5, 3 * (width + 1)
        weight, bias = policy.per_node.weight.detach().numpy().T, policy.per_node.bias.detach().numpy()
        weight, bias = _widened(weight, width), _widened(bias[None], width)[0]
        bias[width] = 1
        self.for_all = np.ascontiguousarray(weight[:, :own]), bias[:own]
        self.for_root = np.ascontiguousarray(weight[:, own:]), bias[own:]

    def encode(self, features: Array, degree: Array) -> CpuEncoding:
        """Encodes nodes of some features ``[n, D]`` and degree ``[n]``; see :meth:`AdditivePolicy.encode`."""
        known = (features - self.mean) / self.scale
        rows = _multiplied(known, self.for_all[0])
        rows += self.for_all[1]
        width = rows.shape[1] // 3

        def root(place: Array) -> Array:
            return known.take(place, axis=0).dot(self.for_root[0]) + self.for_root[1]

        return CpuEncoding(rows[:, :width], rows[:, width:] / self.shrink, root, degree)


_settled: WeakKeyDictionary[AdditivePolicy, _Weights] = WeakKeyDictionary()


def _weights_of(policy: AdditivePolicy) -> _Weights:
    """Returns the weights of a policy; where they need no gradient any more, they are settled and prepared once."""
    if policy.by_size.weight.requires_grad:
        return _Weights(policy)
    if policy not in _settled:
        _settled[policy] = _Weights(policy)
    return _settled[policy]
