import pytest

from gflowbench.models import MODELS, Recipe, recipe_for
from gflowexplainer.errors import ConfigError


def test_every_dataset_and_model_has_one():
    for model in MODELS:
        assert recipe_for("ba-2motifs", model, "graph").centred
        assert recipe_for("ba-community", model, "node").weight_decay > 0
        assert recipe_for("tree-grid", model, "node") == recipe_for("something else", model, "node")
    with pytest.raises(ConfigError, match="'model' must be one of"):
        recipe_for("tree-grid", "mlp", "node")


@pytest.mark.parametrize(
    "change",
    [
        {"max_epochs": 0},
        {"patience": 1.5},
        {"batch_size": -1},
        {"learning_rate": 0},
        {"clip_norm": -1.0},
        {"weight_decay": -0.1},
    ],
)
def test_settings_that_cannot_train_are_refused(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        Recipe(**change)
