import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from gflowbench.datasets import load
from gflowbench.models import Recipe, load_weights, logits, read_metadata, train
from gflowexplainer.errors import ConfigError, DatasetError


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


def test_attention_learns_from_features(stars_and_cycles):
    marked = [data.clone() for data in stars_and_cycles.graphs]
    for data in marked:
        data.x[0, 0] = float(2 * data.y)
    result = train("gat", replace(stars_and_cycles, graphs=marked), progress=False, batch_size=8, max_epochs=40)
    assert min(counts.share for counts in result.accuracies.values()) > 0.9


def test_learns_generated_motifs():
    benchmark = load("tree-grid", "generated", seed=0, num_motifs=20, num_base_nodes=127)
    result = train("gin", benchmark, progress=False, max_epochs=300)
    assert result.accuracies["train"].share > 0.9
    assert result.accuracies["test"].share > 0.8


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


def test_a_trained_model_can_be_saved(tmp_path, leaves):
    result = train("gin", leaves, seed=3, progress=False, max_epochs=3)
    path = result.save(tmp_path / "gnn.safetensors")
    torch.testing.assert_close(logits(load_weights(path), leaves), logits(result.model, leaves), rtol=0, atol=0)
    metadata = read_metadata(path)
    assert metadata["dataset"] == "leaves"
    assert metadata["accuracies"] == result.accuracies
    assert metadata["facts"]["seed"] == 3
    assert Recipe(**metadata["facts"]["recipe"]).max_epochs == 3


def test_mistakes_are_named(leaves, stars_and_cycles):
    with pytest.raises(ConfigError, match="Did you mean 'gcn'"):
        train("gcm", leaves)
    with pytest.raises(ConfigError, match=r"learning_rate.*got speed"):
        train("gcn", leaves, speed=3)
    with pytest.raises(ConfigError, match="'device' must be"):
        train("gcn", leaves, device="abacus")
    empty = {**stars_and_cycles.splits, "val": torch.empty(0, dtype=torch.long)}
    with pytest.raises(DatasetError, match=r"split \['val'\] of 'stars and cycles' is empty"):
        train("gcn", replace(stars_and_cycles, splits=empty))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_named(leaves):
    with pytest.raises(ConfigError, match="no GPU can be used"):
        train("gcn", leaves, device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("fixture", ["leaves", "stars_and_cycles"])
def test_trains_on_a_gpu(request, fixture):
    benchmark = request.getfixturevalue(fixture)
    result = train("gcn", benchmark, device="cuda", progress=False, max_epochs=100, centred=True)
    assert next(result.model.parameters()).is_cuda
    assert not benchmark.graphs[0].x.is_cuda
    assert result.accuracies["train"].share > 0.9
