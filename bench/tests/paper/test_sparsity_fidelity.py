import pytest

from gflowbench.paper import Results, Scope
from gflowbench.paper import sparsity_fidelity as experiment
from gflowbench.paper.sparsity_fidelity import LABELS, SIZES, explainers, measure, name_of, plan, seeds
from gflowbench.protocol import Loaded, Problem


def test_fidelities_of_growing_explanations_are_those_of_the_nodes(triangle, count_neighbors):
    """Node 0 has the neighbours 1 and 2: class 1 has probability sigmoid(neighbours - 1)."""
    problem = Problem("triangle", "toy", lambda: Loaded(count_neighbors, triangle, triangle.index))
    found = measure(problem, "distance", {"max_nodes": 12}, 0)
    first, second, third, *_ = found["points"]
    whole, half, nothing = 0.7310586, 0.5, 0.2689414  # sigmoid of 1, 0 and -1
    assert found["instances"] == 1
    # The explained node always stays: alone it has no neighbour, and without it nothing is lost.
    assert (first["plus"], first["minus"]) == pytest.approx((0, whole - nothing), abs=1e-6)
    assert (second["plus"], second["minus"]) == pytest.approx((whole - half, whole - half), abs=1e-6)
    assert (third["plus"], third["minus"]) == pytest.approx((whole - nothing, 0), abs=1e-6)
    assert [point["size"] for point in found["points"]] == [1, 2, 3, 4, 5, 5, 5, 5, 5]
    assert [point["sparsity"] for point in found["points"]] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0, 0, 0, 0, 0])


def outcome(curve):
    scope = Scope(num_seeds=2)
    values = {}
    for dataset in experiment.here(scope):
        for name in explainers(scope, dataset):
            points = [
                {"size": k, "sparsity": 1 - k / 20, "plus": curve(name, k), "minus": 1 - curve(name, k)} for k in SIZES
            ]
            for seed in seeds(scope, name):
                values[name_of(name, dataset, seed)] = {"points": points, "instances": 3}
    return experiment.EXPERIMENT.present(Results(scope, values))


def test_verdicts_as_the_paper_says():
    found = outcome(lambda name, k: k / 12 * (1 if name == "gflow" else 0.5))
    assert [one.verdict for one in found.verdicts] == ["holds", "holds"]
    assert "BA-Shapes 0.417 against 0.208" in found.verdicts[1].evidence  # 5 / 12, and half of it
    assert found.tables[0].rows[0][2:4] == ("0.167 (0.90)", "0.333 (0.80)")
    for drawing in found.drawings:
        panel = drawing.draw().axes[0]
        assert panel.get_lines()[0].get_xdata()[0] == pytest.approx(0.95)


def test_verdicts_otherwise():
    found = outcome(lambda name, k: 1 - k / 12 * (1 if name == "gflow" else 0.5))
    assert [one.verdict for one in found.verdicts] == ["does not hold", "does not hold"]
    assert "highest: " in found.verdicts[1].evidence


def test_the_papers_settings_are_run_where_the_paper_was():
    names = {step.name for step in plan(Scope())}
    assert "gflow-paper on ba-shapes, seed 0" in names
    assert not any(name.startswith("gflow-paper") and "ba-shapes" not in name for name in names)
    assert {name.split(" on ")[0] for name in names} == set(LABELS)
    assert "degree-decomposition on tree-grid, seed 1" not in names  # it is deterministic
