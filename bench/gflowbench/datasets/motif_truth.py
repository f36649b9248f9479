"""Ground truth of a graph: which edges form motifs, and which motif a node belongs to."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data


def complete_ground_truth(graph: Data) -> Data:
    """Fills in whichever of ``edge_motif`` and ``motif_id`` is missing, in place, and makes marks symmetric.

    A graph with neither is left as it is: it has no ground truth.
    """
    if "edge_motif" in graph:
        graph.edge_motif = symmetric(graph.edge_index, graph.edge_motif.bool())
        if "motif_id" not in graph:
            graph.motif_id = motifs_of_edges(graph.edge_index, graph.edge_motif, int(graph.num_nodes or 0))
    elif "motif_id" in graph:
        graph.edge_motif = edges_of_motifs(graph.edge_index, graph.motif_id)
    if "motif_id" in graph:
        graph.motif_id = graph.motif_id.long()
    return graph


def edges_of_motifs(edge_index: Tensor, motif_id: Tensor) -> Tensor:
    """Marks the edges whose two ends lie in one motif; self loops are no motif edges. Shape ``[E]``."""
    source, target = edge_index
    return (motif_id[source] >= 0) & (motif_id[source] == motif_id[target]) & (source != target)


def motifs_of_edges(edge_index: Tensor, edge_motif: Tensor, num_nodes: int) -> Tensor:
    """Numbers the connected components of the marked edges, by smallest node id.

    Args:
        edge_index: Edges, shape ``[2, E]``.
        edge_motif: Marks, shape ``[E]``.
        num_nodes: ``N``.

    Returns:
        Motif of each node, shape ``[N]``; -1 for nodes without a marked edge.
    """
    source, target = edge_index[:, edge_motif].cpu().numpy()
    adjacency = coo_matrix((np.ones(len(source), dtype=np.int8), (source, target)), shape=(num_nodes, num_nodes))
    component = connected_components(adjacency, directed=False)[1]
    inside = np.zeros(num_nodes, dtype=bool)
    inside[source] = inside[target] = True
    motif_id = np.full(num_nodes, -1, dtype=np.int64)
    _, first, number = np.unique(component[inside], return_index=True, return_inverse=True)
    motif_id[inside] = np.argsort(np.argsort(first))[number]
    return torch.from_numpy(motif_id)


def role_in_motif(motif_id: Tensor) -> Tensor:
    """Place of each node in its motif, counted by node id; -1 outside all motifs. Shape ``[N]``."""
    nodes = (motif_id >= 0).nonzero().view(-1)
    order = torch.argsort(motif_id[nodes], stable=True)
    sizes = torch.bincount(motif_id[nodes])
    starts = sizes.cumsum(0) - sizes
    role = torch.full_like(motif_id, -1)
    role[nodes[order]] = torch.arange(len(nodes)) - starts[motif_id[nodes[order]]]
    return role


def symmetric(edge_index: Tensor, marks: Tensor) -> Tensor:
    """Marks an edge if it is marked in either direction. Shape ``[E]``."""
    if not marks.any():
        return marks
    size = int(edge_index.max()) + 1
    low, high = edge_index.min(dim=0).values, edge_index.max(dim=0).values
    pair = low * size + high
    return torch.isin(pair, pair[marks])
