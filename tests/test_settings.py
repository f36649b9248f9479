"""Settings: every value that makes no sense is answered with the value and the remedy."""

import inspect
import json
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError
from gflowexplainer.settings import GROUPS, PRESETS, Settings

NAMES = {
    "whole": [
        "max_nodes",
        "min_nodes",
        "num_contexts",
        "max_graph_nodes",
        "hidden",
        "epochs",
        "max_updates",
        "batch_size",
        "rollouts",
        "descents",
        "seed",
    ],
    "real": [
        "beta",
        "keep_probability",
        "epsilon",
        "temperature",
        "learning_rate",
        "final_rate",
        "weight_decay",
        "clip_norm",
        "locator_share",
    ],
    "switch": ["model_embeddings", "node_identities"],
    "choice": [
        "reward",
        "expectation",
        "removal",
        "direction",
        "start",
        "policy",
        "propagation",
        "objective",
        "measure",
        "parents",
    ],
}


def test_every_setting_is_tested_here() -> None:
    assert sorted(name for names in NAMES.values() for name in names) == sorted(
        field.name for field in fields(Settings)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in NAMES["whole"] for value in (1.5, True, "7", None, float("inf"), float("nan"))]
    + [(name, value) for name in NAMES["real"] for value in (True, "7", None, float("inf"), float("nan"))]
    + [(name, value) for name in NAMES["switch"] for value in (1, "yes", None)]
    + [(name, value) for name in NAMES["choice"] for value in ("nonsense", 3, None)]
    + [(name, value) for name in NAMES["whole"] if name not in ("max_updates", "seed") for value in (0, -1)]
    + [(name, -1) for name in ("epsilon", "weight_decay", "clip_norm", "max_updates")]
    + [(name, value) for name in ("beta", "temperature", "learning_rate") for value in (0, -2.5)]
    + [(name, value) for name in ("final_rate", "locator_share") for value in (0, -0.1, 1.5)]
    + [("keep_probability", value) for value in (-0.1, 1.5)]
    + [("epsilon", 1.5), ("seed", 2**63), ("min_nodes", 21)],
)
def test_values_that_make_no_sense(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"'{name}'") as caught:
        Settings(**{name: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_nodes": 0}, "'max_nodes' must be at least 1 (got 0)."),
        ({"max_nodes": 2.5}, "'max_nodes' must be a whole number (got 2.5)."),
        ({"keep_probability": 1.2}, "'keep_probability' must lie in (0, 1] (got 1.2)."),
        ({"beta": 0}, "'beta' must be a positive number (got 0)."),
        ({"beta": float("nan")}, "'beta' must be a finite number (got nan)."),
        ({"model_embeddings": "no"}, "'model_embeddings' must be True or False (got 'no')."),
        ({"epsilon": 1.1}, "'epsilon' must lie in [0, 1] (got 1.1)."),
        ({"min_nodes": 5, "max_nodes": 4}, "'min_nodes' (5) must not exceed 'max_nodes' (4)."),
        ({"removal": "isolated"}, "Did you mean 'isolate'?"),
        ({"reward": "evidense"}, "Did you mean 'evidence'?"),
        ({"max_updates": -1}, "'max_updates' must be at least 0 (got -1)."),
        ({"max_updates": 2.5}, "'max_updates' must be a whole number (got 2.5)."),
        ({"objective": "flow_machting"}, "Did you mean 'flow_matching'?"),
    ],
)
def test_messages_say_what_to_do(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Settings(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"max_nodes": 1, "min_nodes": 1},
        {"min_nodes": 8},
        {"max_updates": 0, "removal": "isolate"},
        {"keep_probability": 1, "final_rate": 1, "locator_share": 1.0},
        {"epsilon": 0, "clip_norm": 0, "weight_decay": 0},
        {"epsilon": 1, "beta": 1e-9, "seed": -3},
    ],
)
def test_values_on_the_edge_are_fine(values: dict[str, Any]) -> None:
    settings = Settings(**values)
    assert {name: getattr(settings, name) for name in values} == values


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_json(name: str) -> None:
    settings = Settings.preset(name, seed=5)
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    assert settings.seed == 5
    for setting, value in PRESETS[name].items():
        assert getattr(settings, setting) == value


def test_paper_preset_is_the_papers() -> None:
    paper = Settings.preset("paper")
    assert (paper.reward, paper.objective, paper.parents) == ("prediction", "raw_flow_matching", "dag")
    assert (paper.max_nodes, paper.hidden, paper.learning_rate, paper.batch_size) == (20, 64, 0.01, 64)


def test_context_preset_is_the_context_reward() -> None:
    context = Settings.preset("context")
    assert context.reward == "context"
    assert not context.is_sampled_directly


def test_default_is_the_evidence_reward_sampled_without_a_network() -> None:
    assert Settings.preset() == Settings()
    assert Settings().reward == "evidence"
    assert Settings().is_sampled_directly


@pytest.mark.parametrize(
    ("name", "meant"),
    [("epoch", "epochs"), ("lr", "learning_rate"), ("K", "max_nodes"), ("alpha", "keep_probability"),
     ("n_samples", "num_samples")],
)  # fmt: skip
def test_other_libraries_names_are_answered_with_ours_first(name: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        GFlowExplainer(**{name: 3})
    assert str(caught.value).startswith(f"There is no setting '{name}'. Did you mean '{meant}'?")


def test_every_setting_is_in_one_group_and_in_the_signature_of_the_explainer() -> None:
    assert [name for names in GROUPS.values() for name in names] == [field.name for field in fields(Settings)]
    assert {"preset", "num_samples", *(field.name for field in fields(Settings))} <= {
        *inspect.signature(GFlowExplainer).parameters
    }


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'preset' must be one of .*\(got 'papers'\)\. Did you mean 'paper'\?"):
        Settings.preset("papers")
    for make in (
        lambda: Settings.from_dict({"max_node": 3}),
        lambda: Settings.preset("paper", max_node=3),
        lambda: Settings().change(max_node=3),
    ):
        with pytest.raises(ConfigError, match=r"no setting 'max_node'\. Did you mean 'max_nodes'\?"):
            make()


def test_change_gives_a_copy_and_checks_it() -> None:
    settings = Settings()
    assert settings.change(beta=3.0) == Settings(beta=3.0)
    assert settings == Settings()
    with pytest.raises(ConfigError, match="'beta'"):
        settings.change(beta=-1)
    with pytest.raises(FrozenInstanceError):
        settings.beta = 2.0  # type: ignore[misc]


def test_the_page_of_settings_says_the_defaults():
    page = (Path(__file__).parents[1] / "docs" / "all_settings.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", page, re.MULTILINE))
    defaults = {
        name: json.dumps(value) if isinstance(value, str) else str(value)
        for name, value in Settings().to_dict().items()
    }
    assert {name: said.get(name) for name in defaults} == defaults
