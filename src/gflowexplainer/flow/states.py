"""Batched states of the flow network: connected subgraphs with their frontier, grown one node at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from gflowexplainer.choices import ParentRule
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.cut_vertices import add_node, empty_cut_matrix
from gflowexplainer.graphs.flat_graphs import FAR
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_neighbors
from gflowexplainer.ops.segments import pointers, ranges, segment_ids, segment_sum
from gflowexplainer.ops.sorting import first_of_each


@dataclass(frozen=True)
class States:
    """``B`` connected subgraphs of at most ``K`` nodes, with ``F`` frontier entries in total.

    A *rooted* state begins with one start node that always stays. A state without root begins empty, and
    every node of the instance is in its frontier. Where a link is explained, states begin at its first end and hold
    only nodes that leave room for joining the second (:mod:`~gflowexplainer.graphs.links`).

    Attributes:
        instances: The instances that the states lie in.
        subgraphs: Instance and members, in order of insertion, of each state.
        size: Number of members, shape ``[B]``.
        rooted: Whether the first member is a start node that no parent lacks.
        inner_degree: Neighbours of each member inside its state, shape ``[B, K]``; nothing where nobody needs parents.
        cut: Cut vertex matrix of each state (Theorem 1), shape ``[B, K, K]``; nothing where nobody needs parents.
        is_cut: Which members are cut vertices, shape ``[B, K]``; nothing without ``cut``.
        frontier_ptr: First frontier entry of each state, shape ``[B + 1]``.
        frontier: Nodes that may be added, as flat positions, ascending within a state, shape ``[F]``. Empty at
            the size bound.
        links: Number of members that each frontier node is joined to, shape ``[F]``.
    """

    instances: Instances
    subgraphs: Subgraphs
    size: Tensor
    rooted: bool
    inner_degree: Tensor | None
    cut: Tensor | None
    is_cut: Tensor | None
    frontier_ptr: Tensor
    frontier: Tensor
    links: Tensor

    @classmethod
    def initial(
        cls, instances: Instances, instance: Tensor, start: Tensor | None, max_nodes: int, *, cuts: bool = True
    ) -> States:
        """Begins one state for each entry of ``instance``.

        Args:
            instances: The instances.
            instance: Which of them each state lies in, shape ``[B]``.
            start: Start node of each state as a flat position, shape ``[B]``; ``None`` begins with nothing.
            max_nodes: Size bound ``K``; more than the largest instance has are not kept room for.
            cuts: Whether to keep track of cut vertices, without which the parents of a state are not known.
        """
        if max_nodes < 1:
            raise ConfigError(f"'max_nodes' must be at least 1 (got {max_nodes}).")
        max_nodes = max(1, min(max_nodes, instances.largest))
        batch, device = instance.numel(), instance.device
        cut, is_cut = empty_cut_matrix(batch, max_nodes, device) if cuts else (None, None)
        _, node = ranges(instances.ptr[instance], instances.node_counts[instance])
        empty = cls(
            instances=instances,
            subgraphs=Subgraphs(instance, torch.full((batch, max_nodes), -1, device=device)),
            size=torch.zeros(batch, dtype=torch.long, device=device),
            rooted=start is not None,
            inner_degree=torch.zeros(batch, max_nodes, dtype=torch.long, device=device) if cuts else None,
            cut=cut,
            is_cut=is_cut,
            frontier_ptr=pointers(instances.node_counts[instance]),
            frontier=node,
            links=torch.zeros_like(node),
        )
        if start is None:
            return empty
        return empty.step(empty.frontier_ptr[:-1] + start - instances.ptr[instance])

    @classmethod
    def of_sets(cls, instances: Instances, subgraphs: Subgraphs, rooted: bool) -> States:
        """Builds states from finished node sets, whose order of insertion is unknown.

        Their frontier is found from scratch. Cut vertices need an order of insertion and are not filled in,
        so these states know their actions but not their parents by the rule ``"dag"``.
        """
        ptr, frontier, links = _frontier_of(instances, subgraphs)
        adjacent = inner_neighbors(instances, subgraphs)
        return cls(
            instances, subgraphs, subgraphs.size, rooted, adjacent.sum(dim=2), None, None, ptr, frontier, links
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.subgraphs)

    @property
    def instance(self) -> Tensor:
        """Instance of each state, shape ``[B]``."""
        return self.subgraphs.instance

    @property
    def members(self) -> Tensor:
        """Members in order of insertion, shape ``[B, K]``; ``-1`` fills up."""
        return self.subgraphs.members

    @property
    def max_nodes(self) -> int:
        """The size bound ``K``."""
        return self.members.size(1)

    @cached_property
    def frontier_counts(self) -> Tensor:
        """Number of frontier nodes of each state, shape ``[B]``."""
        return self.frontier_ptr.diff()

    @cached_property
    def frontier_state(self) -> Tensor:
        """State of each frontier entry, shape ``[F]``."""
        return segment_ids(self.frontier_counts, self.frontier.numel())

    def frontiers(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Lists the frontiers of some states ``[B]`` one behind the other: which of the ``B``, and which entry."""
        return ranges(self.frontier_ptr[state], self.frontier_counts[state])

    @property
    def can_grow(self) -> Tensor:
        """Whether any node can be added, shape ``[B]``."""
        return self.frontier_counts > 0

    @cached_property
    def complete(self) -> Tensor:
        """Whether a state is an explanation, so that growth may stop, shape ``[B]``: it is not empty and, where a link
        is explained, holds both ends.
        """
        if self.instances.other_end is None:
            return self.size > 0
        return (self.members == self.instances.other_end[self.instance][:, None]).any(dim=1)

    def step(self, chosen: Tensor) -> States:
        """Adds frontier nodes to the states that they belong to.

        Args:
            chosen: Positions in :attr:`frontier`, shape ``[C]``; each makes one new state, and those of the same state
                make several.
        """
        parent, node = self.frontier_state[chosen], self.frontier[chosen]
        size, members, width = self.size[parent], self.members[parent], self.max_nodes
        state = torch.arange(chosen.numel(), device=chosen.device)
        owner, neighbor = self.instances.neighbors_of(node)

        smallest, largest = torch.stack(torch.aminmax(size)).tolist() if size.numel() else (0, 0)
        hit = members[:, :largest][owner] == neighbor[:, None]
        inner_degree = cut = is_cut = None
        if self.inner_degree is not None:
            connection = torch.zeros_like(members, dtype=torch.bool)
            entry, slot = torch.nonzero(hit, as_tuple=True)
            connection[owner[entry], slot] = True
            inner_degree = self.inner_degree[parent] + connection
            inner_degree[state, size] = connection.sum(dim=1)
            if self.cut is not None and self.is_cut is not None:
                cut, is_cut = self.cut[parent], self.is_cut[parent]
                add_node(cut, is_cut, connection, size)
        members[state, size] = node

        subgraphs = Subgraphs(self.instance[parent], members)
        grown = replace(
            self, subgraphs=subgraphs, size=size + 1, inner_degree=inner_degree, cut=cut, is_cut=is_cut
        )  # fmt: skip
        if self.instances.other_end is not None:
            # What did not lead to the other end in time is free again once both are joined: look at all neighbours.
            ptr, frontier, links = _frontier_of(self.instances, subgraphs)
            return replace(grown, frontier_ptr=ptr, frontier=frontier, links=links)
        # At the size bound nothing can be added any more, and the frontier of an empty state was everything.
        new = ~hit.any(dim=1)
        if smallest > 0 and largest + 1 < width:
            old, entry = self.frontiers(parent)
            stays = torch.nonzero(entry != chosen[old]).flatten()
            old = old[stays]
        else:
            grows = size + 1 < width
            kept = torch.nonzero(grows & (size > 0)).flatten()
            old, entry = self.frontiers(parent[kept])
            stays = torch.nonzero(entry != chosen[kept][old]).flatten()
            old, new = kept[old[stays]], new & grows[owner]
        entry, fresh = entry[stays], torch.nonzero(new).flatten()
        ptr, frontier, links = _merge_frontier(
            self.instances.num_nodes,
            chosen.numel(),
            torch.cat([old, owner[fresh]]),
            torch.cat([self.frontier[entry], neighbor[fresh]]),
            torch.cat([self.links[entry], torch.ones_like(fresh)]),
        )
        return replace(grown, frontier_ptr=ptr, frontier=frontier, links=links)

    def children(self) -> States:
        """Grows every state by each of its frontier nodes: one state for each entry of ``frontier``, in that order."""
        return self.step(torch.arange(self.frontier.numel(), device=self.frontier.device))

    def parents(self, rule: str = "dag") -> Tensor:
        """Marks the members whose removal gives a parent state, shape ``[B, K]``.

        Args:
            rule: ``"dag"``: every member but the root and the cut vertices (the method). ``"sequence"``: only the
                member added last (the paper's GFlow-Sequence). ``"graph"``: every member but the root, connected
                or not (the paper's GFlow-Graph).
        """
        chosen = ParentRule.of("rule", rule)
        filled = self.subgraphs.filled.clone()
        if self.rooted:
            filled[:, 0] = False
        if chosen == ParentRule.sequence:
            slot = torch.arange(self.max_nodes, device=filled.device)
            return filled & (slot == self.size[:, None] - 1)
        if chosen == ParentRule.graph:
            return filled
        if self.is_cut is None:
            raise ConfigError("These states do not know their cut vertices. Grow them with cuts=True.")
        return filled & ~self.is_cut

    def without(self, state: Tensor, slot: Tensor) -> States:
        """Really builds parents: state ``state[i]`` without its member ``slot[i]``, by :meth:`of_sets`.

        The policy never needs this; it is the slow truth that inflows by subtraction are held against.
        """
        members = self.members[state]
        column = torch.arange(self.max_nodes, device=members.device)
        source = torch.where(column < slot[:, None], column, (column + 1).clamp(max=self.max_nodes - 1))
        moved = members.gather(1, source)
        moved[column.expand_as(moved) >= self.size[state, None] - 1] = -1
        return States.of_sets(self.instances, Subgraphs(self.instance[state], moved), self.rooted)

    def select(self, index: Tensor) -> States:
        """Takes the states ``index``, in that order; one may be taken several times."""
        _, entries = self.frontiers(index)
        return replace(
            self,
            subgraphs=self.subgraphs[index],
            size=self.size[index],
            inner_degree=None if self.inner_degree is None else self.inner_degree[index],
            cut=None if self.cut is None else self.cut[index],
            is_cut=None if self.is_cut is None else self.is_cut[index],
            frontier_ptr=pointers(self.frontier_counts[index]),
            frontier=self.frontier[entries],
            links=self.links[entries],
        )

    @staticmethod
    def cat(parts: list[States]) -> States:
        """Puts batches over the same instances and of the same size bound behind each other."""
        return replace(
            parts[0],
            subgraphs=Subgraphs.cat([p.subgraphs for p in parts]),
            size=torch.cat([p.size for p in parts]),
            inner_degree=_cat([p.inner_degree for p in parts]),
            cut=_cat([p.cut for p in parts]),
            is_cut=_cat([p.is_cut for p in parts]),
            frontier_ptr=pointers(torch.cat([p.frontier_counts for p in parts])),
            frontier=torch.cat([p.frontier for p in parts]),
            links=torch.cat([p.links for p in parts]),
        )


