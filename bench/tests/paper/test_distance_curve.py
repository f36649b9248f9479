import json

import pytest

from gflowbench.paper.trainings import Watch
from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import EnumerationError
from gflowexplainer.testing import NodeModel, random_graph
from gflowexplainer.training.checkpoint import METRICS

SETTINGS = {
    "reward": "context",
    "measure": "uniform",
    "min_nodes": 1,
    "max_nodes": 4,
    "epochs": 60,
    "rollouts": 16,
    "beta": 8.0,
    "num_contexts": 4,
    "hidden": 32,
    "objective": "log_partition_variance",
    "model_embeddings": False,
    "max_updates": 0,
}


def fit(distance, folder=None):
    explainer = GFlowExplainer(num_hops=2, **SETTINGS)
    explainer.fit(NodeModel(seed=1), random_graph(12, 0.15, seed=1), [0, 5], folder=folder, callback=distance)


def test_the_curve_is_written_and_falls(tmp_path):
    fit(Watch(every=20), tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / METRICS).read_text().splitlines()]
    curve = [record["distance"] for record in records if "distance" in record]
    assert [record["iteration"] for record in records if "distance" in record] == [19, 39, 59]  # counted from 0
    assert 0 < curve[-1] < curve[0] < 1


def test_too_large_an_instance_is_told_at_once():
    with pytest.raises(EnumerationError, match="more than 5"):
        fit(Watch(1, limit=5))
