"""Descriptions of subgraphs, worked out by hand and with networkx; directions against scikit-learn."""

import itertools
import re

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.rewards import evidence as module
from gflowexplainer.rewards.evidence import MAX_KINDS, Evidence, basis_of, pair_products
from gflowexplainer.testing import graph_of, random_graph

TAILED = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]
"""A triangle 0 - 1 - 2 with the tail 2 - 3 - 4."""
KIND = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 2.0], [0.0, 3.0]])


def subgraphs_of(*rows: tuple[int, list[int]], width: int = 5) -> Subgraphs:
    members = [nodes + [-1] * (width - len(nodes)) for _, nodes in rows]
    return Subgraphs(torch.tensor([instance for instance, _ in rows]), torch.tensor(members))


def instances_of(level: str) -> Instances:
    graph = graph_of(TAILED)
    if level == "graph":
        return Instances.of_graphs([graph])
    return Instances.around_nodes(graph.x, graph.edge_index, [0], 4)


def test_triangle_with_tail_at_graph_level() -> None:
    evidence = Evidence.of(instances_of("graph"), KIND, torch.eye(2, dtype=torch.double))
    found = evidence.describe(subgraphs_of((0, [0, 1, 2]), (0, [2, 3]), (0, [4, 3, 2]), (0, [4]), (0, [0, 3])))
    # Nodes of the first and second kind, nodes, edges, edges between kinds 1-1, 1-2, 2-2 (like kinds count twice).
    assert found.tolist() == [
        [2, 1, 3, 3, 2, 2, 0],
        [0.5, 3, 2, 1, 0, 0.5, 4],
        [0.5, 6, 3, 2, 0, 2, 16],
        [0, 3, 1, 0, 0, 0, 0],
        [1.5, 2, 2, 0, 0, 0, 0],
    ]
    assert evidence.num_columns == 7
    assert evidence.is_pair().tolist() == [False] * 4 + [True] * 3


def test_triangle_with_tail_at_node_level_has_no_pairs() -> None:
    instances = instances_of("node")
    evidence = Evidence.of(instances, KIND[instances.node_id], torch.eye(2, dtype=torch.double))
    place = {int(node): i for i, node in enumerate(instances.node_id)}
    found = evidence.describe(subgraphs_of((0, [place[0], place[1], place[2]]), (0, [place[2], place[3]])))
    assert found.tolist() == [[2, 1, 3, 3], [0.5, 3, 2, 1]]
    assert evidence.num_columns == 4
    assert not evidence.is_pair().any()


@pytest.mark.parametrize("rows", [7, 8192])
def test_descriptions_are_what_networkx_counts(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows)
    graphs = [random_graph(7, 0.3, seed=seed, width=4) for seed in range(3)]
    instances = Instances.of_graphs(graphs)
    evidence = Evidence.of(instances, instances.x, torch.eye(4, dtype=torch.double))
    whole = nx.Graph(instances.edge_index.t().tolist())
    kind = instances.x.double().numpy()
    picks = [(i, list(c)) for i in range(3) for c in itertools.combinations(range(7 * i, 7 * i + 7), 3)]
    found = evidence.describe(subgraphs_of(*picks))
    pairs = list(itertools.combinations_with_replacement(range(4), 2))
    for row, (_, nodes) in enumerate(picks):
        edges = list(whole.subgraph(nodes).edges)
        counted = [sum(kind[u][a] * kind[v][b] + kind[u][b] * kind[v][a] for u, v in edges) for a, b in pairs]
        wanted = [*kind[nodes].sum(axis=0), 3, len(edges), *counted]
        np.testing.assert_allclose(found[row].numpy(), wanted, atol=1e-12)


