"""The arguments of an explainer that are no settings, checked once."""

from __future__ import annotations

from typing import Any

from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.typed import EdgeType


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
