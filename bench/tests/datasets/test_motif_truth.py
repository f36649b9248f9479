import networkx as nx
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gflowbench.datasets.motif_truth import (
    edges_of_motifs,
    motifs_of_edges,
    role_in_motif,
    symmetric,
)

pairs = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.booleans()), min_size=1, max_size=30)


@settings(deadline=None, max_examples=60)
@given(pairs)
def test_motifs_are_the_components_of_marked_edges(edges: list[tuple[int, int, bool]]) -> None:
    edge_index = torch.tensor([edge[:2] for edge in edges]).t()
    marked = torch.tensor([edge[2] for edge in edges])
    motif_id = motifs_of_edges(edge_index, marked, 12)
    graph = nx.Graph([edge[:2] for edge in edges if edge[2]])
    found = [set((motif_id == i).nonzero().view(-1).tolist()) for i in range(int(motif_id.max()) + 1)]
    assert found == sorted(nx.connected_components(graph), key=min)


@settings(deadline=None, max_examples=60)
@given(pairs)
def test_symmetric_marks_either_direction(edges: list[tuple[int, int, bool]]) -> None:
    marks = symmetric(torch.tensor([edge[:2] for edge in edges]).t(), torch.tensor([edge[2] for edge in edges]))
    wanted = {frozenset(edge[:2]) for edge in edges if edge[2]}
    assert marks.tolist() == [frozenset(edge[:2]) in wanted for edge in edges]


def test_self_loops_are_no_motif_edges() -> None:
    edge_index = torch.tensor([[0, 0, 1, 2], [0, 1, 0, 1]])
    assert edges_of_motifs(edge_index, torch.tensor([5, 5, -1])).tolist() == [False, True, True, False]


def test_roles_count_within_each_motif() -> None:
    assert role_in_motif(torch.tensor([-1, 1, 0, 1, 0, -1, 1])).tolist() == [-1, 0, 0, 1, 1, -1, 2]
