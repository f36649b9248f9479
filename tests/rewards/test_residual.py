"""What contributions leave of a value: shared out among nodes of a kind, against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.residual import RIDGE, Residual, find_residual
from gflowexplainer.testing import random_graph

BEGINNING = 40.0
WORTH = torch.tensor([3.0, -1.0, 0.5, 2.0])
MISSED = torch.tensor([0.5, -0.25, 0.0, 0.75])


def graphs_of_kinds(first: int, number: int = 30) -> Instances:
    """Graphs of four kinds of nodes, told apart by two features together and by neither alone."""
    graphs = [random_graph(8 + seed % 9, 0.2, seed=seed) for seed in range(first, first + number)]
    for seed, graph in enumerate(graphs, first):
        kind = torch.randint(4, (graph.num_nodes,), generator=torch.Generator().manual_seed(seed))
        graph.x = torch.stack([kind // 2, kind % 2], dim=1).float()
    return Instances.of_graphs(graphs)


def kind_of(instances: Instances) -> Tensor:
    return (2 * instances.x[:, 0] + instances.x[:, 1]).long()


def measured(instances: Instances) -> Tensor:
    """What was measured of each node, ``[n, 1]``: what it is worth, less what is missed of its kind."""
    return (WORTH - MISSED)[kind_of(instances)][:, None]


def counts(instances: Instances) -> np.ndarray:
    rows = [torch.bincount(kind_of(instances)[instances.owner == i], minlength=4) for i in range(len(instances))]
    return torch.stack(rows).double().numpy()


def values(instances: Instances) -> Tensor:
    return torch.from_numpy(counts(instances) @ WORTH.double().numpy()) + BEGINNING


def found_in(instances: Instances, value: Tensor, known: Tensor | None = None) -> Residual:
    known = torch.ones(instances.num_nodes, dtype=torch.bool) if known is None else known
    return find_residual(instances, value, measured(instances), instances.x, known)


def test_nodes_of_other_graphs_are_given_what_their_kind_misses_and_where_values_begin_is_nobodys() -> None:
    instances, others = graphs_of_kinds(0), graphs_of_kinds(100)
    residual = found_in(instances, values(instances))
    for some in (instances, others):
        true, before = WORTH[kind_of(some)], measured(some)[:, 0]
        after = residual.add_to(measured(some), some.x)[:, 0]
        assert (after - true).abs().max() < 0.15
        assert (after - true).abs().mean() < 0.2 * (before - true).abs().mean()


def test_weights_and_whether_they_are_taken_are_those_of_scikit_learn() -> None:
    instances, outcomes = graphs_of_kinds(0, 12), set()
    count = counts(instances)
    table = np.concatenate([count, count.sum(axis=1, keepdims=True)], axis=1)
    left = count @ MISSED.double().numpy() + BEGINNING
    noise = np.random.default_rng(0).normal(size=(8, 12))
    for number in range(8):
        added = (0.5 if number == 0 else 40.0) * noise[number]
        predicted = cross_val_predict(Ridge(alpha=RIDGE), table, left + added, cv=LeaveOneOut())
        usual = np.array([np.delete(left + added, i).mean() for i in range(12)])
        missed, scatter = (float(((left + added - said) ** 2).sum()) for said in (predicted, usual))
        residual = found_in(instances, values(instances) + torch.from_numpy(added))
        assert residual.counts == (missed < scatter)
        outcomes.add(residual.counts)
        if residual.counts:
            order = torch.argsort(2 * residual.kinds[:, 0] + residual.kinds[:, 1]).tolist()
            wanted = Ridge(alpha=RIDGE).fit(table, left + added).coef_
            np.testing.assert_allclose(residual.weight.numpy()[[*order, 4]], wanted, atol=1e-6)
    assert outcomes == {True, False}


def test_only_graphs_of_which_all_is_known_teach_and_what_is_of_no_kind_is_given_what_any_node_is() -> None:
    instances = graphs_of_kinds(0)
    value = values(instances)
    value[0] += 1000
    known = torch.ones(instances.num_nodes, dtype=torch.bool)
    known[0] = False
    residual = found_in(instances, value, known)
    own = torch.zeros(2, 1)
    given = residual.add_to(own, torch.tensor([[1.0, 1.0], [7.0, 7.0]]))
    assert float(given[0]) == pytest.approx(float(MISSED[3]), abs=0.15)
    assert float(given[1]) == pytest.approx(float(residual.weight[-1]))
    # Features that no two nodes have in common name no kind.
    instances = graphs_of_kinds(0, 5)
    apart = torch.arange(2.0 * instances.num_nodes).view(-1, 2)
    every = torch.ones(instances.num_nodes, dtype=torch.bool)
    assert not find_residual(instances, values(instances), measured(instances), apart, every).counts


def test_it_survives_a_file() -> None:
    instances = graphs_of_kinds(0)
    residual = found_in(instances, values(instances))
    trial = EvidenceTrial("own", 0.5, "induced", False, 0.5, 0.9)
    consensus = Consensus(torch.eye(2).double(), torch.zeros(1, 7).double(), trial, residual=residual)
    again = Consensus.from_tensors(consensus.tensors()).to("cpu").residual
    assert torch.equal(again.weight, residual.weight)
    assert torch.equal(again.kinds, residual.kinds)
    assert torch.equal(
        again.add_to(measured(instances), instances.x), residual.add_to(measured(instances), instances.x)
    )
