import copy
import pickle
import sys

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.explain import Explanation, ModelConfig

from gflowexplainer import GFlowExplainer, SubgraphExplanation, TypedExplanation
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.explanation.findings import Certificate
from gflowexplainer.explanation.ranked import RankedSubgraphs
from gflowexplainer.testing import NodeModel, TypedNodeModel, house, random_graph, typed_graph

QUICK = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16}


@pytest.fixture
def by_hand():
    """A house of which {4, 0, 1} has probability 0.75 and {4, 0} 0.25; node 4 is explained."""
    graph = house()
    subgraphs = RankedSubgraphs.of(
        [((4, 0, 1), 0.75, 0.9, (0.2, 0.8), (0.6, 0.4)), ((4, 0), 0.25, 0.5, (0.7, 0.3), (0.1, 0.9))]
    )
    known = {"subgraphs": subgraphs, "certificate": Certificate(0.1, 0.2, 12)}
    answer = SubgraphDistribution(4, num_samples=16, error=0.03, known=known)
    node = torch.tensor([1.0, 0.75, 0, 0, 1.0])
    source, target = graph.edge_index
    inside = (node[source] > 0) & (node[target] > 0)
    edge = torch.where(inside, torch.minimum(node[source], node[target]), 0.0)
    return SubgraphExplanation.of(
        answer, x=graph.x, edge_index=graph.edge_index, node_mask=node[:, None], edge_mask=edge
    )


@pytest.fixture(scope="module")
def real():
    graph = random_graph(12, 0.2, seed=3)
    return GFlowExplainer(**QUICK).explain(NodeModel(), graph, 5)[0]


def test_ranking(by_hand):
    best, second = by_hand.subgraphs
    assert by_hand.top(1) == [best]
    assert by_hand.top(9) == [best, second]
    assert (best.class_only, best.class_without) == (1, 0)
    assert len(best) == 3
    assert by_hand.error == 0.03
    assert by_hand.explained_node == 4
    assert by_hand.certificate.distance == 0.1
    assert by_hand.validate()
    with pytest.raises(AttributeError):
        best.probability = 1.0


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "two"])
def test_wrong_k(by_hand, k):
    with pytest.raises(ConfigError, match="'k'"):
        by_hand.top(k)


def test_to_networkx(by_hand):
    graph = by_hand.to_networkx()
    assert set(graph) == {0, 1, 4}
    assert graph.nodes[1]["probability"] == 0.75
    assert [node for node, explained in graph.nodes(data="explained") if explained] == [4]
    assert graph.edges[0, 4]["probability"] == 1.0
    assert graph.edges[0, 1]["probability"] == graph.edges[1, 4]["probability"] == 0.75
    whole = by_hand.to_networkx(everything=True)
    assert (whole.number_of_nodes(), whole.number_of_edges()) == (5, 6)
    assert nx.is_connected(graph)


def test_without_masks_the_subgraphs_say_the_same(by_hand):
    bare = copy.copy(by_hand)
    del bare.node_mask, bare.edge_mask
    assert np.allclose(bare.node_probability(), by_hand.node_probability())
    values = bare.edge_probability(range(5))
    assert values[0, 4] == 1.0
    assert values[0, 1] == values[1, 4] == 0.75
    assert values[1, 2] == 0


def test_cutting_gives_a_plain_explanation(by_hand):
    cut = by_hand.get_explanation_subgraph()
    assert type(cut) is Explanation
    assert cut.num_nodes == 3
    assert cut.edge_index.size(1) == 6
    assert by_hand.get_complement_subgraph().num_nodes == 2
    assert cut.validate()


def test_the_best_subgraph_is_what_is_cut_out(real):
    """Probabilities are rarely 0: without a threshold the first subgraph is meant, with one what is above it."""
    first = real.subgraphs[0]
    best = real.best()
    assert best.node_mask.flatten().nonzero().flatten().tolist() == sorted(first.nodes)
    inside = nx.Graph(real.edge_index.t().tolist()).subgraph(first.nodes)
    kept = {frozenset(pair) for pair in real.edge_index[:, best.edge_mask > 0].t().tolist()}
    assert kept == {frozenset(edge) for edge in inside.edges}
    assert best.validate()
    assert best.subgraphs == real.subgraphs
    assert real.node_mask.max() <= 1
    assert int((real.node_mask > 0).sum()) > len(first)  # itself unchanged
    assert real.get_explanation_subgraph().num_nodes == len(first)
    assert real.get_complement_subgraph().num_nodes == real.num_nodes - len(first)
    some = real.threshold("topk", 7)
    assert some.get_explanation_subgraph().num_nodes == int((some.node_mask > 0).sum())
    with pytest.raises(ConfigError, match="not features"):
        real.visualize_feature_importance()


def test_threshold_keeps_the_subgraphs(by_hand):
    hard = by_hand.threshold("hard", 0.8)
    assert hard.node_mask.flatten().tolist() == [1, 0, 0, 0, 1]
    assert hard.subgraphs == by_hand.subgraphs
    assert set(hard.to_networkx()) == {0, 4}


def test_copies_and_devices(by_hand):
    for other in (copy.copy(by_hand), copy.deepcopy(by_hand), by_hand.clone(), by_hand.to("cpu")):
        assert other.subgraphs == by_hand.subgraphs
        assert other.certificate == by_hand.certificate


