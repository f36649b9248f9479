"""What a model depends on is found out by calling it; every number shown is that of a plain loop over the model."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    GCNConv,
    GPSConv,
    GraphNorm,
    HANConv,
    HeteroConv,
    HGTConv,
    InstanceNorm,
    LayerNorm,
    PairNorm,
    SAGEConv,
    TAGConv,
    global_add_pool,
    global_mean_pool,
)
from torch_geometric.utils import subgraph

from gflowexplainer import GFlowExplainer
from gflowexplainer.graphs.inputs import InputGraph
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.probe import settled
from gflowexplainer.testing import (
    GraphModel,
    NodeModel,
    TypedNodeModel,
    cycle,
    graph_of,
    house,
    path,
    random_graph,
    typed_graph,
)

# Some of these models take no single node.
QUICK = {"max_nodes": 4, "min_nodes": 2, "epochs": 2, "num_contexts": 4, "num_samples": 16}


class Net(nn.Module):
    """One layer, called several times, something after it, and a linear readout."""

    def __init__(self, conv=None, after=None, times=1, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.conv = GCNConv(3, 3) if conv is None else conv
        self.after, self.times, self.readout = after, times, nn.Linear(3, 3)

    def forward(self, x, edge_index):
        for _ in range(self.times):
            x = self.conv(x, edge_index)
        return 2 * self.readout(x if self.after is None else self.after(x))


class BatchNet(Net):
    def forward(self, x, edge_index, batch=None):
        return 2 * self.readout(self.after(self.conv(x, edge_index), batch))


class GlobalMean(Net):
    def forward(self, x, edge_index):
        hidden = self.conv(x, edge_index)
        return 2 * self.readout(hidden + hidden.mean(dim=0))


class Transformer(Net):
    """Attention over all nodes (GPS), told apart by ``batch``."""

    def __init__(self):
        super().__init__()
        self.gps = GPSConv(3, GCNConv(3, 3), heads=1)

    def forward(self, x, edge_index, batch=None):
        return 2 * self.readout(self.gps(x, edge_index, batch))


def seen(model, level="node", graph=None):
    graph = random_graph(20) if graph is None else graph
    return found_for(model, InputGraph(graph.x, graph.edge_index, {}), level)


def found_for(model, graph, level="node"):
    return settled(Predictor(model.eval(), level=level, num_hops=None), graph).locality


@pytest.mark.parametrize(
    ("model", "hops"),
    [
        (Net(), 1),
        (Net(times=3), 3),
        (Net(APPNP(7, 0.1)), 7),
        (Net(TAGConv(3, 3, K=2), times=2), 4),
        (Net(SAGEConv(3, 3, aggr="max"), times=2), 2),
        (Net(after=nn.BatchNorm1d(3)), 1),
        (Net(after=nn.LayerNorm(3)), 1),
        (NodeModel(), 2),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_steps_are_counted_by_what_changes(model, hops):
    found = seen(model)
    assert (found.hops, found.local, found.together) == (hops, True, "union")
    # The truth: features beyond so many steps do not matter, those at that distance do.
    graph = path(24)
    with torch.no_grad():
        before = model.eval()(graph.x, graph.edge_index)[0]
        for distance, matters in ((hops, True), (hops + 1, False)):
            x = graph.x.clone()
            x[distance] += 5.0
            assert bool((model(x, graph.edge_index)[0] != before).any()) == matters


def test_normalisation_by_outgoing_edges_looks_one_step_farther():
    # T_3 of a Chebyshev filter reaches three steps, and counts the edges that leave the outermost nodes.
    assert seen(Net(ChebConv(3, 3, K=4))).hops == 4


NOT_LOCAL = {
    "layer norm": (lambda: Net(after=LayerNorm(3)), "alone"),
    "graph norm": (lambda: Net(after=GraphNorm(3)), "alone"),
    "graph norm with batch": (lambda: BatchNet(after=GraphNorm(3)), "batch"),
    "pair norm": (lambda: Net(after=PairNorm()), "alone"),
    "instance norm": (lambda: Net(after=InstanceNorm(3)), "alone"),
    "layer norm with batch": (lambda: BatchNet(after=LayerNorm(3)), "batch"),
    "global mean": (GlobalMean, "alone"),
    "attention over all nodes": (Transformer, "batch"),
}


@pytest.mark.parametrize("name", NOT_LOCAL)
def test_models_that_look_at_everything_are_noticed(name):
    make, together = NOT_LOCAL[name]
    found = seen(make())
    assert (found.local, found.together) == (False, together)


def plain(model, data, nodes, node=None, **arguments):
    """Calls the user's model on the subgraph that some nodes induce, and reads one row off: the meaning of "only"."""
    nodes = sorted(nodes)
    edge_index, _ = subgraph(torch.tensor(nodes), data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes)
    with torch.no_grad():
        output = model(data.x[nodes], edge_index)
    return output[0 if node is None else nodes.index(node)].softmax(dim=0).tolist()


