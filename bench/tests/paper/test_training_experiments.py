"""Verdicts of the experiments on training, from made-up values that are known to hold or not."""

import pytest

from gflowbench.paper import Results, Scope, ablation_parents, convergence, objectives_compared
from gflowbench.paper.ablation_parents import LOG, PAPER, SHARED, SINGLE
from gflowbench.paper.objectives_compared import CTB, FM, TB

FALLING, FLAT = [8.0, 4.0, 1.0, 1.0, 1.0], [8.0, 8.0, 8.0, 8.0, 8.0]


def value(loss, distance=0.5, auc=0.9, scale=1.0, diverged=None):
    return {
        "loss": [scale * one for one in loss],
        "distance": [[10, 0.9], [20, distance]],
        "metrics": {} if diverged else {"auc_own": auc, "accuracy": auc},
        "diverged": diverged,
        "instances": 3,
        "updates": 5,
        "settings": {"max_nodes": 8},
    }


def ablation(dag, sequence, graph):
    rules = {"dag": dag, "sequence": sequence, "graph": graph}
    values = {
        ablation_parents.name_of(what, rule, seed): one
        for what in (PAPER, LOG, SHARED, SINGLE)
        for rule, one in rules.items()
        for seed in range(2)
    }
    return ablation_parents.EXPERIMENT.present(Results(Scope(num_seeds=2), values))


def test_parents_as_the_paper_says():
    outcome = ablation(value(FALLING, 0.1), value(FALLING, 0.4), value(FALLING, 0.3, scale=2))
    assert [verdict.verdict for verdict in outcome.verdicts] == ["holds"] * 3
    assert "lower with 2 of 2 seeds, 1 ± 0 against 2 ± 0" in outcome.verdicts[1].evidence
    assert "0.100 ± 0.000 with GFlowExplainer (dag), 0.400 ± 0.000 with GFlow-Sequence" in outcome.verdicts[2].evidence
    assert outcome.tables[1].rows[0] == ("GFlowExplainer (dag)", "0.100 ± 0.000", "0.100 ± 0.000")
    for drawing in outcome.drawings:
        assert len(drawing.draw().axes) == 2


def test_parents_otherwise():
    outcome = ablation(value(FLAT, 0.5, scale=3), value(FALLING, 0.4), value(FALLING, 0.3))
    assert [verdict.verdict for verdict in outcome.verdicts] == ["holds in part", "does not hold", "does not hold"]


def test_every_training_with_every_rule_is_planned():
    steps = ablation_parents.plan(Scope())
    assert len(steps) == 4 * 3 * 5
    changes = [step.settings["changes"] for step in steps]
    assert {one["parents"] for one in changes} == {"dag", "sequence", "graph"}
    first = changes[0]
    assert (first["batch_size"], first["epochs"]) == (16, 80)


@pytest.mark.parametrize(("loss", "verdict"), [(FALLING, "holds"), (FLAT, "does not hold")])
def test_convergence(loss, verdict):
    scope = Scope(num_seeds=2)
    values = {
        convergence.name_of(dataset, way, seed): value(loss)
        for dataset in convergence.datasets(scope)
        for way in convergence.WAYS
        for seed in range(2)
    }
    outcome = convergence.EXPERIMENT.present(Results(scope, values))
    assert [one.verdict for one in outcome.verdicts] == [verdict] * 2
    assert len(outcome.tables[0].rows) == len(values) / 2
    assert outcome.drawings[0].draw().axes


def test_convergence_without_the_published_files(no_reference):
    names = {step.settings["dataset"] for step in convergence.plan(Scope())}
    assert names == {"ba-community", "tree-cycles", "tree-grid", "ba-2motifs"}


def judged(**paper):
    values = {objectives_compared.name_of("context", label, 0): value(FALLING) for label in objectives_compared.ENGINE}
    values |= {
        objectives_compared.name_of("paper", {"fm": FM, "tb": TB, "ctb": CTB}[k], 0): one for k, one in paper.items()
    }
    cell = {"explainer": "random", "dataset": "ba-shapes", "gnn": "published", "seed": 0, "settings": {}}
    cell |= {"metrics": {"auc_own": 0.875}, "facts": {"instances": 3}}
    values["floor"] = {"cells": [cell], "stability": [], "thinned": [], "left_out": []}
    return objectives_compared.EXPERIMENT.present(Results(Scope(num_seeds=1), values))


def test_objectives_as_the_paper_says():
    outcome = judged(fm=value(FALLING, auc=0.99), tb=value(FLAT, auc=0.55), ctb=value(FALLING, auc=0.7))
    assert [verdict.verdict for verdict in outcome.verdicts] == ["holds"] * 4
    assert ("paper's settings, trajectory balance, one Z", "0.550", "0.550", "+0.000") in outcome.tables[0].rows
    assert any("random growth" in note and "0.875" in note for note in outcome.notes)
    assert len(outcome.drawings[0].draw().axes) == 2


def test_objectives_otherwise():
    outcome = judged(fm=value(FALLING, auc=0.9), tb=value(FALLING, auc=0.95), ctb=value(FLAT, diverged=2))
    assert [verdict.verdict for verdict in outcome.verdicts] == ["does not hold"] * 4
    assert "no AUC" in outcome.verdicts[2].evidence
    assert any("no number any more in 1 of 1 seeds" in note for note in outcome.notes)
