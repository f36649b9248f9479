"""What kind of model is explained: its mode, level and return type, said, known or guessed."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.explain import ModelConfig
from torch_geometric.explain.config import ModelTaskLevel

from gflowexplainer.errors import ConfigError


def guess_level(data: Any, index: Any) -> str:
    """Guesses whether nodes or graphs are meant: nodes, if one graph comes with an index or a label for each node."""
    one = data is None or (isinstance(data, Data | HeteroData) and not isinstance(data, Batch))
    labels = data.get("y") if isinstance(data, Data) else None
    of_nodes = isinstance(labels, Tensor) and labels.dim() > 0 and labels.size(0) == data.num_nodes
    return "node" if one and (index is not None or of_nodes) else "graph"


def model_config_of(
    given: Any, known: ModelConfig | None, data: Any, index: Any, *, node_type: Any = None, links: bool = False
) -> ModelConfig:
    """Finds out what kind of model is explained: as said, else as known, else guessed from data and index.

    With ``links`` to explain, a binary classifier of links is guessed; with a ``node_type``, one of nodes.
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
        guess = ("binary_classification", "edge") if links else ("multiclass_classification", level)
        config = known or ModelConfig(*guess, "raw")
    if links and config.task_level != ModelTaskLevel.edge:
        raise ConfigError(
            f"'edge_label_index' names links, but the model is of level '{config.task_level.value}'. Pass a "
            "model_config with task_level='edge', or leave the links out."
        )
    return config


def config_to_dict(config: ModelConfig) -> dict[str, str]:
    """Returns PyG's model configuration as plain values."""
    return {name: getattr(config, name).value for name in ("mode", "task_level", "return_type")}
