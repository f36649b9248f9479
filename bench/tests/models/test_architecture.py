import pytest

from gflowbench.models import Architecture
from gflowexplainer.errors import ConfigError

SHAPE = {"model": "gin", "task": "graph", "in_channels": 3, "num_classes": 2}


def test_json_round_trip():
    made = Architecture(**SHAPE, hidden_channels=8, padded_nodes=40)
    assert Architecture.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "gcnn"}, "Did you mean 'gcn'"),
        ({"task": "edge"}, "'task' must be one of"),
        ({"in_channels": 0}, "'in_channels' must be a positive whole number"),
        ({"num_classes": True}, "'num_classes'"),
        ({"model": "gat", "hidden_channels": 6}, "multiple of 4"),
        ({"task": "node", "padded_nodes": 5}, "for graph tasks"),
        ({"padded_nodes": -1}, "'padded_nodes'"),
        ({"normalization": "layer"}, "'normalization'"),
    ],
)
def test_shapes_that_cannot_be_built_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        Architecture(**{**SHAPE, **change})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model": "gcn", "depth": 4}'])
def test_json_of_something_else_is_refused(text):
    with pytest.raises(ConfigError, match="architecture"):
        Architecture.from_json(text)