def assert_as_plain(model, data, explanation, node):
    model.eval()
    everything = set(range(data.num_nodes))
    assert explanation.whole_prediction == pytest.approx(plain(model, data, everything, node), abs=1e-5)
    for found in explanation.subgraphs:
        inside = set(found.nodes)
        assert found.prediction_only == pytest.approx(plain(model, data, inside, node), abs=1e-5)
        left = everything - inside | ({0 if len(inside) == len(everything) else -1} if node is None else {node})
        assert found.prediction_without == pytest.approx(plain(model, data, left - {-1}, node), abs=1e-5)


@pytest.mark.parametrize("name", [*NOT_LOCAL, "gcn", "three calls", "chebyshev"])
def test_only_and_without_are_those_of_a_plain_loop_over_nodes(name):
    others = {"gcn": NodeModel, "three calls": lambda: Net(times=3), "chebyshev": lambda: Net(ChebConv(3, 3, K=4))}
    model = NOT_LOCAL[name][0]() if name in NOT_LOCAL else others[name]()
    # Two parts: what looks at everything looks at the other one too.
    data = graph_of([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (2, 5), (5, 6), (6, 7), (8, 9), (9, 10)], 11)
    algorithm = GFlowExplainer(**QUICK)
    for node, explanation in zip([0, 5, 7], algorithm.explain(model, data, [0, 5, 7], progress=False), strict=True):
        assert_as_plain(model, data, explanation, node)


class SumModel(GraphModel):
    """Adds over the nodes, so that nodes without edges still count: removal decides."""

    def forward(self, x, edge_index, batch=None):
        batch = x.new_zeros(x.size(0), dtype=torch.long) if batch is None else batch
        hidden = self.second(self.first(x, edge_index).relu(), edge_index).relu()
        return self.readout(global_add_pool(hidden, batch))


class NormedGraphs(GraphModel):
    """Takes ``batch`` and still mixes graphs up, by a norm that is not told of it."""

    def build(self):
        super().build()
        self.norm = PairNorm()

    def forward(self, x, edge_index, batch=None):
        batch = x.new_zeros(x.size(0), dtype=torch.long) if batch is None else batch
        return 3 * self.readout(global_mean_pool(self.norm(self.first(x, edge_index)), batch))


@pytest.mark.parametrize("removal", ["isolate", "induced"])
@pytest.mark.parametrize("make", [GraphModel, SumModel, NormedGraphs])
def test_only_and_without_are_those_of_a_plain_loop_over_graphs(make, removal):
    model, graphs = make(), [house(), cycle(6, seed=1), random_graph(9, seed=2)]
    algorithm = GFlowExplainer(**QUICK, removal=removal)
    found = algorithm.explain(model, graphs, progress=False)
    for data, explanation in zip(graphs, found, strict=True):
        assert_as_plain(model, data, explanation, None)


@pytest.mark.parametrize("name", NOT_LOCAL)
def test_an_instance_is_explained_the_same_alone_and_among_others(name):
    model, data = NOT_LOCAL[name][0](), random_graph(12)
    algorithm = GFlowExplainer(**QUICK | {"num_samples": 1000}).fit(model, data, [0, 1, 2, 3], progress=False)
    together = algorithm.explain(model, data, [4, 5, 6])
    alone = algorithm.explain(model, data, [5])[0]
    assert together[1].error == alone.error == 0
    others = {frozenset(subgraph.nodes): subgraph for subgraph in alone.subgraphs}
    assert {frozenset(subgraph.nodes) for subgraph in together[1].subgraphs} == set(others)
    for one in together[1].subgraphs:
        other = others[frozenset(one.nodes)]
        assert one.prediction_only == pytest.approx(other.prediction_only, abs=1e-5)
        # Single precision of the model is magnified by the exponent.
        assert one.probability == pytest.approx(other.probability, abs=1e-3)


