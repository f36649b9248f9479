import pytest
import torch

from gflowbench.explainers import FLOORS, Subject, create


@pytest.fixture(params=["node", "graph"])
def subject(request, two_triangles, molecules, count_neighbors, mean_degree):
    if request.param == "node":
        return Subject.of(count_neighbors, two_triangles, num_hops=3)
    return Subject.of(mean_degree, molecules)


@pytest.mark.parametrize("name", FLOORS)
def test_every_floor_gives_valid_scores_and_keeps_its_word(name, subject):
    floor = create(name)
    floor.fit(subject, 0)
    scores = floor.explain(subject, 0)
    scores.check(subject.instances, name)
    again, other = create(name).explain(subject, 0), create(name).explain(subject, 1)
    assert torch.equal(scores.edge, again.edge)
    if floor.deterministic:
        assert torch.equal(scores.edge, other.edge)


def test_random_growth_is_certain_of_the_explained_node(two_triangles, count_neighbors):
    subject = Subject.of(count_neighbors, two_triangles, num_hops=3)
    scores = create("random", max_nodes=3).explain(subject, 0)
    assert scores.node[subject.instances.center].tolist() == [1.0, 1.0]
    total = torch.zeros(2, dtype=torch.double).index_add_(0, subject.instances.owner, scores.node)
    torch.testing.assert_close(total, torch.full((2,), 3.0, dtype=torch.double))


def test_distance_of_nodes_by_hand(triangle_subject):
    scores = create("distance").explain(triangle_subject, 0)
    assert scores.node.tolist() == [0, -1, -1, -2, -3]
    source, target = triangle_subject.instances.edge_index
    between = {(u, v): s for u, v, s in zip(source.tolist(), target.tolist(), scores.edge.tolist(), strict=True)}
    assert (between[0, 1], between[1, 2], between[2, 3], between[3, 4]) == (-1, -1, -2, -3)


def test_distance_of_graphs_is_a_mean_over_all_starts(molecules, mean_degree):
    scores = create("distance").explain(Subject.of(mean_degree, molecules), 0)
    # Graph 2 is the path 0-1-2; graph 1 has an isolated node, 4 steps from all by definition.
    torch.testing.assert_close(scores.node[-3:], -torch.tensor([3, 2, 3]).double() / 3)
    torch.testing.assert_close(scores.node[5:9], -torch.tensor([12, 6, 6, 6]).double() / 4)


def test_class_probability_of_nodes_by_hand(triangle_subject):
    scores = create("probability").explain(triangle_subject, 0)
    degree = torch.tensor([2, 2, 3, 2, 1]).double()
    torch.testing.assert_close(scores.node, torch.sigmoid(degree - 1))


def test_class_probability_of_graphs_asks_about_neighbourhoods(molecules, mean_degree):
    scores = create("probability").explain(Subject.of(mean_degree, molecules), 0)
    # The path 0-1-2: node 0 stands for 0-1 (mean degree 1), node 1 for all three (4 / 3).
    torch.testing.assert_close(scores.node[-3:], torch.sigmoid(torch.tensor([1, 4 / 3, 1]).double()))
    # Node 2 of graph 0 stands for itself, 0, 1 and 3: four nodes, eight directed edges.
    torch.testing.assert_close(scores.node[2], torch.sigmoid(torch.tensor(2.0).double()))
