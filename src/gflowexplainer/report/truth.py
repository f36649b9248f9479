"""What is known to be the right explanation, where a graph comes with it."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data


def own_motif(graph: Data, node: int | None) -> Tensor | None:
    """Returns marks of the edges of the motif that ``node``, or the whole graph if ``None``, belongs to.

    Args:
        graph: A graph; ``edge_motif`` ``[E]`` marks its motif edges, ``motif_id`` ``[N]`` numbers the motifs.
        node: The explained node.

    Returns:
        Marks, shape ``[E]``; ``None`` where no motif is known.
    """
    if "edge_motif" not in graph:
        return None
    marks = graph.edge_motif.bool().cpu()
    if node is not None:
        motif_id = graph.motif_id.cpu()
        marks = marks & (motif_id[graph.edge_index.cpu()] == motif_id[node]).all(dim=0) & (motif_id[node] >= 0)
    return marks if bool(marks.any()) else None
