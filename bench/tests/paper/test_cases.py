from itertools import pairwise

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_networkx

from gflowbench.datasets import Benchmark, reference_folder
from gflowbench.explainers import Subject
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.paper import cases
from gflowbench.paper.cases import OURS, RG, motif_cases
from gflowbench.paper.molecule_cases import LARGER, PG, carbon_rings, first_edges, molecule_cases, pieces
from gflowbench.paper.sentence_cases import SENTENCES, _share_of_worse, sentence_cases
from gflowbench.protocol import Loaded, Problem
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.sources.smiles import ATOMS
from gflowexplainer.testing import random_graph

BRIEF = {"max_updates": 2}
SHORT = {"epochs": 1, "list_epochs": 1, "set_epochs": 1, "locator_updates": 1, "max_nodes": 4}


@pytest.fixture
def scattered():
    """Five random graphs of twelve nodes, sparse enough to have chains, rings and several components."""
    graphs = [random_graph(12, density=0.2, seed=seed) for seed in range(5)]
    return graphs, Instances.of_graphs(graphs)


def graph_with(nodes, edges):
    built = nx.Graph()
    built.add_nodes_from(nodes)
    built.add_edges_from(edges)
    return built


def test_pieces_are_the_components_of_networkx(scattered):
    _, instances = scattered
    edges = UndirectedEdges.of(instances)
    generator = torch.Generator().manual_seed(0)
    kept = torch.rand(edges.owner.numel(), generator=generator) < 0.4
    nodes = torch.zeros(instances.num_nodes, dtype=torch.bool)
    nodes[edges.ends[:, kept].flatten()] = True
    nodes |= torch.rand(instances.num_nodes, generator=generator) < 0.2
    counts = pieces(instances, edges, kept, nodes).tolist()
    for number, count in enumerate(counts):
        own = torch.nonzero(nodes & (instances.owner == number)).flatten().tolist()
        pairs = edges.ends[:, kept & (edges.owner == number)].t().tolist()
        assert count == nx.number_connected_components(graph_with(own, pairs))
    assert max(counts) > 1


def test_carbon_rings_are_the_2_core_of_the_carbons():
    graphs = [random_graph(14, density=0.2, seed=seed) for seed in range(6)]
    for number, graph in enumerate(graphs):
        kinds = torch.randint(0, 2, (14,), generator=torch.Generator().manual_seed(number)) * ATOMS.index("N")
        graph.x = torch.nn.functional.one_hot(kinds, len(ATOMS)).float()
    instances = Instances.of_graphs(graphs)
    found = carbon_rings(instances, UndirectedEdges.of(instances))
    wanted = []
    for graph in graphs:
        carbons = torch.nonzero(graph.x[:, 0] > 0).flatten().tolist()
        whole = to_networkx(graph, to_undirected=True)
        whole.remove_edges_from(list(nx.selfloop_edges(whole)))
        core = nx.k_core(whole.subgraph(carbons), 2).nodes
        wanted += [node in core for node in range(graph.num_nodes)]
    assert found.tolist() == wanted
    assert any(wanted)


def test_as_many_best_edges_are_taken_as_the_other_holds(scattered):
    _, instances = scattered
    edges = UndirectedEdges.of(instances)
    score = torch.rand(edges.owner.numel(), generator=torch.Generator().manual_seed(1))
    like = torch.rand(edges.owner.numel(), generator=torch.Generator().manual_seed(2)) < 0.3
    best = first_edges(edges, score, like, len(instances))
    for number in range(len(instances)):
        own = edges.owner == number
        count = int(like[own].sum())
        wanted = sorted(score[own].tolist(), reverse=True)[:count]
        assert sorted(score[own & best].tolist(), reverse=True) == wanted


def test_a_node_is_shown_with_its_motif_and_what_was_chosen(two_triangles, count_neighbors, monkeypatch):
    chosen = {1: {1, 2, 3}, 3: {3, 4}}

    def most_probable(loaded, subject, settings):
        ids = subject.instances.node_id.split(subject.instances.node_counts.tolist())
        sets = [chosen[node] for node in subject.index.tolist()]
        return torch.tensor([node in s for part, s in zip(ids, sets, strict=True) for node in part.tolist()])

    monkeypatch.setattr(cases, "most_probable", most_probable)
    problem = Problem("toy", "toy", lambda: Loaded(count_neighbors, two_triangles, torch.tensor([1])))
    found = motif_cases(problem, SHORT, {})
    shown = found["shown"]
    assert (found["instances"], shown["index"]) == (1, 1)
    by_id = dict(zip(shown["nodes"], shown["found"][OURS], strict=True))
    assert {node for node, inside in by_id.items() if inside} == {1, 2, 3}
    assert {n for n, m in zip(shown["nodes"], shown["motif"], strict=True) if m} == {0, 1, 2}
    assert shown["nodes"][shown["center"]] == 1
    pairs = {frozenset((shown["nodes"][i], shown["nodes"][j])) for i, j in shown["edges"]}
    assert {frozenset(p) for p in ((0, 1), (0, 2), (1, 2), (2, 3))} <= pairs
    score = found["scores"][OURS]
    # Of {1, 2, 3} two are in the motif {0, 1, 2}.
    assert (score["nodes"], score["inside"], score["found"]) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert score["overlap"] == pytest.approx(2 / 4)


