"""A case: one explained instance, and what is known of its graph that a reader wants to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Case:
    """One explained instance, of a graph with ``N`` nodes and ``E`` directed edges. All its text is escaped when shown.

    Attributes:
        name: What to call it, such as ``"node 42"``; unique in the report.
        explanation: Its :class:`~gflowexplainer.SubgraphExplanation`, with ``edge_index``.
        truth: Edges of the ground truth, bool ``[E]``, aligned with ``explanation.edge_index``.
        others: Edge scores ``[E]`` of other explainers by their names; the larger, the more important.
        beside: Other explanations of the same instance by their names, to be compared with this one.
        labels: Text of each of the ``N`` nodes, such as an element or a role.
        smiles: The molecule that the graph is: atoms are nodes, in order. Drawn by rdkit; without it, as a graph.
        words: The ``N`` words of the sentence that the graph is, in order.
        classes: Names of the classes.
        types: The type of each of the ``N`` nodes, drawn as a shape with a colour of its own around it.
        names: What each of the ``N`` nodes is called in lists; its text and its id if not given.
        relations: The relation of each of the ``E`` edges, written on those of the explanation.
        feature_names: What each column of ``x`` is called, for contributions of features.
        note: A remark of the user's, shown above the picture.
    """

    name: str
    explanation: Any  # a SubgraphExplanation, which shows itself by these drawings and so stands above them
    truth: Tensor | None = None
    others: Mapping[str, Tensor] = field(default_factory=dict)
    labels: Sequence[str] | None = None
    smiles: str | None = None
    words: Sequence[str] | None = None
    classes: Sequence[str] | None = None
    types: Sequence[str] | None = None
    note: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)
    feature_names: Sequence[str] | None = None
    names: Sequence[str] | None = None
    relations: Sequence[str] | None = None

    def __post_init__(self) -> None:
        self._clean_texts()
        if not hasattr(type(self.explanation), "node_probability"):
            raise ConfigError(
                f"'explanation' of '{self.name}' must be a SubgraphExplanation "
                f"(got {type(self.explanation).__name__}). GFlowExplainer makes them."
            )
        if "edge_index" not in self.explanation:
            raise ConfigError(f"The explanation of '{self.name}' does not know its graph. Set its 'edge_index'.")
        edges = self.explanation.edge_index.size(1)
        scores = {"truth": self.truth} | {f"others[{name!r}]": score for name, score in self.others.items()}
        for name, value in scores.items():
            if value is not None and tuple(value.shape) != (edges,):
                raise ConfigError(
                    f"'{name}' of '{self.name}' has shape {list(value.shape)}. Pass one value for each of the {edges} "
                    "columns of 'edge_index'."
                )
        for name, other in self.beside.items():
            if "edge_index" not in other or not torch.equal(other.edge_index.cpu(), self.explanation.edge_index.cpu()):
                raise ConfigError(f"'beside[{name!r}]' of '{self.name}' explains another graph. Compare the same one.")
        nodes = self.num_nodes
        width = self.explanation.x.size(-1) if "x" in self.explanation else None
        if self.feature_names is not None and len(self.feature_names) != width:
            raise ConfigError(
                f"'feature_names' of '{self.name}' has {len(self.feature_names)} entries for {width} features. "
                "Pass one each."
            )
        given = (("labels", self.labels), ("words", self.words), ("types", self.types), ("names", self.names))
        for name, texts in given:
            if texts is not None and len(texts) != nodes:
                raise ConfigError(
                    f"'{name}' of '{self.name}' has {len(texts)} entries for {nodes} nodes. Pass one each."
                )
        if self.relations is not None and len(self.relations) != edges:
            raise ConfigError(
                f"'relations' of '{self.name}' has {len(self.relations)} entries for {edges} edges. Pass one each."
            )

    def _clean_texts(self) -> None:
        """Makes text of what is to be shown as text, and replaces what no file can hold, such as a lone surrogate."""
        for name in ("name", "note", "smiles"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _clean(getattr(self, name)))
        for name in ("labels", "words", "classes", "types", "feature_names", "names", "relations"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, [*map(_clean, getattr(self, name))])

    @property
    def num_nodes(self) -> int:
        """``N``."""
        return len(self.explanation.node_probability())


def _clean(text: object) -> str:
    return str(text).encode("utf-8", errors="replace").decode()
