"""Explained molecules to look at: connected subgraphs of ours, and the best edges of PGExplainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowbench.metrics import GroundTruth
from gflowbench.metrics.selection import counts_of
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.paper.cases import OURS, most_probable
from gflowbench.protocol import Loaded, Problem
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.sources.smiles import ATOMS

PG, LARGER = "PGExplainer", "GFlowExplainer, 8 to 10 atoms"
ATOMS_AT_LEAST = {"min_nodes": 8, "max_nodes": 10}
"""Size of explanations with room for a ring, as the paper shows them."""
GROUPS = {"NO2": "O", "NH2": "H"}
"""Groups of a mutagenic molecule by the element that hangs on the nitrogen twice."""
LARGEST = 32
"""Atoms of a molecule that is shown, at most."""


def molecule_cases(problem: Problem, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Explains molecules by ours, of any size and of some size, and by as many best edges of PGExplainer as the latter.

    Returns:
        ``"shown"``: the first molecule with a carbon ring and an NO2 group, and the first with one and an NH2 group;
        ``"scores"``: over all molecules, how often each explainer's choice is ``"connected"``, its mean number of
        ``"pieces"``, the share of the motif's atoms that is ``"found"``, how often it touches a carbon ``"ring"``.
    """
    loaded = problem.load()
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    instances = subject.instances
    truth = GroundTruth.of(loaded.benchmark, subject)
    assert truth is not None
    edges = UndirectedEdges.of(instances)
    chosen, larger = (most_probable(loaded, subject, {**ours, **sizes}) for sizes in ({}, ATOMS_AT_LEAST))
    small, inside = (nodes[edges.ends].all(dim=0) for nodes in (chosen, larger))
    peer = create("pgexplainer")
    peer.fit(subject, 0)
    best = first_edges(edges, edges.merge(peer.explain(subject, 0).edge), inside, len(instances))
    touched = torch.zeros_like(chosen)
    touched[edges.ends[:, best].flatten()] = True
    ring = carbon_rings(instances, edges)
    scores = {}
    for name, kept, nodes in ((OURS, small, chosen), (LARGER, inside, larger), (PG, best, touched)):
        size, motif = counts_of(instances, truth.node), counts_of(instances, nodes & truth.node)
        scores[name] = {
            "pieces": float(pieces(instances, edges, kept, nodes).double().mean()),
            "connected": float((pieces(instances, edges, kept, nodes) == 1).double().mean()),
            "found": float((motif / size.clamp(min=1)).double()[size > 0].mean()),
            "ring": float((counts_of(instances, nodes & ring) > 0).double().mean()),
        }
    shown = [
        _molecule(loaded, subject, place, edges, (chosen, larger), best, edges.merge(truth.own)) | {"group": group}
        for group, place in _with_groups(loaded, subject, ring, truth.node).items()
    ]
    return {"shown": shown, "scores": scores, "instances": len(subject)}


def first_edges(edges: UndirectedEdges, score: Tensor, like: Tensor, num_instances: int) -> Tensor:
    """Marks the best undirected edges of each instance, as many as ``like`` ``[p]`` marks there, shape ``[p]``."""
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(edges.owner[order], stable=True)]
    first = torch.searchsorted(edges.owner[order].contiguous(), torch.arange(num_instances, device=order.device))
    wanted = torch.bincount(edges.owner[like], minlength=num_instances)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=order.device) - first[edges.owner[order]]
    return rank < wanted[edges.owner]


def pieces(instances: Instances, edges: UndirectedEdges, kept: Tensor, nodes: Tensor) -> Tensor:
    """Counts the components that the edges ``kept`` ``[p]`` and the nodes ``nodes`` ``[n]`` make, shape ``[I]``."""
    ends = edges.ends[:, kept].cpu().numpy()
    count = instances.num_nodes
    matrix = coo_array(([1] * ends.shape[1], (ends[0], ends[1])), shape=(count, count))
    component = torch.from_numpy(connected_components(matrix, directed=False)[1]).long()
    pairs = torch.unique(torch.stack([instances.owner.cpu(), component])[:, nodes.cpu()], dim=1)
    return torch.bincount(pairs[0], minlength=len(instances))


def carbon_rings(instances: Instances, edges: UndirectedEdges) -> Tensor:
    """Marks carbons that are left when ends of chains of carbons are taken off, again and again, shape ``[n]``."""
    left = instances.x[:, ATOMS.index("C")] > 0
    while True:
        inside = left[edges.ends].all(dim=0)
        degree = torch.bincount(edges.ends[:, inside].flatten(), minlength=instances.num_nodes)
        fewer = left & (degree >= 2)
        if torch.equal(fewer, left):
            return left
        left = fewer


def _with_groups(loaded: Loaded, subject: Subject, ring: Tensor, motif: Tensor) -> dict[str, int]:
    """Finds for each group the first molecule that has it and a carbon ring, and is neither large nor misjudged."""
    instances = subject.instances
    ringed = counts_of(instances, ring) > 0
    label = subject.target.label
    found: dict[str, int] = {}
    for group, element in GROUPS.items():
        has = counts_of(instances, motif & (instances.x[:, ATOMS.index(element)] > 0)) > 0
        for place in torch.nonzero(has & ringed & (instances.node_counts <= LARGEST)).flatten().tolist():
            true = int(loaded.benchmark.graphs[int(subject.index[place])].y)
            if place not in found.values() and (label is None or int(label[place]) == true):
                found[group] = place
                break
    return found


def _molecule(
    loaded: Loaded,
    subject: Subject,
    place: int,
    edges: UndirectedEdges,
    chosen: tuple[Tensor, Tensor],
    best: Tensor,
    truth: Tensor,
) -> dict[str, Any]:
    instances = subject.instances
    begin, end = int(instances.ptr[place]), int(instances.ptr[place + 1])
    graph = loaded.benchmark.graphs[int(subject.index[place])]
    pairs = graph.edge_index.t().tolist()
    orders = dict(zip(map(tuple, pairs), (graph.edge_type + 1).tolist(), strict=True))
    own = torch.nonzero(edges.owner == place).flatten()
    ends: Sequence[tuple[int, int]] = [(i - begin, j - begin) for i, j in edges.ends[:, own].t().tolist()]
    return {
        "index": int(subject.index[place]),
        "symbols": [ATOMS[kind] for kind in instances.x[begin:end].argmax(dim=1).tolist()],
        "edges": [[i, j] for i, j in ends],
        "orders": [orders[i, j] for i, j in ends],
        "truth": truth[own].tolist(),
        "nodes": {name: nodes[begin:end].tolist() for name, nodes in zip((OURS, LARGER), chosen, strict=True)},
        "best": best[own].tolist(),
    }
