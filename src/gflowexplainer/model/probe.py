"""What a prediction can depend on, found out by calling the model a few times on two small parts of the user's graph.

A part is a walk against the edges, unrolled: a node, one that sends an edge to it, one that sends an edge to that, and
so on, a new copy of a node at every step. So a part is as long as we like, and has the features, arguments, types and
relations of the user's graph. Edges that also run the other way are there too, and where a node sends an edge onwards
that has no counterpart, the receiver is there. Then:

* both parts are evaluated alone and side by side: where they differ, or where NaN in one reaches the other, the model
  looks at everything it is given (a norm over the graph, a global pool, attention over all nodes). It is given
  ``batch`` if it takes one and tells parts apart by it, and else one subgraph at a time;
* all nodes beyond some steps are given NaN for features, which no sum, product or attention gets rid of: the largest
  number of steps with which the prediction becomes NaN says how far information travels, however often a layer is
  called;
* the part is cut off behind that many steps, as instances are cut out of a graph. Where the model predicts something
  else then, as normalisation by outgoing edges makes it, instances are cut wider; where no width is enough, as for a
  model that looks against the direction of edges, everything counts;
* a model that writes into its input, or predicts something else when it is called again, is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import InputGraph, slice_arguments
from gflowexplainer.model.locality import Locality
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.witness import Witness

LENGTH = 32
"""Steps of a walk. Information that travels farther is not followed."""
_LEAVES = 3
"""Copies of a node that one of the parts has more."""
_TRIED = 8
"""Nodes from which a walk may start; the longest two are taken."""
TOLERANCE = 1e-4
"""Outputs that differ by less, relative to the largest, are the same: sums may be made in another order."""


def settled(predictor: Predictor, graph: InputGraph, index: GraphIndex | None = None) -> Predictor:
    """Returns a predictor that goes by what its predictions depend on; found out once for each way to call a model.

    Args:
        predictor: The model, and how it is called.
        graph: A graph of the user's.
        index: Its edges, where they were indexed already.
    """
    found, way = predictor.known.localities, _way(predictor, graph)
    if way not in found:
        index = GraphIndex.build(graph.edge_index, graph.x.size(0)) if index is None else index
        found[way] = find_locality(predictor, graph, index)
    return predictor.settled(found[way])


def witness_of(predictor: Predictor, graph: InputGraph, index: GraphIndex | None = None) -> Witness | None:
    """Records one call of a model on a part of a graph; ``None`` where that cannot be made or repeated.

    Args:
        predictor: The model, and what its predictions depend on.
        graph: A graph of the user's.
        index: Its edges, where they were indexed already.
    """
    if predictor.locality.random or predictor.locality.failure:
        return None
    index = GraphIndex.build(graph.edge_index, graph.x.size(0)) if index is None else index
    probe = _Probe(predictor, graph.detached(), index)
    return Witness.of(predictor.model, probe.call_once)


def widened(predictor: Predictor, graph: InputGraph, gap: float = 0.0) -> Predictor:
    """Returns a predictor for which everything counts, as it predicts something else on a part than on the whole.

    Args:
        predictor: The model, and how it is called.
        graph: The graph.
        gap: By how much predictions differ even so.
    """
    together = "alone" if predictor.locality.together == "union" else predictor.locality.together
    wide = replace(predictor.locality, local=False, together=together, gap=gap)
    predictor.known.localities[_way(predictor, graph)] = wide
    return predictor.settled(wide)


def _way(predictor: Predictor, graph: InputGraph) -> tuple[Any, ...]:
    """Names what decides how a model is called."""
    return predictor.level, graph.x.size(1), tuple(graph.arguments), predictor.way


def find_locality(predictor: Predictor, graph: InputGraph, index: GraphIndex) -> Locality:
    """Finds out what the predictions of a model can depend on; what cannot be found out counts as everything.

    Args:
        predictor: The model, and how it is called.
        graph: A graph of the user's.
        index: Its edges.
    """
    try:
        with predictor.evaluating():
            return _Probe(predictor, graph.detached(), index).locality()
    except (_Unusable, ModelError, RuntimeError, ValueError, IndexError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        usual = Locality.usual(predictor.level, predictor.takes_batch)
        return replace(usual, local=False, together="alone", failure=reason[:200])


class _Unusable(Exception):
    """Nothing can be found out about the model."""


@dataclass(frozen=True)
class _Part:
    """A piece of the flat graph, unrolled.

    Attributes:
        nodes: Its nodes, shape ``[n]``; what is predicted first.
        edges: Its edges by their ids, shape ``[e]``.
        ends: Their ends as positions among ``nodes``, shape ``[2, e]``.
        depth: Steps from each node to what is predicted, shape ``[n]``; very many where there is no path.
    """

    nodes: Tensor
    edges: Tensor
    ends: Tensor
    depth: Tensor

    def up_to(self, depth: int, *, fringe: bool) -> _Part:
        """Cuts out the nodes of so many steps; with the ``fringe``, as instances have it, also what sends to them."""
        kept = self.depth <= depth + fringe
        inside = torch.nonzero((self.depth[self.ends[1]] <= depth) & kept[self.ends[0]]).flatten()
        place = torch.cumsum(kept, 0) - 1
        return _Part(self.nodes[kept], self.edges[inside], place[self.ends[:, inside]], self.depth[kept])

    def with_leaves(self) -> _Part:
        """Adds copies of a node that sends to what is predicted, so that the part has another shape."""
        arriving = torch.nonzero((self.ends[1] == 0) & (self.depth[self.ends[0]] == 1)).flatten()[:1]
        count, edges = self.nodes.numel(), arriving.repeat(_LEAVES)
        leaves = torch.arange(count, count + edges.numel(), device=self.nodes.device)
        return _Part(
            torch.cat([self.nodes, self.nodes[self.ends[0, edges]]]),
            torch.cat([self.edges, self.edges[edges]]),
            torch.cat([self.ends, torch.stack([leaves, torch.zeros_like(leaves)])], dim=1),
            torch.cat([self.depth, torch.ones_like(leaves)]),
        )


class _Probe:
    """Calls a model on parts of the user's graph."""

    def __init__(self, predictor: Predictor, graph: InputGraph, index: GraphIndex) -> None:
        self.predictor, self.graph, self.index, self.level = predictor, graph, index, predictor.level
        self.usual = Locality.usual(self.level, predictor.takes_batch)
        self.writes: dict[str, None] = {}
        self.device = graph.x.device

    def locality(self) -> Locality:
        """Finds out what predictions depend on."""
        one, other = self._parts()
        parts = [one, other.with_leaves()]
        batch = self.usual.together == "batch"
        alone = self._alone(parts, batch=batch)
        random = _gap(alone, self._alone(parts, batch=batch))
        found = replace(self.usual, writes=tuple(self.writes), random=random)
        if found.together == "alone":  # a model of graphs that cannot be given several at once
            return found
        bound = max(TOLERANCE * (1 + float(alone.abs().max())), 3 * random)
        if not self._are_apart(parts, alone, bound, batch=batch):
            told = self.level == "node" and self.predictor.takes_batch
            told = told and self._are_apart(parts, self._alone(parts, batch=True), bound, batch=True)
            return replace(found, local=False, together="batch" if told else "alone")
        if self.level == "graph":
            return found
        counted = min(self.predictor.known.num_hops, LENGTH)
        hops = [self._hops(part, counted) for part in parts]
        # Where nothing can be hidden, the fringe goes too: more than its edges may count.
        known = None not in hops
        for steps in range(max(counted, *(steps or 0 for steps in hops)), LENGTH + 1):
            if _gap(self._alone([part.up_to(steps, fringe=known) for part in parts]), alone) <= bound:
                return replace(found, hops=steps)
        return replace(found, local=False)

    def call_once(self) -> Tensor:
        """Evaluates the model on one part."""
        return self._call(self._parts()[:1], batch=self.usual.together == "batch")

    def _alone(self, parts: list[_Part], *, batch: bool = False) -> Tensor:
        """Evaluates the model on each part by itself, shape ``[parts, C]``."""
        return torch.cat([self._call([part], batch=batch) for part in parts])

    def _are_apart(self, parts: list[_Part], alone: Tensor, bound: float, *, batch: bool) -> bool:
        """Whether the parts know nothing of one another when they are evaluated side by side."""
        if _gap(self._call(parts, batch=batch), alone) > bound:
            return False
        count = parts[0].nodes.numel()
        hidden = torch.arange(count + parts[1].nodes.numel(), device=self.device) < count
        touched = self._hidden(parts, hidden, batch=batch)
        return touched is None or not bool(touched[1].isnan().any())

    def _hops(self, part: _Part, steps: int) -> int | None:
        """Returns from how many steps away information arrives, at least ``steps``; ``None`` if that cannot be seen."""
        while steps < LENGTH:
            touched = self._hidden([part], (part.depth > steps) & (part.depth <= LENGTH))
            if touched is None:
                return None
            if not touched.isnan().any():
                break
            steps += 1
        return steps

    def _hidden(self, parts: list[_Part], hidden: Tensor, *, batch: bool = False) -> Tensor | None:
        """Evaluates the model with NaN for features of some nodes; ``None`` where these may not be NaN."""
        try:
            return self._call(parts, batch=batch, hidden=hidden)
        except (ModelError, _Unusable):  # features that name something
            return None

    def _call(self, parts: list[_Part], *, batch: bool = False, hidden: Tensor | None = None) -> Tensor:
        """Evaluates the model on parts side by side; returns what it predicts for each, shape ``[parts, C]``."""
        sizes = [part.nodes.numel() for part in parts]
        first = [sum(sizes[:number]) for number in range(len(parts))]
        nodes, edges = torch.cat([part.nodes for part in parts]), torch.cat([part.edges for part in parts])
        edge_index = torch.cat([part.ends + shift for part, shift in zip(parts, first, strict=True)], dim=1)
        sliced = slice_arguments(self.graph.arguments, self.index.num_nodes, self.index.num_edges, nodes, edges)
        begin = torch.tensor(first, device=nodes.device)
        arguments = {
            name: _finite(value) if isinstance(value, Tensor) else value
            for kind in sliced.values()
            for name, value in kind.items()
        }
        if self.level == "edge":
            arguments["edge_label_index"] = torch.stack([begin, begin + 1])
        if batch:
            arguments["batch"] = torch.repeat_interleave(begin.new_tensor(range(len(parts))), begin.new_tensor(sizes))
        x = _finite(self.graph.x[nodes])
        given: dict[str, Any] = {"x": x, "edge_index": edge_index, **arguments}
        before = {name: value.clone() for name, value in given.items() if isinstance(value, Tensor)}
        output = self.predictor.call(x, edge_index, arguments, hidden)
        self.writes |= {name: None for name, value in before.items() if not torch.equal(value, given[name])}
        if not isinstance(output, Tensor) or not output.is_floating_point() or output.layout != torch.strided:
            raise _Unusable("it does not return a tensor of numbers")
        output = output.reshape(len(parts) if self.level != "node" else nodes.numel(), -1)
        said = output[begin] if self.level == "node" else output
        if hidden is None and not torch.isfinite(said).all():
            raise _Unusable("it returns NaN or infinity on a part of the graph")
        return said

    def _parts(self) -> list[_Part]:
        """Returns the longest walks from different nodes or links; at graph level two of different length."""
        if self.level == "graph":
            return [self._walk((0,), LENGTH), self._walk((self.index.num_nodes // 2,), LENGTH // 4)]
        choices = []
        for span in self.predictor.predicted(self.index.num_nodes):
            nodes = np.arange(span.start, span.stop)
            if not nodes.size:
                raise _Unusable("there is no node to predict at")
            hears = nodes[self.index.in_degree(nodes) > 0]
            nodes = hears if hears.size else nodes
            choices.append([int(nodes[(k * nodes.size) // _TRIED]) for k in range(_TRIED)])
        walks: list[_Part] = []
        for roots in dict.fromkeys(zip(*choices, strict=True)):
            walks.append(self._walk(roots, LENGTH))
            full = [walk for walk in walks if int(walk.depth[walk.depth <= LENGTH].max()) == LENGTH]
            if len(full) == 2:
                return full
        walks.sort(key=lambda walk: -walk.nodes.numel())
        return [walks[0], walks[min(1, len(walks) - 1)]]

    def _walk(self, roots: tuple[int, ...], length: int) -> _Part:
        """Unrolls a walk against the edges from each of the ``roots``."""
        nodes, depth, edges, ends = list(roots), [0] * len(roots), list[int](), list[tuple[int, int]]()
        for root, node in enumerate(roots):
            last, directed = root, False
            for step in range(1, length + 1):
                source = self._senders(nodes[last])
                if not source.size:
                    break
                heard = np.nonzero(self.index.in_degree(source))[0]
                chosen = int(heard[(7 * step + root) % heard.size]) if heard.size else step % source.size
                back = np.nonzero(self._senders(source[chosen]) == nodes[last])[0]
                edges.append(int(self.index.edge_id[self.index.ptr[nodes[last]] + chosen]))
                ends.append((len(nodes), last))
                if back.size:
                    edges.append(int(self.index.edge_id[self.index.ptr[source[chosen]] + back[0]]))
                    ends.append((last, len(nodes)))
                directed |= not back.size
                last = len(nodes)
                nodes.append(int(source[chosen]))
                depth.append(step)
            if directed or last == root:
                for edge in torch.nonzero(self.graph.edge_index[0] == node).flatten()[:1].tolist():
                    edges.append(edge)
                    ends.append((root, len(nodes)))
                    nodes.append(int(self.graph.edge_index[1, edge]))
                    depth.append(2 * LENGTH)
        flat, ids, steps = (torch.tensor(v, dtype=torch.long, device=self.device) for v in (nodes, edges, depth))
        return _Part(flat, ids, ids.new_tensor(ends).reshape(-1, 2).t().contiguous(), steps)

    def _senders(self, node: int) -> NDArray[Any]:
        """Lists the nodes that send an edge to a node."""
        return self.index.source[self.index.ptr[node] : self.index.ptr[node + 1]]


def _finite(values: Tensor) -> Tensor:
    """Copies values, without what is no number."""
    return torch.nan_to_num(values, 0.0, 0.0, 0.0) if values.is_floating_point() else values.clone()


def _gap(one: Tensor, other: Tensor) -> float:
    """Returns the largest difference between two outputs; 0 if it is that of rounding."""
    if one.shape != other.shape or one.numel() == 0:
        raise _Unusable("what it returns has another shape every time")
    gap = float((one.double() - other.double()).abs().max())
    return gap if gap > 1e-6 * (1 + float(one.abs().max())) or gap != gap else 0.0
