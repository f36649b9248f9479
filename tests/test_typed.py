"""Graphs of several types through the public class: bit by bit like plain ones, across types, for any layer."""

import networkx as nx
import pytest
import torch
from torch import nn
from torch_geometric.data import HeteroData
from torch_geometric.explain import Explainer, HeteroExplanation
from torch_geometric.nn import HANConv, HGTConv, RGCNConv, SAGEConv, global_mean_pool, to_hetero

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError, GFlowExplainerError
from gflowexplainer.explanation.typed_explanation import TypedExplanation
from gflowexplainer.graphs.typed_inputs import typed_graph as taken_apart
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.structure import KnownModel
from gflowexplainer.model.tasks import task_of
from gflowexplainer.testing import NodeModel, TypedNodeModel, random_graph, typed_graph

QUICK = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16}
NODE = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
RELATION = ("n", "to", "n")


class Same(nn.Module):
    """A plain model behind dictionaries with one type and one relation."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x_dict, edge_index_dict):
        return self.model(x_dict["n"], edge_index_dict[RELATION])


class Attention(nn.Module):
    """Two layers of HGT or HAN."""

    def __init__(self, layer, metadata, widths):
        super().__init__()
        torch.manual_seed(0)
        self.into = nn.ModuleDict({key: nn.Linear(width, 8) for key, width in widths.items()})
        self.layers = nn.ModuleList(layer(8, 8, metadata, heads=2) for _ in range(2))
        self.out = nn.Linear(8, 3)

    def forward(self, x_dict, edge_index_dict):
        x = {key: self.into[key](value).relu() for key, value in x_dict.items()}
        for layer in self.layers:
            x = {key: value.relu() for key, value in layer(x, edge_index_dict).items()}
        return 3 * self.out(x["paper"])


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

    def forward(self, x, edge_index):
        return 3 * self.second(self.first(x, edge_index).relu(), edge_index)


class ToHetero(nn.Module):
    def __init__(self, graph):
        super().__init__()
        torch.manual_seed(0)
        self.model = to_hetero(Plain(), graph.metadata())
        with torch.no_grad():
            self.model(graph.x_dict, graph.edge_index_dict)

    def forward(self, x_dict, edge_index_dict):
        return self.model(x_dict, edge_index_dict)["paper"]


def one_type(graph):
    typed = HeteroData()
    typed["n"].x, typed[RELATION].edge_index = graph.x, graph.edge_index
    return typed


def model_of(name, graph):
    widths = {key: graph[key].num_features for key in graph.node_types}
    made = {
        "HeteroConv": TypedNodeModel,
        "HGT": lambda: Attention(HGTConv, graph.metadata(), widths),
        "HAN": lambda: Attention(HANConv, graph.metadata(), widths),
        "to_hetero": lambda: ToHetero(graph),
    }
    return made[name]()


LAYERS = ("HeteroConv", "HGT", "HAN", "to_hetero")


def as_networkx(graph):
    """The graph as an independent library sees it, by names of nodes."""
    whole = nx.Graph()
    whole.add_nodes_from((key, node) for key in graph.node_types for node in range(graph[key].num_nodes))
    for (source, _, target), edges in graph.edge_index_dict.items():
        whole.add_edges_from(((source, u), (target, v)) for u, v in edges.t().tolist())
    return whole


@pytest.mark.parametrize("fitted", [False, True])
def test_one_type_and_one_relation_give_bit_by_bit_what_the_plain_graph_gives(fitted):
    graph, model = random_graph(14, seed=1), NodeModel()
    plain, typed = GFlowExplainer(**QUICK), GFlowExplainer(**QUICK)
    if fitted:
        plain.fit(model, graph, range(14), progress=False)
        typed.fit(Same(model), one_type(graph), node_type="n", progress=False)
    pairs = zip(
        plain.explain(model, graph, [0, 3], progress=False),
        typed.explain(Same(model), one_type(graph), [0, 3], node_type="n", progress=False),
        strict=True,
    )
    for a, b in pairs:
        assert torch.equal(a.node_mask, b["n"].node_mask)
        assert torch.equal(a.edge_mask, b[RELATION].edge_mask)
        assert [s.probability for s in a.subgraphs] == [s.probability for s in b.subgraphs]
        assert [s.nodes for s in a.subgraphs] == [tuple(i for _, i in s.nodes) for s in b.subgraphs]
        assert a.certificate == b.certificate
        assert a.whole_prediction == b.whole_prediction
        one, other = a.feature_contributions(), b.feature_contributions()
        assert one.columns == pytest.approx(other.columns, abs=1e-6)
        assert other.name(0) == "n x[0]"
        one, other = a.counterfactual(by="edges"), b.counterfactual(by="edges")
        assert (one is None) == (other is None)
        assert one is None or [tuple(n for _, n in edge) for edge in other.edges] == list(one.edges)
        assert len(a.summary().sentences) == len(b.summary().sentences)


@pytest.mark.parametrize("name", LAYERS)
def test_any_layer_through_pyg(name):
    graph = typed_graph()
    model = model_of(name, graph)
    algorithm = GFlowExplainer(**QUICK)
    masks = {"node_mask_type": "object", "edge_mask_type": "object"}
    explainer = Explainer(model, algorithm, explanation_type="model", model_config=NODE, **masks)
    explanation = explainer(graph.x_dict, graph.edge_index_dict, index=3)
    assert isinstance(explanation, HeteroExplanation)
    assert explanation.validate()
    assert explanation.explained_node == ("paper", 3)
    assert explanation.explained_class == int(model(graph.x_dict, graph.edge_index_dict)[3].argmax())
    assert explanation.node_mask_dict.keys() == graph.x_dict.keys()
    assert explanation.edge_mask_dict.keys() == graph.edge_index_dict.keys()
    assert float(explanation["paper"].node_mask[3]) == 1
    whole = as_networkx(graph)
    for subgraph in explanation.subgraphs:
        assert ("paper", 3) in subgraph.nodes
        assert nx.is_connected(whole.subgraph(subgraph.nodes))
    cut = explanation.get_explanation_subgraph()
    assert set(cut.node_types) == set(graph.node_types)
    assert cut["author"].num_nodes == int((explanation["author"].node_mask > 0).sum())
    assert explanation.threshold("topk", value=2)["paper"].node_mask.count_nonzero() <= 2


@pytest.mark.parametrize("name", LAYERS)
def test_hops_are_counted_by_layer_not_by_relation(name):
    assert KnownModel(model_of(name, typed_graph())).num_hops == 2


class Thrice(TypedNodeModel):
    """One layer that is called three times, which counting layers cannot see."""

    def forward(self, x_dict, edge_index_dict):
        hidden = {key: self.into[key](x).relu() for key, x in x_dict.items()}
        for _ in range(3):
            hidden = {key: x.relu() for key, x in self.layers[0](hidden, edge_index_dict).items()}
        return 3 * self.out(hidden["paper"])


def test_hops_that_nobody_gave_are_widened_to_what_the_model_depends_on():
    graph = typed_graph(num_papers=30, num_authors=25, num_venues=10)
    model = Thrice().eval()
    e = GFlowExplainer(seed=0, max_nodes=4).explain(model, graph, [0], node_type="paper", progress=False)[0]
    assert not any("steps away" in warning for warning in e.warnings)
    few = GFlowExplainer(seed=0, max_nodes=4, num_hops=1).explain(model, graph, [0], node_type="paper", progress=False)
    assert any("steps away" in warning for warning in few[0].warnings)


@pytest.mark.parametrize("name", LAYERS)
def test_with_everything_kept_the_model_says_what_it_says_of_the_whole_graph(name):
    graph = typed_graph(num_papers=9, seed=2)
    model = model_of(name, graph).eval()
    task = task_of(Predictor(model), graph, node_type="paper")
    inputs = task.inputs()
    whole = model(graph.x_dict, graph.edge_index_dict).softmax(dim=1)
    assert torch.allclose(inputs.predictor.whole(inputs.instances), whole, atol=1e-6)


def test_a_removed_node_is_really_gone():
    graph, model = typed_graph(), TypedNodeModel().eval()
    task = task_of(Predictor(model), graph, index=3, node_type="paper")
    inputs = task.inputs()
    instances, typed = inputs.instances, taken_apart(graph, model, {})
    gone = typed.span("venue").start + int(graph["paper", "in", "venue"].edge_index[1, 3])
    kept = instances.node_id != gone
    answer = inputs.predictor.predict(instances, torch.tensor([0]), kept)
    keep = torch.ones(graph["venue"].num_nodes, dtype=torch.bool)
    keep[gone - typed.span("venue").start] = False
    without = graph.subgraph({"venue": keep})
    assert torch.allclose(answer[0], model(without.x_dict, without.edge_index_dict)[3].softmax(0), atol=1e-6)


def test_the_learned_distribution_is_close_to_full_enumeration():
    graph, model = typed_graph(), TypedNodeModel()
    explanation = GFlowExplainer(max_nodes=5).explain(model, graph, [3], node_type="paper", progress=False)[0]
    assert explanation.certificate.distance < 0.03


def test_fit_save_load_and_a_stored_explanation(tmp_path):
    graph, model = typed_graph(), TypedNodeModel()
    algorithm = GFlowExplainer(**QUICK).fit(model, graph, node_type="paper", folder=tmp_path, progress=False)
    first = algorithm.explain(model, graph, [3, 4])
    again = GFlowExplainer.load(tmp_path).explain(model, graph, [3, 4])
    assert [e.top(2) for e in first] == [e.top(2) for e in again]
    first[0].save(tmp_path / "e.safetensors")
    stored = TypedExplanation.load(tmp_path / "e.safetensors")
    assert stored.subgraphs == first[0].subgraphs
    assert stored.explained_node == ("paper", 3)
    assert torch.equal(stored["venue"].node_mask, first[0]["venue"].node_mask)
    assert stored.validate()


class Regressor(TypedNodeModel):
    def forward(self, x_dict, edge_index_dict, edge_attr_dict, n_id_dict):
        assert n_id_dict["paper"].numel() == x_dict["paper"].size(0)
        for key, edges in edge_index_dict.items():
            assert key not in edge_attr_dict or edge_attr_dict[key].size(0) == edges.size(1)
        score = super().forward(x_dict, edge_index_dict)[:, :1]
        add = torch.zeros_like(score)
        key = ("author", "writes", "paper")
        return score + add.index_add(0, edge_index_dict[key][1], edge_attr_dict[key])


def test_edge_attributes_and_node_numbers_travel_along():
    graph = typed_graph()
    key = ("author", "writes", "paper")
    graph[key].edge_attr = torch.randn(graph[key].num_edges, 1)
    config = {"mode": "regression", "task_level": "node", "return_type": "raw"}
    found = GFlowExplainer(**QUICK).explain(
        Regressor(), graph, [3], node_type="paper", model_config=config, progress=False
    )
    assert found[0].validate()
    assert found[0].explained_class is None


def test_types_without_features_are_known_by_their_numbers():
    class Embedded(TypedNodeModel):
        def build(self):
            super().build()
            self.names = nn.Embedding(8, 3)

        def forward(self, x_dict, edge_index_dict, n_id_dict):
            return super().forward({**x_dict, "author": self.names(n_id_dict["author"])}, edge_index_dict)

    graph = typed_graph()
    del graph["author"].x
    graph["author"].num_nodes = 8
    found = GFlowExplainer(**QUICK).explain(Embedded(), graph, [3], node_type="paper", progress=False)
    assert found[0].validate()


class GraphLevel(TypedNodeModel):
    def forward(self, x_dict, edge_index_dict, batch_dict=None):
        batch = None if batch_dict is None else batch_dict["paper"]
        size = None if batch is None else int(torch.cat(list(batch_dict.values())).max()) + 1
        return global_mean_pool(super().forward(x_dict, edge_index_dict), batch, size)


def test_whole_heterogeneous_graphs_alone_and_among_others():
    graphs = [typed_graph(5, 4, 2, seed=seed) for seed in range(4)]
    model, config = GraphLevel(), {**NODE, "task_level": "graph"}
    algorithm = GFlowExplainer(**QUICK).fit(model, graphs, model_config=config, progress=False)
    among = algorithm.explain(model, graphs)
    for graph, explanation in zip(graphs, among, strict=True):
        assert explanation.validate()
        assert nx.is_connected(as_networkx(graph).subgraph(explanation.subgraphs[0].nodes))
        alone = algorithm.explain(model, [graph])[0]
        assert alone.subgraphs[0].nodes == explanation.subgraphs[0].nodes
        assert torch.allclose(alone["paper"].node_mask, explanation["paper"].node_mask, atol=1e-5)
    expected = model(graphs[1].x_dict, graphs[1].edge_index_dict)[0].softmax(0)
    assert among[1].whole_prediction == pytest.approx(expected.tolist(), abs=1e-5)


class Relational(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = RGCNConv(3, 8, 2), RGCNConv(8, 3, 2)

    def forward(self, x, edge_index, edge_type):
        return 3 * self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_type)


def test_typed_edges_in_one_graph():
    graph = random_graph(14, seed=1)
    graph.edge_type = (graph.edge_index.sum(dim=0) % 2).long()
    algorithm = GFlowExplainer(**QUICK).fit(Relational(), graph, [0, 1, 2, 3], progress=False)
    learned = algorithm._fitted.sampler.learned
    # Kinds of nodes, nodes, edges, and edges of each of the two relations.
    assert [one.weight.size(1) - one.kinds.basis.size(1) for one in learned.shared] == [2 + 2] * 2
    assert algorithm.explain(Relational(), graph, [5])[0].validate()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"node_type": "book"}, "no node type 'book'"),
        ({"node_type": "paper", "index": [99]}, "the type 'paper' has 12 nodes"),
    ],
)
def test_types_and_ids_that_do_not_exist_are_refused(asked, message):
    with pytest.raises(GFlowExplainerError, match=message):
        GFlowExplainer(**QUICK).explain(TypedNodeModel(), typed_graph(), model_config=NODE, progress=False, **asked)


def test_a_type_that_cannot_be_told_has_to_be_named():
    graph = typed_graph(num_papers=8, num_authors=8)
    with pytest.raises(ConfigError, match="Pass 'node_type'"):
        GFlowExplainer(**QUICK).explain(TypedNodeModel(), graph, [0], model_config=NODE, progress=False)


def test_parts_name_nodes_by_type_and_hold_what_the_model_says(tmp_path):
    graph, model = typed_graph(), TypedNodeModel()
    explanation = GFlowExplainer(**QUICK).explain(model, graph, [3], node_type="paper", progress=False)[0]
    (part,) = explanation.parts
    assert ("paper", 3) in part.nodes
    keep = {key: torch.tensor(sorted(n for t, n in part.nodes if t == key)).long() for key in graph.node_types}
    cut = graph.subgraph(keep)
    with torch.no_grad():
        alone = model(cut.x_dict, cut.edge_index_dict)[int((keep["paper"] == 3).nonzero())].softmax(dim=0)
    assert part.prediction_only == pytest.approx(alone.tolist(), abs=1e-5)
    assert "paper 3" in repr(explanation)
    explanation.save(tmp_path / "e")
    again = TypedExplanation.load(tmp_path / "e")
    assert again.parts == explanation.parts
    assert again.verdict == explanation.verdict
    assert again.warnings == explanation.warnings


def test_features_of_every_type_are_measured_on_the_model():
    graph, model = typed_graph(), TypedNodeModel().eval()
    explanation = GFlowExplainer(**QUICK).explain(model, graph, [3], node_type="paper", progress=False)[0]
    found = explanation.feature_contributions(evaluations=300)
    assert found.types == (("paper", 5), ("author", 3), ("venue", 20))
    assert {key for key, _ in found.nodes} == {"paper", "author"}
    assert not any(found.columns[8:])
    # Without their features, nodes have the mean of those of their type in the neighbourhood.
    around = as_networkx(graph)
    near = nx.ego_graph(around, ("paper", 3), 2)
    x = {key: value.clone() for key, value in graph.x_dict.items()}
    for key, node in found.nodes:
        x[key][node] = graph[key].x[[n for t, n in near if t == key]].mean(dim=0)
    label = explanation.explained_class
    assert found.bare == pytest.approx(model(x, graph.edge_index_dict)[3].softmax(0)[label].item(), abs=1e-5)
    assert found.whole - found.bare == pytest.approx(sum(found.columns), abs=1e-6)
    assert "paper 3" in str(explanation.summary())
    with pytest.raises(ConfigError, match="takes no 'weight'"):
        explanation.feature_contributions("weight")


def test_a_folder_knows_the_typed_graph_it_is_of(tmp_path):
    graph, model = typed_graph(), TypedNodeModel()
    algorithm = GFlowExplainer(**QUICK)
    algorithm.fit(model, graph, [1, 2, 3], node_type="paper", folder=tmp_path, progress=False)
    other = graph.clone()
    other["author"].x[0] += 1
    with pytest.raises(GFlowExplainerError, match="author"):
        algorithm.fit(model, other, [1, 2, 3], node_type="paper", folder=tmp_path, progress=False)


def test_a_list_of_typed_explanations_is_shown():
    found = GFlowExplainer(**QUICK).explain(TypedNodeModel(), typed_graph(), [3, 4], node_type="paper", progress=False)
    assert "paper 4" in repr(found)
    page = found._repr_html_()
    assert "<iframe" in page
    assert page.count("<option>") + page.count("&lt;option&gt;") == 2
    assert found.to_dataframe()["node"].tolist() == [("paper", 3), ("paper", 4)]