def test_ours_and_rg_explain_graphs(molecules, mean_degree):
    problem = Problem("toy", "toy", lambda: Loaded(mean_degree, molecules, molecules.index))
    found = motif_cases(problem, SHORT, BRIEF)
    shown = found["shown"]
    # The motif of the middle graph of the two with one, the lone triangle, has as many edges as nodes.
    assert (shown["index"], shown["center"], len(shown["nodes"])) == (1, None, 4)
    assert set(shown["found"]) == {OURS, RG}
    for score in found["scores"].values():
        assert 0 <= score["overlap"] <= min(score["found"], score["inside"]) <= 1
    assert found["scores"][OURS]["connected"] == 1


def rings(group):
    """A ring of six carbons with a nitrogen that holds two atoms of ``group``."""
    edges = [(k, (k + 1) % 6) for k in range(6)] + [(0, 6), (6, 7), (6, 8)]
    index = torch.tensor(edges).t()
    kinds = torch.tensor([0] * 6 + [ATOMS.index("N")] + [ATOMS.index(group)] * 2)
    return Data(
        x=torch.nn.functional.one_hot(kinds, len(ATOMS)).float(),
        edge_index=torch.cat([index, index.flip(0)], dim=1),
        edge_type=torch.zeros(18, dtype=torch.long),
        y=torch.tensor([1]),
        motif_id=torch.tensor([-1] * 6 + [0] * 3),
    )


def test_molecules_with_each_group_are_shown(mean_degree):
    graphs = [rings("H"), rings("O"), rings("O")]
    benchmark = Benchmark.from_graphs(graphs, name="toy", task="graph", index=[0, 1, 2], motif_size=3)
    problem = Problem("toy", "toy", lambda: Loaded(mean_degree, benchmark, benchmark.index))
    found = molecule_cases(problem, BRIEF)
    assert {case["group"]: case["index"] for case in found["shown"]} == {"NO2": 1, "NH2": 0}
    case = found["shown"][0]
    assert case["symbols"] == [*"CCCCCC", "N", "O", "O"]
    assert len(case["edges"]) == len(case["orders"]) == len(case["truth"]) == 9
    truth = {tuple(pair) for pair, inside in zip(case["edges"], case["truth"], strict=True) if inside}
    assert truth == {(6, 7), (6, 8)}
    larger = {node for node, inside in enumerate(case["nodes"][LARGER]) if inside}
    assert len(larger) >= 8
    inside = sum(a in larger and b in larger for a, b in case["edges"])
    assert sum(case["best"]) == inside
    assert found["scores"][OURS]["connected"] == found["scores"][LARGER]["connected"] == 1
    assert found["scores"][LARGER]["ring"] == 1
    assert set(found["scores"]) == {OURS, LARGER, PG}


def test_most_probable_subgraphs_are_connected_and_hold_the_explained_node(two_triangles, count_neighbors):
    loaded = Loaded(count_neighbors, two_triangles, two_triangles.index)
    subject = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    chosen = cases.most_probable(loaded, subject, BRIEF)
    graph = to_networkx(two_triangles.graphs[0], to_undirected=True)
    for number, node in enumerate(two_triangles.index.tolist()):
        own = subject.instances.node_id[chosen & (subject.instances.owner == number)].tolist()
        assert node in own
        assert nx.is_connected(graph.subgraph(own))


def test_the_two_sentences():
    if reference_folder() is None:
        pytest.skip("the text of the sentences is not there")
    found = sentence_cases(40, 1, 3, BRIEF)
    first, second = found["shown"]
    assert len(SENTENCES) == 2
    assert "failure" in first["words"]
    assert "frustrating" in second["words"]
    for case in found["shown"]:
        places = [k for k, inside in enumerate(case["chosen"]) if inside]
        assert 8 <= len(places) <= 10
        # Edges join words at most two places apart.
        assert max(b - a for a, b in pairwise(places)) <= 2
        assert case["right"] == (case["negative"] > 0.5)
        assert 0 <= case["better"] <= 1


def test_a_part_with_the_word_that_decides_is_better_than_most():
    class Reads(torch.nn.Module):
        """Is sure of its class where one word is there; its layer only says how far it sees."""

        def __init__(self):
            super().__init__()
            self.layer = GCNConv(3, 3)

        def forward(self, x, edge_index, batch):
            there = x.new_zeros(int(batch.max()) + 1).index_add_(0, batch, 4 * x[:, 1])
            return torch.stack([there, 2 - there], dim=1)

    graph = random_graph(14, 0.1, seed=3)
    graph.x[:, 1] = 0.0
    graph.x[6, 1] = 1.0
    with_it, without = (_share_of_worse(Reads(), graph, part) for part in ([6, 7, 8], [10, 11, 12]))
    assert with_it > 0.6
    assert without == 0.0
