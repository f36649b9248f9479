import json

import pytest
import torch

from gflowbench.paper.distance_curve import DistanceCurve
from gflowexplainer.errors import EnumerationError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.testing import NodeModel, random_graph
from gflowexplainer.training.curves import METRICS
from gflowexplainer.training.trainer import Trainer


def trainer(**settings):
    graph, model = random_graph(12, 0.15, seed=1), NodeModel(seed=1)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 5], 2)
    small = {"max_nodes": 4, "epochs": 60, "rollouts": 16, "beta": 8.0, "num_contexts": 4, "hidden": 32}
    chosen = Settings(**{**small, "objective": "log_partition_variance", "model_embeddings": False, **settings})
    with torch.no_grad():
        evidence = model(graph.x, graph.edge_index).softmax(dim=1)[instances.node_id]
    return Trainer(FlowSampler(chosen, TaskInputs.of(Predictor(model), instances, node_prediction=evidence)))


@pytest.mark.parametrize("reward", [{"beta": 3.0}, {"reward": "context", "relative_beta": False, "min_nodes": 1}])
def test_the_curve_is_written_and_falls(tmp_path, reward):
    whole = trainer(node_identities=True, max_updates=0, **reward)
    whole.run(tmp_path, progress=False, callback=DistanceCurve(every=20))
    records = [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    curve = [record["distance"] for record in records if "distance" in record]
    assert [record["iteration"] for record in records if "distance" in record] == [19, 39, 59]  # counted from 0
    assert curve[-1] < curve[0]


def test_the_distance_is_one_for_each_instance():
    distance = DistanceCurve().measure(trainer())
    assert distance.shape == (2,)
    assert torch.all((distance > 0) & (distance < 1))


def test_too_large_an_instance_is_told_at_once():
    with pytest.raises(EnumerationError, match="more than 5"):
        trainer().run(progress=False, callback=DistanceCurve(limit=5))