def test_values_of_nodes_and_entries_add_up_to_the_weighted_description() -> None:
    instances = Instances.of_graphs([random_graph(6, 0.3, seed=seed) for seed in range(2)])
    evidence = Evidence.of(instances, instances.x, torch.eye(3, dtype=torch.double))
    weight = torch.randn(2, evidence.num_columns, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    node, entry = evidence.node_values(weight), evidence.entry_values(weight)
    row = torch.repeat_interleave(torch.arange(12), instances.degree)
    both = subgraphs_of((0, list(range(6))), (1, list(range(6, 12))), width=6)
    described = evidence.describe(both)
    described[:, 3] = 0  # the number of nodes, which is the same for all subgraphs of a size
    for number in range(2):
        value = node[instances.owner == number].sum() + entry[instances.owner[row] == number].sum() / 2
        torch.testing.assert_close(value, described[number] @ weight[number])


def test_pairs_do_not_know_a_direction() -> None:
    one, other = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(pair_products(one, other), pair_products(other, one))
    assert pair_products(one, other).shape == (5, 6)
    assert pair_products(one[:, :0], other[:, :0]).shape == (5, 0)


def test_few_columns_stay_and_constant_ones_go() -> None:
    raw = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
    raw[:, 1] = 4.0
    basis = basis_of(raw)
    assert torch.equal(raw.double() @ basis, raw[:, [0, 2, 3, 4]].double())
    assert basis_of(torch.ones(4, 3)).shape == (3, 0)
    # Of equal columns the first is enough.
    twice = torch.tensor([[0.0, 1, 0, 2], [1, 1, 1, 0], [0, 0, 0, 5]])
    assert torch.equal(basis_of(twice), torch.eye(4, dtype=torch.double)[:, [0, 1, 3]])
    assert basis_of(torch.rand(1, 3)).shape == (3, 0)
    many = torch.randn(30, 40, generator=torch.Generator().manual_seed(1))
    many[:, MAX_KINDS:] = 1.0  # of many columns few vary
    assert torch.equal(many.double() @ basis_of(many), many[:, :MAX_KINDS].double())


def test_many_columns_go_through_principal_components() -> None:
    raw = torch.randn(60, 25, generator=torch.Generator().manual_seed(0)) * torch.linspace(0.5, 3, 25)
    basis = basis_of(raw)
    assert basis.shape == (25, MAX_KINDS)
    kind = (raw.double() @ basis).numpy()
    wanted = PCA(MAX_KINDS, whiten=True, svd_solver="full").fit_transform(raw.double().numpy()) * np.sqrt(60 / 59)
    kind -= kind.mean(axis=0)
    np.testing.assert_allclose(np.abs(kind), np.abs(wanted), atol=1e-8)
    np.testing.assert_allclose(kind.std(axis=0), 1)
    largest = basis.gather(0, basis.abs().argmax(dim=0, keepdim=True))
    assert (largest > 0).all()
    turned = basis_of(raw[torch.randperm(60, generator=torch.Generator().manual_seed(2))])
    torch.testing.assert_close(turned, basis)


def test_directions_in_which_nothing_differs_are_left_out() -> None:
    # Forty columns of rank three: other nodes must not be blown up along the 13 directions that would be left.
    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(50, 3, generator=generator, dtype=torch.double) @ torch.randn(
        3, 40, generator=generator, dtype=torch.double
    )
    basis = basis_of(raw + 1)
    assert basis.shape == (40, 3)
    elsewhere = torch.randn(10, 40, generator=generator, dtype=torch.double)
    assert (elsewhere @ basis).abs().max() < 10


def test_evidence_of_another_width_is_refused() -> None:
    with pytest.raises(ConfigError, match=re.escape("has 3 columns, but 2 were learned from")):
        Evidence.of(instances_of("graph"), torch.ones(5, 3), torch.eye(2, dtype=torch.double))


def test_graphs_without_edges() -> None:
    instances = Instances.of_graphs([graph_of([], 3)])
    evidence = Evidence.of(instances, instances.x, torch.eye(3, dtype=torch.double))
    assert evidence.describe(subgraphs_of((0, [1]), (0, [2])))[:, 3:].tolist() == [[1] + [0] * 7] * 2
    assert evidence.entry_values(torch.ones(1, evidence.num_columns).double()).shape == (0,)
