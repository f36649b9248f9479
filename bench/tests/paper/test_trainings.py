import math
from dataclasses import replace

import pytest
import torch

from gflowbench.explainers import Subject
from gflowbench.explainers.gflow import GFlow
from gflowbench.metrics import GroundTruth
from gflowbench.metrics.measurement import agreement
from gflowbench.paper import Scope
from gflowbench.paper.trainings import Training, distance_line, early_and_late, falls, loss_line
from gflowbench.protocol import Problem
from gflowbench.protocol.problems import Loaded
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.exact import enumerate_subgraphs

CHANGES = {"max_nodes": 3, "epochs": 6, "batch_size": 1, "rollouts": 4, "hidden": 8, "max_updates": 0}


@pytest.fixture
def problem(two_triangles, count_neighbors):
    return Problem("two-triangles", "toy", lambda: Loaded(count_neighbors, two_triangles, two_triangles.index))


def test_a_training_gives_curves_and_scores(problem):
    training = Training("two-triangles", "context", CHANGES, distance_every=4, scored=True)
    found = training.run(problem, seed=1)
    assert (found["instances"], found["updates"], len(found["loss"])) == (2, 12, 6)  # two updates an epoch
    assert [update for update, _ in found["distance"]] == [4, 8, 12]
    assert all(0 <= distance <= 1 for _, distance in found["distance"])
    assert found["diverged"] is None
    assert found["settings"]["max_nodes"] == 3
    loaded = problem.load()
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    plain = GFlow(preset="context", **CHANGES)
    plain.fit(subject, 1)
    truth = GroundTruth.of(loaded.benchmark, subject)
    assert found["metrics"] == agreement(subject, plain.explain(subject, 1), truth)


def test_watching_changes_nothing_and_seeds_do(problem):
    plain = Training("two-triangles", "context", CHANGES)
    one, same, other = plain.run(problem, 0), replace(plain, distance_every=2).run(problem, 0), plain.run(problem, 1)
    # The reward is asked about other subgraphs in the same batch, so the last digits may differ.
    assert one["loss"] == pytest.approx(same["loss"], rel=1e-4)
    assert one["loss"] != pytest.approx(other["loss"], rel=1e-4)
    assert one["metrics"] == {}


def test_the_instance_nearest_in_size_is_taken(problem):
    loaded = problem.load()
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    counts = [
        int(enumerate_subgraphs(subject.instances, index, subject.instances.center[index], 3).counts)
        for index in torch.arange(2).split(1)
    ]
    assert counts[0] != counts[1]
    for position, count in enumerate(counts):
        training = Training("two-triangles", "context", CHANGES, subgraphs=count)
        assert training._nearest(subject).tolist() == [position]
    assert training.run(problem, 0)["instances"] == 1


def test_a_loss_that_is_no_number_is_a_result_and_a_wrong_setting_is_not(problem):
    with pytest.raises(ConfigError, match="epochs"):
        Training("two-triangles", "context", CHANGES | {"epochs": 0}).run(problem, 0)
    found = Training("two-triangles", "context", CHANGES | {"learning_rate": 1e30}, scored=True).run(problem, 0)
    assert 0 < found["diverged"] == found["updates"] < 12
    assert found["metrics"] == {}
    assert not falls(found)


def test_what_decides_a_value_is_in_the_settings_of_its_step(tmp_path):
    scope = Scope()
    base = Training("tree-cycles", "paper", {"epochs": 3})
    steps = [
        base.step("a", scope, 0),
        base.step("a", scope, 1),
        replace(base, every=2).step("a", scope, 0),
        replace(base, changes={"epochs": 4}).step("a", scope, 0),
        replace(base, scored=True).step("a", scope, 0),
    ]
    assert len({step.path(tmp_path) for step in steps}) == len(steps)
    assert base.step("a", scope, 0).path(tmp_path) == steps[0].path(tmp_path)


def curve(loss, diverged=None):
    return {"loss": loss, "diverged": diverged}


def test_early_late_and_falling():
    steps = [8.0, 8.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0] * 1
    assert early_and_late(curve(steps)) == (8.0, 1.0)
    assert falls(curve(steps))
    assert not falls(curve(steps, diverged=10))
    assert not falls(curve([8.0] * 9 + [7.0]))  # too little
    assert not falls(curve([8.0] * 8 + [4.0, 1.0]))  # still on its way
    assert not falls(curve([1.0, 2.0]))


def test_lines_over_seeds_end_where_the_shortest_does():
    line = loss_line([curve([3.0, 2.0, 1.0]), curve([1.0, 4.0])])
    assert (list(line.x), line.y, line.low, line.high) == ([1, 2], [2.0, 3.0], [1.0, 2.0], [3.0, 4.0])
    far = distance_line([{"distance": [[10, 0.5], [20, 0.25]]}, {"distance": [[10, 0.25], [20, 0.25]]}])
    assert (far.x, far.y) == ([10, 20], [0.375, 0.25])
    assert not any(math.isnan(value) for value in far.y)
