"""Single explanations to look at: which nodes of an instance ours and others choose, as plain lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gflowbench.datasets import Benchmark
from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowbench.metrics import GroundTruth
from gflowbench.metrics.selection import counts_of
from gflowbench.metrics.shape import is_connected
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.protocol import Loaded, Problem
from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs.instances import Instances

OURS, RG = "GFlowExplainer", "RG-Explainer"


def motif_cases(problem: Problem, rg: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Explains all instances by ours and by RG-Explainer.

    Args:
        problem: Dataset and GNN.
        rg: Settings of RG-Explainer.
        ours: Settings of ours.

    Returns:
        ``"shown"``: the instance in the middle (of graphs, one whose motif is a ring); ``"scores"``: for each explainer
        the mean number of ``"nodes"``, share ``"inside"`` the motif, share of the motif that is ``"found"``, and
        ``"overlap"``, the nodes in both over those in either.
    """
    loaded = problem.load()
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    truth = GroundTruth.of(loaded.benchmark, subject)
    assert truth is not None
    peer = create("rg-explainer", **rg)
    peer.fit(subject, 0)
    order = peer.explain(subject, 0).order
    assert order is not None
    grown = torch.zeros(subject.instances.num_nodes, dtype=torch.bool, device=order.device)
    grown[order[order >= 0]] = True
    found = {OURS: most_probable(loaded, subject, ours), RG: grown}
    shown = _middle(subject.instances, truth, loaded.benchmark)
    return {
        "shown": _case(subject.instances, shown, truth.node, found) | {"index": int(subject.index[shown])},
        "scores": {name: _score(subject.instances, mask, truth.node) for name, mask in found.items()},
        "instances": len(subject),
    }


def most_probable(loaded: Loaded, subject: Subject, settings: Mapping[str, Any]) -> Tensor:
    """Marks the most probable subgraph of each instance as a user of the explainer gets it, shape ``[n]``."""
    benchmark, index = loaded.benchmark, subject.index.tolist()
    data = benchmark.graphs[0] if benchmark.task == "node" else benchmark.graphs
    config = {"mode": "multiclass_classification", "task_level": benchmark.task, "return_type": "raw"}
    algorithm = GFlowExplainer(**settings)
    algorithm.fit(loaded.model, data, index, progress=False, model_config=config)
    explanations = algorithm.explain(loaded.model, data, index, progress=False, model_config=config)
    ids = subject.instances.node_id.split(subject.instances.node_counts.tolist())
    chosen = [e.subgraphs[0].nodes for e in explanations]
    return torch.cat([torch.isin(a, torch.tensor(b, device=a.device)) for a, b in zip(ids, chosen, strict=True)])


def _middle(instances: Instances, truth: GroundTruth, benchmark: Benchmark) -> int:
    """Takes the instance in the middle; of graphs, of those whose motif has as many edges as nodes."""
    every = torch.arange(len(instances))
    if benchmark.task == "graph":
        edges = UndirectedEdges.of(instances)
        rings = torch.bincount(edges.owner[edges.merge(truth.own)], minlength=len(instances))
        as_many = (rings == counts_of(instances, truth.node)).cpu()
        every = every[as_many] if as_many.any() else every
    return int(every[len(every) // 2])


def _case(instances: Instances, place: int, motif: Tensor, found: Mapping[str, Tensor]) -> dict[str, Any]:
    """Lists what is drawn of an instance: all of a graph; of a node's surroundings what is chosen or in the motif."""
    begin, end = int(instances.ptr[place]), int(instances.ptr[place + 1])
    nodes = torch.arange(begin, end, device=instances.device)
    center = int(instances.center[place])
    if instances.level == "node":
        wanted = torch.stack([*found.values(), motif]).any(dim=0)
        wanted[center] = True
        nodes = nodes[wanted[begin:end]]
    slot = {node: number for number, node in enumerate(nodes.tolist())}
    ends = UndirectedEdges.of(instances).ends.t().tolist()
    return {
        "nodes": instances.node_id[nodes].tolist(),
        "edges": [[slot[i], slot[j]] for i, j in ends if i in slot and j in slot],
        "motif": motif[nodes].tolist(),
        "center": slot.get(center),
        "found": {name: mask[nodes].tolist() for name, mask in found.items()},
    }


def _score(instances: Instances, mask: Tensor, motif: Tensor) -> dict[str, float]:
    chosen, both = counts_of(instances, mask), counts_of(instances, mask & motif)
    size = counts_of(instances, motif)
    known = size > 0
    return {
        "nodes": float(chosen.double().mean()),
        "inside": float((both / chosen.clamp(min=1)).double()[known].mean()),
        "found": float((both / size.clamp(min=1)).double()[known].mean()),
        "overlap": float((both / (chosen + size - both).clamp(min=1)).double()[known].mean()),
        "connected": float(is_connected(instances, mask).double().mean()),
    }
