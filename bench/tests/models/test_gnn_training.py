import random

import numpy as np
import pytest
import torch

from gflowbench.models import train


def same(one, other):
    weights = other.model.state_dict()
    return all(torch.equal(value, weights[name]) for name, value in one.model.state_dict().items())


@pytest.mark.parametrize("model", ["gcn", "gin", "graphsage"])
def test_learns_nodes(leaves, model):
    result = train(model, leaves, progress=False, max_epochs=120)
    assert min(counts.share for counts in result.accuracies.values()) > 0.9
    assert not result.model.training


@pytest.mark.parametrize("model", ["gcn", "gin", "graphsage"])
def test_learns_graphs(stars_and_cycles, model):
    result = train(model, stars_and_cycles, progress=False, batch_size=8, max_epochs=40, centred=True)
    assert min(counts.share for counts in result.accuracies.values()) > 0.9


@pytest.mark.parametrize("fixture", ["leaves", "stars_and_cycles"])
def test_same_seed_same_model_and_no_trace(request, fixture):
    benchmark = request.getfixturevalue(fixture)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    graphs = [data.clone() for data in benchmark.graphs]
    first = train("gcn", benchmark, seed=5, progress=False, max_epochs=8, batch_size=8)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (np.random.get_state()[1].tolist(), random.getstate())
    assert all(torch.equal(old.x, new.x) for old, new in zip(graphs, benchmark.graphs, strict=True))
    torch.rand(3)
    again = train("gcn", benchmark, seed=5, progress=False, max_epochs=8, batch_size=8)
    other = train("gcn", benchmark, seed=6, progress=False, max_epochs=8, batch_size=8)
    assert same(first, again)
    assert first.curves == again.curves
    assert not same(first, other)


def test_the_best_epoch_is_kept_and_training_stops_after_patience(leaves):
    result = train("gcn", leaves, progress=False, max_epochs=400, patience=5, learning_rate=0.05)
    curves = result.curves
    epochs = len(curves["loss"])
    assert epochs == result.best_epoch + 6 or epochs == 400
    assert len(curves["val_loss"]) == len(curves["val_accuracy"]) == epochs
    ranks = list(zip(curves["val_accuracy"], (-loss for loss in curves["val_loss"]), strict=True))
    assert ranks.index(max(ranks)) == result.best_epoch
    assert result.accuracies["val"].share == pytest.approx(curves["val_accuracy"][result.best_epoch])
