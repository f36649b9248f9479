"""Small data for the tests of the GNNs, and the reference folder where there is one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark, reference_folder
from gflowexplainer.testing import cycle, graph_of, star


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost more than they bring on graphs this small, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def reference() -> Path:
    folder = reference_folder()
    if folder is None or not (folder / "weights").is_dir():
        pytest.skip("the published files are not here (GFLOWEXPLAINER_DATA)")
    return folder


@pytest.fixture
def stars_and_cycles() -> Benchmark:
    """Forty graphs of 5 to 9 nodes: stars are class 0, cycles class 1."""
    graphs = []
    for i in range(40):
        size = 5 + i // 2 % 5
        data = cycle(size) if i % 2 else star(size - 1)
        graphs.append(Data(x=torch.ones(size, 3), edge_index=data.edge_index, y=torch.tensor([i % 2])))
    splits = {"train": range(24), "val": range(24, 32), "test": range(32, 40)}
    return Benchmark.from_graphs(
        graphs, name="stars and cycles", splits={name: list(ids) for name, ids in splits.items()}
    )


@pytest.fixture
def leaves() -> Benchmark:
    """One tree of 60 nodes; leaves are class 1."""
    edge_index = graph_of([(i, (i - 1) // 2) for i in range(1, 60)]).edge_index
    degree = torch.bincount(edge_index[0], minlength=60)
    part = torch.arange(60) % 5
    data = Data(
        x=torch.ones(60, 4),
        edge_index=edge_index,
        y=(degree == 1).long(),
        train_mask=part < 3,
        val_mask=part == 3,
        test_mask=part == 4,
    )
    return Benchmark.from_graphs(data, name="leaves", task="node")
