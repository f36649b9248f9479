import json

import pytest

from gflowexplainer import GFlowExplainer
from gflowexplainer.choices import EvidenceType
from gflowexplainer.errors import ConfigError
from gflowexplainer.rewards.evidence_report import EvidenceReport
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.testing import NodeModel, random_graph


def test_a_fitted_explainer_says_which_evidence_it_took(tmp_path):
    graph = random_graph(20, 0.15, seed=2)
    explainer = GFlowExplainer(max_nodes=4, max_updates=2, seed=0)
    with pytest.raises(ConfigError, match="Call fit first"):
        explainer.evidence_report()
    explainer.fit(NodeModel(), graph, index=list(range(12)), progress=False)
    report = explainer.evidence_report()
    assert report.chosen in report.trials
    assert {trial.evidence.value for trial in report.trials} == {"shared", "features", "own", "both"}
    assert {trial.keep_probability for trial in report.trials} == {0.5, 0.8}
    assert report.explained <= 1
    assert 0 <= report.reproducible <= 1
    assert str(report).count("<- taken") == 1
    head, *rows = str(report).splitlines()[3 : 4 + len(report.trials)]
    assert {len(row.removesuffix("  <- taken")) for row in rows} == {len(head)}
    assert len(json.loads(json.dumps(report.to_dict()))["trials"]) == len(report.trials)
    explainer.save(tmp_path)
    again = GFlowExplainer.load(tmp_path).evidence_report()
    assert again.trials == report.trials


def test_it_says_in_words_how_own_evidence_and_edges_count():
    trial = EvidenceTrial(EvidenceType.shared, 0.5, "induced", False, 0.5, 0.9)
    plain, told = EvidenceReport(trial, (trial,)), EvidenceReport(trial, (trial,), 0.4, by_likeness=True, cohesion=0.25)
    for words in ("40 % by gradients", "usual of nodes of its kind", "hold together"):
        assert words not in str(plain)
        assert words in str(told)
    said = told.to_dict()
    assert (said["by_likeness"], said["cohesion"]) == (True, 0.25)


def test_evidence_that_was_asked_for_is_the_only_one_tried():
    graph = random_graph(20, 0.15, seed=2)
    explainer = GFlowExplainer(max_nodes=4, max_updates=2, seed=0, evidence="own", keep_probability=0.7)
    explainer.fit(NodeModel(), graph, index=list(range(12)), progress=False)
    assert {(t.evidence.value, t.keep_probability) for t in explainer.evidence_report().trials} == {("own", 0.7)}
