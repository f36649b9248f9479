"""What a prediction can depend on, found out on two small parts of the user's own graph.

For models that take no graph of ours: heterogeneous ones, whose types and relations only the user's graph has, and
plain ones that failed on the path of :mod:`~gflowexplainer.model.locality`. A part is what a node is reached from: a
few senders, a few senders of these, and so on. Both parts are evaluated alone and side by side, without an edge between
them: where a prediction differs, the model looks at everything it is given. Then all senders so many steps away are
given NaN for features; the farthest that reach the prediction say how far information travels, however often a layer is
called.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.arguments import rows_of
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.model.locality import TOLERANCE, Locality, Unusable, gap, usual_locality

if TYPE_CHECKING:
    from gflowexplainer.model.predictor import Predictor

DEPTH, WIDTH = 8, 4
"""Steps around a node that a part has, and senders that are taken in each step."""
_WHOLE = 400
"""Nodes of a graph-level model's graph that are probed, at most."""


@dataclass(frozen=True)
class Part:
    """A small piece of the flat graph.

    Attributes:
        nodes: Its nodes, shape ``[n]``; what is predicted first.
        edges: Its edges by their ids, shape ``[e]``.
        edge_index: Their ends as positions among ``nodes``, shape ``[2, e]``.
        depth: Steps from each node to what is predicted, shape ``[n]``.
        roots: Number of nodes that are predicted, or are ends of the predicted link.
    """

    nodes: Tensor
    edges: Tensor
    edge_index: Tensor
    depth: Tensor
    roots: int

    def up_to(self, depth: int, *, fringe: bool) -> Part:
        """Returns the nodes of so many steps and the edges among them.

        With the ``fringe``, as instances have it: the edges into the last of them too, and the nodes where these begin.
        """
        kept = torch.nonzero(self.depth <= depth + fringe).flatten()
        source, target = self.depth[self.edge_index]
        inside = (target <= depth) & (source <= depth + fringe)
        # Nodes stand in the order of their depth, so those that stay keep their places.
        return Part(self.nodes[kept], self.edges[inside], self.edge_index[:, inside], self.depth[kept], self.roots)


