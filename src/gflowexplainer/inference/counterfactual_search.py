"""Counterfactuals: the smallest found set of nodes or edges whose removal changes what the model predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.explanation.findings import Counterfactual
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.inference.changed_inputs import drop_edges, predict_changed
from gflowexplainer.inference.random_parts import roots_of
from gflowexplainer.inference.set_search import SetSearch, Units
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.sampler import FlowSampler

BY = ("nodes", "edges")
_TINY = 1e-30
_LIMIT = 1000
"""Sets that may be tried until one changes the prediction."""
_ENOUGH = 200
"""Sets that may be tried for a smaller one, once a set is known that changes it."""


@dataclass(frozen=True)
class Change:
    """What has to become different.

    Attributes:
        before: What the model predicts on the whole graph, shape ``[C]``.
        label: The class that it predicts; ``None`` for regression.
        to: The class that is wanted, or the value to reach or pass; ``None`` for any other class.
        amount: For regression, how far the value has to move.
    """

    before: Tensor
    label: int | None
    to: float | None
    amount: float | None

    @classmethod
    def of(cls, before: Tensor, to: Any, amount: Any, *, regression: bool) -> Change:
        """Checks what the user asks for against what the model predicts on the whole graph ``[C]``."""
        for name, value in (("to", to), ("amount", amount)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ConfigError(f"{name!r} must be a number (got {value!r}).")
        if regression:
            return cls._of_value(before, to, amount)
        if amount is not None:
            raise ConfigError("'amount' is for regression; a class changes or it does not. Pass 'to', or nothing.")
        count, label = before.numel(), int(before.argmax())
        if to is not None and (to != int(to) or not 0 <= to < count):
            raise ConfigError(f"'to' names class {to}, but the model knows {count} classes. Pass one in [0, {count}).")
        if to == label:
            raise ConfigError(f"The model predicts class {label} already. Pass another class as 'to', or none.")
        return cls(before, label, to, None)

    @classmethod
    def _of_value(cls, before: Tensor, to: Any, amount: Any) -> Change:
        if (to is None) == (amount is None):
            raise ConfigError(
                "A value changes by any removal. Pass either 'amount', how far it has to move, or 'to', the value that "
                "it has to reach."
            )
        if amount is not None and not 0 < amount < float("inf"):
            raise ConfigError(f"'amount' must be a positive number (got {amount!r}).")
        if to is not None and before.numel() != 1:
            raise ConfigError(f"The model predicts {before.numel()} values, so 'to' is not clear. Pass 'amount'.")
        if to is not None and float(before[0]) == to:
            raise ConfigError(f"The model predicts {to} already. Pass another value as 'to'.")
        return cls(before, None, to, amount)

    def margins(self, prediction: Tensor) -> list[float]:
        """Measures how far predictions ``[Q, C]`` go; above 0 is the change."""
        prediction = prediction.double()
        if self.label is None:
            moved = prediction - self.before.double()
            if self.to is None:
                # Exactly as far counts as well.
                return (moved.abs().sum(dim=1) - self._within(self.amount)).tolist()
            wanted = self.to - float(self.before[0])
            return (moved[:, 0] * (1 if wanted > 0 else -1) - self._within(abs(wanted))).tolist()
        log = prediction.clamp(min=_TINY).log()
        rest = torch.ones(log.size(1), dtype=torch.bool, device=log.device)
        wanted_class = self.label if self.to is None else int(self.to)
        rest[wanted_class] = False
        others = log[:, rest].amax(dim=1)
        ahead = others - log[:, wanted_class] if self.to is None else log[:, wanted_class] - others
        # Two classes that are equal: the first is the predicted one.
        equal = prediction.argmax(dim=1) == wanted_class
        equal = ~equal if self.to is None else equal
        return torch.where(equal & (ahead == 0), _TINY, ahead).tolist()

    def _within(self, amount: float | None) -> float:
        return float(amount or 0.0) * (1 - 1e-6)


class InstanceUnits:
    """The nodes or edges of one instance that can be removed, and the model without some of them.

    Args:
        sampler: The sampler that has explained the instance.
        position: The instance.
        by: ``"nodes"`` or ``"edges"``.
    """

    def __init__(self, sampler: FlowSampler, position: int, by: str) -> None:
        self.sampler, self.position, self.by = sampler, position, by
        instances = sampler.instances
        self.first, self.end = int(instances.ptr[position]), int(instances.ptr[position + 1])
        self.roots = set(roots_of(instances, position))
        nodes = torch.arange(self.first, self.end, device=instances.device)
        owner, neighbor = instances.neighbors_of(nodes)
        ends = torch.stack([nodes[owner], neighbor]).t().tolist()
        self.neighbors: dict[int, list[int]] = {node: [] for node in nodes.tolist()}
        for u, v in ends:
            self.neighbors[u].append(v)
        self.nodes = [node for node in nodes.tolist() if node not in self.roots]
        self.pairs = [(u, v) for u, v in ends if u < v]
        self._slot: dict[Any, int] = {unit: slot for slot, unit in enumerate(self.units)}

    @property
    def units(self) -> Sequence[Any]:
        """What can be removed: flat positions of nodes, or pairs of them."""
        return self.nodes if self.by == "nodes" else self.pairs

    @cached_property
    def instance(self) -> Instances:
        """The instance by itself."""
        return self.sampler.instances.select(torch.tensor([self.position], device=self.sampler.instances.device))

    @cached_property
    def pair_of_edge(self) -> tuple[Tensor, Tensor]:
        """The user's ids of the ``e`` edges of the instance, ascending, and the pair that each belongs to, ``[e + 1]``.

        The pair is ``-1`` for none, and so is the last one, which belongs to no edge.
        """
        instances, i = self.sampler.instances, self.position
        edges = slice(int(instances.edge_ptr[i]), int(instances.edge_ptr[i + 1]))
        ids, order = instances.edge_id[edges].sort()
        ends = instances.edge_index[:, edges][:, order].t().tolist()
        found = [self._slot.get((min(u, v), max(u, v)), -1) for u, v in ends]
        return ids, torch.tensor([*found, -1], device=instances.device)

    def within(self, members: Sequence[int]) -> Units:
        """Returns the units that lie inside a set of nodes."""
        inside = set(members)
        if self.by == "nodes":
            return tuple(sorted(self._slot[node] for node in inside if node in self._slot))
        joined = ((u, v) for u in inside for v in self.neighbors[u] if v in inside and u < v)
        return tuple(sorted(self._slot[pair] for pair in joined))

    def connected(self, units: Units) -> bool:
        """Returns whether what is removed is connected; an explained node that stays may lie in between."""
        chosen = [self.units[unit] for unit in units]
        nodes = set(chosen) | self.roots if self.by == "nodes" else {node for pair in chosen for node in pair}
        allowed: dict[int, list[int]] = self.neighbors
        if self.by == "edges":
            allowed = {node: [] for node in nodes}
            for u, v in chosen:
                allowed[u].append(v)
                allowed[v].append(u)
        wanted = set(chosen) if self.by == "nodes" else nodes
        seen, stack = set[int](), [min(wanted)]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(v for v in allowed[node] if v in nodes)
        return wanted <= seen

    def predict(self, sets: Sequence[Units]) -> Tensor:
        """Predicts without each of ``Q`` sets, shape ``[Q, C]``."""
        device = self.sampler.instances.device
        if self.by == "nodes":
            members = [[self.nodes[u] for u in units] for units in sets]
            removed = Subgraphs.of_lists([self.position] * len(sets), members, device)
            return self.sampler.reward.predict(removed, without=True)
        gone = torch.zeros(len(sets), len(self.pairs) + 1, dtype=torch.bool, device=device)
        for row, units in enumerate(sets):
            gone[row, list(units)] = True
        ids, pair = self.pair_of_edge

        def change(copies: Instances, number: Tensor) -> Instances:
            def is_gone(owner: Tensor, edge: Tensor) -> Tensor:
                # Edges from the surroundings into the instance are none of its own.
                position, known = find_sorted(ids, edge)
                return gone[number[owner], pair[torch.where(known, position, -1)]]

            return drop_edges(copies, is_gone)

        return predict_changed(self.sampler.predictor, self.instance, len(sets), change)


def find_counterfactual(
    sampler: FlowSampler,
    position: int,
    samples: Sequence[Sequence[int]],
    name: Callable[[int], Any],
    *,
    to: Any = None,
    amount: Any = None,
    by: str = "nodes",
    exhaustive: int = 200,
) -> Counterfactual | None:
    """Finds a small set of nodes or edges without which the model predicts something else.

    Every single node or edge comes first. Where none suffices, sampled subgraphs follow, and sets of what moves the
    prediction most alone: what suffices is shrunk, by halves first, and smaller sets grow by what moves the prediction
    most. In the end every smaller set is tried, where there are few enough.

    Args:
        sampler: The sampler that has explained the instance.
        position: The instance.
        samples: Sampled subgraphs as flat node positions, the best first.
        name: Returns the user's name of the node at a flat position.
        to: The class that is wanted, or for regression the value to reach or pass; by default any other class.
        amount: For regression, how far the value has to move, in any direction.
        by: ``"nodes"`` or ``"edges"``.
        exhaustive: Sets that may be tried in all for every smaller one to be among them.
    """
    units = InstanceUnits(sampler, position, one_of("by", by, BY))
    if isinstance(exhaustive, bool) or not isinstance(exhaustive, int) or exhaustive < 0:
        raise ConfigError(f"'exhaustive' must be a whole number of at least 0 (got {exhaustive!r}).")
    before = _whole(sampler, position)
    change = Change.of(before, to, amount, regression=sampler.predictor.mode == "regression")
    evaluated = sampler.predictor.num_evaluations
    search = SetSearch(
        len(units.units),
        lambda sets: change.margins(units.predict(sets)),
        units.connected,
        limit=_LIMIT,
        enough=_ENOUGH,
        exhaustive=exhaustive,
    )
    found = search.run([units.within(members) for members in samples])
    if found is None:
        return None
    evaluations = sampler.predictor.num_evaluations - evaluated
    removed = [units.units[unit] for unit in found.units]
    others = [[units.units[unit] for unit in other] for other in found.others]

    def named(things: Sequence[Any]) -> tuple[Any, ...]:
        if by == "nodes":
            return tuple(name(node) for node in things)
        return tuple((name(u), name(v)) for u, v in things)

    ends = removed if by == "nodes" else sorted({node for pair in removed for node in pair})
    return Counterfactual(
        by=by,
        nodes=tuple(name(node) for node in ends),
        edges=() if by == "nodes" else named(removed),
        prediction=tuple(units.predict([found.units])[0].tolist()),
        before=tuple(before.tolist()),
        minimal=found.minimal,
        connected=units.connected(found.units),
        alternatives=tuple(named(other) for other in others),
        evaluations=evaluations,
    )


def _whole(sampler: FlowSampler, position: int) -> Tensor:
    """Returns what the model predicts on the whole graph, shape ``[C]``."""
    one = torch.tensor([position], device=sampler.instances.device)
    with sampler.predictor.evaluating():
        return sampler.predictor.whole(sampler.instances.select(one))[0]