def test_one_at_a_time_is_said():
    explanation = GFlowExplainer(**QUICK).explain(Net(after=PairNorm()), random_graph(12), 3, progress=False)[0]
    assert any("one at a time" in warning for warning in explanation.warnings)
    assert not any("one at a time" in w for w in explain_local().warnings)


def explain_local():
    return GFlowExplainer(**QUICK).explain(NodeModel(), random_graph(12), 3, progress=False)[0]


def test_fewer_hops_than_there_are_is_said():
    explanation = GFlowExplainer(**QUICK, num_hops=1).explain(NodeModel(), random_graph(12), 3, progress=False)[0]
    assert any("2 steps away, but only 1" in warning for warning in explanation.warnings)


class Writing(NodeModel):
    def forward(self, x, edge_index):
        x += 1.0
        edge_index.clamp_(max=8)
        return super().forward(x, edge_index)


@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_model_that_writes_into_its_input_changes_nothing_of_the_users(level):
    class WritingGraphs(GraphModel):
        def forward(self, x, edge_index, batch=None):
            x.mul_(2)
            return super().forward(x, edge_index, batch)

    data = random_graph(12)
    before = data.clone()
    model = Writing() if level == "node" else WritingGraphs()
    algorithm = GFlowExplainer(**QUICK)
    explanation = algorithm.explain(model, data if level == "node" else [data], 3 if level == "node" else 0)[0]
    _ = explanation.subgraphs[0].prediction_only
    assert torch.equal(data.x, before.x)
    assert torch.equal(data.edge_index, before.edge_index)
    assert any("writes into its input (x" in warning for warning in explanation.warnings)


def test_a_model_that_answers_differently_when_asked_again_is_said_with_the_number():
    class Random(NodeModel):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index) + torch.rand(x.size(0), 3)

    explanation = GFlowExplainer(**QUICK).explain(Random(), random_graph(12), 3, progress=False)[0]
    assert any(
        "random in evaluation mode" in warning and "differ by up to" in warning for warning in explanation.warnings
    )


def test_nothing_is_looked_for_twice():
    calls = []

    class Counting(NodeModel):
        def forward(self, x, edge_index, edge_weight=None):
            calls.append(x.size(0))
            return super().forward(x, edge_index, edge_weight)

    model, data, algorithm = Counting(), random_graph(12), GFlowExplainer(**QUICK)
    algorithm.fit(model, data, [0, 1], progress=False)
    before = len(calls)
    algorithm.explain(model, data, [3])
    algorithm.explain(model, data, [4])
    # Each: the stored call of the fit, the graph, its part, and that without single nodes; nothing of subgraphs.
    assert 0 < len(calls) - before <= 8


def test_a_model_that_only_takes_small_graphs_counts_as_not_local():
    class Own(Net):
        def forward(self, x, edge_index):
            if x.size(0) > 12:
                raise ValueError("of twelve nodes at most")
            return super().forward(x, edge_index)

    # It cannot be called on a longer walk, so it is taken to look at everything: one at a time, which works.
    found = GFlowExplainer(**QUICK).explain(Own(), random_graph(12), [0], progress=False)[0]
    assert "could not be found out" in found.warnings[0]
    assert "of twelve nodes at most" in found.warnings[0]


def test_arguments_of_nodes_and_edges_are_the_users():
    class Typed(nn.Module):
        def __init__(self):
            super().__init__()
            self.kind, self.conv = nn.Embedding(4, 3), GCNConv(3, 2)

        def forward(self, x, edge_index, kind, edge_weight):
            return self.conv(x + self.kind(kind), edge_index, edge_weight)

    data: Data = random_graph(12)
    arguments = {"kind": torch.arange(12) % 4, "edge_weight": torch.rand(data.edge_index.size(1))}
    found = found_for(Typed(), InputGraph(data.x, data.edge_index, arguments))
    assert (found.hops, found.local) == (1, True)


def test_a_model_that_is_random_in_evaluation_mode_is_named():
    class Noisy(NodeModel):
        def forward(self, x, edge_index):
            output = super().forward(x, edge_index)
            return output + 0.1 * torch.rand_like(output)

    found = GFlowExplainer(**QUICK).explain(Noisy(), random_graph(12), [0], progress=False)[0]
    assert any("is random in evaluation mode" in said for said in found.warnings)


