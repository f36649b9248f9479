import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets.splits import add_masks, published_permutation, split_positions


@pytest.mark.parametrize(
    ("count", "sizes"),
    # Sizes of the published files.
    [
        (700, (560, 70, 70)),
        (871, (696, 87, 88)),
        (1231, (984, 123, 124)),
        (1000, (800, 100, 100)),
        (4337, (3469, 434, 434)),
    ],
)
def test_sizes_are_the_published_ones(count: int, sizes: tuple[int, int, int]) -> None:
    splits = split_positions(np.random.default_rng(0).permutation(count))
    assert tuple(len(splits[key]) for key in ("train", "val", "test")) == sizes
    assert torch.cat(list(splits.values())).sort().values.tolist() == list(range(count))


def test_masks_cover_each_node_once() -> None:
    graph = add_masks(Data(num_nodes=23), np.random.default_rng(0).permutation(23))
    total = graph.train_mask.int() + graph.val_mask.int() + graph.test_mask.int()
    assert total.tolist() == [1] * 23


def test_published_shuffle_leaves_the_global_state_alone() -> None:
    np.random.seed(7)
    expected = np.random.RandomState(7).random()
    published_permutation(10)
    assert np.random.random() == expected
