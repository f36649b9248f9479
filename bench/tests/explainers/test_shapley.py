"""Sampled Shapley values against the formula, with every set of other players enumerated."""

import itertools
import math

import pytest
import torch

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject
from gflowbench.explainers.shapley import ShapleyValues
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import GraphModel, NodeModel, house, path, random_graph


@pytest.fixture(params=["node", "graph"])
def subject(request):
    if request.param == "node":
        benchmark = Benchmark.from_graphs(
            random_graph(8, 0.1, seed=5), name="one", task="node", num_classes=3, index=[0, 4]
        )
        return Subject.of(NodeModel(), benchmark, max_nodes=4)
    benchmark = Benchmark.from_graphs(
        [house(seed=1), path(6, seed=2)], name="two", task="graph", num_classes=2, index=[0, 1]
    )
    return Subject.of(GraphModel(), benchmark, max_nodes=4)


def masks(instances: Instances, sets: list[tuple[int, set[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Turns (instance, flat positions) into what the values take."""
    inside = [torch.tensor([node in nodes for node in range(*instances.ptr[i : i + 2].tolist())]) for i, nodes in sets]
    return torch.tensor([i for i, _ in sets]), torch.cat(inside)


def exact(subject: Subject, instance: int, coalition: set[int], radius: int, removal: str) -> float:
    """The formula, term by term, with one model call for each."""
    instances, label = subject.instances, int(subject.target.label[instance])
    nodes = set(range(*instances.ptr[instance : instance + 2].tolist()))
    region = set(coalition)
    for _ in range(radius):
        region |= {int(v) for u in region for v in instances.neighbors_of(torch.tensor([u]))[1]}
    always = nodes - region
    players = sorted(region - coalition)
    if instances.level == "node":
        always |= {int(instances.center[instance])}
        players = [p for p in players if p not in always]

    def worth(kept: set[int]) -> float:
        index, mask = masks(instances, [(instance, kept)])
        return float(subject.predictor.predict(instances, index, mask, removal)[0, label])

    total = 0.0
    for size in range(len(players) + 1):
        weight = math.factorial(size) * math.factorial(len(players) - size) / math.factorial(len(players) + 1)
        for others in itertools.combinations(players, size):
            company = always | set(others)
            total += weight * (worth(company | coalition) - worth(company))
    return total


@pytest.mark.parametrize("radius", [1, None])
@pytest.mark.parametrize("removal", ["induced", "isolate"])
def test_many_samples_reach_the_formula(subject, radius, removal):
    instances = subject.instances
    center = int(instances.center[1]) if instances.level == "node" else int(instances.ptr[1])
    neighbor = int(instances.neighbors_of(torch.tensor([center]))[1][0])
    sets = [(1, {center}), (1, {center, neighbor})]
    values = ShapleyValues(subject, num_samples=3000, radius=radius, removal=removal)(*masks(instances, sets))
    steps = subject.predictor.num_hops if radius is None else radius
    truth = [exact(subject, i, nodes, steps, removal) for i, nodes in sets]
    assert max(map(abs, truth)) > 0.01
    assert values.tolist() == pytest.approx(truth, abs=0.002)


def test_the_whole_instance_is_worth_the_difference_it_makes(subject):
    # There is no other player, so every sample says the same: the prediction, less that on what is always there.
    instances = subject.instances
    everything = set(range(*instances.ptr[:2].tolist()))
    value = ShapleyValues(subject, num_samples=3)(*masks(instances, [(0, everything)]))
    bare = {int(instances.center[0])} if instances.level == "node" else set()
    index, kept = masks(instances, [(0, everything), (0, bare)])
    label = int(subject.target.label[0])
    first, second = subject.predictor.predict(instances, index.new_zeros(2), kept)[:, label].tolist()
    assert float(value) == pytest.approx(first - second, abs=1e-6)
