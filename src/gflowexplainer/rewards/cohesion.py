r"""How far a subgraph holds together: how many of its nodes' edges stay inside.

An edge between nodes of degrees :math:`d_u` and :math:`d_v` in the user's graph counts
:math:`2 / \sqrt{d_u d_v}`, as in the normalised adjacency matrix of a GCN. So a place that hardly an edge leaves counts
about one for each of its nodes, however large it is, and a few hubs count little, though they have many edges among
them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_edges


def closeness(instances: Instances) -> Tensor:
    """Returns what every neighbour entry counts, shape ``[m]``; an edge counts the same from either end."""
    degree = instances.whole_degree.double()
    return 2 / (degree[instances.neighbor_row] * degree[instances.neighbor]).sqrt()


def cohesion_of(instances: Instances, subgraphs: Subgraphs) -> Tensor:
    """Sums up the closeness of the edges inside each subgraph, shape ``[B]``."""
    inner = inner_edges(instances, subgraphs)
    total = torch.zeros(len(subgraphs), dtype=torch.double, device=subgraphs.members.device)
    return total.index_add_(0, inner.subgraph, closeness(instances)[inner.entry])
