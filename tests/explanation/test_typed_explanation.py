import json
import re
from html import unescape

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.drawing.painting import still
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ConfigError
from gflowexplainer.report import Case, Report
from gflowexplainer.report.page import render
from gflowexplainer.testing import LinkModel, TypedNodeModel, random_graph, typed_graph


@pytest.fixture(scope="module")
def typed():
    algorithm = GFlowExplainer(max_nodes=4, epochs=2)
    return algorithm.explain(TypedNodeModel(), typed_graph(), index=[3, 4], node_type="paper", progress=False)


@pytest.fixture(scope="module")
def link():
    data, pairs = random_graph(14, 0.1, seed=1), torch.tensor([[0], [4]])
    return GFlowExplainer(max_nodes=5, epochs=2).explain(
        LinkModel(), data, edge_label_index=pairs, progress=False
    )[0]  # fmt: skip


def test_the_flat_graph_is_that_of_pyg(typed):
    flat = typed[0].case().explanation
    graph = typed_graph().to_homogeneous(node_attrs=[], edge_attrs=[])
    assert torch.equal(flat.edge_index, graph.edge_index)
    case = typed[0].case()
    assert [typed_graph().node_types[t] for t in graph.node_type.tolist()] == list(case.types)
    assert [typed_graph().edge_types[t][1] for t in graph.edge_type.tolist()] == list(case.relations)
    masks = [typed[0][key].node_mask for key in typed_graph().node_types]
    assert torch.equal(flat.node_mask, torch.cat(masks))
    assert flat.whole_prediction == typed[0].whole_prediction
    names = [case.names[node] for node in flat.subgraphs[0].nodes]
    assert names == [f"{kind} {number}" for kind, number in typed[0].subgraphs[0].nodes]


def test_a_scene_shows_types_and_relations(typed):
    case = typed[0].case()
    scene = Scene.of(case)
    assert scene.types == ["author", "paper", "venue"]
    assert scene.names[scene.marked[0]] == "paper 3"
    # Both directions of a relation are one line, named once.
    wanted = {frozenset({"author", "paper"}): "writes", frozenset({"paper", "venue"}): "in"}
    kinds = [frozenset(scene.types[scene.kinds[end]] for end in ends) for ends in scene.ends]
    assert scene.relations == [wanted[kind] for kind in kinds]
    assert set(scene.relations) == {"writes", "in"}


def test_labels_are_given_by_type(typed):
    data = typed_graph()
    names = [f"person <{number}>" for number in range(data["author"].num_nodes)]
    case = typed[0].case(labels={"author": names}, note="a note")
    author = case.types.index("author")
    assert case.labels[author] == "person <0>"
    assert case.names[author] == "person <0> (author 0)"
    assert case.names[case.types.index("paper")] == "paper 0"
    with pytest.raises(ConfigError, match="has 1 entries"):
        typed[0].case(labels={"author": ["one"]})
    with pytest.raises(ConfigError, match="dictionary"):
        typed[0].case(labels=["one"])
    with pytest.raises(ConfigError, match="'smiles' is not shown"):
        typed[0].case(smiles="CC")


def test_a_still_picture_has_a_legend_and_no_markup_of_the_user(typed):
    case = typed[0].case()
    odd = Case(
        case.name, case.explanation, types=[f"<{t}>" for t in case.types], relations=["<b>"] * len(case.relations)
    )
    picture = still(Scene.of(odd))
    assert "&lt;author&gt;" in picture
    assert "&lt;b&gt;" in picture
    assert "<b>" not in picture
    assert picture.count("<path") >= 2  # squares and diamonds


def test_a_link_is_two_marked_ends(link):
    scene = Scene.of(Case(link.name, link))
    assert [scene.ids[slot] for slot in scene.marked] == [0, 4]
    assert [scene.level[slot] for slot in scene.marked] == [0, 0]
    assert "<svg" in still(scene)


def test_notebook_and_report_draw_them(typed, link, tmp_path):
    page = unescape(typed._repr_html_())
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])["cases"]
    assert [case["name"] for case in data] == ["0: paper 3", "1: paper 4"]
    assert data[0]["types"] == ["author", "paper", "venue"]
    assert len(data[0]["colours"]) == 3
    assert "writes" in data[0]["relations"]
    assert "explained link" in render(Report("typed", [typed[0].case(), Case(link.name, link)]))
    typed[0].draw(tmp_path / "typed.png")
    link.draw(tmp_path / "link.svg")
    assert (tmp_path / "typed.png").stat().st_size > 1000
    assert "explained link" in (tmp_path / "link.svg").read_text()


def test_relations_are_one_an_edge(typed):
    case = typed[0].case()
    with pytest.raises(ConfigError, match="'relations' of 'x' has 1 entries"):
        Case("x", case.explanation, relations=["one"])
