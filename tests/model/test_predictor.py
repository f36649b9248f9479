"""Batched predictions, held against the model called on each really induced subgraph."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.structure import KnownModel
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel, cycle, house, path, random_graph, star

Queries = tuple[Tensor, Tensor]


def random_queries(instances: Instances, count: int, seed: int = 0, share: float = 0.6) -> Queries:
    """Draws ``count`` queries: an instance each, and random nodes of it, the explained or the first one among them."""
    generator = torch.Generator().manual_seed(seed)
    instance = torch.randint(0, len(instances), (count,), generator=generator)
    kept = []
    for i in instance.tolist():
        first, last = instances.ptr[i : i + 2].tolist()
        mask = torch.rand(last - first, generator=generator) < share
        mask[max(int(instances.center[i]) - first, 0)] = True
        kept.append(mask)
    return instance, torch.cat(kept)


def asked_one_by_one(model: nn.Module, instances: Instances, queries: Queries, removal: str = "induced") -> Tensor:
    """Builds every queried graph with PyG's ``subgraph`` and calls the model on it alone."""
    rows, begin = [], 0
    for i in queries[0].tolist():
        alone = instances.select(torch.tensor([i]))
        mask = queries[1][begin : begin + alone.num_nodes]
        begin += alone.num_nodes
        edge_index, _, edge_mask = subgraph(
            mask,
            alone.edge_index,
            relabel_nodes=removal == "induced",
            num_nodes=alone.num_nodes,
            return_edge_mask=True,
        )
        present = mask if removal == "induced" else torch.ones_like(mask)
        arguments = alone.shared_arguments | {k: v[present] for k, v in alone.node_arguments.items()}
        arguments |= {k: v[edge_mask] for k, v in alone.edge_arguments.items()}
        with torch.no_grad():
            output = model(alone.x[present], edge_index, **arguments)
        rows.append(output[int(mask[: int(alone.center)].sum())] if alone.level == "node" else output[0])
    return torch.stack(rows)


def directed(graph: Data, seed: int = 0) -> Data:
    keep = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(seed)) < 0.6
    loops = torch.arange(graph.num_nodes).repeat(2, 1)[:, ::3]
    twice = graph.edge_index[:, :2]
    return Data(x=graph.x, edge_index=torch.cat([graph.edge_index[:, keep], loops, twice], dim=1))


class Stack(nn.Module):
    """Convolutions behind each other."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, edge_index).tanh()
        return 3 * x


def stack_of(kind: Callable[[int, int], nn.Module], number: int = 2) -> Stack:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Stack(*(kind(3, 3) for _ in range(number)))


LAYERS = {
    "GCN": lambda i, o: pyg.GCNConv(i, o),
    "SAGE": lambda i, o: pyg.SAGEConv(i, o),
    "GAT": lambda i, o: pyg.GATConv(i, o),
    "GIN": lambda i, o: pyg.GINConv(nn.Linear(i, o)),
    "TAG": lambda i, o: pyg.TAGConv(i, o, K=2),
    "APPNP": lambda i, o: pyg.APPNP(K=3, alpha=0.1),
    "SG": lambda i, o: pyg.SGConv(i, o, K=2),
}
GRAPHS = {
    "random": random_graph(20, 0.1),
    "directed": directed(random_graph(20, 0.15)),
    "path": path(20),
    "star": star(8),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("extra_hops", [0, 8])
@pytest.mark.parametrize("kind", LAYERS.values(), ids=LAYERS)
def test_node_predictions_are_those_on_induced_subgraphs(
    graph: Data, extra_hops: int, kind: Callable[[int, int], nn.Module]
) -> None:
    model = stack_of(kind)
    # With extra hops the instances are deeper than the model sees, and only the receptive field is computed.
    num_hops = KnownModel(model).num_hops + extra_hops
    instances = Instances.around_nodes(graph.x, graph.edge_index, range(graph.num_nodes), num_hops)
    queries = random_queries(instances, 30, share=0.8)
    with torch.no_grad():
        ours = Predictor(model).predict(instances, *queries, alone=True)
    torch.testing.assert_close(ours, asked_one_by_one(model, instances, queries).softmax(dim=1))


@pytest.mark.parametrize("seed", range(3))
def test_node_predictions_with_edge_weights_and_shared_arguments(seed: int) -> None:
    class Scaled(NodeModel):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, age: Tensor, scale: float) -> Tensor:
            return scale * super().forward(x * age[:, None], edge_index, edge_weight)

    graph, model = directed(random_graph(seed=seed), seed), Scaled(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(graph.num_edges, generator=generator)
    age = torch.rand(graph.num_nodes, generator=generator)
    instances = Instances.around_nodes(graph.x, graph.edge_index, range(12), 5, edge_weight=weight, age=age, scale=0.5)
    queries = random_queries(instances, 30, seed)
    with torch.no_grad():
        ours = Predictor(model).predict(instances, *queries)
    torch.testing.assert_close(ours, asked_one_by_one(model, instances, queries).softmax(dim=1))


def test_whole_instance_predicts_what_the_whole_graph_does_where_nothing_is_cut_off() -> None:
    graph, model = random_graph(), NodeModel()
    instances = Instances.around_nodes(graph.x, graph.edge_index, range(12), 12)
    with torch.no_grad():
        torch.testing.assert_close(Predictor(model).whole(instances), model(graph.x, graph.edge_index).softmax(dim=1))


class WithoutBatch(GraphModel):
    """A graph model that knows nothing of batches."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index)


