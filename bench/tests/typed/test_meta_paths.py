"""Generated meta-paths: what decides a paper is what is said to, and the numbers are those of a user's call."""

from gflowbench.typed.meta_paths import make_meta_paths, nodes_within


def test_what_decides_a_paper_is_marked_and_near_and_the_only_such_thing():
    truth = make_meta_paths(0)
    graph = truth.graph
    labels = graph["paper"].y.tolist()
    assert set(labels) == {0, 1, 2}
    for paper in range(100):
        near = nodes_within(graph, paper)
        venue = int(graph["paper", "in", "venue"].edge_index[1, paper])
        marked = {("institute", n) for n in near["institute"] if graph["institute"].x[n, 0] > 0}
        marked |= {("venue", venue)} if graph["venue"].x[venue, 0] > 0 else set()
        assert len(marked) == (labels[paper] > 0)
        assert marked <= truth.nodes[paper]
        assert len(truth.nodes[paper]) == {0: 0, 1: 3, 2: 2}[labels[paper]]
