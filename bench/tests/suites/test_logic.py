from itertools import combinations

import networkx
import numpy as np
import pytest
import torch
from networkx.algorithms.isomorphism import GraphMatcher, categorical_node_match
from torch_geometric.data import Data

from gflowbench.datasets.motifs import Motif
from gflowbench.datasets.task_truth import Combination
from gflowbench.suites.halves import half_of
from gflowbench.suites.logic import VALUES
from gflowbench.suites.logic_chains import COLOURS_OF
from gflowbench.suites.logic_nodes import REACH, rings_of
from gflowbench.suites.logic_sizes import motifs_by_size
from gflowbench.suites.logic_suite import NAMES, RULES, make_logic_task
from gflowbench.suites.pieces import holds, palette_of

SEEDS = (3, 102)


def as_networkx(graph: Data) -> networkx.Graph:
    made = networkx.Graph(graph.edge_index.t().tolist())
    made.add_nodes_from(range(graph.num_nodes))
    networkx.set_node_attributes(made, dict(enumerate(graph.x.argmax(dim=1).tolist())), "colour")
    return made


def motif_graph(motif: Motif) -> networkx.Graph:
    made = networkx.Graph(motif.edges.tolist())
    networkx.set_node_attributes(made, dict(enumerate(motif.labels.tolist())), "colour")
    return made


