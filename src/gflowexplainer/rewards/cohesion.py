r"""How far a subgraph holds together: how many of its nodes' edges stay inside.

An edge between nodes of degrees :math:`d_u` and :math:`d_v` in the user's graph counts
:math:`2 / \sqrt{d_u d_v}`, as in the normalised adjacency matrix of a GCN. So a place that hardly an edge leaves counts
about one for each of its nodes, however large it is, and a few hubs count little, though they have many edges among
them.

Evidence counts by the node, so around an explained one the few that say most stand alone, and lack others of their
place that the model hardly tells from the rest. Where much is lacking, a place that holds together is preferred: a
node all of whose edges stay inside counts twice what a node of the best subgraphs says, if such places do about as much
to the model and are needed. Where others would hold the class too, as in citation graphs, there is no place to show.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_edges
from gflowexplainer.ops.segments import segment_max
from gflowexplainer.rewards.effect import WEAKER, Effect
from gflowexplainer.rewards.evidence import num_relations
from gflowexplainer.rewards.fitting import Fitting

LACKING = 0.3
"""By how much less probable a class has to be with only the best subgraphs for them to lack much."""
COHESION = 2.0
"""What a node all of whose edges stay inside counts where subgraphs should hold together, as a multiple of what a node
of the best says."""
NEEDED = 1 / 3
"""By how much less probable it has to be without those, for nothing else to stand in for them."""


def closeness(instances: Instances) -> Tensor:
    """Returns what every neighbour entry counts, shape ``[m]``; an edge counts the same from either end."""
    degree = instances.whole_degree.double()
    return 2 / (degree[instances.neighbor_row] * degree[instances.neighbor]).sqrt()


def cohesion_of(instances: Instances, subgraphs: Subgraphs) -> Tensor:
    """Sums up the closeness of the edges inside each subgraph, shape ``[B]``."""
    inner = inner_edges(instances, subgraphs)
    total = torch.zeros(len(subgraphs), dtype=torch.double, device=subgraphs.members.device)
    return total.index_add_(0, inner.subgraph, closeness(instances)[inner.entry])


def find_cohesion(fitting: Fitting, rating: Tensor) -> float:
    """Returns what it counts, beside shared evidence, that a subgraph holds together; 0 where only evidence counts.

    Only of explained nodes, where all edges are alike; it counts only where such subgraphs do as much to the model.

    Args:
        fitting: What the evidence was fitted to.
        rating: The evidence per node of its subgraphs, shape ``[B]``.
    """
    instances, subgraphs = fitting.inputs.instances, fitting.subgraphs
    if instances.level == "graph" or instances.other_end is not None or num_relations(instances):
        return 0.0
    best = fitting.effect(rating)
    if best is None or not is_lacking(best):
        return 0.0
    strongest = segment_max(rating, subgraphs.instance, len(instances))
    counted = COHESION * float(strongest.median())
    together = fitting.effect(rating + counted * cohesion_of(instances, subgraphs) / subgraphs.size)
    return counted if counted > 0 and together is not None and is_a_place(together, best) else 0.0


def is_lacking(best: Effect) -> bool:
    """Returns whether subgraphs with most evidence per node lack so much that others may be better."""
    return best.lacking > LACKING


def is_a_place(together: Effect, best: Effect) -> bool:
    """Returns whether subgraphs that hold together do as much as those with most evidence per node, and are needed."""
    return together.size >= best.size - WEAKER and together.needed > NEEDED
