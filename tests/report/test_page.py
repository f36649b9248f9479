import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from torch_geometric.explain import Explanation

from gflowexplainer import GFlowExplainer
from gflowexplainer.drawing.page import embedded_json
from gflowexplainer.errors import ConfigError
from gflowexplainer.report import Case, Report, write_report
from gflowexplainer.report.page import MOST_ASKED, MOST_POINTS, comparison, read_curves, render
from gflowexplainer.report.tables import Table
from gflowexplainer.testing import NodeModel, graph_of, house, path

from ..conftest import HOSTILE, explain_by_hand, joins


class Reader(HTMLParser):
    """Lists the elements of a page, and what stands in its scripts."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.scripts, self._inside = [], [], False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.scripts[-1] += data

    @property
    def data(self):
        return json.loads(self.scripts[0])["cases"]


def test_one_file_that_needs_nothing(house_case, tmp_path):
    written = write_report(Report("One", [house_case()]), tmp_path / "new" / "report.html")
    assert written == tmp_path / "new" / "report.html"
    assert [file.name for file in written.parent.iterdir()] == ["report.html"]
    page = Reader(written.read_text(encoding="utf-8"))
    assert not [a for _, a in page.elements if "src" in a or "href" in a or "style" in a]
    assert not [name for _, a in page.elements for name in a if name.startswith("on")]
    policy = next(a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", written.read_text(encoding="utf-8"))


def test_what_is_drawn(house_case):
    case = house_case(classes=["roof", "wall"], note="a remark")
    case = house_case(truth=joins(case.explanation, (0, 4)), classes=["roof", "wall"], note="a remark")
    (scene,) = Reader(render(Report("One", [case]))).data
    assert scene["whole"] == [0.1, 0.9]
    assert scene["held"] == 1
    assert scene["subgraphs"][0]["text"] == "4, 0, 1"
    assert [s["p"] for s in scene["subgraphs"]] == [0.75, 0.25]
    assert scene["subgraphs"][0]["only"] == [0.2, 0.8]
    assert [scene["ids"][end] for end in scene["ends"][scene["truth"][0]]] in ([0, 4], [4, 0])
    assert scene["found"] == [1, 1]
    assert dict(zip(scene["ids"], scene["level"], strict=True)) == {4: 0, 0: 0, 1: 0, 2: 1, 3: 1}
    assert scene["main"] == {
        "text": "4, 0, 1",
        "slots": scene["main"]["slots"],
        "only": [0.2, 0.8],
        "without": [0.6, 0.4],
    }
    (middle,) = scene["marked"]
    assert (scene["x"][middle], scene["y"][middle]) == (0, 0)  # the explained node is the middle


def test_no_text_becomes_code(house_case):
    n = 5
    case = house_case(
        HOSTILE,
        labels=[HOSTILE] * n,
        classes=[HOSTILE, HOSTILE],
        note=HOSTILE,
        others={HOSTILE: torch.rand(12)},
        smiles=HOSTILE,
    )
    plain = house_case("plain", words=["a"] * n, others={"x": torch.rand(12)}, note="n", classes=["a", "b"])
    table = Table(HOSTILE, (HOSTILE, "b"), ((HOSTILE, HOSTILE),))
    hostile = Report(
        HOSTILE, [case], [{HOSTILE: 1.0}, {HOSTILE: 2.0}], {HOSTILE: HOSTILE}, {"v": HOSTILE}, [table], HOSTILE
    )
    harmless = Report(
        "t", [plain], [{"c": 1.0}, {"c": 2.0}], {"a": "b"}, {"v": "w"}, [Table("t", ("a", "b"), (("a", "b"),))], "c"
    )
    one, other = Reader(render(hostile)), Reader(render(harmless))
    assert [tag for tag, _ in one.elements] == [tag for tag, _ in other.elements]
    assert len(one.scripts) == 2
    assert one.scripts[1] == other.scripts[1]
    assert one.data[0]["name"] == one.data[0]["labels"][0] == one.data[0]["classes"][1] == HOSTILE
    assert "49" not in one.data[0]["name"]


def test_json_cannot_leave_its_element():
    text = embedded_json({"a": "</script><!--<script>&amp;\u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text)["a"] == "</script><!--<script>&amp;\u2028"


def test_lone_surrogates_do_no_harm(house_case, tmp_path):
    written = write_report(Report("\ud800", [house_case("\udc00", note="\ud800")]), tmp_path / "r.html")
    page = Reader(written.read_text(encoding="utf-8"))
    assert (page.data[0]["name"], page.data[0]["note"]) == ("?", "?")
    assert ("title", {}) in page.elements


def test_numbers_that_json_does_not_know(house_case):
    case = house_case()
    case.explanation.prediction = torch.full((5, 2), math.nan)
    (scene,) = Reader(render(Report("nan", [case]))).data
    assert scene["whole"] == [None, None]


def test_regression():
    explanation = explain_by_hand(path(4), [((0, 1), 1.0)], None, mode="regression")
    html = render(Report("values", [Case("graph 0", explanation)]))
    (scene,) = Reader(html).data
    assert (scene["whole"], scene["held"], scene["subgraphs"][0]["only"]) == ([2.25], None, [1.5])
    assert "2.250" in html
    assert "value" in html


def test_without_edges_and_without_masks(house_case):
    lone = Case("lone", explain_by_hand(graph_of([], 1), [((0,), 1.0)], None), truth=torch.zeros(0).bool())
    bare = house_case("bare")
    del bare.explanation.node_mask, bare.explanation.edge_mask, bare.explanation.prediction, bare.explanation.target
    first, second = Reader(render(Report("odd", [lone, bare]))).data
    assert first["ends"] == []
    assert second["whole"] is None
    assert max(second["p"]) == 1


def test_many_cases_stay_small(tmp_path):
    graph = path(200)
    explanation = explain_by_hand(graph, [(tuple(range(100, 108)), 0.5), (tuple(range(100, 106)), 0.5)], 100)
    scores = torch.rand(graph.edge_index.size(1))
    cases = [Case(f"case {i}", explanation, truth=scores > 0.5, others={"peer": scores}) for i in range(200)]
    written = write_report(Report("many", cases), tmp_path / "many.html")
    assert written.stat().st_size < 800_000
    html = written.read_text(encoding="utf-8")
    assert html.count("<tr data-case=") == 200
    assert "200 instances" in html


def test_settings_and_tables_are_shown(house_case):
    report = Report(
        "all",
        [house_case()],
        settings={"reward": {"beta": 20.0}, "sizes": [1, 2]},
        environment={"torch": "2.0"},
        tables=[Table("Scores", ("name", "AUC"), (("mine", "0.9"),))],
        command="gflowexplainer demo",
    )
    html = render(report)
    for text in ("reward.beta", "20.0", "1, 2", "torch", "Scores", "AUC", "mine", "gflowexplainer demo", "How to read"):
        assert text in html


def test_tables_and_curves_without_cases():
    table = Table("Scores", ("name", "AUC"), (("mine", "0.9"),))
    html = render(Report("scores", [], [{"loss": 2.0}, {"loss": 1.0}], tables=[table]))
    page = Reader(html)
    assert page.data == []
    for text in ("Scores", "mine", "Training", "no pictures here"):
        assert text in html
    for text in ("How to read", "<noscript>"):
        assert text not in html
    (instances,) = [attributes for tag, attributes in page.elements if attributes.get("aria-labelledby") == "instances"]
    assert "hidden" in instances


def test_the_same_report_twice(house_case):
    assert render(Report("r", [house_case()])) == render(Report("r", [house_case()]))


def test_certificates_are_computed_for_a_report_of_few(house_case):
    many = [house_case(f"case {number}") for number in range(MOST_ASKED + 1)]
    sure = [dict(scene["lines"])["how sure"] for scene in Reader(render(Report("r", many))).data]
    assert all("off by 0.200, measured" in said for said in sure[:-1])
    assert "off by about 0.03" in sure[-1]


def test_other_runs_stand_beside(house_case):
    other = explain_by_hand(house(), [((4, 1, 2), 0.9), ((4,), 0.1)], 4)
    html = render(Report("r", [house_case(beside={"second": other})]))
    (scene,) = Reader(html).data
    (beside,) = scene["others"]
    assert {scene["ids"][slot] for slot in beside["slots"]} == {4, 1, 2}
    assert beside["first"]["text"] == "4, 1, 2"
    assert beside["shared"] == [2, 4]
    (table,) = comparison([house_case(beside={"second": other}), house_case("alone")])
    assert table.rows == (
        ("this run", "2", "2 of 2", "2 of 2", "3.0", "-"),
        ("second", "1", "1 of 1", "1 of 1", "3.0", "0.50"),
    )
    assert comparison([house_case()]) == []
    with pytest.raises(ConfigError, match="another graph"):
        house_case(beside={"second": explain_by_hand(path(3), [((0,), 1.0)], 0)})


def test_wrong_lengths_are_named(house_case):
    real = GFlowExplainer(max_nodes=3).explain(NodeModel(num_classes=3), house(), [0], progress=False)[0]
    with pytest.raises(ConfigError, match="'classes' of 'node 0' has 2 entries for 3 classes"):
        Case("node 0", real, classes=["roof", "wall"])
    with pytest.raises(ConfigError, match=r"'truth' of 'a' has shape \[5\].*12 columns"):
        house_case("a", truth=torch.ones(5, dtype=torch.bool))
    with pytest.raises(ConfigError, match=r"others\['peer'\].*shape \[12, 1\]"):
        house_case("a", others={"peer": torch.ones(12, 1)})
    with pytest.raises(ConfigError, match="'labels' of 'a' has 2 entries for 5 nodes"):
        house_case("a", labels=["x", "y"])
    with pytest.raises(ConfigError, match="'words' of 'a' has 6 entries"):
        house_case("a", words=list("abcdef"))


def test_wrong_explanations_are_named(house_case):
    with pytest.raises(ConfigError, match="got Explanation"):
        Case("a", Explanation())
    explanation = house_case().explanation
    del explanation.edge_index
    with pytest.raises(ConfigError, match="does not know its graph"):
        Case("a", explanation)


def test_reports_need_cases_with_names_of_their_own(house_case):
    with pytest.raises(ConfigError, match="nothing to report"):
        Report("nothing", [])
    with pytest.raises(ConfigError, match="2 cases are called 'node 4'"):
        Report("twice", [house_case(), house_case()])


def test_each_quantity_is_a_curve():
    records = [{"iteration": i, "loss": 1 / (i + 1), "size": 3, "seconds": 0.1} for i in range(10)]
    records[4]["locator_loss"] = 0.5
    loss, size = read_curves(records)
    assert (loss.name, size.name) == ("loss", "mean size of samples")
    assert loss.x.tolist() == list(range(10))
    assert loss.bounds == ("0", "9", "0.1", "1")


def test_paths_fill_their_box():
    (curve,) = read_curves([{"loss": 2.0}, {"loss": 4.0}, {"loss": 3.0}])
    points = [tuple(map(float, p)) for p in re.findall(r"([\d.]+),([\d.]+)", curve.path(100, 50))]
    assert points == [(0, 50), (50, 0), (100, 25)]


def test_long_trainings_are_averaged():
    values = np.random.default_rng(0).normal(size=3000)
    (curve,) = read_curves([{"iteration": i, "loss": v} for i, v in enumerate(values)])
    assert len(curve.x) == MOST_POINTS
    assert curve.y == pytest.approx(values.reshape(MOST_POINTS, 10).mean(axis=1))
    assert curve.x[0] == pytest.approx(4.5)


def test_what_spans_orders_of_magnitude_is_logarithmic():
    (curve,) = read_curves([{"loss": 10.0**-i} for i in range(5)])
    assert curve.logarithmic
    heights = [float(y) for _, y in re.findall(r"([\d.]+),([\d.]+)", curve.path(100, 100))]
    assert heights == [0, 25, 50, 75, 100]


def test_odd_records_are_left_out():
    odd = [{"loss": math.nan}, {"loss": None}, {"loss": "x"}, {"loss": True}, {}, {"loss": math.inf}]
    assert read_curves(odd) == []
    (curve,) = read_curves([*odd, {"loss": 1.0}, {"loss": 1.0}])
    assert np.isfinite([float(v) for v in re.findall(r"[\d.]+", curve.path(10, 10))]).all()
