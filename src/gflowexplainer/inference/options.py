"""What a call of the explainer wants, in one hand; and the arguments that are no settings, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch_geometric.explain import ModelConfig

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.signature import forward_parameters
from gflowexplainer.graphs.typed import EdgeType
from gflowexplainer.inference.fitted_state import FittedState
from gflowexplainer.model.adapter import bare_model, shown_name
from gflowexplainer.settings import Settings

OPTIONS = (
    *("num_samples", "num_hops", "certificate_limit", "memory_budget"),
    *("node_type", "edge_type", "remove_link"),
)
"""Arguments of an explainer that are no settings, and stored with them."""
_TAKEN = frozenset({"preset", *OPTIONS, *Settings.__dataclass_fields__}) - {"batch_size"}
"""What an explainer is made with, by name, but for what PyG calls an argument of models."""


@dataclass(frozen=True)
class ExplainOptions:
    """How the predictions of a task are explained.

    Attributes:
        settings: All settings.
        fitted: What was learned by a fit; ``None`` if there was none.
        num_samples: Particles of each size, or subgraphs that a flow network samples, for each explanation.
        certificate_limit: Connected subgraphs up to which a certificate is computed when it is asked for.
        budget: Bytes that one batch of work may take, roughly.
        model_name: Fingerprint of the explained model.
        config: Mode, level and return type of the model.
    """

    settings: Settings
    fitted: FittedState | None
    num_samples: int
    certificate_limit: int
    budget: int
    model_name: str
    config: ModelConfig


def refuse_settings(model: Any, arguments: Mapping[str, Any]) -> None:
    """Refuses settings of an explainer among further arguments of a model that takes none of that name."""
    wrong = [name for name in arguments if name in _TAKEN]
    if not wrong or not isinstance(model, nn.Module):
        return
    taken = forward_parameters(bare_model(model))
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values()):
        return
    for name in wrong:
        if name not in taken:
            raise ConfigError(
                f"'{name}' is a setting of the explainer, not of a call, and {shown_name(model)} takes no argument of "
                f"that name. Say it where the explainer is made: GFlowExplainer({name}={arguments[name]!r})."
            )


def check_node_type(node_type: Any) -> str | None:
    """Reads the name of a type of nodes."""
    if node_type is not None and not isinstance(node_type, str):
        raise ConfigError(f"'node_type' must be the name of a type of nodes (got {node_type!r}).")
    return node_type


def check_relation(edge_type: Any) -> EdgeType | None:
    """Reads a relation: (source type, relation, target type)."""
    if edge_type is None:
        return None
    names = tuple(edge_type) if isinstance(edge_type, list | tuple) else ()
    if len(names) != 3 or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"'edge_type' must be (source type, relation, target type) (got {edge_type!r}).")
    source, relation, target = names
    return source, relation, target


def check_remove_link(remove_link: Any) -> bool:
    """Reads whether an explained link is left out of its graph."""
    if not isinstance(remove_link, bool):
        raise ConfigError(f"'remove_link' must be True or False (got {remove_link!r}).")
    return remove_link
