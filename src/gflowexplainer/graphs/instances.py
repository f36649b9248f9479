"""What is explained: the computation graph of each node, or each whole graph, flat and batched.

An instance is cut out of a graph in time of its own size, by following the incoming edges of a node through an index
that is built once (:class:`~gflowexplainer.graphs.index.GraphIndex`); where it would become too large, the nodes most
relevant to the explained one are kept (:mod:`~gflowexplainer.graphs.neighborhoods`).

A model that normalises by degree sees one step further than messages travel: it counts the edges of the outermost
nodes. Cut off there, it may predict another class. So an instance remembers its ``surroundings``, the same nodes and
whatever sends an edge to them; with these the model answers exactly as on the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.checks import check_features, check_finite, check_graph, check_index, check_parts
from gflowexplainer.graphs.flat_graphs import FAR, WIDE, FlatGraphs
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import join_arguments, slice_arguments
from gflowexplainer.graphs.neighborhoods import everything, reach, surround
from gflowexplainer.ops.hashed_random import combine
from gflowexplainer.ops.segments import Array, pointers, ranges, segment_ids
from gflowexplainer.ops.sorting import unique


@dataclass(frozen=True, kw_only=True)
class Instances(FlatGraphs):
    """``I`` instances, which lie behind each other as :class:`~gflowexplainer.graphs.flat_graphs.FlatGraphs` do.

    Attributes:
        level: ``"node"``, ``"graph"`` or ``"edge"``: what the model predicts and what is explained.
        center: Flat position of the explained node, or of the first end of the explained link, shape ``[I]``; ``-1`` at
            graph level.
        graph: Which of the user's graphs an instance comes from, shape ``[I]``.
        surroundings: The instances and, around each, the nodes that send an edge into it, for the model alone, so
            without ``neighbor``; ``None`` where there are none, and at graph level.
        place_outside: Position of each node in :attr:`surroundings`, shape ``[n]``.
        left_out: Nodes that were seen and left out of each instance or its surroundings because of a bound on their
            number, shape ``[I]``; ``None`` where there are none. What lies behind them was not even looked at.
        other_end: Flat position of the second end of the explained link, shape ``[I]``; ``None`` if there is none.
        joined: Whether both ends of the link are connected in an instance, shape ``[I]``; where they are not, they
            count as neighbours of one another. ``None`` without links.
        within: Nodes within which a subgraph has to join both ends, shape ``[I]``; ``None`` without links.
    """

    level: str
    center: Tensor
    graph: Tensor
    surroundings: Instances | None = None
    place_outside: Tensor | None = None
    left_out: Tensor | None = None
    other_end: Tensor | None = None
    joined: Tensor | None = None
    within: Tensor | None = None

    @classmethod
    def around_nodes(
        cls,
        x: Tensor,
        edge_index: Tensor,
        index: Tensor | Sequence[int] | int,
        num_hops: int,
        *,
        graph_index: GraphIndex | None = None,
        limit: int | None = None,
        **arguments: Any,
    ) -> Instances:
        """Cuts out the ``num_hops``-hop computation graph of each node in ``index``.

        A node belongs to it if it reaches the explained node along at most ``num_hops`` directed edges; every
        edge between two such nodes is kept, as :func:`torch_geometric.utils.k_hop_subgraph` does.

        Args:
            x: Features of the whole graph, shape ``[N, F]``.
            edge_index: Edges of the whole graph, shape ``[2, E]``.
            index: Ids of the nodes to explain.
            num_hops: Number of message-passing layers of the model.
            graph_index: The index of this graph, where it has been built already.
            limit: Nodes of an instance at most, the most relevant ones; as many again may surround it.
            **arguments: Further arguments of the model; those with one row a node or an edge are cut as well.
        """
        num_nodes = check_features(x)
        if graph_index is None:
            graph_index = GraphIndex.build(edge_index, num_nodes)
        else:
            graph_index.refuse_another(edge_index, num_nodes)
        nodes = check_index(index, num_nodes, x.device)
        if num_hops < 0:
            raise InstanceError(f"'num_hops' must not be negative (got {num_hops}).")
        return cls.cut(x, graph_index, nodes, num_hops, limit=limit, **arguments)

    @classmethod
    def cut(
        cls,
        x: Tensor,
        graph_index: GraphIndex,
        nodes: Tensor,
        num_hops: int | None,
        *,
        limit: int | None = None,
        others: Tensor | None = None,
        leave_out: Callable[[Array, Array, Array], Array] | None = None,
        **arguments: Any,
    ) -> Instances:
        """Does what :meth:`around_nodes` does, with ids ``nodes`` ``[I]`` and an index that were checked already.

        Args:
            x, graph_index, nodes, limit, arguments: See :meth:`around_nodes`.
            num_hops: The same; ``None`` to take the whole graph for every instance.
            others: The second ends of links that begin at ``nodes``, shape ``[I]``: instances are what both ends
                depend on.
            leave_out: Marks edges that an instance is to do without, given instance, both ends ``[2, e]`` and edge id.
        """
        size, count = graph_index.num_nodes, nodes.numel()
        ends_of = [end.cpu().numpy() + np.arange(count) * size for end in (nodes, others) if end is not None]
        if num_hops is None:
            inner = everything(graph_index, count)
        else:
            inner = reach(graph_index, np.sort(np.concatenate(ends_of)), num_hops, limit)
        # Every edge that ends inside; those of the instances themselves begin there too.
        outer, inside, ends, edges = surround(graph_index, inner, limit)
        if leave_out is not None:
            owner, node = np.divmod(outer.key[ends], size)
            stays = ~leave_out(owner[0], node, edges)
            ends, edges = ends[:, stays], edges[stays]
        left_out = None
        if outer.dropped.size:
            left_out = torch.from_numpy(np.bincount(outer.dropped // size, minlength=count)).to(x.device)
        cut = partial(cls._of_keys, x, graph_index, ends_of, arguments)
        if outer.key.size == inner.key.size:
            return cut(inner.key, ends, edges, left_out=left_out)
        place = np.full(outer.key.size, -1)
        place[inside] = np.arange(inside.size)
        own = place[ends[0]] >= 0
        return cut(
            inner.key,
            place[ends[:, own]],
            edges[own],
            surroundings=cut(outer.key, ends, edges, alone=False),
            place_outside=torch.from_numpy(inside).to(x.device),
            left_out=left_out,
        )

    @classmethod
    def _of_keys(
        cls,
        x: Tensor,
        graph_index: GraphIndex,
        ends_of: list[Array],
        arguments: Mapping[str, Any],
        key: Array,
        ends: Array,
        edges: Array,
        **more: Any,
    ) -> Instances:
        """Makes instances of the nodes ``key`` of the graph and of edges between them, around the keys ``ends_of``."""

        def here(array: Array) -> Tensor:
            return torch.from_numpy(array).to(x.device)

        owner, node = np.divmod(key, graph_index.num_nodes)
        count, ids, edge_id = ends_of[0].size, here(node), here(edges)
        wide = x.size(1) > WIDE
        rows = x[ids]
        check_finite(rows, ids)
        center, *other_end = (here(key.searchsorted(end)) for end in ends_of)
        return cls._assemble(
            "edge" if other_end else "node",
            node_counts=here(np.bincount(owner, minlength=count)),
            node_id=ids,
            center=center,
            graph=torch.zeros(count, dtype=torch.long, device=x.device),
            edge_counts=here(np.bincount(owner[ends[1]], minlength=count)),
            edge_index=here(ends),
            edge_id=edge_id,
            x=x if wide else rows,
            x_row=ids if wide else None,
            other_end=other_end[0] if other_end else None,
            **slice_arguments(arguments, graph_index.num_nodes, graph_index.num_edges, ids, edge_id),
            **more,
        )

    @classmethod
    def of_graphs(
        cls, graphs: Sequence[Data], *, arguments: Sequence[str] = (), first: int = 0, **shared: Any
    ) -> Instances:
        """Takes whole graphs as instances.

        Args:
            graphs: Graphs with ``x`` and ``edge_index``.
            arguments: Names of further attributes of each graph that the model takes, such as ``edge_attr``.
            first: Number of the first graph; tells graphs apart that are passed in several calls.
            **shared: Arguments that are handed to the model unchanged.
        """
        if len(graphs) == 0:
            raise InstanceError("There is no graph to explain: 'graphs' is empty. Pass at least one.")
        for number, graph in enumerate(graphs):
            check_parts(graph, f"graph {number}")
            check_graph(graph.x, graph.edge_index, f"graph {number}")
        return cls.join(graphs, arguments=arguments, first=first, **shared)

    @classmethod
    def join(cls, graphs: Sequence[Data], *, arguments: Sequence[str] = (), first: int = 0, **shared: Any) -> Instances:
        """Does what :meth:`of_graphs` does, with graphs that were checked already."""
        xs = [graph.x for graph in graphs]
        widths = sorted({x.size(1) for x in xs})
        if len(widths) > 1:
            raise InstanceError(
                f"The graphs have features of different width ({', '.join(map(str, widths))}). "
                "One model needs one width."
            )
        node_counts = [x.size(0) for x in xs]
        edge_counts = [graph.edge_index.size(1) for graph in graphs]
        offsets = accumulate(node_counts, initial=0)
        edges = [graph.edge_index + offset for graph, offset in zip(graphs, offsets, strict=False)]
        device = xs[0].device
        nodes, sizes = torch.tensor(node_counts, device=device), torch.tensor(edge_counts, device=device)
        node_arguments, edge_arguments = join_arguments(graphs, arguments, node_counts, edge_counts)
        return cls._assemble(
            "graph",
            node_counts=nodes,
            node_id=ranges(torch.zeros_like(nodes), nodes)[1],
            center=torch.full_like(nodes, -1),
            graph=torch.arange(first, first + len(graphs), device=device),
            edge_counts=sizes,
            edge_index=torch.cat(edges, dim=1),
            edge_id=ranges(torch.zeros_like(sizes), sizes)[1],
            x=torch.cat(xs),
            node_arguments=node_arguments,
            edge_arguments=edge_arguments,
            shared_arguments=dict(shared),
        )

    @classmethod
    def _assemble(
        cls,
        level: str,
        *,
        node_counts: Tensor,
        edge_counts: Tensor,
        edge_index: Tensor,
        node_id: Tensor,
        graph: Tensor,
        alone: bool = True,
        **fields: Any,
    ) -> Instances:
        total = node_id.numel()
        # Only a model looks at surroundings, and a model asks for no neighbours.
        source, target = edge_index[:, edge_index[0] != edge_index[1]] if alone else edge_index[:, :0]
        both = unique(torch.cat([source * total + target, target * total + source]))
        owner = segment_ids(node_counts, total)
        return cls(
            level=level,
            ptr=pointers(node_counts),
            node_id=node_id,
            graph=graph,
            edge_ptr=pointers(edge_counts),
            edge_index=edge_index,
            neighbor_ptr=pointers(torch.bincount(both // total, minlength=total)),
            neighbor=both % total,
            key=combine(graph[owner], node_id),
            **fields,
        )

    @cached_property
    def own_key(self) -> Tensor:
        """A random 64-bit number of each instance, shape ``[I]``, which depends on its graph and node ids alone."""
        node = self.center if self.level == "graph" else self.node_id[self.center]
        if self.other_end is not None:
            return combine(self.graph, node, self.node_id[self.other_end], 2)
        return combine(self.graph, node, 1)

    @cached_property
    def roots(self) -> Tensor:
        """Flat positions of all that is explained, nodes or both ends of links; nothing at graph level."""
        own = self.center[self.center >= 0]
        return own if self.other_end is None else torch.cat([own, self.other_end])

    @cached_property
    def hops_to_other_end(self) -> Tensor:
        """Steps from each node to the second end of its link, shape ``[n]``; very many where there is no path."""
        assert self.other_end is not None
        hops = self.hops_from(self.other_end)
        return torch.where(hops < 0, FAR, hops)

    def hops_to_center(self, limit: int) -> Tensor:
        """Counts the steps from each node to the explained one, shape ``[n]``; ``limit`` if it takes more.

        At graph level there is no explained node and every count is ``limit``.
        """
        hops = self.hops_from(self.center, limit)
        return hops.masked_fill_(hops < 0, limit)

    def widen(self, instance: Tensor, kept: Tensor) -> Tensor:
        """Turns a flat mask over the nodes of instances into one over their surroundings, which are all kept.

        Args:
            instance: Instance of each query, shape ``[Q]``.
            kept: Mask over the nodes of these, one instance behind the other.
        """
        outer = self.surroundings
        assert outer is not None
        assert self.place_outside is not None
        counts = outer.node_counts[instance]
        owner, node = ranges(self.ptr[instance], self.node_counts[instance])
        first = pointers(counts)
        mask = torch.ones(int(first[-1]), dtype=torch.bool, device=kept.device)
        mask[self.place_outside[node] + (first[:-1] - outer.ptr[instance])[owner]] = kept
        return mask

    def select(self, index: Tensor) -> Instances:
        """Takes the instances ``index``, in that order, as a batch of their own."""
        node_counts, edge_counts = self.node_counts[index], self.edge_counts[index]
        first = self.ptr[:-1][index]
        _, nodes = ranges(first, node_counts)
        edge_owner, edges = ranges(self.edge_ptr[:-1][index], edge_counts)
        ptr = pointers(node_counts)
        shift = ptr[:-1] - first
        owner = segment_ids(node_counts, nodes.numel())
        row, neighbor = self.neighbors_of(nodes)
        center = self.center[index]
        left_out = None if self.left_out is None or not self.left_out[index].any() else self.left_out[index]
        outer, place = None, None
        if self.surroundings is not None and self.place_outside is not None:
            wider = self.surroundings.select(index)
            if wider.num_nodes > nodes.numel():
                outer = wider
                place = self.place_outside[nodes] + (wider.ptr[:-1] - self.surroundings.ptr[:-1][index])[owner]
        return replace(
            self,
            ptr=ptr,
            node_id=self.node_id[nodes],
            center=torch.where(center < 0, -1, center + shift),
            graph=self.graph[index],
            edge_ptr=pointers(edge_counts),
            edge_index=self.edge_index[:, edges] + shift[edge_owner],
            edge_id=self.edge_id[edges],
            neighbor_ptr=pointers(self.degree[nodes]),
            neighbor=neighbor + shift[owner[row]],
            key=self.key[nodes],
            x=self.x[nodes] if self.x_row is None else self.x,
            x_row=None if self.x_row is None else self.x_row[nodes],
            node_arguments={name: value[nodes] for name, value in self.node_arguments.items()},
            edge_arguments={name: value[edges] for name, value in self.edge_arguments.items()},
            surroundings=outer,
            place_outside=place,
            left_out=left_out,
            other_end=None if self.other_end is None else self.other_end[index] + shift,
            joined=None if self.joined is None else self.joined[index],
            within=None if self.within is None else self.within[index],
        )

    def to(self, device: torch.device | str) -> Instances:
        """Moves every tensor to ``device``."""

        def move(value: Any) -> Any:
            if isinstance(value, Tensor | Instances):
                return value.to(device)
            return {k: move(v) for k, v in value.items()} if isinstance(value, dict) else value

        return replace(self, **{each.name: move(getattr(self, each.name)) for each in fields(self)})
