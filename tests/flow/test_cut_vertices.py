"""Theorem 1 against networkx, against the matrices of the paper's proof, and against its own invariants."""

import random

import networkx as nx
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowexplainer.flow.cut_vertices import add_node, empty_cut_matrix
from gflowexplainer.flow.sampling import grow_uniformly, roll_out
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import inner_neighbors

WIDTHS = (4, 11, 20, 33, 64)
FAMILIES = ("sparse", "dense", "tree", "clique with tails")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    # Thousands of small operations: threads that wait for one another would only slow them down.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_graph(family: str, num_nodes: int, seed: int) -> nx.Graph:
    draw = random.Random(seed)
    if family == "clique with tails":
        graph = nx.complete_graph(num_nodes // 3 + 2)
        for node in range(len(graph), num_nodes):
            graph.add_edge(node, node - 1 if draw.random() < 0.7 else draw.randrange(node))
    else:
        graph = nx.random_labeled_tree(num_nodes, seed=seed)
        density = {"tree": 0.0, "sparse": 1.5 / num_nodes, "dense": 0.4}[family]
        graph.add_edges_from(nx.gnp_random_graph(num_nodes, density, seed=seed).edges)
    order = draw.sample(range(num_nodes), num_nodes)
    return nx.relabel_nodes(graph, dict(enumerate(order)))


def grown_states(family: str, width: int, graphs: int, rollouts: int):
    """All states of random growths, and which of their members are neighbours."""
    drawn = [random_graph(family, width + number, number) for number in range(graphs)]
    data = [Data(x=torch.zeros(len(g), 1), edge_index=torch.tensor(list(g.edges)).t()) for g in drawn]
    instances = Instances.of_graphs(data)
    states = roll_out(instances, torch.arange(graphs).repeat_interleave(rollouts), None, width, grow_uniformly).states
    states = states.select(torch.nonzero(states.size > 0).view(-1))
    return states, inner_neighbors(instances, states.subgraphs)


def graph_of(adjacent: Tensor, size: int) -> nx.Graph:
    graph = nx.empty_graph(size)
    graph.add_edges_from(torch.nonzero(adjacent[:size, :size].tril()).tolist())
    return graph


def cut_matrix(connections: list[list[int]], width: int = 0) -> tuple[list[list[int]], list[bool]]:
    """Adds nodes one by one, each joined to the given earlier ones."""
    cut, is_cut = empty_cut_matrix(1, width or len(connections))
    for size, joined in enumerate(connections):
        connection = torch.zeros(1, cut.size(1), dtype=torch.bool)
        connection[0, joined] = True
        add_node(cut, is_cut, connection, torch.tensor([size]))
    return cut[0].tolist(), is_cut[0].tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_ten_thousand_states_agree_with_networkx(family):
    checked = 0
    for width in WIDTHS:
        states, adjacent = grown_states(family, width, graphs=4, rollouts=max(1, 768 // width // 4) + 1)
        sizes = states.size.tolist()
        for state, size in enumerate(sizes):
            expected = set(nx.articulation_points(graph_of(adjacent[state], size)))
            assert set(torch.nonzero(states.is_cut[state]).view(-1).tolist()) == expected
        checked += len(sizes)
    assert checked >= 2500


@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_names_the_components_left_without_its_member(family):
    states, adjacent = grown_states(family, 16, graphs=4, rollouts=4)
    size = states.size.tolist()
    for state, vertex in torch.nonzero(states.is_cut).tolist():
        row = states.cut[state, vertex]
        groups = {frozenset(torch.nonzero(row == label).view(-1).tolist()) for label in row.unique().tolist() if label}
        graph = graph_of(adjacent[state], size[state])
        graph.remove_node(vertex)
        assert groups == {frozenset(component) for component in nx.connected_components(graph)}
        assert len(groups) >= 2


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_zero_off_the_cut_and_the_diagonal_is_zero_everywhere(family):
    states, _ = grown_states(family, 24, graphs=4, rollouts=4)
    assert torch.equal((states.cut != 0).any(dim=2), states.is_cut)
    assert not states.cut.diagonal(dim1=1, dim2=2).any()
    beyond = ~states.subgraphs.filled
    assert not states.cut[beyond].any()
    assert not states.cut.transpose(1, 2)[beyond].any()


def test_two_nodes_have_the_zero_matrix():
    assert cut_matrix([[], [0]]) == ([[0, 0], [0, 0]], [False, False])


@pytest.mark.parametrize(
    ("connections", "matrix"),
    [
        # The proof, t = 2, one neighbour: v_a, or by symmetry v_b, becomes a cut vertex with two child groups.
        ([[], [0], [0]], [[0, 1, 2], [0, 0, 0], [0, 0, 0]]),
        ([[], [0], [1]], [[0, 0, 0], [1, 0, 2], [0, 0, 0]]),
        # Two neighbours: a triangle has none.
        ([[], [0], [0, 1]], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
        # t = 3, case a: a leaf on a member that was no cut vertex, [1 .. 0 .. 1 2]; the other row takes it along.
        ([[], [0], [1], [2]], [[0, 0, 0, 0], [1, 0, 2, 2], [1, 1, 0, 2], [0, 0, 0, 0]]),
        ([[], [0], [0, 1], [1]], [[0, 0, 0, 0], [1, 0, 1, 2], [0, 0, 0, 0], [0, 0, 0, 0]]),
        # Case b: a leaf on a cut vertex opens a third group.
        ([[], [0], [0], [0]], [[0, 1, 2, 3], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
        # Lemma 4, m = 2: joined to the cut vertex and one group, which it enters; the vertex stays cut.
        ([[], [0], [0], [0, 2]], [[0, 1, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
        # Joined to both groups: a ring of four, nothing is cut any more.
        ([[], [0], [0], [1, 2]], [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
        # Joined to all: the same.
        ([[], [0], [0], [0, 1, 2]], [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    ],
)  # fmt: skip
def test_matrices_of_the_proof(connections, matrix):
    assert cut_matrix(connections) == (matrix, [any(row) for row in matrix])


def test_joined_groups_take_the_largest_label():
    # A star with three leaves; the new node joins leaves 1 and 2, whose groups become group 2.
    matrix, _ = cut_matrix([[], [0], [0], [0], [1, 2]])
    assert matrix[0] == [0, 2, 2, 3, 2]


def test_a_vertex_can_be_cut_again_after_it_healed():
    _, is_cut = cut_matrix([[], [0], [0], [1, 2], [0]])
    assert is_cut == [True, False, False, False, False]


def test_states_of_different_size_are_updated_side_by_side():
    cut, is_cut = empty_cut_matrix(3, 4)
    size = torch.tensor([0, 1, 2])
    # A first node, a second one, and a leaf on the first of two.
    connection = torch.tensor([[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)
    add_node(cut, is_cut, connection, size)
    assert not cut[:2].any()
    assert cut[2, 0].tolist() == [0, 1, 2, 0]
    assert is_cut.tolist() == [[False] * 4, [False] * 4, [True, False, False, False]]


def test_an_empty_batch_is_left_alone():
    cut, is_cut = empty_cut_matrix(0, 4)
    add_node(cut, is_cut, torch.zeros(0, 4, dtype=torch.bool), torch.zeros(0, dtype=torch.long))
    assert cut.shape == (0, 4, 4)


@pytest.mark.parametrize(("width", "dtype"), [(127, torch.int8), (128, torch.int16), (300, torch.int16)])
def test_labels_fit_their_type_at_every_width(width, dtype):
    # A star has as many groups as it can have; then one node joins them all, all but one, or two of them.
    assert empty_cut_matrix(1, width)[0].dtype == dtype
    leaves = [[], *([[0]] * (width - 2))]
    matrix, is_cut = cut_matrix([*leaves, [0]])
    assert matrix[0] == list(range(width))
    assert is_cut[0]
    assert not cut_matrix([*leaves, list(range(1, width - 1))])[1][0]
    matrix, is_cut = cut_matrix([*leaves, list(range(2, width - 1))])
    assert matrix[0] == [0, 1, *([width - 2] * (width - 2))]
    assert is_cut[0]
    assert cut_matrix([*leaves, [1, width - 2]])[0][0] == [0, width - 2, *range(2, width - 1), width - 2]
