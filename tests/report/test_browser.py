"""The report in a real browser: headless Chromium, where it is installed."""

import base64

import pytest
import torch

from gflowexplainer.explanation.findings import Counterfactual, FeatureContributions
from gflowexplainer.report import Case, Report, write_report
from gflowexplainer.report.tables import Table
from gflowexplainer.testing import graph_of, path, star

from ..conftest import HOSTILE, explain_by_hand, joins


def _parts():
    """Two parts, what would change the prediction, and what features contribute."""
    change = Counterfactual("nodes", (9,), (), (0.7, 0.3), (0.1, 0.9), True, True, ((0,),), 40)
    features = FeatureContributions("x", (0, 1), (0.3, -0.1, 0.05), (), 0.0, 0.9, 0.5, 8)
    known = {"counterfactual {}": change, "features {}": features}
    ranked = [((0, 1, 2), 0.6), ((9, 10), 0.4)]
    return explain_by_hand(path(12), ranked, None, parts=[(0, 1, 2), (9, 10)], holds=False, studies=known)


def _value():
    """A value that one node raises and another one lowers."""
    explanation = explain_by_hand(path(3), [((0, 1), 1.0)], None, mode="regression")
    explanation.node_contributions = torch.tensor([3.0, -2.0, 0.0])
    return explanation


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A node with ground truth and another explainer, a molecule, a sentence, a large graph, and a hostile case."""
    tree = graph_of([(0, 1), (1, 2), (0, 3), (0, 4), (1, 5), (1, 6), (0, 7)])
    node = explain_by_hand(tree, [((0, 1, 2), 0.5), ((0, 1), 0.3), ((0,), 0.2)], 0)
    ring = explain_by_hand(graph_of([(i, (i + 1) % 6) for i in range(6)] + [(0, 6)], 7), [((0, 6), 1.0)], None)
    words = explain_by_hand(path(4), [((1, 2), 0.8), ((2, 3), 0.2)], None)
    cases = [
        Case("node 10", node, truth=joins(node, (0, 1), (1, 2)), others={"peer": torch.rand(14)}, classes=["a", "b"]),
        Case("node 9", explain_by_hand(star(5), [((0, 1), 0.9), ((0,), 0.1)], 0)),
        Case("phenol", ring, smiles="c1ccccc1O"),
        Case("sentence", words, words=["not", "good", "at", "all"], truth=joins(words, (0, 1))),
        Case("hub", explain_by_hand(star(900), [((5, 0), 1.0)], 5)),
        Case(
            HOSTILE,
            explain_by_hand(path(3), [((0, 1), 1.0)], None),
            labels=[HOSTILE] * 3,
            classes=[HOSTILE] * 2,
            note=HOSTILE,
            others={HOSTILE: torch.rand(4)},
        ),
        Case("parts", _parts(), classes=["a", "b"], feature_names=["red", "green", HOSTILE]),
        Case("value", _value()),
    ]
    curves = [{"iteration": i, "loss": 2.0**-i} for i in range(20)]
    table = Table("Scores", ("explainer", "AUC"), (("mine", "0.9"),))
    report = Report("Browser", cases, curves, {"max_nodes": 4}, {"torch": "2"}, [table], "gflowexplainer demo")
    return write_report(report, tmp_path_factory.mktemp("report") / "report.html").as_uri()


@pytest.fixture
def opened(browser, page):
    """The page, freshly opened; whatever a test did to it, the console must have stayed silent."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(page)
    yield browser
    assert browser.get_log("browser") == []


def js(browser, script, *arguments):
    return browser.execute_script(f"return {script}", *arguments)


def count(browser, selector):
    return js(browser, "document.querySelectorAll(arguments[0]).length", selector)


def press(browser, key):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(key).perform()


def select(browser, name):
    browser.execute_script(
        "[...document.querySelectorAll('.name')].find((b) => b.textContent === arguments[0]).click()", name
    )
    assert js(browser, "document.querySelector('#case h2').textContent") == name


def names(browser):
    return js(
        browser,
        "[...document.querySelectorAll('#table tbody tr')].filter((row) => row.offsetHeight)"
        ".map((row) => row.cells[0].innerText)",
    )


def test_the_explanation_comes_first(opened):
    """Of eight nodes the three of the first subgraph are large; their direct neighbours stand beside them, faint."""
    assert count(opened, "#case .stage g.core") == 3
    assert count(opened, "#case .stage circle.node") == 8
    assert count(opened, "#case .stage circle.node.faint") == 5
    assert count(opened, "#case .stage line.edge") == 7
    assert count(opened, "#case .stage circle.ring") == 1
    assert count(opened, "#case .stage line.truth") == 2
    assert count(opened, "#case .small svg") == 2
    assert count(opened, ".curve") == 1
    assert js(opened, "document.querySelector('#case .stage svg').getBoundingClientRect().height") > 100


