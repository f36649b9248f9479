"""Splits of datasets: 80 / 10 / 10 with the cuts of the published files, and 70 / 10 / 20 of generated tasks."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data


def split_positions(permutation: np.ndarray) -> dict[str, Tensor]:
    """Cuts a permutation at 80 and 90 percent.

    Args:
        permutation: The positions ``0 .. n - 1`` in random order, shape ``[n]``.

    Returns:
        Sorted positions of ``train``, ``val`` and ``test``.
    """
    count = len(permutation)
    train, val, test = np.split(permutation, [int(0.8 * count), int(0.9 * count)])
    return {
        key: torch.from_numpy(np.sort(part).astype(np.int64))
        for key, part in (("train", train), ("val", val), ("test", test))
    }


def add_masks(graph: Data, permutation: np.ndarray) -> Data:
    """Puts ``train_mask``, ``val_mask`` and ``test_mask`` (bool, ``[N]``) on a graph, in place."""
    for key, nodes in split_positions(permutation).items():
        mask = torch.zeros(len(permutation), dtype=torch.bool)
        mask[nodes] = True
        graph[f"{key}_mask"] = mask
    return graph


def published_permutation(count: int) -> np.ndarray:
    """The shuffle of the published graph datasets, from a local generator. Shape ``[count]``."""
    return np.random.RandomState(42).permutation(count)


def cut_in_order(num_instances: int, *, val: float = 0.1, test: float = 0.2) -> dict[str, Tensor]:
    """Cuts ``num_instances`` that are already in random order into train, validation and test instances."""
    num_val, num_test = round(val * num_instances), round(test * num_instances)
    ends = [num_instances - num_val - num_test, num_instances - num_test]
    everything = torch.arange(num_instances)
    return {"train": everything[: ends[0]], "val": everything[ends[0] : ends[1]], "test": everything[ends[1] :]}
