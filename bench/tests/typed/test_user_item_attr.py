"""The published task: what the GNN says, and where its truth lies."""

import numpy as np
import pytest
import torch

from gflowbench.datasets.reference import reference_folder
from gflowbench.typed.link_floors import shortest_ways
from gflowbench.typed.link_scores import edge_auc
from gflowbench.typed.user_item_attr import load_user_item_attr

folder = reference_folder()
pytestmark = pytest.mark.skipif(
    folder is None or not (folder / "user_item_attr.npz").is_file(), reason="the published data are not there"
)


def test_the_gnn_says_what_was_published():
    task = load_user_item_attr()
    content = np.load(folder / "user_item_attr.npz", allow_pickle=False)
    with torch.no_grad():
        pairs = torch.from_numpy(content["pairs"]).long()
        found = task.model(task.graph.x_dict, task.graph.edge_index_dict, pairs).sigmoid()
    assert torch.allclose(found, torch.from_numpy(content["probability"]), atol=1e-5)
    assert task.test.size(1) == 129


def test_true_paths_join_both_ends_inside_the_computation_graph():
    task = load_user_item_attr()
    for (user, item), paths, around in zip(task.test.t().tolist(), task.paths, task.around, strict=True):
        inside = set(around)
        for path in paths:
            assert inside.issuperset(path)
            ends = [task.graph[key].edge_index[:, place].tolist() for key, place in path]
            assert (ends[0][0], ends[-1][1]) == (user, item)


def test_the_floor_is_the_published_one():
    task = load_user_item_attr()
    scores = shortest_ways(task, 0)
    aucs = [
        edge_auc(score, {edge for path in paths for edge in path}, around)
        for score, paths, around in zip(scores, task.paths, task.around, strict=True)
    ]
    assert np.mean(aucs) == pytest.approx(0.984, abs=5e-4)
