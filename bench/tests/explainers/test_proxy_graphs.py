"""Candidate edges against networkx, and what the model says of graphs whose edges have a probability."""

import networkx
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_networkx

from gflowbench.datasets import Benchmark
from gflowbench.explainers import Subject
from gflowbench.explainers.masked_model import MaskedModel, differentiable
from gflowbench.explainers.proxy_graphs import ProxyGraphs, takes_weights, unjoined
from gflowbench.models.architecture import Architecture
from gflowbench.models.networks import build
from gflowexplainer.testing import GraphModel, random_graph


def network_subject(model: str, task: str = "graph") -> Subject:
    torch.manual_seed(0)
    built = build(Architecture(model=model, task=task, in_channels=4, hidden_channels=8, num_classes=2)).eval()
    graphs = [random_graph(7 + seed, 0.3, seed=seed) for seed in range(3)]
    for graph in graphs:
        graph.x = torch.randn(graph.num_nodes, 4)
        graph.y = torch.zeros(1 if task == "graph" else graph.num_nodes, dtype=torch.long)
    if task == "node":
        return Subject.of(built, Benchmark.from_graphs(graphs[:1], task="node", index=[0, 3], num_classes=2))
    return Subject.of(built, Benchmark.from_graphs(graphs, task="graph", num_classes=2))


def proxies_of(subject: Subject, non_edges: float = 100.0) -> ProxyGraphs:
    return ProxyGraphs.of(MaskedModel.of(subject), subject.instances, non_edges, 0)


def test_in_small_graphs_all_pairs_that_no_edge_joins_are_taken(graph_subject):
    instances = graph_subject.instances
    union = to_networkx(Data(edge_index=instances.edge_index, num_nodes=instances.num_nodes), to_undirected=True)
    wanted = set()
    for number in range(len(graph_subject)):
        nodes = range(int(instances.ptr[number]), int(instances.ptr[number + 1]))
        wanted |= {tuple(sorted(pair)) for pair in networkx.complement(union.subgraph(nodes)).edges}
    assert {tuple(pair) for pair in unjoined(instances, 100.0, 0).t().tolist()} == wanted


def test_in_larger_graphs_some_are_drawn_for_each_edge(graph_subject):
    instances = graph_subject.instances
    every = {tuple(pair) for pair in unjoined(instances, 100.0, 0).t().tolist()}
    some = [tuple(pair) for pair in unjoined(instances, 0.5, 0).t().tolist()]
    assert set(some) < every
    edges = torch.bincount(instances.owner[instances.neighbor_row], minlength=len(instances)) // 2
    drawn = torch.bincount(instances.owner[torch.tensor(some)[:, 0]], minlength=len(instances))
    assert (drawn <= (0.5 * edges).ceil()).all()
    assert unjoined(instances, 0.5, 0).equal(unjoined(instances, 0.5, 0))
    assert not unjoined(instances, 0.5, 0).equal(unjoined(instances, 0.5, 1))
    alone = unjoined(instances.select(torch.tensor([2])), 0.5, 0) + instances.ptr[2]
    assert alone.t().tolist() == [list(pair) for pair in some if instances.owner[pair[0]] == 2]


def test_who_takes_weights_is_found_out():
    assert takes_weights(MaskedModel.of(network_subject("gcn")))
    assert not takes_weights(MaskedModel.of(network_subject("gin")))  # names them, and refuses them
    graph = random_graph(6, 0.3, seed=0)
    graph.y = torch.zeros(1, dtype=torch.long)
    plain = Subject.of(GraphModel(), Benchmark.from_graphs([graph], task="graph", num_classes=2))
    assert not takes_weights(MaskedModel.of(plain))


def test_weights_are_those_of_a_plain_loop():
    subject = network_subject("gcn")
    proxies = proxies_of(subject)
    probability = torch.rand(proxies.owner.numel(), generator=torch.Generator().manual_seed(1))
    instances = subject.instances
    with differentiable(subject.predictor), torch.no_grad():
        found = proxies.evaluate(probability, 0, weighted=True)
    for number in range(len(subject)):
        first, end = instances.ptr[number : number + 2].tolist()
        ends, weights = [], []
        for place in range(probability.numel()):
            u, v = proxies.ends[:, place].tolist()
            if first <= u < end:
                ends += [(u - first, v - first), (v - first, u - first)]
                weights += [float(probability[place])] * 2
        with torch.no_grad():
            wanted = subject.model(instances.x[first:end], torch.tensor(ends).t(), None, torch.tensor(weights))
        torch.testing.assert_close(found[number], wanted[0], atol=1e-5, rtol=0)


def test_a_drawn_graph_hands_the_gradient_on():
    subject = network_subject("gin")
    proxies = proxies_of(subject)
    with differentiable(subject.predictor):
        probability = torch.full((proxies.owner.numel(),), 0.5, requires_grad=True)
        proxies.evaluate(probability, 7, weighted=False)[:, 0].sum().backward()
    reached = int((probability.grad != 0).sum())
    assert 0.2 * probability.numel() < reached < 0.8 * probability.numel()  # those that are there in this draw
