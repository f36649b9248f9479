"""What the policy is told about each node."""

import torch
from torch import Tensor

from gflowexplainer.graphs.flat_graphs import WIDE
from gflowexplainer.graphs.instances import Instances


def node_features(instances: Instances, embedding: Tensor | None, max_hops: int) -> Tensor:
    """Puts together input features, position and, where given, the explained model's embeddings.

    Args:
        instances: Instances with ``n`` nodes.
        embedding: The model's node embeddings, shape ``[n, H]``, or ``None``.
        max_hops: Distances to the explained node are told apart up to this one.

    Returns:
        Features of shape ``[n, D]``: ``x`` (unless it is wide and embeddings are given), log-degree, distance to the
        explained node as an indicator for each distance (all 0 at graph level), the same of the distance to the other
        end of a link, and embeddings.
    """
    hops = instances.hops_to_center(max_hops + 1)
    steps = torch.arange(max_hops + 1, device=hops.device)
    parts = [torch.log1p(instances.degree)[:, None].float(), (hops[:, None] == steps).float()]
    if embedding is None or instances.x.size(1) <= WIDE:
        parts.insert(0, instances.rows().float())
    if instances.other_end is not None:
        parts.append((instances.hops_to_other_end[:, None] == steps).float())
    if embedding is not None:
        parts.append(embedding.float())
    return torch.cat(parts, dim=1)
