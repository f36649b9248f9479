"""One prediction to explain, and what the GNN predicts on parts of its graph that are really cut out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.utils import k_hop_subgraph

from gflowbench.datasets import Benchmark
from gflowbench.datasets.task_truth import TaskTruth
from gflowbench.models.model_accuracy import logits
from gflowexplainer.errors import InstanceError

_NODES_AT_ONCE = 60_000


@dataclass(frozen=True, eq=False)
class Case:
    """A graph, or the computation graph of a node, with the prediction that is explained.

    Attributes:
        instance: Position of the graph in its task, or id of the node.
        x: Node features, shape ``[n, F]``.
        edge_index: Edges, shape ``[2, e]``.
        nodes: Ids of the nodes in the graph of the task, shape ``[n]``.
        center: The explained node among the ``n``; ``None`` at graph level.
        target: The predicted class, of which the probability is explained; ``None`` for values.
        truth: What decides the label, in terms of the ``n`` nodes; ``None`` where nobody knows.
    """

    instance: int
    x: Tensor
    edge_index: Tensor
    nodes: Tensor
    center: int | None
    target: int | None
    truth: TaskTruth | None = None

    @property
    def num_nodes(self) -> int:
        """Number of nodes ``n``."""
        return self.x.size(0)

    def mask(self, nodes: Sequence[int]) -> Tensor:
        """Returns the mask of some nodes, shape ``[n]``."""
        mask = torch.zeros(self.num_nodes, dtype=torch.bool)
        mask[list(nodes)] = True
        return mask

    def neighbors(self) -> list[list[int]]:
        """Returns the neighbours of every node, whatever the direction of the edges, ascending."""
        found: list[set[int]] = [set() for _ in range(self.num_nodes)]
        for a, b in self.edge_index.t().tolist():
            if a != b:
                found[a].add(b)
                found[b].add(a)
        return [sorted(nodes) for nodes in found]


def make_cases(
    model: nn.Module, task: Benchmark, instances: Sequence[int], *, correct: bool = True, num_hops: int | None = None
) -> list[Case]:
    """Makes the cases of some instances; what is explained is the class that the GNN predicts.

    Args:
        model: The GNN.
        task: The task.
        instances: Positions of graphs, or node ids.
        correct: Whether to leave out instances whose class the GNN gets wrong: their truth is not the GNN's.
        num_hops: Hops of a computation graph; by default the layers of the task. GCN needs one more.
    """
    members = torch.tensor(list(instances), dtype=torch.long)
    if not members.numel():
        return []
    classes = None if task.is_regression else logits(model, task, members=members).argmax(dim=1)
    right = torch.ones(len(members), dtype=torch.bool)
    if classes is not None and correct:
        right = classes == task.labels(members)
    hops = task.num_layers or 0 if num_hops is None else num_hops
    cases = []
    for number, instance in enumerate(members.tolist()):
        if right[number]:
            target = None if classes is None else int(classes[number])
            cases.append(_case(task, instance, target, hops))
    return cases


def _case(task: Benchmark, instance: int, target: int | None, hops: int) -> Case:
    truth = task.truths.get(instance)
    if task.task == "graph":
        graph = task.graphs[instance]
        return Case(instance, graph.x, graph.edge_index, torch.arange(graph.num_nodes), None, target, truth)
    graph = task.graphs[0]
    nodes, edge_index, mapping, _ = k_hop_subgraph(
        instance, hops, graph.edge_index, relabel_nodes=True, num_nodes=graph.num_nodes
    )
    local = None if truth is None else truth.within(nodes)
    return Case(instance, graph.x[nodes], edge_index, nodes, int(mapping), target, local)


@torch.no_grad()
def predict_cases(model: nn.Module, cases: Sequence[Case], masks: Sequence[Tensor]) -> list[Tensor]:
    """Predicts on induced subgraphs: the other nodes are gone, with their edges. The explained node always stays.

    Args:
        model: The GNN, in eval mode.
        cases: ``I`` cases.
        masks: For each of them the nodes that are kept, ``M_i`` subgraphs at a time, shape ``[M_i, n_i]``.

    Returns:
        For each case the probability of its class, or the value, on each subgraph, shape ``[M_i]``. A graph without
        any node counts as one node without features.
    """
    if len(cases) != len(masks):
        raise InstanceError(f"{len(cases)} cases need as many masks (got {len(masks)}).")
    results = [torch.empty(len(mask), dtype=torch.double) for mask in masks]
    for pieces in _chunks(cases, masks):
        for (case, begin, part), values in zip(pieces, _predict_chunk(model, cases, pieces), strict=True):
            results[case][begin : begin + len(part)] = values
    return results


def whole_predictions(model: nn.Module, cases: Sequence[Case]) -> Tensor:
    """Returns the probability of the class, or the value, of each case on all of its nodes, shape ``[I]``."""
    everything = [torch.ones(1, case.num_nodes, dtype=torch.bool) for case in cases]
    return torch.cat(predict_cases(model, cases, everything)) if cases else torch.empty(0, dtype=torch.double)


Piece = tuple[int, int, Tensor]


def _chunks(cases: Sequence[Case], masks: Sequence[Tensor]) -> Iterator[list[Piece]]:
    """Yields (case, first row, masks) pieces that are evaluated at once."""
    chunk: list[Piece] = []
    size = 0
    for number, (case, mask) in enumerate(zip(cases, masks, strict=True)):
        begin = 0
        for part in mask.split(max(1, _NODES_AT_ONCE // max(case.num_nodes, 1))) if len(mask) else ():
            if chunk and size + part.numel() > _NODES_AT_ONCE:
                yield chunk
                chunk, size = [], 0
            chunk.append((number, begin, part))
            size += part.numel()
            begin += len(part)
    if chunk:
        yield chunk


def _predict_chunk(model: nn.Module, cases: Sequence[Case], pieces: list[Piece]) -> list[Tensor]:
    """Evaluates the pieces as one disjoint graph; returns the values of each piece."""
    xs, edges, rows, centers, targets = [], [], [], [], []
    num_nodes = num_rows = 0
    for number, _, part in pieces:
        case = cases[number]
        kept = part.clone()
        x = case.x
        if case.center is not None:
            kept[:, case.center] = True
        elif bool((~kept.any(dim=1)).any()):
            # A last node without features stands for graphs that have lost all of theirs.
            kept = torch.cat([kept, ~kept.any(dim=1, keepdim=True)], dim=1)
            x = torch.cat([x, torch.zeros_like(x[:1])])
        place = kept.flatten().cumsum(0).view_as(kept) - 1 + num_nodes
        row, node = kept.nonzero(as_tuple=True)
        source, target = case.edge_index
        inside, edge = (kept[:, source] & kept[:, target]).nonzero(as_tuple=True)
        xs.append(x[node])
        edges.append(torch.stack([place[inside, source[edge]], place[inside, target[edge]]]))
        rows.append(row + num_rows)
        if case.center is not None:
            centers.append(place[:, case.center])
        targets.append(torch.full((len(part),), -1 if case.target is None else case.target))
        num_nodes += len(node)
        num_rows += len(part)
    x, edge_index, batch, target = torch.cat(xs), torch.cat(edges, dim=1), torch.cat(rows), torch.cat(targets)
    output = model(x, edge_index)[torch.cat(centers)] if centers else model(x, edge_index, batch)
    output = output.double()
    values = output[:, 0] if int(target[0]) < 0 else output.softmax(dim=1).gather(1, target[:, None])[:, 0]
    return list(values.split([len(part) for _, _, part in pieces]))
