import torch
from torch_geometric.data import Data

from gflowbench.metrics.undirected import UndirectedEdges
from gflowexplainer.graphs.instances import Instances


def test_both_directions_and_repeats_count_once_and_self_loops_never():
    graph = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 2, 0, 1, 2], [1, 0, 2, 1, 2, 2]]))
    instances = Instances.of_graphs([graph, graph])
    edges = UndirectedEdges.of(instances)
    assert edges.ends.tolist() == [[0, 1, 3, 4], [1, 2, 4, 5]]
    assert edges.owner.tolist() == [0, 0, 1, 1]
    score = torch.tensor([-3.0, -1.0, 9.0, -2.0, -5.0, 9.0]).repeat(2)
    assert edges.merge(score).tolist() == [-1.0, -5.0, -1.0, -5.0]
    marks = torch.tensor([False, True, True, False, False, True]).repeat(2)
    assert edges.merge(marks).tolist() == [True, False, True, False]


def test_a_graph_without_edges_has_none():
    instances = Instances.of_graphs([Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0, dtype=torch.long))])
    edges = UndirectedEdges.of(instances)
    assert edges.merge(torch.empty(0)).shape == (0,)
