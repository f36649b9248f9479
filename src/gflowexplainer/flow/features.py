"""What the policy is told about each node."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gflowexplainer.graphs.flat_graphs import WIDE
from gflowexplainer.graphs.instances import Instances

_TABLE = 1024
"""Degrees whose logarithms are kept."""


def node_features(
    instances: Instances, embedding: Tensor | None, max_hops: int, values: Tensor | None = None
) -> Tensor:
    """Puts together input features, position and, where given, the explained model's embeddings.

    Args:
        instances: Instances with ``n`` nodes.
        embedding: The model's node embeddings, shape ``[n, H]``, or ``None``.
        max_hops: Distances to the explained node are told apart up to this one.
        values: What else is known of each node, shape ``[n, V]``, or ``None``.

    Returns:
        Features of shape ``[n, D]``: ``x`` (unless it is wide and embeddings are given), log-degree, distance to the
        explained node as an indicator for each distance (all 0 at graph level), the same of the distance to the other
        end of a link, embeddings and values.
    """
    if instances.x.is_cpu and instances.other_end is None:
        return _on_cpu(instances, embedding, max_hops, values)
    hops = instances.hops_to_center(max_hops + 1)
    steps = torch.arange(max_hops + 1, device=hops.device)
    parts = [torch.log1p(instances.degree)[:, None].float(), (hops[:, None] == steps).float()]
    if embedding is None or instances.x.size(1) <= WIDE:
        parts.insert(0, instances.rows().float())
    if instances.other_end is not None:
        parts.append((instances.hops_to_other_end[:, None] == steps).float())
    parts += [told.float() for told in (embedding, values) if told is not None]
    return torch.cat(parts, dim=1)


@lru_cache(maxsize=1)
def _logarithm_table() -> NDArray[Any]:
    return torch.log1p(torch.arange(_TABLE)).numpy()


def _logarithms(instances: Instances) -> NDArray[Any]:
    """Returns the log-degree of each node, shape ``[n]``; small ones are looked up."""
    degree = instances.array("degree")
    if degree.size <= _TABLE and int(degree.max(initial=0)) < _TABLE:
        return _logarithm_table()[degree]
    return torch.log1p(instances.degree).float().numpy()


def _on_cpu(instances: Instances, embedding: Tensor | None, max_hops: int, values: Tensor | None) -> Tensor:
    """Does the same by NumPy, which begins sooner."""
    # A node that is not reached has no steps.
    hops = instances.steps_to_center(max_hops + 1)
    parts = [_logarithms(instances)[:, None], hops[:, None] == np.arange(max_hops + 1)]
    if embedding is None or instances.x.size(1) <= WIDE:
        parts.insert(0, instances.rows().detach().numpy())
    parts += [told.detach().numpy() for told in (embedding, values) if told is not None]
    return torch.from_numpy(np.concatenate(parts, axis=1, dtype=np.float32, casting="unsafe"))
