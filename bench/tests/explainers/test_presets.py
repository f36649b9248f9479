import pytest
import torch

from gflowbench.explainers import Explainer, create, names
from gflowexplainer.errors import ConfigError

PRESETS = {
    "gflow-context": {"reward": "context"},
    "gflow-sequence": {"reward": "context", "parents": "sequence"},
    "gflow-graph": {"reward": "context", "parents": "graph"},
    "gflow-tb": {"reward": "context", "objective": "trajectory_balance"},
    "gflow-ctb": {"objective": "conditional_trajectory_balance"},
    "gflow-paper": {"reward": "prediction", "policy": "paper", "objective": "raw_flow_matching"},
}
SMALL = {"epochs": 2, "rollouts": 2, "hidden": 8, "num_samples": 8, "num_contexts": 2, "max_nodes": 3}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_its_name_says(name):
    assert name in names()
    explainer = create(name)
    assert isinstance(explainer, Explainer)
    assert explainer.name == name
    for setting, value in PRESETS[name].items():
        assert getattr(explainer.settings, setting) == value
    assert create(name, max_nodes=5).settings.max_nodes == 5


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_explains(name, either_subject):
    explainer = create(name, **SMALL)
    explainer.fit(either_subject, 0)
    scores = explainer.explain(either_subject, 0)
    scores.check(either_subject.instances, name)
    owner = either_subject.instances.owner
    best = torch.stack([scores.node[owner == number].max() for number in range(len(either_subject))])
    assert float(scores.node.min()) >= 0
    assert (best > 0).all()


def test_what_makes_the_preset_cannot_be_changed():
    with pytest.raises(ConfigError, match="gflow-tb"):
        create("gflow-tb", objective="flow_matching")
