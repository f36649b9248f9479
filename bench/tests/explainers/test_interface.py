import networkx as nx
import pytest
import torch

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Scores, Subject
from gflowbench.explainers.interface import motif_size
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.subgraphs import Subgraphs


def test_a_subject_of_nodes_holds_whole_graph_answers(two_triangles, count_neighbors):
    subject = Subject.of(count_neighbors, two_triangles)
    degree = torch.tensor([2, 2, 3, 3, 3, 2, 2])  # the self loop of node 3 is one incoming edge
    expected = torch.sigmoid(degree.float() - 1)[subject.instances.node_id]
    torch.testing.assert_close(subject.node_prediction[:, 1], expected)
    assert subject.embedding.shape == (subject.instances.num_nodes, 1)
    assert subject.target.label.tolist() == [1, 1]
    assert subject.max_nodes == 4
    assert subject.index.tolist() == [1, 3]


def test_the_whole_graph_decides_the_label(two_triangles, count_neighbors):
    # Cut to no hops at all, the explained node is alone, but what surrounds it still counts.
    subject = Subject.of(count_neighbors, two_triangles, num_hops=0)
    assert subject.instances.node_counts.tolist() == [1, 1]
    assert subject.target.prediction.argmax(dim=1).tolist() == [1, 1]
    assert subject.target.label.tolist() == [1, 1]


def test_the_motif_size_is_given_or_the_median_of_the_motifs(molecules):
    assert motif_size(molecules) == 3
    bare = Benchmark.from_graphs(list(molecules.graphs), task="graph")
    assert bare.motif_size is None
    assert motif_size(bare) == 3
    for graph in bare.graphs:
        del graph.motif_id, graph.edge_motif
    assert motif_size(bare) is None


def edge_scores(subject, scores):
    source, target = subject.instances.edge_index.tolist()
    return {(u, v): s for u, v, s in zip(source, target, scores.edge.tolist(), strict=True)}


def test_order_scores_by_hand(triangle_subject):
    # K = 4, picks 0, 2, 3: the later end of 0-2 is pick 1, of 2-3 pick 2.
    order = torch.tensor([[0, 2, 3, -1]])
    scores = Scores.of_order(triangle_subject.instances, order)
    expected = {(0, 2): 1.0, (2, 3): 2 / 3}
    for (u, v), value in edge_scores(triangle_subject, scores).items():
        assert value == pytest.approx(expected.get((min(u, v), max(u, v)), 0.0))
    assert scores.node.tolist() == [1.0, 0.0, 0.75, 0.5, 0.0]


def test_subgraph_scores_are_marginals(triangle_subject):
    subgraphs = Subgraphs(torch.zeros(2, dtype=torch.long), torch.tensor([[0, 1, 2], [0, 2, 3]]))
    scores = Scores.of_subgraphs(triangle_subject.instances, subgraphs, torch.tensor([0.25, 0.75]))
    found = edge_scores(triangle_subject, scores)
    assert scores.node.tolist() == [1.0, 0.25, 1.0, 0.75, 0.0]
    assert (found[0, 1], found[0, 2], found[2, 3], found[3, 4]) == (0.25, 1.0, 0.75, 0.0)


def test_edges_score_as_their_smaller_end_and_nodes_as_their_best_edge(triangle_subject):
    instances = triangle_subject.instances
    scores = Scores.of_nodes(instances, torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0]))
    assert edge_scores(triangle_subject, scores)[0, 2] == 3.0
    again = Scores.of_edges(instances, scores.edge)
    assert again.node.tolist() == [4.0, 4.0, 3.0, 2.0, 1.0]


def test_scores_that_do_not_fit_are_refused(triangle_subject):
    instances = triangle_subject.instances
    good = Scores.of_nodes(instances, torch.ones(5))
    good.check(instances, "mine")
    with pytest.raises(ConfigError, match=r"'mine' returned 'node' of shape \[4\]"):
        Scores(torch.ones(4), good.edge).check(instances, "mine")
    with pytest.raises(ConfigError, match="NaN or infinity in 'edge'"):
        Scores(good.node, good.edge * torch.nan).check(instances, "mine")
    with pytest.raises(ConfigError, match="'order'"):
        Scores(good.node, good.edge, order=torch.zeros(2, 3, dtype=torch.long)).check(instances, "mine")
    with pytest.raises(ConfigError, match="'selected'"):
        Scores(good.node, good.edge, selected=torch.ones(1, dtype=torch.bool)).check(instances, "mine")


def test_networkx_agrees_on_the_computation_graph(two_triangles, count_neighbors):
    subject = Subject.of(count_neighbors, two_triangles, num_hops=2)
    graph = nx.Graph(two_triangles.data.edge_index.t().tolist())
    for number, node in enumerate(subject.index.tolist()):
        begin, end = subject.instances.ptr[number : number + 2].tolist()
        near = nx.single_source_shortest_path_length(graph, node, cutoff=2)
        assert subject.instances.node_id[begin:end].tolist() == sorted(near)
