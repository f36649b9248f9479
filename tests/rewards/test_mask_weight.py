"""What single losses count in masks, by hand."""

import pytest

from gflowexplainer.rewards.mask_weight import mask_weight

from .conftest import showing, trial


@pytest.mark.parametrize(
    ("own", "shared", "graphs", "nodes"),
    [
        (0.80, 0.3, 2.0, 1.0),  # all that can be reproduced
        (0.68, 0.3, 1.0, 0.5),  # 85 % of it
        (0.62, 0.3, 0.0, 0.0),  # too little
        (0.80, 0.7, 2.0, 0.0),  # one place has been found already; a graph may have others
    ],
)
def test_own_evidence_counts_beside_shared_evidence_as_far_as_it_is_trusted(own, shared, graphs, nodes) -> None:
    trials = [trial("shared", shared), trial("own", own), trial("own", 0.9, keep=0.5)]
    assert mask_weight(trials, trials[0], "graph") == pytest.approx(graphs)
    assert mask_weight(trials, trials[0], "node") == pytest.approx(nodes)
    assert mask_weight(trials, trials[1], "node") > 1
    assert mask_weight(trials[:1], trials[0], "graph") == 0


@pytest.mark.parametrize(("incomplete", "share"), [(0.0, 0.0), (0.2, 0.0), (0.5, 0.5), (0.9, 1.0)])
def test_single_losses_count_in_graphs_whose_best_subgraphs_are_needed_and_not_enough(incomplete, share) -> None:
    shared, own = showing(trial("shared", 0.4), 0.9, incomplete), trial("own", 0.5)
    least, most = (
        mask_weight([shared, own], shared, "node"),
        mask_weight([shared, trial("own", 0.8)], shared, "graph"),
    )
    assert mask_weight([shared, own], shared, "graph") == pytest.approx(share * most)
    assert least == 0


@pytest.mark.parametrize(
    ("effect", "incomplete", "counts"), [(None, 0.0, True), (0.3, 0.1, False), (0.7, 0.0, True), (0.45, 0.8, True)]
)
def test_single_losses_count_at_nodes_whose_best_subgraphs_hold_the_class_or_are_needed(effect, incomplete, counts):
    shared = showing(trial("shared", 0.3), effect, incomplete)
    trials = [shared, trial("own", 0.8)]
    assert mask_weight(trials, shared, "node") == (1.0 if counts else 0.0)
    assert mask_weight(trials, shared, "graph") == 2.0


@pytest.mark.parametrize(
    ("effect", "incomplete", "share"),
    [
        pytest.param(0.8, 0.3, 1.0, id="a part of the place"),
        pytest.param(0.8, 0.2, 0.0, id="all of it"),
        pytest.param(0.55, 0.3, 0.0, id="nothing much"),
    ],
)
def test_single_losses_count_at_nodes_where_shared_evidence_has_found_a_part(effect, incomplete, share) -> None:
    shared = showing(trial("shared", 0.7), effect, incomplete)
    assert mask_weight([shared, trial("own", 0.8)], shared, "node") == share
    doubtful = [shared, trial("own", 0.68), trial("own", 0.9, keep=0.5)]
    assert mask_weight(doubtful, shared, "node") == pytest.approx(share / 2)
