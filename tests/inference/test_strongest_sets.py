"""Strongest sets of every size, on functions that are known, and the one that stands out."""

import torch
from torch_geometric.data import Data

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.inference.random_parts import Neighbors
from gflowexplainer.inference.strongest_sets import StrongSet, find_strongest_sets, widest_gap


def path_of(size):
    path = torch.tensor([[i, i + 1] for i in range(size - 1)]).t()
    return Data(x=torch.ones(size, 1), edge_index=torch.cat([path, path.flip(0)], dim=1))


def search(worth, together=(), bound=0.0, sizes=None):
    """Sets are as strong as their nodes, and groups that are complete, add up; above a bound they hold."""

    def measure(asked):
        strength = [sum(worth[n] for n in nodes) + sum(w for g, w in together if g <= nodes) for _, nodes in asked]
        return [(value, value > bound) for value in strength]

    neighbors = Neighbors(Instances.of_graphs([path_of(len(worth))]))
    start = frozenset(range(len(worth)))
    return find_strongest_sets(measure, neighbors, {0: start}, [0.5] * len(worth), sizes or {})[0]


def test_where_nodes_add_up_the_best_ones_are_the_strongest_of_every_size():
    worth = [3.0, -1.0, 5.0, 0.5, -2.0, 4.0]
    found = search(worth)
    best = sorted(range(6), key=lambda node: -worth[node])
    assert {size: set(one.nodes) for size, one in found.items()} == {k: set(best[:k]) for k in range(1, 7)}


def test_nodes_that_only_do_something_together_are_found():
    found = search([0.0, 0.0, 4.0, 0.3, 0.2, 0.3], together=[(frozenset({0, 1}), 8.0)])
    assert found[3].nodes == {0, 1, 2}
    assert found[3].strength == 12.0


def test_what_many_others_blur_is_found_on_the_way_up():
    """Beside 5, node 1 is worth less than nothing and goes first; without it, more than all others."""
    blur = [(frozenset({1, 5}), -6.0), (frozenset({2, 5}), 1.0)]
    found = search([4.0, 3.0, 1.0, 1.0, 0.5, 2.5], together=blur, bound=3.5)
    assert found[1].nodes == {0}
    assert found[2].nodes == {0, 1}
    assert found[2].strength == 7.0


def test_a_set_ends_where_both_gaps_are_wide():
    sizes = {k: StrongSet(frozenset(range(k)), s, True) for k, s in enumerate([2.0, 5.0, 8.0, 8.1, 8.1], start=1)}
    allowed = [one.nodes for one in sizes.values()]
    by_model = widest_gap(sizes, allowed, dict.fromkeys(range(6), 0.5))
    assert by_model == {0, 1, 2}
    by_both = widest_gap(sizes, allowed, {0: 1.0, 1: 0.9, 2: 0.9, 3: 0.9, 4: 0.02, 5: 0.01})
    assert by_both == {0, 1, 2, 3}
    assert widest_gap(sizes, [], {0: 1.0}) == frozenset()
    # Masks may be 0 everywhere: of a class that every node speaks against.
    assert widest_gap(sizes, allowed, dict.fromkeys(range(6), 0.0)) == by_model
