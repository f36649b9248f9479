import itertools

import networkx
import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject, create
from gflowbench.explainers.pruning import Search
from gflowbench.explainers.shapley import ShapleyValues
from gflowbench.explainers.subgraphx import SubgraphX
from gflowexplainer.testing import GraphModel, NodeModel, house, path, random_graph, star


@pytest.fixture(params=["node", "graph"])
def subject(request):
    if request.param == "node":
        graph = random_graph(13, 0.1, seed=6)
        benchmark = Benchmark.from_graphs(graph, name="one", task="node", num_classes=3, index=[0, 6, 12])
        return Subject.of(NodeModel(), benchmark, max_nodes=4)
    lonely = Data(x=torch.randn(3, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    graphs = [house(seed=1), star(4, seed=2), path(7, seed=3), lonely]
    benchmark = Benchmark.from_graphs(graphs, name="many", task="graph", num_classes=2, index=[0, 1, 2, 3])
    return Subject.of(GraphModel(), benchmark, max_nodes=4)


def undirected(subject: Subject) -> networkx.Graph:
    graph = networkx.Graph()
    graph.add_nodes_from(range(subject.instances.num_nodes))
    graph.add_edges_from(subject.instances.edge_index.t().tolist())
    return graph


def search_of(subject: Subject, num_samples: int = 20) -> Search:
    return Search(subject, ShapleyValues(subject, num_samples=num_samples), 1000, 1, 0)


def best_by_enumeration(subject: Subject, search: Search, instance: int, root: set[int], size: int) -> float:
    """The largest value of all connected subgraphs of at most ``size`` nodes."""
    instances, graph = subject.instances, undirected(subject)
    nodes = range(*instances.ptr[instance : instance + 2].tolist())
    sets = [
        chosen
        for count in range(1, size + 1)
        for chosen in itertools.combinations(sorted(root), count)
        if networkx.is_connected(graph.subgraph(chosen))
        and (instances.level == "graph" or int(instances.center[instance]) in chosen)
    ]
    inside = torch.cat([torch.tensor([node in chosen for node in nodes]) for chosen in sets])
    return float(search.values(torch.full((len(sets),), instance), inside).max())


def test_pruning_reaches_every_connected_subgraph(subject):
    search = search_of(subject)
    trees = search.roots()
    newest = [tree.root for tree in trees]
    while newest:
        search.expand(trees, newest, 100, "high")
        newest = [b for tree in trees for b in tree.found.values() if b.children is None and b.nodes.numel() > 1]
    for instance, tree in enumerate(trees):
        expected = best_by_enumeration(subject, search, instance, set(tree.root.nodes.tolist()), 3)
        assert tree.best(3).value == pytest.approx(expected, abs=1e-6)


def test_the_search_finds_the_best_connected_subgraph():
    graph = random_graph(13, 0.1, seed=6)
    benchmark = Benchmark.from_graphs(graph, name="one", task="node", num_classes=3, index=[0, 6, 12])
    subject = Subject.of(NodeModel(), benchmark, max_nodes=3)
    search = search_of(subject)
    trees = SubgraphX(num_rollouts=20, num_samples=20).grow(search, 3)
    for instance, tree in enumerate(trees):
        expected = best_by_enumeration(subject, search, instance, set(tree.root.nodes.tolist()), 3)
        assert tree.best(3).value == pytest.approx(expected, abs=1e-6)


def test_every_subgraph_in_a_tree_is_connected_and_holds_the_explained_node(subject):
    search, graph, instances = search_of(subject, 5), undirected(subject), subject.instances
    for instance, tree in enumerate(SubgraphX(num_rollouts=5, num_samples=5).grow(search, 4)):
        assert len({tuple(branch.nodes.tolist()) for branch in tree.found.values()}) == len(tree.found)
        for branch in tree.found.values():
            nodes = branch.nodes.tolist()
            assert networkx.is_connected(graph.subgraph(nodes))
            assert branch.parent is None or set(nodes) < set(branch.parent.nodes.tolist())
            if instances.level == "node":
                assert int(instances.center[instance]) in nodes


def test_scores_fit_and_name_a_connected_subgraph_first(subject):
    instances, graph = subject.instances, undirected(subject)
    explainer = create("subgraphx", num_rollouts=4, num_samples=10)
    scores = explainer.explain(subject, 0)
    scores.check(instances, "subgraphx")
    assert scores.order.shape == (len(subject), 4)
    for instance, row in enumerate(scores.order.tolist()):
        picked = [node for node in row if node >= 0]
        assert 1 <= len(set(picked)) == len(picked) <= 4
        assert networkx.is_connected(graph.subgraph(picked))
        if instances.level == "node":
            assert picked[0] == int(instances.center[instance])
        owner = instances.owner[instances.edge_index[0]] == instance
        inside = torch.tensor([{u, v} <= set(picked) for u, v in instances.edge_index.t().tolist()], dtype=torch.bool)
        if (inside & owner).any() and (~inside & owner).any():
            assert scores.edge[inside & owner].min() > scores.edge[~inside & owner].max()


def test_the_order_prunes_what_is_missed_least():
    benchmark = Benchmark.from_graphs([house(seed=1)], name="house", task="graph", num_classes=2, index=[0])
    subject = Subject.of(GraphModel(), benchmark, max_nodes=5)
    search = search_of(subject, 40)
    tree = search.roots()[0]
    order = search.order([tree.root], 5)[0].tolist()
    # No node of a house is a cut vertex: the first to go is the one without which most value is left.
    left = {out: [node for node in range(5) if node != out] for out in range(5)}
    inside = torch.cat([torch.tensor([node in rest for node in range(5)]) for rest in left.values()])
    values = search.values(torch.zeros(5, dtype=torch.long), inside)
    assert order[-1] == int(values.argmax())