def test_levels_show_more_and_less(opened):
    counts = "[...document.querySelectorAll('#case .levels .quiet')].map((e) => Number(e.textContent))"
    assert js(opened, counts) == [3, 8]
    opened.execute_script("document.querySelector('.levels input').click()")
    assert count(opened, "#case .stage circle.node") == 3
    select(opened, "hub")
    assert js(opened, counts) == [2, 9, 300]
    assert count(opened, "#case .stage circle.node") == 9
    assert "+892 neighbours" in js(opened, "document.querySelector('#case .more').textContent")
    opened.execute_script("document.querySelector('#case .more').dispatchEvent(new Event('click', {bubbles: true}))")
    assert count(opened, "#case .stage circle.node") == 300
    assert js(opened, "document.querySelectorAll('.levels input')[2].checked")
    assert "+601 neighbours" in js(opened, "document.querySelector('#case .more').textContent")


def test_a_ranked_subgraph_is_shown_alone(opened):
    assert count(opened, "tr[data-subgraph]") == 3
    only = "document.querySelector('#case .verdict').textContent"
    assert count(opened, "#case .right .verdict") == 0
    opened.execute_script("document.querySelectorAll('tr[data-subgraph] button')[1].focus()")
    press(opened, "\ue007")  # Enter
    assert count(opened, "#case .stage g.core") == 2
    assert count(opened, "#case .stage circle.node.faded") == 6
    assert "number 2" in js(opened, only)
    assert count(opened, "tr[data-subgraph] button[aria-pressed=true]") == 1
    press(opened, "\ue00c")  # Escape
    assert count(opened, "#case .stage g.core") == 3
    assert count(opened, "tr[data-subgraph] button[aria-pressed=true]") == 0


def test_parts_are_marked_apart_and_can_be_chosen(opened):
    select(opened, "parts")
    assert count(opened, "#case .stage circle.band.part-1") == 3
    assert count(opened, "#case .stage circle.band.part-2") == 2
    assert js(opened, "[...document.querySelectorAll('#case .tag')].map((e) => e.textContent)") == ["1", "2"]
    said = js(opened, "[...document.querySelectorAll('#case .answer dd')].map((line) => line.textContent)")
    assert said[1] == "5 nodes in 2 parts: 0, 1, 2, 9, 10"
    assert said[2].startswith("yes: with only them b (0.80)")
    assert count(opened, "#case .answer .said-yes") == 2
    opened.execute_script("document.querySelectorAll('tr[data-part] button')[1].click()")
    assert count(opened, "#case .stage circle.band") == 0
    assert count(opened, "#case .stage g.core") == 2
    assert "with only part 2" in js(opened, "document.querySelector('#case .verdict').textContent")
    press(opened, "\ue00c")  # Escape
    assert count(opened, "#case .stage g.core") == 5
    enough = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.cells[6].innerText)"
    assert set(js(opened, enough)) == {"yes", "–"}


def test_what_would_change_it_and_features_are_shown(opened):
    select(opened, "parts")
    said = js(opened, "document.querySelector('#case .below').innerText")
    for text in ("without this node", "a (0.70)", "1 other of this size", "+0.300", "-0.100", "exact Shapley values"):
        assert text in said
    assert count(opened, "#case .axis-bar i") == 3
    assert count(opened, "#case .axis-bar i.against") == 1
    opened.execute_script("document.querySelector('tr[data-change] button').click()")
    assert count(opened, "#case .stage g.core") == 1


def view_box(browser):
    text = js(browser, "document.querySelector('#case .stage svg').getAttribute('viewBox')")
    return [float(part) for part in text.split()]


def test_zoom_and_pan(opened):
    first = view_box(opened)
    opened.execute_script("document.querySelector('#case .zoom button').click()")
    assert view_box(opened)[2] == pytest.approx(0.75 * first[2], abs=0.2)
    opened.execute_script("document.querySelector('#case .stage svg').focus()")
    press(opened, "\ue014")  # arrow right
    assert view_box(opened)[0] > first[0] + 0.12 * first[2]
    press(opened, "-")
    press(opened, "-")
    assert view_box(opened)[2] > first[2]
    press(opened, "0")
    assert view_box(opened) == first
    from selenium.webdriver.common.action_chains import ActionChains

    stage = opened.find_element("css selector", "#case .stage svg")
    ActionChains(opened).move_to_element_with_offset(stage, -200, -100).click_and_hold().move_by_offset(60, 0).perform()
    ActionChains(opened).release().perform()
    assert view_box(opened)[0] < first[0] - 10
    wheel = (
        "document.querySelector('#case .stage svg').dispatchEvent(new WheelEvent('wheel', {deltaY: -1, bubbles: true, "
    )
    opened.execute_script(wheel + "cancelable: true}))")  # a page that scrolls over a drawing goes on scrolling
    assert view_box(opened)[2] == first[2]
    opened.execute_script(wheel + "cancelable: true, ctrlKey: true}))")
    assert view_box(opened)[2] < first[2]


