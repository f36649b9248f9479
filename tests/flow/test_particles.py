"""Particles beside all connected subgraphs, which networkx tells apart, and a prior by plain dynamic programming."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from math import exp

import networkx as nx
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

from gflowexplainer.flow.particles import Particles, sample_particles
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.tasks import task_of
from gflowexplainer.testing import LinkModel, cycle, graph_of, house, path, random_graph, star

MOST = 5


@dataclass
class PerNode:
    """The evidence inside for each counted node of a subgraph."""

    node_evidence: Tensor
    edge_evidence: Tensor
    counted: Tensor
    beta: float = 2.0

    def log_reward_of(self, evidence, size, instance):
        return self.beta * evidence / size.clamp(min=1)


def value_of(*names):
    """A number for a node or an edge that depends on its names alone."""
    return float(torch.randn((), generator=torch.Generator().manual_seed(7 + hash(frozenset(names)) % 10_000)))


def reward_of(instances, name=lambda node: node):
    """A reward of the nodes and edges of some instances, whose ids in their graphs may have been others."""
    ids = [name(node) for node in instances.node_id.tolist()]
    ends = zip(instances.neighbor_row.tolist(), instances.neighbor.tolist(), strict=True)
    counted = torch.ones(instances.num_nodes, dtype=torch.double)
    counted[instances.roots] = 0
    return PerNode(
        torch.tensor([value_of(node) for node in ids], dtype=torch.double),
        torch.tensor([value_of(ids[a], ids[b]) for a, b in ends], dtype=torch.double),
        counted,
    )


def graph_with(data):
    graph = nx.Graph(data.edge_index.t().tolist())
    graph.add_nodes_from(range(data.num_nodes))
    return graph


def log_reward(graph, nodes, roots, beta=2.0):
    """The reward in plain Python."""
    inside = sum(value_of(node) for node in nodes) + sum(value_of(*edge) for edge in graph.subgraph(nodes).edges)
    return beta * inside / max(len(set(nodes) - set(roots)), 1)


def exact(graph, roots=(), most=MOST, least=1, within=None):
    """Weights of all connected subgraphs: the chance that growth passes through each, times its reward.

    Roots are what growth begins with and, for a link, its other end, which has to be joined within so many nodes.
    """
    arrived = {frozenset([node]): 1 / len(graph) for node in graph} if not roots else {frozenset(roots[:1]): 1.0}
    far = nx.single_source_shortest_path_length(graph, roots[1]) if len(roots) > 1 else {}
    found = {}
    for size in range(1, most + 1):
        onward = defaultdict(float)
        for nodes, chance in arrived.items():
            beside = {other for node in nodes for other in graph[node]} - nodes
            if set(roots) <= nodes and (size >= least or not beside):
                found[nodes] = chance * exp(log_reward(graph, nodes, roots))
            if len(roots) > 1 and roots[1] not in nodes:
                steps = min(far[node] for node in nodes)
                beside = {node for node in beside if size + 1 + min(steps, far.get(node, 999)) <= min(within, most)}
            for node in beside:
                onward[nodes | {node}] += chance / len(beside)
        arrived = onward
    return found


def weights_of(particles: Particles, instances, number=0, name=lambda node: node):
    mine = torch.nonzero(particles.subgraphs.instance == number).flatten()
    rows = particles.subgraphs.members[mine].tolist()
    sets = [frozenset(name(int(instances.node_id[node])) for node in row if node >= 0) for row in rows]
    assert len(set(sets)) == len(sets)  # different from one another
    return dict(zip(sets, particles.log_weight[mine].exp().tolist(), strict=True))


def shares(weights):
    return {nodes: weight / sum(weights.values()) for nodes, weight in weights.items()}


def sample(instances, width=10_000, seed=0, reward=None, **more):
    return sample_particles(instances, reward or reward_of(instances), max_nodes=MOST, width=width, seed=seed, **more)


GRAPHS = {"house": house(), "path": path(7), "ring": cycle(7), "star": star(6), "dense": random_graph(8, 0.4, seed=3)}


@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_connected_subgraph_of_a_graph_has_its_exact_probability(name, least):
    graph = graph_with(GRAPHS[name])
    instances = Instances.of_graphs([GRAPHS[name]])
    found = sample(instances, min_nodes=least)
    wanted = exact(graph, least=least)
    sets = [set(some) for size in range(least, MOST + 1) for some in combinations(graph, size)]
    assert set(wanted) == {frozenset(some) for some in sets if nx.is_connected(graph.subgraph(some))}
    assert shares(weights_of(found, instances)) == pytest.approx(shares(wanted), abs=1e-9)
    assert found.exact.tolist() == [True]


@pytest.mark.parametrize("node", [0, 3])
@pytest.mark.parametrize("name", ["house", "star", "dense"])
def test_every_connected_subgraph_around_a_node_has_its_exact_probability(name, node):
    data = GRAPHS[name]
    instances = Instances.around_nodes(data.x, data.edge_index, [node, (node + 1) % 5], 8)
    found = sample(instances)
    for number, root in enumerate((node, (node + 1) % 5)):
        wanted = exact(graph_with(data), [root])
        assert shares(weights_of(found, instances, number)) == pytest.approx(shares(wanted), abs=1e-9)


def test_what_cannot_grow_may_be_smaller_than_asked_for():
    graph = graph_of([(0, 1), (2, 3)], 6)
    instances = Instances.of_graphs([graph])
    found = weights_of(sample(instances, min_nodes=2), instances)
    assert shares(found) == pytest.approx(shares(exact(graph_with(graph), least=2)), abs=1e-9)
    assert frozenset([4]) in found
    assert frozenset([0]) not in found


@pytest.mark.parametrize("pair", [(0, 4), (1, 6), (2, 3)])
def test_every_subgraph_that_joins_a_link_has_its_exact_probability(pair):
    data = random_graph(8, 0.25, seed=5)
    predictor = Predictor(LinkModel(), level="edge", mode="binary_classification")
    instances = task_of(predictor, data, edge_label_index=torch.tensor(pair)[:, None]).inputs().instances
    graph = graph_with(data)
    if graph.has_edge(*pair):
        graph.remove_edge(*pair)
    # What is not in the instance is too far from both ends to join them.
    graph = graph.subgraph(instances.node_id.tolist())
    found = weights_of(sample(instances), instances)
    wanted = exact(graph, pair, within=int(instances.within))
    assert wanted
    assert all(set(pair) <= nodes and nx.is_connected(graph.subgraph(nodes)) for nodes in found)
    assert shares(found) == pytest.approx(shares(wanted), abs=1e-9)


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("width", [2, 6])
def test_weights_of_few_particles_are_right_on_average(rooted, width):
    """A thousand graphs that are all the same draw for themselves: each set has its weight in expectation."""
    data, copies = random_graph(8, 0.3, seed=1), 1000
    if rooted:
        union = Batch.from_data_list([data] * copies)
        instances = Instances.around_nodes(union.x, union.edge_index, torch.arange(copies) * 8 + 2, 8)
    else:
        instances = Instances.of_graphs([data] * copies)
    particles = sample(instances, width, reward=reward_of(instances, lambda node: node % 8))
    assert not particles.exact.any()
    members = particles.subgraphs.members
    inside = torch.zeros(len(members), 9, dtype=torch.double)
    inside.scatter_(1, torch.where(members < 0, 8, instances.node_id[members.clamp(min=0)] % 8), 1.0)
    truth = exact(graph_with(data), [2] if rooted else [])
    for what, asks in (("size", range(1, MOST + 1)), ("node", range(8))):
        for one in asks:
            holds = particles.subgraphs.size == one if what == "size" else inside[:, one] > 0
            weight = torch.where(holds, particles.log_weight.exp(), 0.0)
            total = torch.zeros(copies, dtype=torch.double).index_add(0, particles.subgraphs.instance, weight)
            wanted = sum(w for nodes, w in truth.items() if (len(nodes) == one if what == "size" else one in nodes))
            error = float(total.std()) / copies**0.5
            assert abs(float(total.mean()) - wanted) <= 4.5 * error + 1e-9 * wanted, (what, one)


def test_other_names_of_the_nodes_change_nothing_that_is_exact():
    data = random_graph(8, 0.3, seed=2)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    renamed = data.clone()
    renamed.edge_index = torch.argsort(order)[data.edge_index]
    renamed.x = data.x[order]
    plain, other = Instances.of_graphs([data]), Instances.of_graphs([renamed])

    def name(node):
        return int(order[node])

    wanted = weights_of(sample(plain), plain)
    found = weights_of(sample(other, reward=reward_of(other, name)), other, name=name)
    assert shares(found) == pytest.approx(shares(wanted), abs=1e-12)


@pytest.mark.parametrize("width", [3, 10_000])
def test_a_batch_gives_what_its_members_give_alone(width):
    instances = Instances.of_graphs([house(), random_graph(9, 0.3, seed=4), path(3), star(4)])
    together = sample(instances, width)
    for number in range(4):
        only = instances.select(torch.tensor([number]))
        alone = sample(only, width)
        assert weights_of(together, instances, number) == pytest.approx(weights_of(alone, only), rel=1e-12)
        assert bool(together.exact[number]) == bool(alone.exact)


def test_only_wanted_instances_are_sampled():
    instances = Instances.of_graphs([house(), cycle(5), path(4)])
    wanted = torch.tensor([True, False, True])
    some, every = sample(instances, wanted=wanted), sample(instances)
    assert set(some.subgraphs.instance.tolist()) == {0, 2}
    for number in (0, 2):
        assert weights_of(some, instances, number) == pytest.approx(weights_of(every, instances, number))


@pytest.mark.parametrize("name", ["house", "star", "dense"])
def test_it_is_exact_only_where_nothing_was_dropped(name):
    graph = graph_with(GRAPHS[name])
    instances = Instances.of_graphs([GRAPHS[name]])
    sizes = [len(nodes) for nodes in exact(graph)]
    widest = max(sizes.count(size) for size in range(1, MOST + 1))
    for width in range(1, widest + 2):
        found = sample(instances, width)
        assert bool(found.exact) == (width >= widest)
        assert bool(found.exact) == (len(found.subgraphs) == len(sizes))
        counts = torch.bincount(found.subgraphs.size)
        assert int(counts.max()) <= width
