"""What is measured of subgraphs: the context reward in two halves, each subgraph asked about once."""

import torch

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import combine
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.calibration import random_subgraphs
from gflowexplainer.rewards.context import ContextReward
from gflowexplainer.rewards.measuring import Measuring
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, random_graph


def some_inputs() -> TaskInputs:
    instances = Instances.of_graphs([random_graph(12, 0.2, seed=seed) for seed in range(3)])
    return TaskInputs.of(Predictor(GraphModel(seed=1), level="graph"), instances)


def grown(inputs: TaskInputs, rollouts: int):
    return random_subgraphs(inputs.instances, Settings(), rollouts, Stream.measuring)


def test_the_value_is_the_mean_strength_over_all_contexts() -> None:
    inputs = some_inputs()
    subgraphs = grown(inputs, 3)
    found = Measuring(inputs, 5, 7).measure(subgraphs, 0.8, "induced")
    halves = [
        ContextReward(
            inputs.predictor,
            inputs.instances,
            target=inputs.target,
            num_contexts=number,
            keep_probability=0.8,
            average="strength",
            seed=int(combine(7, half)),
        ).log_score(subgraphs)
        for half, number in enumerate((3, 2))
    ]
    torch.testing.assert_close(found.value, (halves[0] + halves[1]) / 2)
    assert 0 <= found.reproducible <= 1


def test_nothing_is_asked_twice_and_more_rollouts_begin_with_the_same() -> None:
    inputs = some_inputs()
    measuring = Measuring(inputs, 4, 0)
    few, many = grown(inputs, 3), grown(inputs, 6)
    first = measuring.measure(few, 0.8, "induced")
    asked = inputs.predictor.num_evaluations
    again = measuring.measure(few, 0.8, "induced")
    assert inputs.predictor.num_evaluations == asked
    assert torch.equal(first.value, again.value)
    measuring.measure(many, 0.8, "induced")
    added = inputs.predictor.num_evaluations - asked
    alone = some_inputs()
    Measuring(alone, 4, 0).measure(many, 0.8, "induced")
    assert added == alone.predictor.num_evaluations - asked
