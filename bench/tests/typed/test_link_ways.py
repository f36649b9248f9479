"""Ways between the ends of a link, against networkx."""

import networkx

from gflowbench.typed.link_ways import edges_along, edges_around, ends_of_links, flat_graph, reach, ways_between
from gflowbench.typed.motif_links import load_motif_links


def test_ways_are_the_simple_paths_of_networkx_the_shortest_first():
    graph = networkx.gnp_random_graph(14, 0.3, seed=1)
    for most_steps in (1, 2, 4):
        found = ways_between(graph, 0, 9, most_steps)
        assert sorted(found) == sorted(networkx.all_simple_paths(graph, 0, 9, cutoff=most_steps))
        assert [len(way) for way in found] == sorted(len(way) for way in found)
    assert ways_between(graph, 0, 9, 4, most_ways=3) == ways_between(graph, 0, 9, 4)[:3]
    assert ways_between(graph, 0, "elsewhere", 4) == []


def test_edges_run_along_a_way_where_they_can(shared_neighbours):
    task = shared_neighbours
    ends = [task.ends_of(edge) for edge in edges_along(task, flat_graph(task), [("node", 3), ("node", 1), ("node", 0)])]
    assert [(one, other) for (_, one), (_, other) in ends] == [(3, 1), (1, 0)]


def test_what_a_link_depends_on(shared_attributes):
    task = load_motif_links(0).every(10)
    assert reach(task) == 2
    for link, around in zip(task.test.t(), task.around, strict=True):
        assert edges_around(task, link, 2) == around
    typed = shared_attributes
    assert reach(typed) == 1
    # Attribute 2 of user 1 is no neighbour of user 0, but one of the item; user 1 itself tells nobody anything.
    assert ((("attr", "of", "user")), 2) not in edges_around(typed, typed.test[:, 0], 1)
    assert ends_of_links(typed) == [(("user", 0), ("item", 0))]
