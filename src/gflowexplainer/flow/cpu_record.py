"""What rollouts on a CPU did, as arrays; put together from their steps when somebody looks at it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from gflowexplainer.flow.sampling import STOP, Rollouts
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.numpy_segments import boundaries

Array = NDArray[Any]


class Step(NamedTuple):
    """One step of all rollouts that are still growing: ``U`` states with ``F`` frontier entries, ``V`` visits.

    Attributes:
        instance, members: Of the states, shapes ``[U]`` and ``[U, K]``.
        ways, node, links: Their frontier: how many each has ``[U]``, which ``[F]``, and how often joined ``[F]``.
        at, rollout: State and rollout of each visit, shape ``[V]``.
        chosen: The entry that each visit chose, or :data:`STOP`, shape ``[V]``.
        action, stop: Log-flows, shapes ``[F]`` and ``[U]``.
    """

    instance: Array
    members: Array
    ways: Array
    node: Array
    links: Array
    at: Array
    rollout: Array
    chosen: Array
    action: Array
    stop: Array


class CpuRecord:
    """What ``count`` rollouts did; arrays are those of :class:`~gflowexplainer.flow.sampling.Rollouts`.

    Args:
        steps: Their steps.
        instances: The instances.
        count: Number of rollouts.
        rooted: Whether they began with a start node each.
    """

    def __init__(self, steps: list[Step], instances: Instances, count: int, *, rooted: bool) -> None:
        self.instances, self.count, self.rooted = instances, count, rooted
        # One list a column: most columns are looked at once, and some by nobody.
        self._columns = Step(*map(list, zip(*steps, strict=True)))  # type: ignore[arg-type]

    @property
    def largest(self) -> int:
        """Members of the largest state."""
        return len(self._columns.at) - 1 + int(self.rooted)

    @cached_property
    def instance(self) -> Array:
        """Instance of each state, shape ``[U]``."""
        return np.concatenate(self._columns.instance)

    @cached_property
    def members(self) -> Array:
        """Members of each state, shape ``[U, K]``."""
        return np.concatenate(self._columns.members)

    @cached_property
    def ways(self) -> Array:
        """Frontier entries of each state, shape ``[U]``."""
        return np.concatenate(self._columns.ways)

    @cached_property
    def frontier(self) -> Array:
        """Nodes that states might have gained, shape ``[F]``."""
        return np.concatenate(self._columns.node)

    @cached_property
    def action(self) -> Array:
        """Log-flow of gaining each of them, shape ``[F]``."""
        return np.concatenate(self._columns.action)

    @cached_property
    def stop(self) -> Array:
        """Log-flow of stopping at each state, shape ``[U]``."""
        return np.concatenate(self._columns.stop)

    @cached_property
    def rollout(self) -> Array:
        """Rollout of each visit, shape ``[V]``."""
        return np.concatenate(self._columns.rollout)

    @cached_property
    def _visits(self) -> Array:
        return np.array([at.size for at in self._columns.at])

    @cached_property
    def state(self) -> Array:
        """State of each visit, shape ``[V]``."""
        before = boundaries(np.array([ways.size for ways in self._columns.ways]))[:-1]
        return np.concatenate(self._columns.at) + before.repeat(self._visits)

    @cached_property
    def _chosen(self) -> Array:
        """Entry of each visit within its step."""
        return np.concatenate(self._columns.chosen)

    @cached_property
    def goes_on(self) -> Array:
        """Whether a visit was not the last of its rollout, shape ``[V]``."""
        return self._chosen >= 0

    @cached_property
    def last(self) -> Array:
        """Last visit of each rollout, shape ``[R]``."""
        ends = (~self.goes_on).nonzero()[0]
        last = np.empty(self.count, dtype=np.int64)
        last[self.rollout[ends]] = ends
        return last

    @cached_property
    def chosen(self) -> Array:
        """Frontier entry that each visit chose, or :data:`STOP`, shape ``[V]``."""
        before = boundaries(np.array([node.size for node in self._columns.node]))[:-1]
        return np.where(self.goes_on, self._chosen + before.repeat(self._visits), STOP)

    def rollouts(self) -> Rollouts:
        """Returns the same as tensors."""
        successor = np.full(self.goes_on.size, -1)
        # Whoever goes on is there in the next step, in the same order.
        successor[self.goes_on] = np.arange(self._visits[0], successor.size)
        counts = [ways.size for ways in self._columns.ways]
        size = (np.arange(len(counts)) + int(self.rooted)).repeat(counts)
        links = np.concatenate(self._columns.links).astype(np.int64)
        tensor = torch.from_numpy
        return Rollouts(
            states=States(
                instances=self.instances,
                subgraphs=Subgraphs(tensor(self.instance), tensor(self.members)),
                size=tensor(size),
                rooted=self.rooted,
                inner_degree=None,
                cut=None,
                is_cut=None,
                frontier_ptr=tensor(boundaries(self.ways)),
                frontier=tensor(self.frontier),
                links=tensor(links),
            ),
            state=tensor(self.state),
            rollout=tensor(self.rollout),
            chosen=tensor(self.chosen),
            successor=tensor(successor),
            last=tensor(self.last),
            flows=(tensor(self.action), tensor(self.stop)),
        )
