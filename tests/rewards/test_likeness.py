"""What nodes like it add: sums over kinds of nodes, with chance in what was measured of each."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gflowexplainer.choices import EvidenceType
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.likeness import Likeness, find_likeness
from gflowexplainer.testing import GraphModel, random_graph

WORTH = torch.tensor([3.0, -1.0, 0.5])
NO_NAMES = torch.zeros(0, 2, dtype=torch.double)


def graphs_of_kinds(first: int, number: int = 8) -> list:
    graphs = [random_graph(12, 0.2, seed=seed) for seed in range(first, first + number)]
    for seed, graph in enumerate(graphs, first):
        kind = torch.randint(3, (graph.num_nodes,), generator=torch.Generator().manual_seed(seed))
        graph.x = torch.eye(3)[kind]
    return graphs


def inputs_of(graphs: list, mode: str = "regression") -> TaskInputs:
    model = GraphModel(in_channels=3, num_classes=1 if mode == "regression" else 2)
    return TaskInputs.of(Predictor(model, level="graph", mode=mode, num_hops=2), Instances.of_graphs(graphs))


def added(inputs: TaskInputs) -> Tensor:
    """What a node adds: what its kind is worth, and half of what the kinds of its neighbours are, ``[n, 1]``."""
    instances = inputs.instances
    worth = instances.x @ WORTH
    near = torch.zeros_like(worth).index_add(0, instances.neighbor_row, worth[instances.neighbor])
    return (worth + near / 2)[:, None]


def noise(size: int, spread: float) -> Tensor:
    return spread * torch.randn(size, 1, generator=torch.Generator().manual_seed(0))


def found_in(inputs: TaskInputs, own: Tensor) -> Likeness:
    known = torch.ones(len(own), dtype=torch.bool)
    return find_likeness(inputs, own, known, NO_NAMES, torch.arange(len(inputs)) % 2)


def test_what_is_usual_is_nearer_to_what_a_node_adds_also_in_graphs_that_were_not_fitted() -> None:
    inputs, others = inputs_of(graphs_of_kinds(0)), inputs_of(graphs_of_kinds(100))
    likeness = found_in(inputs, added(inputs) + noise(len(added(inputs)), 0.5))
    assert likeness.counts
    for some in (inputs, others):
        true = added(some)
        own = true + noise(len(true), 0.5)
        near = likeness.shrink(some, own, NO_NAMES)
        assert (near - true).square().mean() < 0.5 * (own - true).square().mean()


def test_what_nothing_describes_stays_as_it_was_measured() -> None:
    inputs = inputs_of(graphs_of_kinds(0))
    own = added(inputs) + noise(len(added(inputs)), 5.0)
    likeness = found_in(inputs, own)
    assert not likeness.counts
    assert likeness.shrink(inputs, own, NO_NAMES) is own


@pytest.mark.parametrize("case", ["classes", "one graph", "many features"])
def test_it_is_asked_only_of_values_of_several_graphs_whose_nodes_have_kinds(case: str) -> None:
    graphs = graphs_of_kinds(0, 1 if case == "one graph" else 8)
    if case == "many features":
        for graph in graphs:
            graph.x = torch.randn(graph.num_nodes, 40)
        model = GraphModel(in_channels=40, num_classes=1)
        predictor = Predictor(model, level="graph", mode="regression", num_hops=2)
        inputs = TaskInputs.of(predictor, Instances.of_graphs(graphs))
        own = inputs.instances.x[:, :1]
    else:
        mode = "multiclass_classification" if case == "classes" else "regression"
        inputs = inputs_of(graphs, mode)
        own = added(inputs)
    assert not found_in(inputs, own).counts


def test_it_survives_a_file() -> None:
    inputs = inputs_of(graphs_of_kinds(0))
    likeness = found_in(inputs, added(inputs))
    assert likeness.counts
    trial = EvidenceTrial(EvidenceType.shared, 0.5, "induced", False, 0.5, 0.9)
    consensus = replace(Consensus(torch.eye(3).double(), torch.zeros(1, 11).double(), trial), likeness=likeness)
    again = Consensus.from_tensors(consensus.tensors()).to("cpu").likeness
    assert torch.equal(again.weight, likeness.weight)
    assert torch.equal(again.basis, likeness.basis)
    assert again.level == likeness.level
    assert not Consensus.from_tensors(replace(consensus, likeness=Likeness()).tensors()).likeness.counts
