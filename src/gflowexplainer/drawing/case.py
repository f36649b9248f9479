"""A case: one explained instance, and what is known of its graph that a reader wants to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.drawing.molecules import Molecule, OtherSize, read_molecule
from gflowexplainer.errors import ConfigError

_KNOWN_BY_DATA = {"smiles": "smiles", "labels": "node_names", "feature_names": "feature_names"}
"""What is shown of a case, and the attribute of PyG's ``Data`` that holds it."""


@dataclass(frozen=True, eq=False)
class Case:
    """One explained instance, of a graph with ``N`` nodes and ``E`` directed edges. All its text is escaped when shown.

    What the explained ``Data`` has as ``smiles``, ``node_names`` and ``feature_names`` is used where it is not given.

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
        if not hasattr(type(self.explanation), "node_probability"):
            raise ConfigError(
                f"'explanation' of '{self.name}' must be a SubgraphExplanation "
                f"(got {type(self.explanation).__name__}). GFlowExplainer makes them."
            )
        if "edge_index" not in self.explanation:
            raise ConfigError(f"The explanation of '{self.name}' does not know its graph. Set its 'edge_index'.")
        edges = self.explanation.edge_index.size(1)
        width = self.explanation.x.size(-1) if "x" in self.explanation else 0
        counts = dict.fromkeys(("labels", "words", "types", "names"), (self.num_nodes, "nodes"))
        counts |= {"relations": (edges, "edges"), "feature_names": (width, "features")}
        chosen = self.smiles is not None
        self._take_from_data(counts)
        for name in ("name", "note", "smiles"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _clean(getattr(self, name)))
        for name in (*counts, "classes"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, [*map(_clean, getattr(self, name))])
        for name, (count, things) in counts.items():
            texts = getattr(self, name)
            if texts is not None and len(texts) != count:
                raise ConfigError(
                    f"'{name}' of '{self.name}' has {len(texts)} entries for {count} {things}. Pass one each."
                )
        if chosen and isinstance(self.molecule, OtherSize):
            raise ConfigError(f"'smiles' of '{self.name}' is of another molecule: {self.molecule}")
        outputs = len(self.explanation.whole_prediction or ())
        if self.classes is not None and len(self.classes) < outputs:
            raise ConfigError(
                f"'classes' of '{self.name}' has {len(self.classes)} entries for {outputs} classes. Pass one each."
            )
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

    def _take_from_data(self, counts: Mapping[str, tuple[int, str]]) -> None:
        """Takes names that were not given from the explained data, where they fit."""
        for name, value in getattr(self.explanation, "words_of_data", {}).items():
            fits = name not in counts or len(value) == counts[name][0]
            if getattr(self, name) is None and fits:
                object.__setattr__(self, name, value)

    @cached_property
    def molecule(self) -> Molecule | str | None:
        """The molecule that the graph is; a sentence if it cannot be read, ``None`` if there is no SMILES."""
        return None if self.smiles is None else read_molecule(self.smiles, self.num_nodes)

    @property
    def num_nodes(self) -> int:
        """``N``."""
        return len(self.explanation.node_probability())

    def node_name(self, node: Any) -> str:
        """Returns what a node is called: its own name, or its text and its id."""
        if self.names is not None:
            return self.names[node]
        if isinstance(self.molecule, Molecule):
            return f"{self.molecule.elements[node]}{node}"
        texts = self.labels if self.words is None else self.words
        if texts is None or texts[node] in ("", str(node)):
            return str(node)
        return texts[node] if self.words is not None else f"{texts[node]} ({node})"

    def class_name(self, number: int) -> str:
        """Returns the name of a class, or its number where it has none."""
        names = self.classes or ()
        return str(names[number]) if 0 <= number < len(names) else f"class {number}"


def words_of_data(data: Any, graph: int | None) -> dict[str, Any]:
    """Returns the names that a PyG ``Data`` holds of its nodes and features, and its SMILES.

    Args:
        data: A graph, or several of them.
        graph: Position of the explained one among several.
    """
    if graph is not None and hasattr(data, "get_example"):
        data = data.get_example(graph)
    elif graph is not None and hasattr(data, "__getitem__") and not hasattr(data, "edge_index"):
        data = data[graph]
    if hasattr(data, "node_types"):
        named = {kind: list(data[kind].node_names) for kind in data.node_types if "node_names" in data[kind]}
        return {"labels": named} if named else {}
    known = {shown: getattr(data, attribute, None) for shown, attribute in _KNOWN_BY_DATA.items()}
    return {n: v for n, v in known.items() if isinstance(v, str if n == "smiles" else list | tuple)}


def _clean(text: object) -> str:
    """Makes text of what is to be shown as text, and replaces what no file can hold, such as a lone surrogate."""
    return str(text).encode("utf-8", errors="replace").decode()
