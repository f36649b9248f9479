"""Evaluates the user's model on many subgraphs at once: one disjoint union, one forward call.

The model is called forward, in evaluation mode and without gradients, so any PyG model works.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from gflowexplainer.errors import ConfigError, ModelError, one_of
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.signature import forward_parameters, named_arguments
from gflowexplainer.model.adapter import remedy, shown_name
from gflowexplainer.model.evaluation import evaluation_mode, is_evaluating, outputs_seen
from gflowexplainer.model.locality import Locality
from gflowexplainer.model.output import checked_output, read_log_output, read_output
from gflowexplainer.model.structure import KnownModel
from gflowexplainer.ops.memory import batch_budget, model_budget
from gflowexplainer.ops.segments import pointers, ranges, segment_sum, slices
from gflowexplainer.ops.sorting import first_of_each

MODES = ("multiclass_classification", "binary_classification", "regression")
RETURN_TYPES = ("raw", "probs", "log_probs")
LEVELS = ("node", "graph", "edge")


class Predictor:
    """The explained model as a function from subgraphs to predictions.

    Args:
        model: The user's model, called as ``model(x, edge_index, **arguments)`` and, at graph level, with
            ``batch`` where it takes one. A model of links is called with ``edge_label_index`` too.
        level: ``"node"``, ``"graph"`` or ``"edge"``.
        mode: ``"multiclass_classification"``, ``"binary_classification"`` or ``"regression"``.
        return_type: What the model returns: ``"raw"`` scores, ``"probs"`` or ``"log_probs"``.
        num_hops: Message-passing layers of the model; counted if not given.
        memory_budget: Bytes that one disjoint union may take, roughly; larger work is done in several calls. A part of
            what there is where the model is, if ``None``.
        known: What was found out about the model, where it was looked at already.
    """

    node_type: str | None = None
    edge_type: tuple[str, str, str] | None = None
    num_types = 1

    def __init__(
        self,
        model: nn.Module,
        *,
        level: str = "node",
        mode: str = "multiclass_classification",
        return_type: str = "raw",
        num_hops: int | None = None,
        memory_budget: int | None = None,
        known: KnownModel | None = None,
    ) -> None:
        self.model = model
        self.level = one_of("level", level, LEVELS)
        self.mode = one_of("mode", mode, MODES)
        self.return_type = one_of("return_type", return_type, RETURN_TYPES)
        self.known = KnownModel(model) if known is None else known
        self.num_hops, self.given_hops = self.known.hops(num_hops), num_hops
        if memory_budget is not None and memory_budget < 1:
            raise ConfigError(f"'memory_budget' must be a positive number of bytes (got {memory_budget}).")
        self.device = self.known.device
        """Where the model is; ``None`` if it has no tensors. Instances that are elsewhere are evaluated there."""
        if memory_budget is None:
            memory_budget = model_budget(batch_budget(None, self.device or torch.device("cpu")))
        self.memory_budget = memory_budget
        self.num_evaluations = 0
        self.num_relations = self.known.num_relations
        parameters, named = forward_parameters(model), named_arguments(model)
        self.takes_batch = "batch" in (parameters if named is None else named) or (
            named is None and any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        )
        self.locality = Locality.usual(self.level, self.takes_batch)

    def settled(self, locality: Locality) -> Self:
        """Returns a predictor that goes by what was found out about the model; hops that the user gave stay."""
        settled = copy.copy(self)
        settled.locality = locality
        if locality.hops is not None and self.given_hops is None:
            settled.num_hops = max(self.num_hops, locality.hops)
        return settled

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about the model, in words."""
        return self.locality.notes(shown_name(self.model), self.num_hops)

    def evaluating(self) -> AbstractContextManager[nn.Module]:
        """Puts the model into evaluation mode for a block and hands it back as it came."""
        return evaluation_mode(self.model)

    def typed(self, instances: Instances) -> Instances:
        """Tells instances how many types of nodes and edges their graphs have."""
        return replace(instances, num_types=self.num_types, num_relations=self.num_relations)

    def contents(self, instances: Instances) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Returns what tells nodes and edges of instances apart beside features and ends, by name."""
        return instances.node_arguments, instances.edge_arguments

    def whole(self, instances: Instances, *, log: bool = False) -> Tensor:
        """Predicts on the instances as they are, shape ``[I, C]``; log-probabilities instead of these with ``log``."""
        everything = torch.arange(len(instances), device=instances.device)

        def predict(chunk: slice) -> Tensor:
            index = everything[chunk]
            kept = torch.ones(int(instances.node_counts[index].sum()), dtype=torch.bool, device=instances.device)
            return self.predict(instances, index, kept, log=log)

        return self.in_chunks(instances, everything, predict)

    def cost(self, instances: Instances) -> Tensor:
        """Estimates the bytes that one query of each instance takes in a disjoint union, shape ``[I]``."""
        instances = instances.surroundings or instances
        width = 4 * (instances.x.size(1) + 64)
        return instances.node_counts * width + instances.edge_counts * 4 * (64 + 16)

    def chunks(self, cost: Tensor) -> Iterator[slice]:
        """Cuts work of given cost in bytes ``[Q]`` into slices that fit the memory budget, one item at least."""
        return slices(cost, self.memory_budget)

    def in_chunks(self, instances: Instances, instance: Tensor, work: Callable[[slice], Tensor]) -> Tensor:
        """Concatenates what ``work`` returns for slices of ``Q`` queries, each of which fits the memory budget.

        Args:
            instances: The instances.
            instance: Instance of each query, shape ``[Q]``, of which there is at least one.
            work: Returns a tensor with one row a query, given a slice of the queries.
        """
        return torch.cat([work(chunk) for chunk in self.chunks(self.cost(instances)[instance])])

    def predict(
        self,
        instances: Instances,
        instance: Tensor,
        kept: Tensor,
        removal: str = "induced",
        *,
        alone: bool = False,
        log: bool = False,
    ) -> Tensor:
        """Predicts on ``Q`` subgraphs in one forward call.

        Args:
            instances: The instances.
            instance: Instance of each query, shape ``[Q]``.
            kept: The nodes that are kept, as a flat mask over the nodes of the queries' instances, one
                instance behind the other, shape ``[sum of their node counts]``.
            removal: ``"induced"``: the other nodes go. ``"isolate"``: they stay, without their edges.
            alone: Whether the kept nodes are all there is. Otherwise what surrounds an instance in the user's graph
                is still there: the other nodes of the instance are removed from the whole graph.

            log: Whether to return the logarithms of probabilities, which do not saturate.

        Returns:
            Class probabilities ``[Q, C]`` (binary: ``C = 2``), or values ``[Q, 1]`` for regression.
        """
        read = self.read_log if log else self.read
        if not is_evaluating(self.model) or torch.is_grad_enabled():
            with self.evaluating():
                return self.predict(instances, instance, kept, removal, alone=alone, log=log)
        if instances.surroundings is not None and not alone:
            kept, instances = instances.widen(instance, kept), instances.surroundings
        node_counts = instances.node_counts[instance]
        owner, node = ranges(instances.ptr[instance], node_counts)
        first = pointers(node_counts)[:-1]
        edge_owner, edge = ranges(instances.edge_ptr[instance], instances.edge_counts[instance])
        ends = instances.edge_index[:, edge] + (first - instances.ptr[instance])[edge_owner]
        inside = kept[ends[0]] & kept[ends[1]]
        edge, ends, edge_owner = edge[inside], ends[:, inside], edge_owner[inside]

        if self.level == "graph":
            present = self._remaining(kept, owner, first, instance.numel(), removal)
            place = torch.cumsum(present, 0) - 1
            return read(self._forward(instances, node[present], place[ends], edge, owner[present], instance.numel()))
        shift = first - instances.ptr[instance]
        center = instances.center[instance] + shift
        other = None if instances.other_end is None else instances.other_end[instance] + shift
        roots = center if other is None else torch.cat([center, other])
        if self.locality.local:
            present = self._receptive_field(roots, ends, node.numel())
        else:
            present = kept.clone()
            present[roots] = True
        like = self._first_alike(instances, instance, node, owner, present & kept)
        present &= (like == torch.arange(instance.numel(), device=like.device))[owner]
        inside = present[ends[0]] & present[ends[1]]
        place = torch.cumsum(present, 0) - 1
        union = instances, node[present], place[ends[:, inside]], edge[inside], owner[present], instance.numel()
        if other is None:
            return read(self._forward(*union)[place[center[like]]])
        evaluated, _, row = first_of_each(like)
        pairs = torch.stack([place[center[evaluated]], place[other[evaluated]]])
        return read(self._forward(*union, pairs)[row])

    @staticmethod
    def _remaining(kept: Tensor, owner: Tensor, first: Tensor, num_graphs: int, removal: str) -> Tensor:
        """Marks the nodes that stay in a graph, shape ``[sum of node counts]``."""
        if removal == "isolate":
            return torch.ones_like(kept)
        # A graph that lost every node still needs one, or pooling would skip it: an isolated first node.
        emptied = segment_sum(kept.long(), owner, num_graphs) == 0
        present = kept.clone()
        present[first[emptied]] = True
        return present

    def _first_alike(
        self, instances: Instances, instance: Tensor, node: Tensor, owner: Tensor, present: Tensor
    ) -> Tensor:
        """Finds queries that come down to the same receptive field; names the first such query, shape ``[Q]``."""
        keys = segment_sum(torch.where(present, instances.key[node], 0), owner, instance.numel())
        keys += instances.own_key[instance]
        _, first, group = first_of_each(keys)
        return first[group]

    def _receptive_field(self, center: Tensor, ends: Tensor, total: int) -> Tensor:
        """Marks the nodes that the prediction at ``center`` can depend on, shape ``[total]``.

        These reach the center in as many steps as there are layers; one step more is kept because degree
        normalisation looks at the neighbours of the outermost nodes.
        """
        reached = torch.zeros(total, dtype=torch.bool, device=center.device)
        reached[center] = True
        source, target = ends
        for _ in range(self.num_hops + 1):
            reached[source[reached[target]]] = True
        return reached

    def _forward(
        self,
        instances: Instances,
        node: Tensor,
        edge_index: Tensor,
        edge: Tensor,
        owner: Tensor,
        num_graphs: int,
        pairs: Tensor | None = None,
    ) -> Tensor:
        """Calls the model on the disjoint union, for links with the ends ``pairs`` of each, and checks the answer."""
        self.num_evaluations += num_graphs
        together = self.locality.together
        if together == "union":
            return self._evaluated(instances, node, edge_index, edge, pairs, num_graphs)
        # At node level, queries that come down to others are left out, and a batch counts on without gaps.
        batch = owner if self.level == "graph" else torch.unique(owner, return_inverse=True)[1]
        if together == "batch":
            return self._evaluated(instances, node, edge_index, edge, pairs, num_graphs, batch)
        node_ptr = pointers(torch.bincount(batch)).tolist()
        edge_ptr = pointers(torch.bincount(batch[edge_index[0]], minlength=len(node_ptr) - 1)).tolist()
        answers = []
        for number, first in enumerate(node_ptr[:-1]):
            nodes, edges = slice(first, node_ptr[number + 1]), slice(edge_ptr[number], edge_ptr[number + 1])
            pair = None if pairs is None else pairs[:, number : number + 1] - first
            answers.append(self._evaluated(instances, node[nodes], edge_index[:, edges] - first, edge[edges], pair, 1))
        return torch.cat(answers)

    def _evaluated(
        self,
        instances: Instances,
        node: Tensor,
        edge_index: Tensor,
        edge: Tensor,
        pairs: Tensor | None,
        num_graphs: int,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Calls the model once, on rows ``node`` and ``edge`` of instances, and checks the answer."""
        arguments: dict[str, Any] = dict(instances.shared_arguments)
        arguments |= {name: value[node] for name, value in instances.node_arguments.items()}
        arguments |= {name: value[edge] for name, value in instances.edge_arguments.items()}
        x, rows = instances.rows(node), num_graphs if self.level == "graph" else node.numel()
        if pairs is not None:
            arguments, rows = arguments | {"edge_label_index": pairs}, pairs.size(1)
        if batch is not None:
            arguments["batch"] = batch
        return self.checked(self.call(x, edge_index, arguments), rows)

    def call(self, x: Tensor, edge_index: Tensor, arguments: dict[str, Any], hidden: Tensor | None = None) -> Any:
        """Calls the model on a part of the graph, with NaN for the features of the ``hidden`` nodes ``[n]``."""
        if hidden is not None:
            x = x.masked_fill(hidden[:, None], torch.nan)
        return self._call(x, edge_index, arguments, "on a part of the graph")

    def _call(self, x: Tensor, edge_index: Tensor, arguments: dict[str, Any], where: str) -> Any:
        here, named = x.device, {"x": x, "edge_index": edge_index, **arguments}
        if self.locality.writes:
            named = {name: value.clone() if isinstance(value, Tensor) else value for name, value in named.items()}
        if self.device is not None and self.device != here:
            named = {name: _at(self.device, value) for name, value in named.items()}
        given = dict(named)
        try:
            return _at(here, self.model(given.pop("x"), given.pop("edge_index"), **given))
        except Exception as error:
            raise ModelError(
                f"{shown_name(self.model)} failed when called with ({', '.join(named)}) {where}: "
                f"{type(error).__name__}: {str(error).rstrip('.')}{remedy(self.model, error, named)}"
            ) from error

    @property
    def way(self) -> tuple[Any, ...]:
        """What else decides how the model is called."""
        return ()

    def predicted(self, num_nodes: int) -> tuple[slice, ...]:
        """Returns which of the nodes may be predicted at, or be the first and the second end of a link."""
        return (slice(0, num_nodes),) * (2 if self.level == "edge" else 1)

    def observe(self, x: Tensor, edge_index: Tensor, arguments: dict[str, Any], rows: int) -> tuple[Tensor, Tensor]:
        """Evaluates the model on a graph: its checked output ``[rows, C]``, and its embeddings ``[N, H]``.

        What a model of links predicts depends on the link, so nothing is returned of that: ``C`` is 0.
        """
        if self.level == "edge":
            anything = edge_index.new_zeros(2, 1)
            return x.new_zeros(rows, 0), self._observe(x, edge_index, arguments | {"edge_label_index": anything})[1]
        output, embedding = self._observe(x, edge_index, arguments)
        return self.checked(output, rows), embedding

    def _observe(self, x: Tensor, edge_index: Tensor, arguments: dict[str, Any]) -> tuple[Any, Tensor]:
        """Calls the model on a whole graph, and keeps what its message-passing layers put out at every node."""
        seen: list[Tensor] = []

        def keep(_name: str, output: Any, _given: tuple[Any, ...]) -> None:
            if isinstance(output, Tensor) and output.dim() >= 2 and output.size(0) == x.size(0):
                seen.append(output.detach().flatten(1).to(x.device))

        with self.evaluating():
            layers = [(name, m) for name, m in self.model.named_modules() if isinstance(m, MessagePassing)]
            with outputs_seen(layers, keep):
                output = self._call(x, edge_index, arguments, "on the whole graph")
        return output, torch.cat(seen, dim=1) if seen else x.new_zeros(x.size(0), 0)

    def checked(self, output: Any, rows: int) -> Tensor:
        """Refuses an output that has the wrong shape or is not finite."""
        name = shown_name(self.model)
        return checked_output(name, output, rows, level=self.level, mode=self.mode, return_type=self.return_type)

    def read(self, output: Tensor) -> Tensor:
        """Turns what the model returns ``[Q, C]`` into probabilities, or values for regression."""
        return read_output(output, self.mode, self.return_type)

    def read_log(self, output: Tensor) -> Tensor:
        """Turns what the model returns ``[Q, C]`` into log-probabilities, or values for regression."""
        return read_log_output(output, self.mode, self.return_type)


def _at(device: torch.device, value: Any) -> Any:
    """Brings a tensor to a device; other values are the same everywhere."""
    return value.to(device) if isinstance(value, Tensor) else value
