"""What kind of model is explained: its mode, level and return type, said, known or guessed."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.explain import ModelConfig
from torch_geometric.explain.config import ModelTaskLevel

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.signature import argument_names
from gflowexplainer.model.evaluation import evaluation_mode


def guess_level(data: Any, index: Any) -> str:
    """Guesses whether nodes or graphs are meant: nodes, if one graph comes with an index or a label for each node."""
    one = data is None or (isinstance(data, Data | HeteroData) and not isinstance(data, Batch))
    labels = data.get("y") if isinstance(data, Data) else None
    of_nodes = isinstance(labels, Tensor) and labels.dim() > 0 and labels.size(0) == data.num_nodes
    return "node" if one and (index is not None or of_nodes) else "graph"


def model_config_of(
    given: Any,
    known: ModelConfig | None,
    data: Any,
    index: Any,
    *,
    node_type: Any = None,
    links: bool = False,
    model: nn.Module | None = None,
) -> ModelConfig:
    """Finds out what kind of model is explained: as said, else as known, else guessed from data and index.

    With ``links`` to explain, a binary classifier of links is guessed; with a ``node_type``, one of nodes. Where the
    one graph has no labels, the ``model`` is called on it: one that returns a row a node is one of nodes.
    """
    if given is not None:
        try:
            config = given if isinstance(given, ModelConfig) else ModelConfig(**given)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"'model_config' must be a ModelConfig of PyG or its arguments (got {given!r}: {error})."
            ) from error
    else:
        level = "node" if node_type is not None else guess_level(data, index)
        if known is None and level == "graph" and not links and model is not None and _row_a_node(model, data):
            level = "node"
        guess = ("binary_classification", "edge") if links else ("multiclass_classification", level)
        config = known or ModelConfig(*guess, "raw")
    if links and config.task_level != ModelTaskLevel.edge:
        raise ConfigError(
            f"'edge_label_index' names links, but the model is of level '{config.task_level.value}'. Pass a "
            "model_config with task_level='edge', or leave the links out."
        )
    return config


def _row_a_node(model: nn.Module, data: Any) -> bool:
    """Whether a model returns one row for each node of a graph that has no labels."""
    if not isinstance(data, Data) or isinstance(data, Batch) or data.get("y") is not None or data.x is None:
        return False
    given = {name: data[name] for name in argument_names(model, data) if isinstance(data.get(name), Tensor)}
    with evaluation_mode(model):
        try:
            output = model(data.x, data.edge_index, **given)
        except Exception:  # what is wrong is said where the model is evaluated for good
            return False
    return isinstance(output, Tensor) and output.dim() > 0 and output.size(0) == data.num_nodes > 1


def config_to_dict(config: ModelConfig) -> dict[str, str]:
    """Returns PyG's model configuration as plain values."""
    return {name: getattr(config, name).value for name in ("mode", "task_level", "return_type")}