def test_a_tooltip_tells_about_nodes_and_edges(opened):
    tip = "document.querySelector('#case .tip')"
    assert js(opened, tip + ".hidden")
    opened.execute_script("document.querySelector('#case g.core[tabindex]').focus()")
    text = js(opened, tip + ".innerText")
    assert "probability" in text
    assert "features" in text
    hover = (
        "document.querySelector('#case [data-edge]').dispatchEvent(new PointerEvent('pointermove', {bubbles: true}))"
    )
    opened.execute_script(hover)
    assert "–" in js(opened, tip + ".innerText")
    names = js(opened, "[...document.querySelectorAll('#case g.core')].map((g) => g.getAttribute('aria-label'))")
    assert any("explained" in name for name in names)


def test_class_probabilities_stand_beside_it(opened):
    rows = js(
        opened,
        "[...document.querySelectorAll('#case .plain tbody tr')].map((r) => r.innerText.split(/\\s+/).join(' '))",
    )
    assert rows == ["a 0.100 0.200 0.600", "b (explained) 0.900 0.800 0.400"]


def test_the_ground_truth_can_be_hidden(opened):
    visible = "getComputedStyle(document.querySelector('#case .stage line.truth')).display"
    assert js(opened, visible) != "none"
    opened.execute_script("document.querySelector('input[type=checkbox]').click()")
    assert js(opened, visible) == "none"


def test_sorting(opened):
    first = names(opened)
    opened.execute_script("document.querySelectorAll('#table th[aria-sort] button')[0].focus()")
    press(opened, "\ue007")
    up = names(opened)
    assert up.index("node 9") < up.index("node 10")  # numbers in names count as numbers
    assert js(opened, "document.querySelector('#table th[aria-sort]').ariaSort") == "ascending"
    press(opened, " ")
    assert names(opened) == up[::-1]
    opened.execute_script("document.querySelectorAll('#table th[aria-sort] button')[5].click()")
    values = js(opened, "[...document.querySelectorAll('#table tbody tr')].map((r) => Number(r.cells[5].innerText))")
    assert values == sorted(values)
    assert sorted(first) == sorted(names(opened))


def test_filtering(opened):
    press(opened, "/")
    assert js(opened, "document.activeElement.id") == "filter"
    press(opened, "NODE")
    assert names(opened) == ["node 10", "node 9"]
    assert js(opened, "document.getElementById('count').textContent") == "2 of 8 instances"
    press(opened, "\ue00c")
    assert len(names(opened)) == 8


def test_keys_go_through_the_instances(opened):
    heading = "document.querySelector('#case h2').textContent"
    press(opened, "j")
    assert js(opened, heading) == "node 9"
    press(opened, "j")
    press(opened, "k")
    press(opened, "k")
    press(opened, "k")
    assert js(opened, heading) == "node 10"
    opened.execute_script("document.querySelector('.name').focus()")
    press(opened, "\ue015")  # arrow down
    assert js(opened, heading) == "node 9"
    assert js(opened, "document.activeElement.textContent") == "node 9"
    outline = js(opened, "getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_molecules_and_sentences(opened):
    pytest.importorskip("rdkit")
    select(opened, "phenol")
    assert count(opened, "#case .stage path.bond.line") >= 10  # four single bonds, three double ones
    assert count(opened, "#case .stage path.bond.filled") >= 2  # the letters of the hydroxyl group
    assert count(opened, "#case .stage .halo:not(.none)") == 2
    select(opened, "sentence")
    assert js(opened, "document.querySelector('#case .sentence').innerText") == "not good at all"
    assert count(opened, "#case .word.marked") == 2
    shades = js(opened, "[...document.querySelectorAll('#case .word')].map((w) => getComputedStyle(w).backgroundColor)")
    assert len(set(shades)) == 4  # 0, 0.8, 1, 0.2
    assert count(opened, "#case .word.core") == 2
    assert count(opened, "#case .levels") == 0


def test_large_graphs_and_values(opened):
    select(opened, "hub")
    assert "300 of the graph's 901 nodes" in js(opened, "document.getElementById('case').innerText")
    select(opened, "value")
    text = js(opened, "document.getElementById('case').innerText")
    assert "2.250" in text
    assert "-0.500" in text
    assert count(opened, "#case .plain .bar") == 0
    assert count(opened, "#case .stage .node.against") == 1
    assert "+3.000" in js(opened, "document.querySelector('#case .legend').textContent")


def test_hostile_text_does_nothing(opened):
    select(opened, HOSTILE)
    press(opened, "\ue007")
    assert opened.title == "Browser"
    assert count(opened, "img") == 0
    assert count(opened, "#case b") == 0
    assert count(opened, "script") == 2
    assert js(opened, "document.querySelector('#case p.user').textContent") == HOSTILE
    opened.execute_script("document.querySelector('#case g.core').focus()")
    assert HOSTILE in js(opened, "document.querySelector('#case .tip').textContent")


def test_injected_scripts_are_refused(browser, page):
    """The policy stands behind the escaping: even an element that got in could not run."""
    browser.get(page)
    browser.execute_script(
        "const script = document.createElement('script'); script.textContent = 'document.title = 1';"
        "document.body.append(script);"
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')"
    )
    assert browser.title == "Browser"
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))


