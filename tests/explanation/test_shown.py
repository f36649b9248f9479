"""What a notebook shows: in a frame of its own, isolated, with a still picture where frames or scripts are off."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest
import torch

from gflowexplainer import GFlowExplainer, SubgraphExplanation
from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.explanation_list import ExplanationList
from gflowexplainer.explanation.findings import Counterfactual
from gflowexplainer.report import Case
from gflowexplainer.testing import GraphModel, NodeModel, random_graph

from ..conftest import HOSTILE, explain_by_hand

QUICK = {"max_nodes": 4, "epochs": 3, "rollouts": 4, "num_contexts": 4, "hidden": 8, "num_samples": 16}


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def many():
    return GFlowExplainer(**QUICK).explain(NodeModel(), random_graph(12, 0.2, seed=3), [5, 7, 5], progress=False)


def test_the_page_around_gets_nothing_but_a_frame_and_a_picture(house_case):
    html = house_case().explanation.show(labels=[HOSTILE] * 5, note=HOSTILE)._repr_html_()
    tags = Tags(html).found
    assert [tag for tag, _ in tags] == ["div", "style", "iframe", "div", "img", "pre", "script"]
    frame = tags[2][1]
    assert frame["sandbox"] == "allow-scripts"  # an origin of its own: nothing of the page is within reach
    assert not [name for _, attrs in tags for name in attrs if name.startswith("on")]
    inside = frame["srcdoc"]
    assert "default-src 'none'" in unescape(inside)
    assert [tag for tag, _ in Tags(inside).found].count("script") == 2
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", inside)
    assert len(html) < 120_000


def test_words_for_a_terminal(house_case):
    explanation = house_case().explanation
    text = repr(explanation)
    assert text.splitlines()[0] == "SubgraphExplanation of node 4"
    for said in ("class 1 (0.90)", "3 nodes 4, 0, 1; probability 0.750", "off by about 0.03", "certificate"):
        assert said in text
    assert max(map(len, text.splitlines())) < 120
    assert explanation.certificate.distance == 0.2
    assert "distance 0.200" in repr(explanation)
    assert repr(explanation.subgraphs[0]) == "RankedSubgraph(nodes=(4, 0, 1), probability=0.750, reward=0.675)"


def test_parts_and_what_was_asked_are_in_the_words():
    graph = random_graph(8)
    change = Counterfactual("nodes", (2,), (), (0.7, 0.3), (0.1, 0.9), True, True)
    known = {"counterfactual {}": change}
    explanation = explain_by_hand(graph, [((0, 1), 1.0)], None, parts=[(0, 1), (4, 5)], holds=False, studies=known)
    text = repr(explanation)
    for said in ("part         2 nodes 4, 5; with only it class 1 (0.80)", "Nothing found holds", "Without node 2"):
        assert said in text


def test_one_node_is_singular_in_words():
    graph = random_graph(8)
    explanation = explain_by_hand(graph, [((4,), 0.5), ((5, 6), 0.5)], None, parts=[(4,)], holds=False)
    assert "1 further subgraph in" in repr(explanation)
    said = str(explanation.summary())
    assert "Node 4 counts most: with only it the model says" in said
    assert "It preserves the prediction no better" in said


def test_a_shown_explanation_asks_what_would_change_it(many):
    assert not many[1].known_counterfactuals
    many[1].show()
    assert many[1].known("counterfactual") == [many[1].counterfactual()]
    assert len(many[1].known("features")) == 1


def test_printing_does_not_evaluate_the_model(many):
    model, calls = NodeModel(), []
    fresh = GFlowExplainer(**QUICK).explain(model, random_graph(12, 0.2, seed=3), [5], progress=False)
    model.register_forward_hook(lambda *_: calls.append(1))
    assert "node 5" in repr(fresh[0])
    assert "node 5" in repr(fresh)
    assert ".parts" in repr(fresh[0])
    assert ".certificate" in repr(fresh[0])
    assert not calls


def test_a_list_shows_its_explanations(many):
    assert repr(many).startswith("ExplanationList of 3 explanations\n  0: node 5, class")
    frame = Tags(many._repr_html_()).found[2][1]["srcdoc"]
    assert frame.count("<option>") == 3
    assert "<option>2: node 5</option>" in frame
    empty = ExplanationList([])
    assert "0 explanations" in empty._repr_html_()
    assert len(many.show(most=1).cases) == 1


def test_words_differ_from_graph_to_graph():
    graphs = [random_graph(5, 0.2, seed=s) for s in range(2)]
    many = GFlowExplainer(**QUICK).explain(GraphModel(), graphs, progress=False)
    cases = many.show(words=[list("abcde"), list("vwxyz")], classes=["no", "yes"]).cases
    assert [case.words[0] for case in cases] == ["a", "v"]
    with pytest.raises(ConfigError, match="'smiles' has 1 entries for 2 explanations"):
        many.show(smiles=["CCO"])


def test_a_model_that_has_changed_is_no_reason_to_show_nothing():
    model = NodeModel()
    (explanation,) = GFlowExplainer(**QUICK).explain(model, random_graph(12, 0.2, seed=3), [5], progress=False)
    with torch.no_grad():
        model.first.bias.add_(1.0)
    assert '"only":null' in unescape(explanation._repr_html_())


def test_names_come_with_the_data():
    graph = random_graph(12, 0.2, seed=3)
    graph.node_names, graph.feature_names = [f"person {node}" for node in range(12)], ["age", "and", "too", "many"]
    (one,) = GFlowExplainer(**QUICK).explain(NodeModel(), graph, [5], progress=False)
    assert "node 5 (person 5)" in str(one)
    case = one.show().cases[0]
    assert (case.labels, case.feature_names) == (graph.node_names, None)  # what does not fit is left out
    assert one.show(labels=["x"] * 12).cases[0].labels == ["x"] * 12


def test_a_view_can_be_saved(house_case, tmp_path):
    house_case().explanation.show().save(tmp_path / "view.html")
    assert "<iframe" in (tmp_path / "view.html").read_text(encoding="utf-8")


@pytest.fixture
def framed(browser, tmp_path):
    """Opens HTML as a notebook would hold it, and looks into its frame."""

    def show(html):
        (tmp_path / "notebook.html").write_text(
            f"<!DOCTYPE html><meta charset=utf-8><style>circle {{display: none}}</style><body>{html}", encoding="utf-8"
        )
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get((tmp_path / "notebook.html").as_uri())
        browser.switch_to.frame(browser.find_element("css selector", "iframe"))
        return browser

    yield show
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []


def test_the_drawing_in_a_real_browser(framed, house_case):
    cases = [house_case("one"), house_case("two", labels=[HOSTILE] * 5)]
    from gflowexplainer.drawing.page import View

    browser = framed(View(cases)._repr_html_())
    assert browser.execute_script("return document.querySelectorAll('.stage circle.node').length") == 5
    assert browser.execute_script("return getComputedStyle(document.querySelector('circle')).display") != "none"
    browser.execute_script("document.getElementById('on').click()")
    assert browser.execute_script("return document.querySelector('h2').textContent") == f"two ({HOSTILE})"
    assert browser.execute_script("return document.querySelectorAll('#case b, #case img').length") == 0
    with pytest.raises(Exception, match=r"(?i)cross-origin|blocked"):
        browser.execute_script("return window.parent.document.body.innerHTML")
    inside = browser.execute_script("return document.body.scrollHeight")
    browser.switch_to.default_content()
    assert not browser.find_element("css selector", ".gflowexplainer > div").is_displayed()
    frame = browser.find_element("css selector", "iframe")
    assert inside <= frame.size["height"] < inside + 40  # nothing is cut off


def test_without_frames_the_still_picture_is_shown(browser, house_case, tmp_path):
    html = re.sub(r"<iframe.*?</iframe>", "", house_case().explanation._repr_html_(), flags=re.DOTALL)
    (tmp_path / "stripped.html").write_text(html, encoding="utf-8")
    browser.get((tmp_path / "stripped.html").as_uri())
    picture = browser.find_element("css selector", ".gflowexplainer img")
    assert picture.is_displayed()
    assert browser.execute_script("return arguments[0].naturalWidth", picture) >= 300
    assert "because of  3 nodes: 4, 0, 1" in browser.find_element("css selector", "pre").text


def test_a_case_of_something_else_is_refused():
    with pytest.raises(ConfigError, match="SubgraphExplanation"):
        Case("x", object())


def test_the_explained_class_is_shown_where_another_one_is_predicted():
    graph, model = random_graph(12, 0.2, seed=3), NodeModel()
    (own,) = GFlowExplainer(**QUICK).explain(model, graph, [5], progress=False)
    label = min(range(3), key=own.whole_prediction.__getitem__)
    many = GFlowExplainer(**QUICK).explain(model, graph, [5], target=[label], progress=False)
    explained = f"class {label} ({own.whole_prediction[label]:.2f})"
    assert f"node 5, {explained}: " in repr(many)
    assert f"; explained is {explained}\n" in repr(many[0])
    assert f"Explained is {explained}." in str(many[0].summary())
    assert "xplained is" not in repr(own) + str(own.summary())


def test_a_stored_explanation_does_not_offer_what_it_cannot_compute(tmp_path):
    (one,) = GFlowExplainer(**QUICK).explain(NodeModel(), random_graph(12, 0.2, seed=3), [5], progress=False)
    assert "asked for by .certificate" in repr(one)
    one.save(tmp_path / "one")
    again = SubgraphExplanation.load(tmp_path / "one")
    assert "certificate  not computed: It has not been asked for" in repr(again)