def _cat(parts: list[Tensor | None]) -> Tensor | None:
    known = [part for part in parts if part is not None]
    return torch.cat(known) if len(known) == len(parts) else None


def _frontier_of(instances: Instances, subgraphs: Subgraphs) -> tuple[Tensor, Tensor, Tensor]:
    """Finds the frontiers of node sets from scratch: where each begins, its nodes, and their links into the set."""
    batch, width = subgraphs.members.shape
    size = subgraphs.size
    filled = subgraphs.filled & (size < width)[:, None]
    entry, neighbor = instances.neighbors_of(subgraphs.members[filled])
    state = segment_ids(filled.sum(dim=1))[entry]
    outside = ~(subgraphs.members[state] == neighbor[:, None]).any(dim=1)
    state, neighbor = state[outside], neighbor[outside]
    links = torch.ones_like(neighbor)
    nothing = torch.nonzero(size == 0).flatten()
    counts = instances.node_counts[subgraphs.instance[nothing]]
    owner, anywhere = ranges(instances.ptr[subgraphs.instance[nothing]], counts)
    ptr, frontier, links = _merge_frontier(
        instances.num_nodes,
        batch,
        torch.cat([state, nothing[owner]]),
        torch.cat([neighbor, anywhere]),
        torch.cat([links, torch.zeros_like(anywhere)]),
    )
    if instances.other_end is None:
        return ptr, frontier, links
    state = segment_ids(ptr.diff(), frontier.numel())
    leads = torch.nonzero(_leads_on(instances, subgraphs, state, frontier)).flatten()
    return pointers(torch.bincount(state[leads], minlength=batch)), frontier[leads], links[leads]