def luminance(colour):
    red, green, blue = (float(part) for part in colour.replace("rgba(", "rgb(")[4:-1].split(",")[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_dark_and_light(opened):
    paper, text = "getComputedStyle(document.body).backgroundColor", "getComputedStyle(document.body).color"
    for scheme in ("light", "dark"):
        opened.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        before = luminance(js(opened, paper))
        assert (before < 60) == (scheme == "dark")
        assert abs(before - luminance(js(opened, text))) > 150
        opened.execute_script("document.getElementById('theme').click()")
        assert (luminance(js(opened, paper)) < 60) == (scheme == "light")
        assert js(opened, "document.getElementById('theme').ariaPressed") == str(scheme == "light").lower()
        opened.execute_script("delete document.documentElement.dataset.theme; localStorage.clear()")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_print(opened):
    opened.execute_script("document.documentElement.dataset.theme = 'dark'")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert luminance(js(opened, "getComputedStyle(document.querySelector('.how')).backgroundColor")) > 200
    assert js(opened, "getComputedStyle(document.querySelector('.controls')).display") == "none"
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    opened.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert count(opened, "#paper .case") == 8
    opened.execute_script("dispatchEvent(new Event('afterprint'))")
    assert count(opened, "#paper .case") == 0
    pdf = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF")


def test_a_phone_needs_no_sideways_scrolling(opened):
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    for number in range(7):
        press(opened, "j" if number else "k")
        assert js(opened, "document.documentElement.scrollWidth") <= 380
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_report_of_tables_alone(browser, tmp_path):
    table = Table("Scores", ("explainer", "AUC"), (("mine", "0.9"),))
    report = Report("scores", [], [{"loss": 2.0**-i} for i in range(9)], tables=[table])
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(write_report(report, tmp_path / "scores.html").as_uri())
    for key in ("j", "k", "/"):
        press(browser, key)
    text = js(browser, "document.body.innerText")
    assert "mine" in text
    assert "Instances" not in text
    colour = "getComputedStyle(document.body).backgroundColor"
    before = js(browser, colour)
    browser.execute_script("document.getElementById('theme').click()")
    assert js(browser, colour) != before
    browser.execute_script("document.getElementById('theme').click()")  # kept in the browser for the next test
    assert browser.get_log("browser") == []


def test_five_hundred_cases(browser, tmp_path):
    explanation = explain_by_hand(path(6), [((0, 1), 1.0)], 0)
    cases = [Case(f"node {i}", explanation) for i in range(500)]
    browser.get(write_report(Report("Many", cases), tmp_path / "many.html").as_uri() + "#317")
    assert js(browser, "document.querySelector('#case h2').textContent") == "node 316"
    assert count(browser, "#case .stage circle.node") == 3  # within two steps
    assert js(browser, "document.querySelectorAll('*').length") < 12_000  # only the chosen one is drawn
    press(browser, "j")
    assert js(browser, "document.querySelector('#case h2').textContent") == "node 317"
    chosen = js(
        browser,
        "(() => { const row = document.querySelector('tr.chosen').getBoundingClientRect(),"
        " list = document.getElementById('list').getBoundingClientRect();"
        " return row.top >= list.top && row.bottom <= list.bottom })()",
    )
    assert chosen
