from pathlib import Path

import pytest
import torch

from gflowbench.datasets import reference_folder
from gflowbench.suites.citation import FILE, make_cora_task
from gflowbench.suites.halves import SEEDS
from gflowexplainer.errors import DatasetError


@pytest.fixture(scope="module")
def folder() -> Path:
    found = reference_folder()
    if found is None or not (found / FILE).is_file():
        pytest.skip(f"'{FILE}' is not in the reference folder")
    return found


def test_cora_as_published(folder: Path) -> None:
    task = make_cora_task(0, folder)
    graph = task.graphs[0]
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (2708, 10556, 1433)
    assert task.num_classes == 7
    assert {name: len(ids) for name, ids in task.splits.items()} == {"train": 140, "val": 500, "test": 1000}
    assert len(task.index) == 100
    assert torch.allclose(graph.x.sum(dim=1), torch.ones(2708))
    assert graph.is_undirected()


def test_every_test_node_belongs_to_one_seed(folder: Path) -> None:
    chosen = [make_cora_task(seed, folder) for half in SEEDS.values() for seed in half]
    nodes = torch.cat([task.index for task in chosen])
    assert torch.equal(nodes.sort().values, chosen[0].splits["test"])


def test_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"'cora\.npz' was not found .*GFLOWEXPLAINER_DATA"):
        make_cora_task(0, tmp_path)