def copies(graph: Data, motif: Motif) -> set[tuple[int, ...]]:
    """Node sets of all copies of a motif, by networkx."""
    same = categorical_node_match("colour", None)
    matcher = GraphMatcher(as_networkx(graph), motif_graph(motif), node_match=same)
    return {tuple(sorted(found)) for found in matcher.subgraph_monomorphisms_iter()}


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_task(name: str) -> None:
    one, other, third = (make_logic_task(name, seed, 20) for seed in (1, 1, 2))
    for a, b in zip(one.graphs, other.graphs, strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.edge_index, b.edge_index)
        assert torch.equal(a.y, b.y)
    assert {i: t.parts for i, t in one.truths.items()} == {i: t.parts for i, t in other.truths.items()}
    assert any(a.x.shape != b.x.shape for a, b in zip(one.graphs, third.graphs, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_graphs_are_undirected_and_classes_balanced(name: str) -> None:
    task = make_logic_task(name, 0, 40)
    for graph in task.graphs:
        assert graph.is_undirected()
        assert not graph.has_self_loops()
    if name in RULES and not task.is_regression:
        counts = torch.bincount(torch.cat([graph.y for graph in task.graphs]))
        assert counts.tolist() == [40 // task.num_classes] * task.num_classes
    assert not set(task.splits["train"].tolist()) & set(task.splits["test"].tolist())


@pytest.mark.parametrize("seed", SEEDS)
def test_decoys_hold_no_motif(seed: int) -> None:
    palette = palette_of(seed)
    for decoy in palette.decoys:
        assert not holds(decoy, palette.first)
        assert not holds(decoy, palette.second)
    assert not holds(palette.first, palette.second)
    assert not holds(palette.second, palette.first)
    for one, other in combinations(motifs_by_size(), 2):
        assert not holds(other, one)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["or", "and-far", "and-adjacent", "count", "absence", "opposed", "sum-graph"])
def test_planted_motifs_decide_the_label(name: str, seed: int) -> None:
    palette = palette_of(seed)
    task = make_logic_task(name, seed, 40)
    for position, graph in enumerate(task.graphs):
        first, second = copies(graph, palette.first), copies(graph, palette.second)
        expected = {
            "or": bool(first | second),
            "and-far": bool(first and second),
            "and-adjacent": bool(first and second),
            "count": len(first) >= 2,
            "absence": not first,
            "opposed": bool(second) and not first,
            "sum-graph": len(first) * VALUES[0] + len(second) * VALUES[1],
        }[name]
        assert float(graph.y) == pytest.approx(float(expected))
        truth = task.truths[position]
        if truth.parts:
            wanted = first if name in ("count", "absence") else first | second
            assert set(truth.parts) == wanted
        elif name == "absence":
            assert truth.combination is Combination.NONE
            assert graph.y == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_class_is_the_shape_that_is_there_whatever_its_colours(seed: int) -> None:
    task, palette = make_logic_task("shapes", seed, 40), palette_of(seed)
    assert task.num_classes == len(palette.shapes)
    for position, graph in enumerate(task.graphs):
        # A base is a tree, so what has no bridge is the shape.
        made = as_networkx(graph)
        made.remove_edges_from(list(networkx.bridges(made)))
        (planted,) = [nodes for nodes in networkx.connected_components(made) if len(nodes) > 1]
        assert task.truths[position].parts == (tuple(sorted(planted)),)
        there = [networkx.is_isomorphic(made.subgraph(planted), motif_graph(shape)) for shape in palette.shapes]
        assert there == [label == int(graph.y) for label in range(len(palette.shapes))]


def test_far_motifs_are_apart_and_adjacent_ones_touch() -> None:
    for name, near in (("and-far", False), ("and-adjacent", True)):
        task = make_logic_task(name, 0, 40)
        for position, graph in enumerate(task.graphs):
            truth = task.truths[position]
            if truth.parts:
                steps = dict(networkx.all_pairs_shortest_path_length(as_networkx(graph)))
                gap = min(steps[a][b] for a in truth.parts[0] for b in truth.parts[1])
                assert (gap == 1) if near else (gap >= 5)


def test_colour_pair_is_the_only_one() -> None:
    task = make_logic_task("colour-pair", 0, 60)
    for position, graph in enumerate(task.graphs):
        colour = graph.x.argmax(dim=1).tolist()
        pairs = {tuple(sorted(e)) for e in graph.edge_index.t().tolist() if {colour[e[0]], colour[e[1]]} == {0, 1}}
        assert {0, 1} <= set(colour) or graph.num_nodes == 2
        assert set(task.truths[position].parts) == pairs
        assert len(pairs) == int(graph.y)


def test_colour_ring_is_the_only_ring_of_its_colour() -> None:
    task = make_logic_task("colour-ring", 0, 40)
    for position, graph in enumerate(task.graphs):
        rings = [tuple(sorted(ring)) for ring in networkx.cycle_basis(as_networkx(graph))]
        red = {ring for ring in rings if set(graph.x.argmax(dim=1)[list(ring)].tolist()) == {0}}
        assert len(rings) == 3
        assert set(task.truths[position].parts) == red
        assert len(red) == int(graph.y)


def test_sizes_reach_from_two_to_twelve() -> None:
    task = make_logic_task("size", 0, 60)
    found = set()
    for position, graph in enumerate(task.graphs):
        colour = graph.x.argmax(dim=1).tolist()
        pairs = {tuple(sorted(e)) for e in graph.edge_index.t().tolist() if {colour[e[0]], colour[e[1]]} == {0, 1}}
        every = pairs.union(*(copies(graph, motif) for motif in motifs_by_size()))
        assert set(task.truths[position].parts) == every
        assert len(every) == int(graph.y)
        found |= {len(part) for part in every}
    assert found == {2, 3, 5, 6, 9, 12}


@pytest.mark.parametrize("name", ["distance", "sum-node"])
def test_node_tasks_count_rings_within_reach(name: str) -> None:
    seed = 5
    task = make_logic_task(name, seed, 12)
    graph = task.graphs[0]
    made = as_networkx(graph)
    first, second, _ = rings_of(seed)
    rings = dict.fromkeys(copies(graph, first), 1.0) | dict.fromkeys(copies(graph, second), -1.0)
    steps = dict(networkx.all_pairs_shortest_path_length(made))
    checked = 0
    for members in task.splits.values():
        for node in members.tolist():
            near = {r: v for r, v in rings.items() if min(steps[node].get(m, 99) for m in r) <= REACH}
            if name == "sum-node":
                assert float(graph.y[node]) == pytest.approx(sum(near.values()))
                assert set(task.truths[node].parts if node in task.truths else ()) == set(near)
                continue
            motifs = {ring for ring, value in near.items() if value > 0}
            assert int(graph.y[node]) == bool(motifs)
            for part in task.truths[node].parts:
                assert any(set(ring) <= set(part) for ring in motifs)
                assert node in part
                assert networkx.is_connected(made.subgraph(part))
                checked += 1
    assert checked or name == "sum-node"


@pytest.mark.parametrize("seed", SEEDS)
def test_chains_are_two_colours_in_a_row(seed: int) -> None:
    task = make_logic_task("chain", seed, 30)
    graph, near_far = task.graphs[0], COLOURS_OF[half_of(seed)]
    made, colour = as_networkx(graph), graph.x.argmax(dim=1).tolist()
    components = list(networkx.connected_components(made))
    assert len(components) == 30
    for node in range(graph.num_nodes):
        walks = {(a, b) for a in made[node] for b in made[a] if (colour[a], colour[b]) == near_far}
        assert set(task.truths[node].parts) == {tuple(sorted({node, *walk})) for walk in walks}
        assert int(graph.y[node]) == bool(walks)
    for members in task.splits.values():
        assert all(not c & set(members.tolist()) or c <= set(members.tolist()) for c in components)
    assert 0.05 < float(graph.y.float().mean()) < 0.5


@pytest.mark.parametrize("name", ["sum-graph", "sum-node"])
def test_contributions_sum_to_the_value(name: str) -> None:
    task = make_logic_task(name, 1, 30)
    signs = set()
    for instance, truth in task.truths.items():
        value = task.labels(torch.tensor([instance]))
        assert float(truth.signed.sum()) == pytest.approx(float(value), abs=1e-5)
        assert torch.equal(truth.union, truth.signed != 0)
        signs |= set(np.sign(truth.signed.numpy()).tolist())
    assert signs == {-1.0, 0.0, 1.0}
