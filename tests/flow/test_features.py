import math

import networkx as nx
import pytest
import torch

from gflowexplainer.flow.features import node_features
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import random_graph, star


def test_features_are_x_degree_distance_and_embedding():
    graph = random_graph(12, 0.1, seed=4)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [3], 2)
    embedding = torch.randn(instances.num_nodes, 5, generator=torch.Generator().manual_seed(0))
    features = node_features(instances, embedding, 2)
    assert features.shape == (instances.num_nodes, 3 + 1 + 3 + 5)
    torch.testing.assert_close(features[:, :3], instances.x)
    torch.testing.assert_close(features[:, 7:], embedding)
    inside = nx.Graph(instances.edge_index.t().tolist())
    for node in range(instances.num_nodes):
        assert float(features[node, 3]) == pytest.approx(math.log1p(inside.degree(node)), rel=1e-6)
        hops = nx.shortest_path_length(inside, node, int(instances.center[0]))
        assert features[node, 4:7].argmax() == hops


def test_a_graph_has_no_distances():
    instances = Instances.of_graphs([star(3)])
    assert node_features(instances, None, 2)[:, 4:].abs().sum() == 0


def test_wide_features_are_left_to_the_embeddings(monkeypatch):
    monkeypatch.setattr("gflowexplainer.flow.features.WIDE", 2)
    instances = Instances.of_graphs([star(3)])
    embedding = torch.ones(instances.num_nodes, 5)
    assert node_features(instances, embedding, 2).size(1) == 1 + 3 + 5
    assert node_features(instances, None, 2).size(1) == 3 + 1 + 3
