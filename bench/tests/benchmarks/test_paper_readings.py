"""Readings of the paper: rewards worked out by hand, and the exact policy ends where its reward says."""

import math

import pytest
import torch

from benchmarks.paper_readings import best_of, changes, enumerated
from benchmarks.reading_scores import ExactPolicy, Reading, ReadingReward
from gflowbench.explainers import Subject
from gflowexplainer.flow.exact import enumerate_subgraphs, terminal_distribution
from gflowexplainer.graphs.subgraphs import Subgraphs


@pytest.fixture
def subject(count_neighbors, triangle):
    return Subject.of(count_neighbors, triangle, [0])


def reward_of(subject, **changes):
    return ReadingReward(Reading(**changes), subject, torch.tensor([0]))


def test_rewards_by_hand(subject):
    """Node 0 has two neighbours: class 1 with sigmoid(1) = p; with one of them alone, with sigmoid(0) = 1/2."""
    pair = Subgraphs(torch.tensor([0]), torch.tensor([[0, 1, -1]]))
    p = 1 / (1 + math.exp(-1))
    for wanted, choice in (
        (0.5 * math.log(p) + 0.5 * math.log(1 - p), {"reward": "subgraph"}),
        (math.log(0.5), {"reward": "whole"}),
        (-math.log(0.5), {"reward": "predicted", "sign": -1}),
        (0.0, {"reward": "odds"}),
        (math.log(0.5), {"reward": "true"}),
    ):
        assert float(reward_of(subject, **choice).log_score(pair)) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("stop", ["learned", "bound"])
def test_the_exact_policy_ends_in_proportion_to_the_reward(subject, stop):
    reward = reward_of(subject, reward="whole")
    found = enumerate_subgraphs(subject.instances, torch.tensor([0]), subject.instances.center, 3)
    states = found.states
    reached = terminal_distribution(found, ExactPolicy(reward, 3, stop), None)
    value = reward.log_score(states.subgraphs)
    value = value if stop == "learned" else torch.where(states.can_grow, -torch.inf, value)
    torch.testing.assert_close(reached.exp(), found.normalize(value.double()).exp(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dataset", ["tree-cycles", "ba-2motifs", "mutagenicity"])
def test_every_change_is_a_reading_of_its_own(dataset):
    readings = [Reading(), *(Reading(**change) for change in changes(dataset))]
    assert len(set(readings)) == len(readings)
    if dataset != "mutagenicity":
        assert len(set(enumerated(dataset))) == len(enumerated(dataset))


def test_the_best_is_the_largest_mean():
    found = {"mean, order": [0.9, 0.7], "one, order": [0.75, 0.75], "best, inside": []}
    assert best_of(found) == (0.8, "mean, order")
    assert best_of(found, ("one", "best")) == (0.75, "one, order")
    assert best_of({}) == (0.0, "-")
