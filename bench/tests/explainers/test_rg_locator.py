"""The locator's subgraphs against networkx, and its loss against values worked out by hand."""

import networkx as nx
import pytest
import torch

from gflowbench.explainers.rg_locator import expected_loss, neighborhoods
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import random_graph


def test_neighborhoods_are_networkx_ones_nearest_first():
    instances = Instances.of_graphs([random_graph(8, 0.2, seed=seed) for seed in range(4)])
    graph = nx.Graph(instances.edge_index.t().tolist())
    node = torch.tensor([0, 5, 13, 30, 30])
    for hops in (0, 2):
        found = neighborhoods(instances, node, hops)
        assert torch.equal(found.instance, instances.owner[node])
        for row, root in zip(found.members.tolist(), node.tolist(), strict=True):
            steps = nx.single_source_shortest_path_length(graph, root, cutoff=hops)
            members = [member for member in row if member >= 0]
            assert len(members) == len(set(members))
            assert set(members) == set(steps)
            assert [steps[member] for member in members] == sorted(steps.values())


def test_the_expected_loss_by_hand():
    graph = torch.tensor([0, 0, 2, 2])
    score = torch.tensor([0.0, 3.0, 1.0, 1.0]).log()  # 0 and 1, a half each
    rating = torch.tensor([0.25, 0.75, 0.9, 0.1]).log()
    assert float(expected_loss(rating, score, graph, 3)) == pytest.approx(-(0.75 + 0.5) / 2)
