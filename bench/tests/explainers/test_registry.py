import pytest

from gflowbench.explainers import FLOORS, Explainer, create, names, register
from gflowbench.explainers.registry import _ENTRIES, misfit, named
from gflowexplainer.errors import ConfigError


def test_every_floor_is_an_explainer_of_its_own_name():
    for name in FLOORS:
        explainer = create(name)
        assert isinstance(explainer, Explainer)
        assert explainer.name == name
        assert create(name, max_nodes=5).max_nodes == 5


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'random'"):
        create("randm")


def test_an_unknown_setting_is_named():
    with pytest.raises(ConfigError, match="'random' does not take these settings: colour='red'"):
        create("random", colour="red")


def test_registering_is_one_line(monkeypatch):
    monkeypatch.setattr("gflowbench.explainers.registry._ENTRIES", dict(_ENTRIES))
    from gflowbench.explainers.floors import Degree

    register("mine", Degree)
    assert "mine" in names()
    assert isinstance(create("mine"), Degree)


def test_words_that_stand_for_several():
    assert named(["all"]) == list(names())
    assert named(["gflow", "floors", "random"]) == ["gflow", *FLOORS]
    with pytest.raises(ConfigError, match="Did you mean 'peers'"):
        named(["peer"])
    for word in ("all", "floors"):
        with pytest.raises(ConfigError, match="stands for several"):
            register(word, "somewhere:Thing")


def test_an_explainer_says_which_models_it_knows():
    assert misfit("attention", "gcn") == "it explains gat models only, and this is a gcn"
    assert misfit("attention", "gat") == misfit("attention", None) == misfit("random", "gin") == ""
    assert "gcn and graphsage" in misfit("graphmask", "gin")
    assert misfit("nobody", "gcn") == ""  # an explainer of one's own
    assert misfit("degree-decomposition", "gcn") == ""
    assert "gflowbench.models only" in misfit("degree-decomposition", "gcn", own_gnn=False)
    assert misfit("random", "gcn", own_gnn=False) == ""


def test_a_variant_of_ours_has_its_settings_and_its_name():
    made = create("gflow-tb", max_nodes=5)
    assert (made.name, made.settings.objective, made.settings.max_nodes) == ("gflow-tb", "trajectory_balance", 5)
    assert create("gflow-sequence").settings.parents == "sequence"
    with pytest.raises(ConfigError, match="gflow-tb"):
        create("gflow-tb", objective="flow_matching")
