"""Which way explanations are found without a fit, and with which settings."""

import pytest

from gflowexplainer.inference.without_fit import ALONE, settings_alone, way_of
from gflowexplainer.settings import Settings


@pytest.mark.parametrize(
    ("inference", "level", "preset", "changes", "fitted", "way"),
    [
        ("auto", "node", "default", {}, False, "search"),
        ("auto", "graph", "gpu", {"max_nodes": 3, "seed": 1}, False, "search"),
        ("auto", "node", "default", {"epochs": 3}, False, "flow"),
        ("auto", "node", "context", {}, False, "flow"),
        ("auto", "edge", "default", {}, False, "flow"),
        ("auto", "node", "default", {}, True, "flow"),
        ("flow", "node", "default", {}, False, "flow"),
        ("search", "node", "default", {"epochs": 3}, True, "search"),
    ],
)
def test_the_search_replaces_a_missing_fit_where_no_network_was_asked_for(
    inference, level, preset, changes, fitted, way
):
    assert way_of(inference, level, preset, changes, fitted=fitted) == way


def test_what_the_user_sets_goes_before():
    alone = settings_alone("default", {"epochs": 7})
    assert (alone.epochs, alone.rollouts) == (7, ALONE["rollouts"])
    assert settings_alone("paper", {}) == Settings.preset("paper")