def _leads_on(instances: Instances, subgraphs: Subgraphs, state: Tensor, node: Tensor) -> Tensor:
    """Marks frontier nodes ``[F]`` after which both ends of a link can still be joined in time.

    A set that holds the other end may gain any neighbour. Another needs as many nodes more as its nearest member is
    steps away from the other end. Whatever a state that leads on has for parents leads on too, as long as the bound is
    that of the size.
    """
    assert instances.within is not None
    hops = instances.hops_to_other_end
    missing = torch.where(subgraphs.filled, hops[subgraphs.members.clamp(min=0)], FAR)
    missing = torch.where(subgraphs.size == 0, FAR, missing.amin(dim=1))[state]
    needed = subgraphs.size[state] + 1 + torch.minimum(missing, hops[node])
    bound = instances.within.clamp(max=subgraphs.members.size(1))
    return (missing == 0) | (needed <= bound[subgraphs.instance[state]])


def _merge_frontier(
    num_nodes: int, batch: int, state: Tensor, node: Tensor, links: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Unites frontier entries that name the same node of the same state and adds up their links."""
    keys, _, group = first_of_each(state * num_nodes + node)
    counts = torch.bincount(keys // num_nodes, minlength=batch)
    return pointers(counts), keys % num_nodes, segment_sum(links, group, keys.numel())