class WithKeywords(GraphModel):
    """A graph model whose signature does not name the batch."""

    def forward(self, x: Tensor, edge_index: Tensor, **more: Any) -> Tensor:
        return super().forward(x, edge_index, **more)


@pytest.mark.parametrize("removal", ["induced", "isolate"])
@pytest.mark.parametrize("kind", [GraphModel, WithoutBatch, WithKeywords])
def test_graph_predictions_are_those_on_the_remaining_graph(kind: type[GraphModel], removal: str) -> None:
    model = kind()
    instances = Instances.of_graphs([house(), directed(random_graph()), path(3), star(3)])
    queries = random_queries(instances, 30)
    with torch.no_grad():
        ours = Predictor(model, level="graph").predict(instances, *queries, removal)
    wanted = asked_one_by_one(model, instances, queries, removal).softmax(dim=1)
    torch.testing.assert_close(ours, wanted)


class EdgesWithoutBatch(EdgeFeatureModel):
    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, edge_index, edge_attr)


@pytest.mark.parametrize("kind", [EdgeFeatureModel, EdgesWithoutBatch])
def test_graph_predictions_with_edge_features(kind: type[EdgeFeatureModel]) -> None:
    graphs = [house(), random_graph(), path(3)]
    for graph in graphs:
        graph.edge_attr = torch.rand(graph.num_edges, 2, generator=torch.Generator().manual_seed(1))
    instances, model = Instances.of_graphs(graphs, arguments=["edge_attr"]), kind()
    queries = random_queries(instances, 20)
    with torch.no_grad():
        ours = Predictor(model, level="graph", mode="regression").predict(instances, *queries)
    torch.testing.assert_close(ours, asked_one_by_one(model, instances, queries))


@pytest.mark.parametrize("kind", [GraphModel, WithoutBatch])
def test_graph_that_lost_every_node_keeps_its_first_one_alone(kind: type[GraphModel]) -> None:
    model, graph = kind(), house()
    graph.edge_index = torch.cat([graph.edge_index, torch.tensor([[0], [0]])], dim=1)  # a self loop goes as well
    instances = Instances.of_graphs([path(3), graph, path(3)])
    kept = torch.tensor([True] * 3 + [False] * 5 + [True] * 3)
    with torch.no_grad():
        ours = Predictor(model, level="graph").predict(instances, torch.arange(3), kept)
        torch.testing.assert_close(ours[1:2], model(graph.x[:1], graph.edge_index[:, :0]).softmax(dim=1))
    torch.testing.assert_close(ours[0], ours[2])


class Watched(NodeModel):
    """Notes how many nodes each call brings."""

    def build(self) -> None:
        super().build()
        self.seen: list[int] = []

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        self.seen.append(x.size(0))
        return super().forward(x, edge_index, edge_weight)


def test_same_question_is_computed_once() -> None:
    graph, model = cycle(9), Watched()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0, 4], 9)
    # Node 4 alone; the same and a part that cannot reach it; the same again of node 0.
    kept = torch.zeros(3, 9, dtype=torch.bool)
    kept[0, 4] = kept[1, [4, 0, 1]] = kept[2, 0] = True
    with torch.no_grad():
        ours = Predictor(model).predict(instances, torch.tensor([1, 1, 0]), kept.flatten())
    assert model.seen == [2]
    assert ours[0].equal(ours[1])
    assert not ours[0].equal(ours[2])