def test_pickled_without_certificate(real):
    fresh = GFlowExplainer(**QUICK).explain(NodeModel(), random_graph(12, 0.2, seed=3), 5)[0]
    other = pickle.loads(pickle.dumps(fresh))
    assert other.subgraphs == fresh.subgraphs
    assert "not been asked" in other.certificate.reason
    assert pickle.loads(pickle.dumps(real)).subgraphs == real.subgraphs


def test_save_and_load(by_hand, tmp_path):
    by_hand._model_config = ModelConfig("multiclass_classification", "node", "raw")
    by_hand._model_args = ["edge_attr"]
    by_hand.edge_attr = torch.rand(12, 2)
    by_hand.prediction = by_hand.target = torch.rand(5, 2)  # one piece of memory, as in a regression
    by_hand.scale = 2.0
    assert by_hand.certificate.distance == 0.1
    by_hand.save(tmp_path / "folder" / "one.safetensors")
    other = SubgraphExplanation.load(tmp_path / "folder" / "one.safetensors")
    assert set(other.keys()) == set(by_hand.keys())
    for name, value in by_hand.items():
        assert torch.equal(other[name], value) if isinstance(value, torch.Tensor) else other[name] == value
    assert other.subgraphs == by_hand.subgraphs
    assert other.certificate == by_hand.certificate
    assert (other._model_config, other._model_args) == (by_hand._model_config, by_hand._model_args)
    assert other.validate()


def test_a_certificate_that_was_asked_for_is_stored(real, tmp_path):
    asked = real.certificate
    real.save(tmp_path / "e.safetensors")
    assert asked.reason is None
    assert SubgraphExplanation.load(tmp_path / "e.safetensors").known_certificate == asked
    assert pickle.loads(pickle.dumps(real)).known_certificate == asked


def test_a_certificate_nobody_asked_for_is_not_stored(tmp_path):
    explanation = GFlowExplainer(**QUICK).explain(NodeModel(), random_graph(12, 0.2, seed=3), 5)[0]
    explanation.save(tmp_path / "e.safetensors")
    other = SubgraphExplanation.load(tmp_path / "e.safetensors")
    assert other.certificate.distance is None
    assert "not been asked" in other.certificate.reason
    assert other.subgraphs == explanation.subgraphs
    assert explanation.certificate.distance is not None


def test_what_cannot_be_stored_is_named(by_hand, tmp_path):
    by_hand.words = ["a", "b"]
    with pytest.raises(CheckpointError, match="'words'"):
        by_hand.save(tmp_path / "e.safetensors")
    with pytest.raises(CheckpointError, match="There is no"):
        SubgraphExplanation.load(tmp_path / "e.safetensors")


def test_files_that_hold_no_explanation_are_left_alone(by_hand, tmp_path):
    (tmp_path / "viz.png").write_bytes(b"\x89PNG and so on")
    with pytest.raises(CheckpointError, match=r"holds no explanation, .* or explain again") as caught:
        SubgraphExplanation.load(tmp_path / "viz.png")
    assert "elete" not in str(caught.value)
    by_hand.save(tmp_path / "plain")
    with pytest.raises(CheckpointError, match=r"by SubgraphExplanation\.load"):
        TypedExplanation.load(tmp_path / "plain")
    typed = GFlowExplainer(**QUICK).explain(TypedNodeModel(), typed_graph(), [3], node_type="paper", progress=False)
    typed[0].save(tmp_path / "typed")
    with pytest.raises(CheckpointError, match=r"by TypedExplanation\.load"):
        SubgraphExplanation.load(tmp_path / "typed")


@pytest.mark.parametrize("name", ["picture.png", "picture.svg"])
def test_draw(by_hand, real, tmp_path, name):
    for explanation in (by_hand, real, by_hand.threshold("hard", 0.99), by_hand.threshold("topk", 1)):
        explanation.draw(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_draw_on_given_axes(by_hand):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    _, ax = pyplot.subplots()
    assert by_hand.draw(ax=ax) is ax
    assert {text.get_text() for text in ax.texts} == {"0", "1", "2", "3", "4"}
    by_hand.draw(max_nodes=3)
    assert {text.get_text() for text in pyplot.gca().texts} == {"0", "1", "4"}
    pyplot.close("all")
    with pytest.raises(ConfigError, match="max_nodes"):
        by_hand.draw("x.png", max_nodes=0)


@pytest.mark.parametrize(("package", "use"), [("matplotlib", "draw"), ("networkx", "to_networkx")])
def test_missing_extras(by_hand, monkeypatch, package, use):
    for name in list(sys.modules):
        if name.split(".")[0] == package:
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=f"(?i)needs {package}"):
        getattr(by_hand, use)()


def test_an_empty_explanation_says_so():
    empty = SubgraphExplanation()
    assert "SubgraphExplanation" in empty._repr_html_()
    for use in ("subgraphs", "certificate", "error"):
        with pytest.raises(ConfigError, match="empty"):
            getattr(empty, use)


def test_an_explanation_without_its_graph_cannot_be_drawn(by_hand):
    del by_hand.edge_index
    assert "node 4" in by_hand._repr_html_()
    with pytest.raises(ConfigError, match="edge_index"):
        by_hand.to_networkx()


def test_visualize_graph_of_pyg(real, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    real.visualize_graph(str(tmp_path / "pyg.png"), backend="networkx")
    assert (tmp_path / "pyg.png").stat().st_size > 1000
