import pytest

from gflowbench.explainers import create, names
from gflowbench.metrics import MetricSettings
from gflowbench.protocol import Contestant, Loaded, Problem, ProtocolSettings, evaluate
from gflowbench.protocol.plan import Part, fast, suite, whole
from gflowbench.protocol.presentation import details, overview, thinning
from gflowbench.protocol.printed_numbers import DATASETS

QUICK = ProtocolSettings(metrics=MetricSettings(num_contexts=0))
COUNTS = {"ba-shapes": 60, "ba-community": 60, "tree-cycles": 60, "tree-grid": 289, "ba-2motifs": 200}
COUNTS |= {"mutagenicity": 1015}


@pytest.fixture
def problem(molecules, mean_degree):
    return Problem("molecules", "toy", lambda: Loaded(mean_degree, molecules, molecules.index), {"every": 1})


@pytest.mark.parametrize("plan", [whole, suite, fast])
def test_every_explainer_has_a_part_that_it_accepts(plan):
    for name in names():
        for dataset in (*DATASETS, "graph-sst2"):
            part = plan(name, dataset)
            assert part.every >= 1
            assert part.seeds is None or part.seeds >= 1
            create(name, **part.settings)


def test_a_plan_thins_and_the_tables_say_so(problem, tmp_path):
    def plan(explainer, dataset):
        return {"random": Part(seeds=2, every=2, settings={"num_samples": 4}), "degree": Part(seeds=2)}.get(
            explainer, Part(left_out="it rests")
        )

    contestants = [Contestant.named(name) for name in ("random", "degree", "distance")]
    lines = []
    record = evaluate(
        [problem], contestants, seeds=range(3), out=tmp_path, settings=QUICK, plan=plan, report=lines.append
    )
    assert lines[0] == "left out: distance on molecules: it rests"
    assert [(cell.explainer, cell.seed) for cell in record.cells] == [("random", 0), ("random", 1), ("degree", 0)]
    assert record.cells[0].settings["problem"] == {"every": 2}
    assert record.cells[0].settings["explainer"] == {"num_samples": 4}
    assert record.cells[0].facts["instances"] == 2
    assert record.to_dict()["subjects"]["molecules, toy GNN"]["instances"] == 3
    # One seed is all that a deterministic explainer has: it is not thinned.
    assert record.thinned == {("toy", "molecules", "random"): "every 2nd instance, 2 seeds, num_samples=4"}
    rows = dict(overview(record, "auc_own", "toy").rows)
    assert rows["random"].endswith("*")
    assert not rows["degree"].endswith("*")
    assert details(record, "molecules", "toy").columns == ("metric", "random*", "degree")
    (legend,) = thinning(record)
    assert legend.rows == (("random", "every 2nd instance, 2 seeds, num_samples=4", "molecules (2)"),)


def test_a_thinned_cell_is_the_cell_of_a_thinned_problem(problem, molecules, mean_degree, tmp_path):
    contestants = [Contestant.named("random", num_samples=4)]
    thin = evaluate(
        [problem], contestants, seeds=[0], out=tmp_path, settings=QUICK, plan=lambda *_: Part(every=2)
    ).cells[0]
    half = Problem("molecules", "toy", lambda: Loaded(mean_degree, molecules, molecules.index[::2]), {"every": 2})
    told = []
    same = evaluate([half], contestants, seeds=[0], out=tmp_path, settings=QUICK, report=told.append).cells[0]
    assert told[0].endswith("(stored)")
    fresh = evaluate([half], contestants, seeds=[0], out=tmp_path / "new", settings=QUICK).cells[0]
    for name in ("auc_own_mean", "accuracy", "fidelity_minus", "sparsity"):
        assert fresh.metrics[name] == same.metrics[name] == thin.metrics[name]
