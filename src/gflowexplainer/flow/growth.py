"""Random growth: the prior of the sampler, as single subgraphs."""

from __future__ import annotations

from torch import Tensor

from gflowexplainer.flow.sampling import grow_uniformly, roll_out
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs


def grow_at_random(
    instances: Instances, instance: Tensor, start: Tensor | None, max_nodes: int, key: Tensor
) -> Subgraphs:
    """Adds one neighbour after the other, each with equal chance, until there are ``max_nodes`` nodes or no more.

    Args:
        instances: The instances.
        instance: Instance of each subgraph, shape ``[R]``.
        start: Node that each begins with, shape ``[R]``; ``None`` begins with any node.
        max_nodes: Size bound.
        key: A random key of each, shape ``[R]``.
    """
    return roll_out(instances, instance, start, max_nodes, grow_uniformly, key, cuts=False).subgraphs
