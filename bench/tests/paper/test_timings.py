import pytest
import torch

from gflowbench.paper import Results, Scope, times, timings
from gflowbench.paper.timings import CPU, EXPLAINERS, GPU, Lengths, measure, name_of, steps
from gflowbench.protocol import Loaded, Problem

FULL = Scope()


def value(**changes):
    """Makes the times of one dataset: 10 ms alone, 1 together, fits of 2 s and 5 epochs of 1 s; and changes to them."""
    usual = {"alone": 10.0, "together": 1.0, "single": None, "preparation": 2.0, "epoch": 1.0, "fit": 7.0, "span": 5}
    found = {name: {**usual, **changes.get(name.replace("-", "_"), {})} for name in EXPLAINERS}
    found["gflow"] |= {"preparation": 7.0, "epoch": None, "single": None}
    del found["gflow"]["span"]
    return {"explainers": found, "instances": 5, "threads": 2, "device": "CPU"}


def results(one, gpu=None):
    datasets = timings.here(FULL)
    return Results(FULL, {name_of(d, device): v for d in datasets for device, v in ((CPU, one), (GPU, gpu))})


def test_inference_as_the_paper_says():
    quick = {"alone": 20.0, "single": 5.0}
    outcome = times.inference(results(value(gnnexplainer={"alone": 50.0}, gflow={"alone": 5.0}, gflow_paper=quick)))
    assert [one.verdict for one in outcome.verdicts] == ["holds"] * 3
    rows = {row[0]: row[1] for row in outcome.tables[0].rows}
    assert rows["GNNExplainer, paper"] == "53"
    assert rows["GFlowExplainer, our default, ours"] == "5 (10)"
    assert rows["GFlowExplainer, paper's settings, ours"] == "5 (10)"
    assert any("no GPU" in note for note in outcome.notes)


def test_inference_otherwise():
    slow = {"alone": 500.0, "single": 200.0}
    outcome = times.inference(results(value(gflow={"alone": 200.0}, gflow_paper=slow)))
    assert [one.verdict for one in outcome.verdicts] == ["does not hold"] * 3
    assert "BA-Shapes 20.0" in outcome.verdicts[1].evidence


def test_a_gpu_gets_tables_and_verdicts_of_its_own():
    one = value(gnnexplainer={"alone": 50.0})
    outcome = times.inference(results(one, one | {"device": "Some GPU"}))
    assert len(outcome.tables) == 4
    assert any("GPU" in verdict.claim for verdict in outcome.verdicts)
    assert any(note.startswith("Some GPU") for note in outcome.notes)
    assert len(times.training(results(one, one)).tables) == 2


def test_training_as_the_paper_says_and_otherwise():
    outcome = times.training(results(value(rg_explainer={"preparation": 20.0, "epoch": 3.0, "fit": 35.0})))
    assert [one.verdict for one in outcome.verdicts] == ["holds"] * 4
    assert "BA-Shapes 57%" in outcome.verdicts[0].evidence  # 20 of 35
    assert "BA-Shapes 3" in outcome.verdicts[1].evidence
    other = times.training(results(value(rg_explainer={"preparation": 1.0, "epoch": 0.5, "fit": 3.5})))
    assert [one.verdict for one in other.verdicts] == ["does not hold"] * 4


def test_epochs_that_are_lost_in_noise_are_not_told():
    rg = {"preparation": 20.0, "epoch": 0.1, "fit": 25.0}
    outcome = times.training(results(value(rg_explainer=rg)))
    assert [one.verdict for one in outcome.verdicts] == ["cannot be told"] * 4
    rows = {row[0]: row[1] for row in outcome.tables[0].rows}
    assert rows["one epoch, RG-Explainer, ours"] == rows["whole fit, RG-Explainer, ours"] == "-"
    assert rows["preparation, RG-Explainer, ours"] == "20"
    assert times.training(results(value(rg_explainer=rg | {"span": 50}))).verdicts[0].verdict == "holds"