def test_question_without_the_explained_node_is_another_one() -> None:
    # Only the explained node is left over either way, but its self loop is gone where it is not kept.
    graph = Data(x=path(2).x, edge_index=torch.tensor([[0, 1, 0], [0, 0, 1]]))
    model = stack_of(lambda i, o: pyg.SAGEConv(i, o, aggr="sum"), 1)
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 1)
    kept = torch.tensor([True, False, False, False])
    with torch.no_grad():
        ours = Predictor(model).predict(instances, torch.tensor([0, 0]), kept)
        loop = model(graph.x[:1], torch.zeros(2, 1, dtype=torch.long))
        bare = model(graph.x[:1], torch.empty(2, 0, dtype=torch.long))
    torch.testing.assert_close(ours, torch.cat([loop, bare]).softmax(dim=1))


@pytest.mark.parametrize("level", ["node", "graph"])
def test_small_memory_gives_the_same_numbers(level: str) -> None:
    graph = random_graph()
    if level == "node":
        instances = Instances.around_nodes(graph.x, graph.edge_index, range(12), 2)
    else:
        instances = Instances.of_graphs([graph, house(), path(2), star(4)])
    model: nn.Module = NodeModel() if level == "node" else GraphModel()
    with torch.no_grad():
        wanted = Predictor(model, level=level).whole(instances)
        for budget in (1, 20_000):
            ours = Predictor(model, level=level, memory_budget=budget).whole(instances)
            torch.testing.assert_close(ours, wanted)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 20), max_size=12), st.integers(1, 30))
def test_chunks_fill_the_budget_and_no_more(cost: list[int], budget: int) -> None:
    chunks = list(Predictor(NodeModel(), memory_budget=budget).chunks(torch.tensor(cost, dtype=torch.long)))
    assert [i for chunk in chunks for i in range(chunk.start, chunk.stop)] == list(range(len(cost)))
    for chunk in chunks:
        assert sum(cost[chunk]) <= budget or chunk.stop - chunk.start == 1
        assert chunk.stop == len(cost) or sum(cost[chunk.start : chunk.stop + 1]) > budget


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"level": "edges"}, "'level' must be one of 'node', 'graph', 'edge' (got 'edges')."),
        ({"mode": "regresion"}, "Did you mean 'regression'?"),
        ({"return_type": "logprobs"}, "Did you mean 'log_probs'?"),
        ({"memory_budget": 0}, "'memory_budget' must be a positive number of bytes (got 0)."),
        ({"num_hops": -1}, "'num_hops' must be a whole number that is not negative (got -1)."),
    ],
)
def test_settings_that_make_no_sense(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Predictor(NodeModel(), **config)


def test_messages_against_the_edges_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"target_to_source.*turn the edges round"):
        Predictor(Stack(pyg.GCNConv(3, 3, flow="target_to_source")))


DEEP_LAYERS = {
    "Cheb": lambda i, o: pyg.ChebConv(i, o, K=4),
    "SSG": lambda i, o: pyg.SSGConv(i, o, alpha=0.1, K=3),
    "ARMA": lambda i, o: pyg.ARMAConv(i, o, num_layers=2, act=nn.Tanh()),
    "GatedGraph": lambda i, o: pyg.GatedGraphConv(o, num_layers=4),
    "MixHop": lambda i, o: pyg.MixHopConv(i, o // 3, powers=[0, 1, 3]),
}


@pytest.mark.parametrize("kind", (LAYERS | DEEP_LAYERS).values(), ids=LAYERS | DEEP_LAYERS)
@pytest.mark.parametrize("number", [1, 2])
def test_hops_are_how_far_information_really_travels(kind: Callable[[int, int], nn.Module], number: int) -> None:
    model, graph = stack_of(kind, number), path(15)
    graph.x.requires_grad_()
    (gradient,) = torch.autograd.grad(model(graph.x, graph.edge_index)[0].sum(), graph.x)
    assert KnownModel(model).num_hops == int(torch.nonzero(gradient.abs().sum(dim=1) > 0).max())


def test_model_without_message_passing_needs_a_number_of_hops() -> None:
    with pytest.raises(ConfigError, match=r"was found in Linear.*Pass 'num_hops'"):
        Predictor(nn.Linear(2, 2))
    assert Predictor(nn.Linear(2, 2), num_hops=4).num_hops == 4


def test_evaluations_are_counted() -> None:
    graph, predictor = house(), Predictor(NodeModel())
    predictor.whole(Instances.around_nodes(graph.x, graph.edge_index, [0, 1, 4], 2))
    assert predictor.num_evaluations == 3
