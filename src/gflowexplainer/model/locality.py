"""What a prediction can depend on, found out by calling the model, once.

A model is called on a small graph of two parts that no edge joins: a path, and another one. The rows of features and
arguments are the user's. Then:

* the first node of the path is given NaN for features, which no sum, product or attention gets rid of: the farthest
  node whose output becomes NaN says how many steps information travels, however often a layer is called;
* the path is cut off behind that many steps, as instances are cut out of a graph: where the first node says something
  else then, as normalisation by outgoing edges makes it, instances are cut wider;
* if the other part is touched, or says something else in company than alone, the model looks at everything it is given
  (a norm over the graph, a global pool, attention over all nodes). Then it is given ``batch`` if it takes one and tells
  parts apart by it, and else one subgraph at a time;
* a model that writes into its input, or says something else when asked again, is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from gflowexplainer.graphs.arguments import rows_of
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.model.evaluation_mode import evaluation_mode

LENGTH, OTHER = 32, 8
"""Nodes of the path and of the other part. Information that travels farther than the path is long is not followed."""
_WIDER = 2
"""Steps by which instances may be wider than information travels."""
TOLERANCE = 1e-4
"""Outputs that differ by less, relative to the largest, are the same: sums may be made in another order."""


@dataclass(frozen=True)
class Locality:
    """What a model's predictions can depend on.

    Attributes:
        hops: Steps around a node that its prediction depends on; ``None`` if that could not be found out.
        local: Whether the prediction at a node is the same when all beyond these steps is cut off.
        together: How many subgraphs are evaluated at once: ``"union"``, ``"batch"`` or ``"alone"``.
        writes: Arguments that the model writes into.
        random: By how much outputs differ where the same is evaluated twice; 0 for a model that is a function.
        failure: Why it could not be found out, in words; empty if it could. Then everything counts.
    """

    hops: int | None = None
    local: bool = True
    together: str = "union"
    writes: tuple[str, ...] = ()
    random: float = 0.0
    failure: str = ""

    def notes(self, name: str, num_hops: int) -> tuple[str, ...]:
        """Describes in words what a user should know about a model called ``name``, seen ``num_hops`` steps deep."""
        said = []
        if self.failure:
            said.append(
                f"What predictions of {name} depend on could not be found out ({self.failure}). It is taken to look at "
                "everything it is given: subgraphs are evaluated one at a time, which is slow and safe."
            )
        elif self.together == "alone" and not self.local:
            said.append(
                f"{name} looks at all nodes it is given and does not tell graphs apart by 'batch', so subgraphs are "
                "evaluated one at a time, which is slow."
            )
        if self.hops is not None and self.local and self.hops > num_hops:
            said.append(
                f"{name} depends on nodes {self.hops} steps away, but only {num_hops} are looked at. "
                "Leave 'num_hops' out."
            )
        if self.writes:
            said.append(f"{name} writes into its input ({', '.join(self.writes)}); it is given copies.")
        if self.random:
            said.append(
                f"{name} is random in evaluation mode: asked the same twice, its outputs differ by up to "
                f"{self.random:.2g}. Probabilities cannot be closer to the truth than that."
            )
        return tuple(said)


def find_locality(model: nn.Module, level: str, graph: InputGraph, *, takes_batch: bool) -> Locality | None:
    """Finds out what the predictions of a model can depend on.

    Args:
        model: The model.
        level: ``"node"``, ``"graph"`` or ``"edge"``. A model of links is asked about links from each node to itself,
            which says what it says of the node.
        graph: A graph of the user's, whose rows of features and arguments are used.
        takes_batch: Whether the model can be called with ``batch``.

    Returns:
        What was found; ``None`` of a model that cannot be called on another graph than the user's own.
    """
    usual = usual_locality(level, takes_batch)
    try:
        with evaluation_mode(model):
            return _probe(_Caller(model, level, graph), usual, takes_batch)
    except Unusable:
        return None


def usual_locality(level: str, takes_batch: bool) -> Locality:
    """Returns the assumption that messages along edges are all there is."""
    return Locality(together="union" if level != "graph" else "batch" if takes_batch else "alone")


class Unusable(Exception):
    """The model cannot be called on a graph of ours."""


def _probe(caller: _Caller, usual: Locality, takes_batch: bool) -> Locality:
    """Calls the model on the two parts, together and apart, with and without ``batch``."""
    if usual.together == "alone":  # a model of graphs that cannot be given several at once
        first, writes = caller.call(LENGTH, 0)
        again, _ = caller.call(LENGTH, 0)
        return replace(usual, writes=writes, random=gap(first, again))
    both, writes = caller.call(LENGTH, OTHER, batch=usual.together == "batch")
    again, _ = caller.call(LENGTH, OTHER, batch=usual.together == "batch")
    found = replace(usual, writes=writes, random=gap(both, again))
    apart, hops = caller.apart(both, batch=usual.together == "batch", random=found.random)
    if apart:
        wide = None if hops is None else caller.wide_enough(both, hops)
        return replace(found, hops=wide, local=hops is None or wide is not None)
    found = replace(found, local=False, together="alone")
    if caller.level == "node" and takes_batch:
        together, _ = caller.call(LENGTH, OTHER, batch=True)
        if caller.apart(together, batch=True, random=found.random)[0]:
            return replace(found, together="batch")
    return found


class _Caller:
    """Calls a model on the two parts."""

    def __init__(self, model: nn.Module, level: str, graph: InputGraph) -> None:
        self.model, self.level, self.graph = model, level, graph.detached()

    def call(
        self,
        length: int,
        other: int,
        *,
        first: int = 0,
        inner: int | None = None,
        batch: bool = False,
        hidden: bool = False,
    ) -> tuple[Tensor, tuple[str, ...]]:
        """Calls the model; returns a row a node (a graph), and which arguments it wrote into.

        Args:
            length: Nodes of the path.
            other: Nodes of the other part; 0 for none.
            first: Row of the user's that the first node gets.
            inner: Last node that edges may end at, as in an instance that is cut out; any if ``None``.
            batch: Whether to say which part a node is in.
            hidden: Whether the features of the first node are NaN.
        """
        arguments = self._arguments(length, other, first, length + other if inner is None else inner)
        if self.level == "edge":
            arguments["edge_label_index"] = torch.arange(length + other, device=arguments["x"].device).repeat(2, 1)
        if hidden:
            arguments["x"][0] = torch.nan
        if batch:
            device = arguments["x"].device
            arguments["batch"] = (torch.arange(length + other, device=device) >= length).long()
        before = {name: v.clone() for name, v in arguments.items() if isinstance(v, Tensor) and not hidden}
        given = dict(arguments)
        try:
            output = self.model(given.pop("x"), given.pop("edge_index"), **given)
        except Exception as error:
            raise Unusable from error
        rows = 1 + (other > 0) if self.level == "graph" else length + other
        if not isinstance(output, Tensor) or output.dim() == 0 or output.layout != torch.strided:
            raise Unusable
        output = output.reshape(1, -1) if rows == 1 else output
        if output.size(0) != rows or not output.is_floating_point():
            raise Unusable
        wrote = [name for name, value in before.items() if not torch.equal(value, arguments[name])]
        return output.reshape(rows, -1), tuple(wrote)

    def apart(self, together: Tensor, *, batch: bool, random: float) -> tuple[bool, int | None]:
        """Whether the parts know nothing of one another, and how many steps information travels in the first."""
        if not torch.isfinite(together).all():
            raise Unusable
        mine = 1 if self.level == "graph" else LENGTH
        scale = 1 + float(together.abs().max())
        for length, first, rows in ((LENGTH, 0, slice(0, mine)), (OTHER, LENGTH, slice(mine, None))):
            alone, _ = self.call(length, 0, first=first, batch=batch)
            if gap(alone, together[rows]) > max(TOLERANCE * scale, 3 * random):
                return False, None
        try:
            touched = self.call(LENGTH, OTHER, batch=batch, hidden=True)[0].isnan().any(dim=1)
        except Unusable:  # features that may not be NaN, as they name something
            return True, None
        if touched[mine:].any():
            return False, None
        if self.level == "graph":
            return True, None
        return True, int(torch.nonzero(touched[:mine]).max()) if touched.any() else None

    def wide_enough(self, together: Tensor, hops: int) -> int | None:
        """Finds how many steps around its node an instance needs for the model to say the same; ``None`` if none do."""
        scale = 1 + float(together.abs().max())
        for steps in range(hops, hops + 1 + _WIDER):
            if steps + 2 > LENGTH:
                return hops
            cut, _ = self.call(steps + 2, 0, inner=steps)
            if gap(cut[:1], together[:1]) <= TOLERANCE * scale:
                return steps
        return None

    def _arguments(self, length: int, other: int, first: int, inner: int) -> dict[str, Any]:
        """Makes what the model is given, new every time."""
        x, edge_index = self.graph.x, self.graph.edge_index
        steps = torch.arange(length + other - 1, device=x.device)
        steps = steps[steps != length - 1] if other else steps
        ends = torch.stack([torch.cat([steps, steps + 1]), torch.cat([steps + 1, steps])])
        ends = ends[:, torch.argsort(ends[1] * (length + other) + ends[0])]
        ends = ends[:, ends[1] <= inner]
        # A row goes with a node of the two parts, and with an edge by its lower end, in whatever part is called.
        nodes = first + torch.arange(length + other, device=x.device)
        edges = 2 * (first + ends.min(dim=0).values) + (ends[0] < ends[1])
        found: dict[str, Any] = {"x": _rows(x, nodes), "edge_index": ends}
        for name, value in self.graph.arguments.items():
            kind = rows_of(name, value, x.size(0), edge_index.size(1))
            part = {"node": nodes, "edge": edges}.get(kind or "")
            found[name] = value.clone() if part is None and isinstance(value, Tensor) else value
            if part is not None:
                found[name] = _rows(value, part)
        return found


def _rows(values: Tensor, rows: Tensor) -> Tensor:
    """Picks rows, beginning anew where there are no more, and without what is no number."""
    if values.size(0) == 0:
        return values.new_zeros(rows.numel(), *values.shape[1:])
    picked = values[rows % values.size(0)]
    return torch.nan_to_num(picked, 0.0, 0.0, 0.0) if picked.is_floating_point() else picked.clone()


def gap(one: Tensor, other: Tensor) -> float:
    """Returns the largest difference between two outputs; 0 if it is that of rounding."""
    if one.shape != other.shape or one.numel() == 0:
        raise Unusable
    gap = float((one.double() - other.double()).abs().max())
    return gap if gap > 1e-6 * (1 + float(one.abs().max())) or gap != gap else 0.0


def clones(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Copies the tensors among arguments, for a model that writes into them."""
    return {name: value.clone() if isinstance(value, Tensor) else value for name, value in arguments.items()}
