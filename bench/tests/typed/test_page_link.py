"""PaGE-Link: pruning, prices and losses by hand, and the path that decides a link is ranked first."""

import math

import networkx
import pytest
import torch

from gflowbench.explainers.registry import create
from gflowbench.typed.link_scores import score_links
from gflowbench.typed.link_task import RELATION
from gflowbench.typed.page_link import PricedPaths, path_loss, pruned

ENDS = (("node", 0), ("node", 3))


def named(task, edges):
    return {tuple(end for _, end in task.ends_of(edge)) for edge in edges}


def test_the_core_keeps_the_ways_between_both_ends(shared_neighbours):
    task = shared_neighbours
    # At 5 and 7 one edge arrives, then at 4 and 6.
    found = named(task, pruned(task, task.around[0], ENDS, 2))
    assert found == {(0, 1), (1, 0), (1, 3), (3, 1), (0, 2), (2, 0), (2, 3), (3, 2)}
    assert pruned(task, task.around[0], ENDS, 1) == task.around[0]


def test_paths_cost_their_masks_and_degrees_as_in_a_search(shared_neighbours):
    task = shared_neighbours
    edges = task.around[0]
    weight = torch.rand(len(edges), generator=torch.Generator().manual_seed(3)) * 0.9 + 0.05
    paths = PricedPaths(task, edges, ENDS, 4)
    graph = networkx.DiGraph()
    for edge, value in zip(edges, weight.tolist(), strict=True):
        one, other = task.ends_of(edge)
        into = 1 if other in ENDS else sum(task.ends_of(e)[1] == other for e in edges)
        graph.add_edge(one, other, cost=math.log(into) - math.log(value))
    wanted = list(networkx.shortest_simple_paths(graph, *ENDS, weight="cost"))
    found = [paths.edges[number] for number in paths.order(weight).tolist()]
    assert [[task.ends_of(edge)[0] for edge in path] + [ENDS[1]] for path in found] == wanted
    assert sorted(paths.costs(weight).tolist()) == pytest.approx(
        [networkx.path_weight(graph, path, "cost") for path in wanted]
    )
    assert {(RELATION, place) for place in paths.cheapest(weight, 1).tolist()} == set(found[0])


def test_the_loss_of_paths_by_hand():
    weight = torch.tensor([0.9, 0.5, 0.1, 0.3])
    assert float(path_loss(weight, torch.tensor([0, 1, 0]), 1.0, 2.0)) == pytest.approx(-2.3 / 3 + 2 * 0.2)
    assert float(path_loss(weight, torch.tensor([], dtype=torch.long), 1.0, 1.0)) == pytest.approx(0.45)


def test_the_path_that_decides_is_ranked_first(shared_neighbours, shared_attributes):
    task = shared_neighbours
    # A way around through 4 and 6, longer and of no use to the model.
    task.graph.edge_index = torch.cat([task.graph.edge_index, torch.tensor([[4, 6], [6, 4]])], dim=1)
    around = [(RELATION, place) for place in range(task.graph.num_edges)]
    more = type(task)(task.graph, task.model, None, task.train, task.test, task.paths, [around, around])
    for graph in (more, shared_attributes):
        scores = create("page-link", links=True, core=1).explain(graph, 0)
        auc, hits = score_links(scores, graph, 0)
        assert auc == 1.0
        assert hits[3] == 1.0
    masks = create("page-link", links=True, core=1, ranked=0).explain(more, 0)[0]
    assert all(0 < value < 1 for value in masks.values())