def chain(length=12):
    """Cities along a road, joined by roads in both directions, and each with a house."""
    graph = HeteroData()
    graph["city"].x = torch.randn(length, 3, generator=torch.Generator().manual_seed(0))
    graph["house"].x = torch.ones(length, 2)
    places = torch.arange(length)
    graph["city", "road", "city"].edge_index = torch.stack([places[:-1], places[1:]])
    graph["house", "in", "city"].edge_index = torch.stack([places, places])
    return graph


class Walks(nn.Module):
    """One layer that is called so many times, then a norm over all nodes it sees if asked for."""

    def __init__(self, times, norm=False):
        super().__init__()
        torch.manual_seed(0)
        self.into = nn.ModuleDict({"city": nn.Linear(3, 4), "house": nn.Linear(2, 4)})
        edges = [("city", "road", "city"), ("house", "in", "city")]
        self.layer = HeteroConv({key: SAGEConv((4, 4), 4) for key in edges})
        self.times, self.norm = times, norm

    def forward(self, x_dict, edge_index_dict):
        hidden = {key: self.into[key](x) for key, x in x_dict.items()}
        for _ in range(self.times):
            hidden = {**hidden, **self.layer(hidden, edge_index_dict)}
        city = hidden["city"]
        return city - city.mean(dim=0) if self.norm else city


FEW = {"max_nodes": 3, "epochs": 1, "num_contexts": 4, "num_samples": 8, "rollouts": 4}


def located(model, data, **asked):
    algorithm = GFlowExplainer(**FEW)
    algorithm.explain(model, data, progress=False, **asked)
    (found,) = algorithm._cache.model(model).localities.values()
    return found


@pytest.mark.parametrize("times", [1, 3, 5])
def test_a_layer_counts_as_often_as_it_is_called(times):
    found = located(Walks(times), chain(), index=[11], node_type="city")
    assert (found.local, found.together, found.hops) == (True, "union", times)


@pytest.mark.parametrize("times", [1, 3])
def test_a_layer_that_may_not_be_given_nan_is_counted_too(times):
    class Named(Walks):
        def forward(self, x_dict, edge_index_dict):
            if any(x.isnan().any() for x in x_dict.values()):
                raise ValueError("features that are NaN name nothing")
            return super().forward(x_dict, edge_index_dict)

    assert located(Named(times), chain(), index=[11], node_type="city").hops == times


def test_a_model_that_looks_at_everything_is_evaluated_alone():
    model, data, algorithm = Walks(2, norm=True), chain(), GFlowExplainer(**FEW)
    entry = algorithm.explain(model, data, index=[5, 6], node_type="city", progress=False)
    (found,) = algorithm._cache.model(model).localities.values()
    assert (found.local, found.together) == (False, "alone")
    assert "looks at all nodes" in entry[0].warnings[0]
    for explanation in entry:
        # The truth: PyG's own subgraph, and a plain call of the model.
        nodes = explanation.subgraphs[0].nodes
        keep = {t: torch.tensor(sorted(i for kind, i in nodes if kind == t), dtype=torch.long) for t in data.node_types}
        cut = data.subgraph(keep)
        place = keep["city"].tolist().index(explanation.explained_node[1])
        with torch.no_grad():
            wanted = model(cut.x_dict, cut.edge_index_dict)[place].softmax(dim=0)
        assert torch.allclose(torch.tensor(explanation.subgraphs[0].prediction_only), wanted, atol=1e-5)


class Hetero(nn.Module):
    def __init__(self, layer, data):
        super().__init__()
        torch.manual_seed(0)
        self.into = nn.ModuleDict({t: nn.Linear(data[t].num_features, 8) for t in data.node_types})
        self.layer, self.out = layer(8, 8, data.metadata(), heads=2), nn.Linear(8, 3)

    def forward(self, x_dict, edge_index_dict):
        hidden = {key: self.into[key](x) for key, x in x_dict.items()}
        return self.out(self.layer(hidden, edge_index_dict)["paper"])


@pytest.mark.parametrize("layer", [HGTConv, HANConv])
def test_attention_over_relations_is_local(layer):
    data = typed_graph()
    found = located(Hetero(layer, data), data, index=[3], node_type="paper")
    assert (found.local, found.together, found.hops) == (True, "union", 1)


def test_usual_models_are_local():
    found = located(TypedNodeModel(), typed_graph(), index=[3], node_type="paper")
    assert (found.local, found.together, found.failure) == (True, "union", "")
