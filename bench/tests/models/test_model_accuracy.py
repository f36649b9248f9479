from dataclasses import replace

import pytest
import torch

from gflowbench.models import Accuracy, accuracies
from gflowexplainer.errors import DatasetError, ModelError


class Constant(torch.nn.Module):
    """Says class 1 of everything."""

    def forward(self, x, edge_index, batch=None):
        rows = x.size(0) if batch is None else int(batch.max()) + 1
        return torch.tensor([[0.0, 1.0]]).expand(rows, 2)


def test_counts_by_hand(leaves, stars_and_cycles):
    truth = leaves.graphs[0].y
    expected = {name: int(truth[leaves.graphs[0][f"{name}_mask"]].sum()) for name in ("train", "val", "test")}
    assert accuracies(Constant(), leaves) == {
        "train": (expected["train"], 36),
        "val": (expected["val"], 12),
        "test": (expected["test"], 12),
    }
    assert accuracies(Constant(), stars_and_cycles, batch_size=7) == {
        "train": Accuracy(12, 24),
        "val": Accuracy(4, 8),
        "test": Accuracy(4, 8),
    }


def test_a_model_of_the_wrong_task_is_refused(stars_and_cycles):
    def nodes(x, edge_index, batch):
        return x

    model = torch.nn.Module()
    model.forward = nodes
    with pytest.raises(ModelError, match=r"logits of shape \[40, C\]"):
        accuracies(model, stars_and_cycles)


def test_missing_splits_are_named(stars_and_cycles):
    with pytest.raises(DatasetError, match=r"no split \['val', 'test'\]"):
        accuracies(Constant(), replace(stars_and_cycles, splits={"train": torch.arange(3)}))