def test_both_experiments_find_the_same_cells(tmp_path):
    fast = Scope(fast=True)
    for one in steps(fast):
        path = one.path(tmp_path / "inference-time")
        assert path == one.path(tmp_path / "training-time")
        assert path.parent == tmp_path / "timings" / "cells"
    assert times.INFERENCE.plan is times.TRAINING.plan


def test_without_a_gpu_nothing_is_stored_and_nothing_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (step, *_) = [one for one in steps(Scope(fast=True)) if one.name.endswith(GPU)]
    done = step.finish(tmp_path / "one", lambda line: None)
    assert (done.value, done.how, list(done.origins)) == (None, "no GPU here", [])
    assert not list(tmp_path.rglob("*.json"))


def test_an_epoch_is_the_difference_of_two_fits(monkeypatch):
    """With a clock that moves by what a fit is told to take, every time is known."""
    taken = [0.0]

    class Told:
        """Takes 4 s and 2 more for each epoch to fit, and 3 ms to explain."""

        def __init__(self, epochs=0, **settings):
            self.epochs = epochs

        def fit(self, subject, seed):
            taken[0] += 4 + 2 * self.epochs

        def explain(self, subject, seed):
            taken[0] += 0.003

    class Ours(Told):
        settings = type("Some", (), {"epochs": 200, "max_updates": 50, "batch_size": 3})

    monkeypatch.setattr(timings.time, "perf_counter", lambda: taken[0])
    monkeypatch.setattr(timings, "create", lambda name, **s: (Ours if name.startswith("gflow") else Told)(**s))
    subject = Subjects(6)
    lengths = Lengths(alone=2)
    clock = timings._Clock(CPU, 2)
    rg = timings._timed("rg-explainer", subject, lengths, clock)
    assert (rg["preparation"], rg["epoch"], rg["fit"]) == pytest.approx((4, 2, 4 + 2 * 30))
    assert rg["span"] == 30
    ours = timings._timed("gflow-paper", subject, lengths, clock)
    # 50 updates of 3 of the 6 instances are 25 epochs.
    assert (ours["preparation"], ours["epoch"], ours["fit"]) == pytest.approx((4, 2, 4 + 2 * 25))
    whole = timings._timed("gflow", subject, lengths, clock)
    assert (whole["epoch"], whole["fit"]) == (None, pytest.approx(4))
    plain = timings._timed("saliency", subject, lengths, clock)
    assert (plain["epoch"], plain["fit"]) == (None, pytest.approx(4))
    assert (plain["alone"], plain["together"], plain["single"]) == (pytest.approx(3), pytest.approx(0.5), None)


class Subjects:
    """So many instances of nothing."""

    name = "toy"

    def __init__(self, count):
        self.count = count
        self.instances = type("Nowhere", (), {"device": torch.device("cpu")})

    def __len__(self):
        return self.count

    def select(self, index):
        return Subjects(index.numel())


def test_explainers_are_really_timed(two_triangles, count_neighbors, monkeypatch):
    monkeypatch.setattr(timings, "EXPLAINERS", ("gflow", "gflow-paper", "rg-explainer"))
    threads = torch.get_num_threads()
    problem = Problem("toy", "toy", lambda: Loaded(count_neighbors, two_triangles, two_triangles.index))
    found = measure(problem, Lengths(alone=1, epochs=1, repeats=1, threads=1, short=True), CPU)
    assert torch.get_num_threads() == threads
    assert (found["instances"], found["threads"], found["device"]) == (2, 1, "CPU")
    ours, paper, rg = (found["explainers"][name] for name in timings.EXPLAINERS)
    assert paper["single"] > 0
    assert rg["single"] is ours["single"] is ours["epoch"] is None
    assert min(one[kind] for one in (ours, paper, rg) for kind in ("alone", "together", "fit")) > 0
