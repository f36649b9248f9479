import pytest

from gflowexplainer.baselines import FLOORS, Explainer, create, names, register
from gflowexplainer.baselines.registry import _FACTORIES
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
    monkeypatch.setattr("gflowexplainer.baselines.registry._FACTORIES", dict(_FACTORIES))
    from gflowexplainer.baselines.floors import Degree

    register("mine", Degree)
    assert "mine" in names()
    assert isinstance(create("mine"), Degree)
