"""Trees of connected subgraphs, each pruned from a larger one; for many instances at once.

The root of an instance's tree is the whole instance; a child is what remains of a subgraph when one node is pruned,
and with it all that is no longer connected to the explained node (at graph level: to the largest part).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gflowbench.explainers.interface import Subject
from gflowbench.explainers.shapley import ShapleyValues
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.segments import pointers, segment_argmax, segment_sum


@dataclass(eq=False)
class Branch:
    """A subgraph in the tree of one instance.

    Attributes:
        instance: The instance.
        nodes: Its nodes as flat positions, ascending, on the CPU.
        value: Its Shapley value.
        parent: The subgraph it was first pruned from; ``None`` for the root.
        children: What pruning one more node leaves; ``None`` before they are needed.
        visits: Rollouts that passed here.
        credit: Sum of what those ended with.
    """

    instance: int
    nodes: Tensor
    value: float = 0.0
    parent: Branch | None = None
    children: list[Branch] | None = None
    visits: int = 0
    credit: float = 0.0

    def choose(self, exploration: float) -> Branch:
        """Names the child with the largest mean credit and bonus; the more valuable one where these are equal."""
        assert self.children
        factor = exploration * math.sqrt(sum(child.visits for child in self.children))

        def merit(child: Branch) -> tuple[float, float]:
            mean = child.credit / child.visits if child.visits else 0.0
            return mean + factor * child.value / (1 + child.visits), child.value

        return max(self.children, key=merit)


@dataclass
class Tree:
    """All subgraphs found of one instance, the same ones merged whatever the order of pruning."""

    root: Branch
    found: dict[bytes, Branch] = field(default_factory=dict)

    def best(self, max_nodes: int) -> Branch:
        """Names the most valuable subgraph of at most ``max_nodes`` nodes; the smallest if all are larger."""
        small = [branch for branch in self.found.values() if branch.nodes.numel() <= max_nodes]
        if small:
            return max(small, key=lambda branch: branch.value)
        return min(self.found.values(), key=lambda branch: branch.nodes.numel())


class Search:
    """What all trees need: pruning, and values, for many subgraphs of many instances at once.

    Args:
        subject: The model and its instances.
        values: Shapley values of their subgraphs.
        coarse_above: Number of nodes above which a coarser value will do.
        coarse_samples: Samples of that.
        seed: Names the random order of nodes of equal degree: the order of ids would tell motifs in benchmarks.
    """

    def __init__(
        self, subject: Subject, values: ShapleyValues, coarse_above: int, coarse_samples: int, seed: int
    ) -> None:
        self.instances = subject.instances
        self.values = values
        self.coarse_above = coarse_above
        self.coarse_samples = coarse_samples
        keys = self.instances.own_key[self.instances.owner]
        self._chance = uniform(seed, keys, self.instances.key, 3)

    def roots(self) -> list[Tree]:
        """Begins a tree for each instance, with all that is connected."""
        everything = [torch.arange(*ends) for ends in self.instances.ptr.cpu().unfold(0, 2, 1).tolist()]
        roots = [Branch(number, nodes) for number, nodes in enumerate(everything)]
        trees = [Tree(root) for root in self._children(roots, [torch.tensor([-1])] * len(roots))]
        self._evaluate([tree.root for tree in trees])
        for tree in trees:
            tree.root.parent = None
            tree.found[_key(tree.root)] = tree.root
        return trees

    def expand(self, trees: list[Tree], branches: list[Branch], count: int, direction: str) -> None:
        """Finds the children of ``branches``: what is left when each of some nodes is pruned."""
        if not branches:
            return
        pruned = self._candidates(branches, count, direction)
        children = iter(self._children(branches, pruned))
        new = []
        for branch, nodes in zip(branches, pruned, strict=True):
            known, listed = trees[branch.instance].found, {}
            for child in (next(children) for _ in range(nodes.numel())):
                if child.nodes.numel():
                    key = _key(child)
                    if key not in known:
                        known[key] = child
                        new.append(child)
                    listed[key] = known[key]
            branch.children = list(listed.values())
        self._evaluate(new)

    def order(self, best: list[Branch], max_nodes: int) -> Tensor:
        """Names the nodes of subgraphs, most important first, by pruning them further down to nothing.

        Each step prunes the node without which most value is left; it comes before those pruned earlier.

        Returns:
            Flat positions, shape ``[I, max_nodes]``; ``-1`` fills up.
        """
        listed: list[list[int]] = [[] for _ in best]
        left = dict(enumerate(best))
        while left:
            numbers = list(left)
            pruned = self._candidates([left[number] for number in numbers], max_nodes, "high")
            children = self._children([left[number] for number in numbers], pruned)
            self._evaluate([child for child in children if child.nodes.numel()])
            begin = 0
            for number, nodes in zip(numbers, pruned, strict=True):
                options = children[begin : begin + nodes.numel()]
                begin += nodes.numel()
                before = left.pop(number).nodes.tolist()
                # Pruning a node that others hang on takes them along: the largest remainder, then the best.
                kept = max(options, key=lambda child: (child.nodes.numel(), child.value), default=None)
                stay = [] if kept is None else kept.nodes.tolist()
                listed[number].extend(node for node in before if node not in stay)
                if kept is not None and stay:
                    left[number] = kept
        order = torch.full((len(best), max_nodes), -1, dtype=torch.long)
        for number, members in enumerate(listed):
            first = members[::-1][:max_nodes]
            order[number, : len(first)] = torch.tensor(first, dtype=torch.long)
        return order.to(self.instances.device)

    def _candidates(self, branches: list[Branch], count: int, direction: str) -> list[Tensor]:
        """Lists the nodes to try for pruning in each subgraph, by degree inside it; never the explained node."""
        instances = self.instances
        owner, nodes = _flat(branches, instances.device)
        position = self._positions(branches, owner, nodes)
        entry, neighbor = instances.neighbors_of(nodes)
        joined = position[neighbor + self._shift(branches)[owner[entry]]] >= 0
        degree = segment_sum(joined.double(), entry, nodes.numel())
        rank = (-degree if direction == "high" else degree) + self._chance[nodes]
        sizes = [branch.nodes.numel() for branch in branches]
        parts = zip(rank.split(sizes), nodes.split(sizes), branches, strict=True)
        found = []
        for part, members, branch in parts:
            chosen = members[torch.argsort(part)]
            if instances.level == "node":
                chosen = chosen[chosen != instances.center[branch.instance]]
            found.append(chosen[:count])
        return found

    def _children(self, branches: list[Branch], pruned: list[Tensor]) -> list[Branch]:
        """Prunes each of the nodes ``pruned`` from its subgraph and keeps what stays connected; ``-1`` prunes none."""
        copies = [branch for branch, nodes in zip(branches, pruned, strict=True) for _ in range(nodes.numel())]
        if not copies:
            return []
        device = self.instances.device
        gone = torch.cat([nodes.to(device) for nodes in pruned])
        owner, nodes = _flat(copies, device)
        stays = nodes != gone[owner]
        owner, nodes = owner[stays], nodes[stays]
        kept = self._main_part(copies, owner, nodes)
        sizes = torch.bincount(owner[kept], minlength=len(copies)).tolist()
        rest = nodes[kept].cpu().split(sizes)
        return [Branch(b.instance, part, parent=b) for b, part in zip(copies, rest, strict=True)]

    def _main_part(self, branches: list[Branch], owner: Tensor, nodes: Tensor) -> Tensor:
        """Marks the nodes connected to the explained node, at graph level those of the largest part."""
        instances = self.instances
        position = self._positions(branches, owner, nodes)
        entry, neighbor = instances.neighbors_of(nodes)
        other = position[neighbor + self._shift(branches)[owner[entry]]]
        joined = other >= 0
        ends = (entry[joined].cpu().numpy(), other[joined].cpu().numpy())
        graph = coo_matrix((np.ones(ends[0].size, dtype=bool), ends), shape=(nodes.numel(), nodes.numel()))
        part = torch.as_tensor(connected_components(graph, directed=False)[1], dtype=torch.long, device=nodes.device)
        if instances.level == "node":
            instance = torch.tensor([branch.instance for branch in branches], device=nodes.device)
            main = part[nodes == instances.center[instance[owner]]]
        else:
            size = torch.bincount(part)[part].double() + self._chance[nodes]
            main = part[_present(segment_argmax(size, owner, len(branches)))]
        chosen = torch.zeros(int(part.max()) + 1 if part.numel() else 0, dtype=torch.bool, device=nodes.device)
        chosen[main] = True
        return chosen[part]

    def _positions(self, branches: list[Branch], owner: Tensor, nodes: Tensor) -> Tensor:
        """Tells where each node of each subgraph's instance stands in ``nodes``, ``-1`` if it is not there."""
        instance = torch.tensor([branch.instance for branch in branches], device=nodes.device)
        total = int(self.instances.node_counts[instance].sum())
        position = torch.full((total,), -1, dtype=torch.long, device=nodes.device)
        position[nodes + self._shift(branches)[owner]] = torch.arange(nodes.numel(), device=nodes.device)
        return position

    def _shift(self, branches: list[Branch]) -> Tensor:
        """Leads from flat positions to positions in one copy of the instance for each subgraph, shape ``[B]``."""
        instance = torch.tensor([branch.instance for branch in branches], device=self.instances.device)
        return pointers(self.instances.node_counts[instance])[:-1] - self.instances.ptr[instance]

    def _evaluate(self, branches: list[Branch]) -> None:
        """Computes the values of subgraphs."""
        large = [branch.nodes.numel() > self.coarse_above for branch in branches]
        for coarse, count in ((True, self.coarse_samples), (False, None)):
            some = [branch for branch, is_large in zip(branches, large, strict=True) if is_large == coarse]
            if not some:
                continue
            owner, nodes = _flat(some, self.instances.device)
            instance = torch.tensor([branch.instance for branch in some], device=nodes.device)
            inside = self._positions(some, owner, nodes) >= 0
            for branch, value in zip(some, self.values(instance, inside, count).tolist(), strict=True):
                branch.value = value


def _flat(branches: list[Branch], device: torch.device) -> tuple[Tensor, Tensor]:
    """Puts the nodes of subgraphs behind each other: position in ``branches`` and node, per entry."""
    sizes = torch.tensor([branch.nodes.numel() for branch in branches])
    owner = torch.repeat_interleave(torch.arange(len(branches)), sizes)
    return owner.to(device), torch.cat([branch.nodes for branch in branches]).to(device)


def _key(branch: Branch) -> bytes:
    return branch.nodes.numpy().tobytes()


def _present(position: Tensor) -> Tensor:
    return position[position >= 0]