def probe_parts(predictor: Predictor, graph: InputGraph) -> Locality:
    """Finds out what the predictions of a model can depend on; what cannot be found out counts as everything.

    Args:
        predictor: The model, and how it is called.
        graph: A graph of the user's.
    """
    usual = usual_locality(predictor.level, predictor.takes_batch)
    try:
        with predictor.evaluating(), torch.no_grad():
            return _probe(_Caller(predictor, graph.detached()), usual)
    except (Unusable, ModelError, RuntimeError, ValueError, IndexError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        return replace(usual, local=False, together="alone", failure=reason[:200])


def _probe(caller: _Caller, usual: Locality) -> Locality:
    one, other = caller.parts()
    batch = usual.together == "batch"
    alone = [caller.call([part], batch=batch) for part in (one, other)]
    found = replace(usual, random=gap(alone[0], caller.call([one], batch=batch)))
    if usual.together == "alone":
        return found
    bound = max(TOLERANCE * (1 + max(float(a.abs().max()) for a in alone)), 3 * found.random)
    both = caller.call([one, other], batch=batch)
    if gap(torch.cat(alone), both) > bound:
        return replace(found, local=False, together="alone")
    if caller.level == "graph":
        return found
    hops = max((steps for part in (one, other) if (steps := caller.hops(part)) is not None), default=None)
    return replace(found, hops=caller.wide_enough((one, other), alone, hops, bound))


class _Caller:
    """Calls a model on parts of the user's graph."""

    def __init__(self, predictor: Predictor, graph: InputGraph) -> None:
        self.predictor, self.graph, self.level = predictor, graph, predictor.level
        self.num_nodes = graph.x.size(0)

    def parts(self) -> tuple[Part, Part]:
        """Returns two parts around different nodes or links, or of a graph-level model the graph and half of it."""
        if self.level == "graph":
            count = min(self.num_nodes, _WHOLE)
            return self._first(count), self._first(max(1, count // 2))
        spans = self.predictor.predicted(self.num_nodes)
        heard = torch.zeros(self.num_nodes, dtype=torch.bool, device=self.graph.x.device)
        heard[self.graph.edge_index[1]] = True
        choices = []
        for span in spans:
            nodes = torch.nonzero(heard[span]).flatten() + span.start
            nodes = nodes if nodes.numel() else torch.arange(span.start, span.stop, device=heard.device)
            if not nodes.numel():
                raise Unusable("there is no node to predict at")
            choices.append(nodes)
        roots = [torch.stack([nodes[(k * nodes.numel()) // 2] for nodes in choices]) for k in range(2)]
        return self._around(roots[0]), self._around(roots[1])

    def _first(self, count: int) -> Part:
        source, target = self.graph.edge_index
        edges = torch.nonzero((source < count) & (target < count)).flatten()
        nodes = torch.arange(count, device=source.device)
        return Part(nodes, edges, self.graph.edge_index[:, edges], torch.zeros_like(nodes), 0)

    def _around(self, roots: Tensor) -> Part:
        """Follows messages back from ``roots``, both ends of a link or one node."""
        source, target = self.graph.edge_index
        device = source.device
        nodes, depths = roots.tolist(), [0] * roots.numel()
        place = {node: number for number, node in reversed(list(enumerate(nodes)))}
        edges: list[int] = []
        last = roots
        for step in range(1, DEPTH + 1):
            asked = torch.zeros(self.num_nodes, dtype=torch.bool, device=device)
            asked[last] = True
            arriving = torch.nonzero(asked[target]).flatten()
            fresh: list[int] = []
            for edge in _spread(arriving, 4 * WIDTH).tolist():
                node = int(source[edge])
                if node not in place and len(fresh) < WIDTH:
                    place[node] = len(nodes)
                    nodes.append(node)
                    depths.append(step)
                    fresh.append(node)
                    edges.append(edge)
            if not fresh:
                break
            last = torch.tensor(fresh, device=device)
        ids = torch.tensor(edges, dtype=torch.long, device=device)
        ends = [[place[int(end)] for end in row] for row in self.graph.edge_index[:, ids].tolist()]
        edge_index = torch.tensor(ends, dtype=torch.long, device=device).reshape(2, -1)
        numbers = (torch.tensor(values, dtype=torch.long, device=device) for values in (nodes, depths))
        flat, depth = numbers
        return Part(flat, ids, edge_index, depth, roots.numel())

    def call(self, parts: list[Part], *, batch: bool = False, hidden: Tensor | None = None) -> Tensor:
        """Evaluates the model on parts side by side; returns what it predicts for each, shape ``[parts, C]``.

        Args:
            parts: The parts.
            batch: Whether to say which part a node is in.
            hidden: Nodes ``[n]`` whose features are NaN.
        """
        sizes = [part.nodes.numel() for part in parts]
        first = [sum(sizes[:number]) for number in range(len(parts))]
        nodes, edges = torch.cat([p.nodes for p in parts]), torch.cat([p.edges for p in parts])
        edge_index = torch.cat([p.edge_index + shift for p, shift in zip(parts, first, strict=True)], dim=1)
        arguments: dict[str, Any] = {}
        for name, value in self.graph.arguments.items():
            kind = rows_of(name, value, self.num_nodes, self.graph.edge_index.size(1))
            rows = {"node": nodes, "edge": edges}.get(kind or "")
            arguments[name] = value if rows is None else value[rows]
        begin = torch.tensor(first, device=nodes.device)
        if self.level == "edge":
            arguments["edge_label_index"] = torch.stack([begin, begin + (parts[0].roots - 1)])
        if batch:
            arguments["batch"] = torch.repeat_interleave(torch.arange(len(parts)), torch.tensor(sizes)).to(nodes)
        x = torch.nan_to_num(self.graph.x[nodes], 0.0, 0.0, 0.0)
        output = self.predictor.call_hidden(x, edge_index, arguments, hidden)
        if not isinstance(output, Tensor) or not output.is_floating_point() or output.layout != torch.strided:
            raise Unusable("it does not return a tensor of numbers")
        output = output.reshape(len(parts) if self.level != "node" else nodes.numel(), -1)
        said = output[begin] if self.level == "node" else output
        if hidden is None and not torch.isfinite(said).all():
            raise Unusable("it returns NaN or infinity on a part of the graph")
        return said

    def hops(self, part: Part) -> int | None:
        """Returns from how many steps away information arrives; ``None`` where features may not be NaN."""
        for steps in range(int(part.depth.max()), 0, -1):
            try:
                said = self.call([part], hidden=part.depth == steps)
            except (ModelError, Unusable):  # features that may not be NaN, as they name something
                return None
            if said.isnan().any():
                return steps
        return None

    def wide_enough(self, parts: tuple[Part, Part], alone: list[Tensor], hops: int | None, bound: float) -> int:
        """Returns the steps beyond which nothing counts, ``hops`` at least; what cannot be hidden is left out.

        Where nothing can be hidden, so that ``hops`` are not known, the fringe goes too: more than its edges may count.
        """
        known = hops is not None
        for steps in range(max(int(part.depth.max()) for part in parts) - 1, (hops or 0) - 1, -1):
            cut = [self.call([part.up_to(steps, fringe=known)]) for part in parts]
            if gap(torch.cat(cut), torch.cat(alone)) > bound:
                return steps + 1
        return hops or 0


def _spread(entries: Tensor, most: int) -> Tensor:
    """Picks up to so many of ``entries`` ``[k]``, spread over them."""
    if entries.numel() <= most:
        return entries
    return entries[torch.linspace(0, entries.numel() - 1, most).round().long().to(entries.device)]
