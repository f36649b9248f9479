"""The subgraphs and paths of an explanation in their order; each is built when somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np

Prediction = tuple[float, ...]
"""Class probabilities, or values for regression."""
NodeName = int | tuple[str, int]
"""A node by its id or, in a heterogeneous graph, by its type and its id among those of that type."""


@dataclass(frozen=True)
class Names:
    """How the nodes and edges of a heterogeneous graph are called that stand behind each other, type by type.

    Attributes:
        nodes: Number of nodes of each type.
        edges: Number of edges of each relation.
    """

    nodes: Mapping[str, int]
    edges: Mapping[Any, int]

    def node(self, node: int) -> NodeName:
        """Names a node by its type and its id among those of that type."""
        return _place(node, self.nodes)

    def edge(self, edge: int) -> tuple[Any, int]:
        """Names an edge by its relation and its id among the edges of that."""
        return _place(edge, self.edges)


@dataclass(frozen=True, repr=False)
class RankedSubgraph:
    """One connected subgraph of an explanation.

    Attributes:
        nodes: Its nodes by their ids in the user's graph, in a heterogeneous one ``(type, id)``; the explained one, or
            both ends of a link, first, then the most probable first.
        probability: Its probability within the explanation.
        reward: How well it preserves the prediction: the bare reward, without exponent.
        ranked: The subgraphs that it is one of.
        place: Its place among them.
    """

    nodes: tuple[Any, ...]
    probability: float
    reward: float
    ranked: RankedSubgraphs = field(compare=False)
    place: int = field(compare=False)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(nodes={self.nodes}, probability={self.probability:.3f}, reward={self.reward:.3f})"
        )

    @property
    def prediction_only(self) -> Prediction:
        """What the model predicts with only it: class probabilities, or values for regression.

        "Only" means that every other node is removed from the graph, with its edges: the model is called on the
        subgraph that the nodes induce, with their rows of every argument. The model is evaluated when this is first
        looked at, for all explanations of the same call at once.
        """
        return self.ranked.only[self.place]

    @property
    def prediction_without(self) -> Prediction:
        """What the model predicts without it: its nodes are removed from the whole graph, with their edges.

        The explained node always stays. Of a graph that loses every node, the first one stays, without edges.
        See :attr:`prediction_only`.
        """
        return self.ranked.without[self.place]

    @property
    def class_only(self) -> int | None:
        """The class predicted with only it; ``None`` for regression."""
        return class_of(self.prediction_only)

    @property
    def class_without(self) -> int | None:
        """The class predicted without it; ``None`` for regression."""
        return class_of(self.prediction_without)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold, predictions included."""
        names = ("nodes", "probability", "reward", "prediction_only", "prediction_without")
        return {name: getattr(self, name) for name in names}


class RankedSubgraphs(Sequence[RankedSubgraph]):
    """Different subgraphs, the most probable first.

    Args:
        nodes: Their nodes, shape ``[U, K]``, ``-1`` behind the last of each.
        probability: Probability of each, ``U``.
        reward: Reward of each, ``U``.
        predict: Evaluates the model with only each of them or, called with ``True``, without each.
        names: How nodes are called; by their numbers if not given.
    """

    def __init__(
        self,
        nodes: np.ndarray,
        probability: Sequence[float],
        reward: Sequence[float],
        predict: Callable[[bool], Sequence[Prediction]],
        names: Names | None = None,
    ) -> None:
        self.nodes, self.probability, self.reward, self._names = nodes, probability, reward, names
        self._predict = predict

    @cached_property
    def only(self) -> Sequence[Prediction]:
        """What the model predicts with only each subgraph."""
        return self._predict(False)

    @cached_property
    def without(self) -> Sequence[Prediction]:
        """What the model predicts with all but each subgraph."""
        return self._predict(True)

    @classmethod
    def of(
        cls, subgraphs: Iterable[tuple[Sequence[int], float, float, Sequence[float], Sequence[float]]]
    ) -> RankedSubgraphs:
        """Holds subgraphs of which all is known: nodes, probability, reward, prediction with only it and without it."""
        rows = list(subgraphs)
        nodes = np.full((len(rows), max((len(row[0]) for row in rows), default=0)), -1)
        for place, row in enumerate(rows):
            nodes[place, : len(row[0])] = row[0]
        only, without = [tuple(row[3]) for row in rows], [tuple(row[4]) for row in rows]
        return cls.known(nodes, [row[1] for row in rows], [row[2] for row in rows], only, without)

    @classmethod
    def known(
        cls,
        nodes: np.ndarray,
        probability: Sequence[float],
        reward: Sequence[float],
        only: Sequence[Prediction],
        without: Sequence[Prediction],
        names: Names | None = None,
    ) -> RankedSubgraphs:
        """Holds subgraphs whose predictions are known already."""
        return cls(nodes, probability, reward, lambda gone: without if gone else only, names)

    def renamed(self, names: Names) -> RankedSubgraphs:
        """Returns the same with the user's names of nodes."""
        return RankedSubgraphs(
            self.nodes, self.probability, self.reward, lambda gone: self.without if gone else self.only, names
        )

    def __len__(self) -> int:
        return len(self.probability)

    @overload
    def __getitem__(self, place: int) -> RankedSubgraph: ...

    @overload
    def __getitem__(self, place: slice) -> list[RankedSubgraph]: ...

    def __getitem__(self, place: int | slice) -> RankedSubgraph | list[RankedSubgraph]:
        at = range(len(self))[place]
        if isinstance(at, range):
            return [self[one] for one in at]
        nodes = [node for node in self.nodes[at].tolist() if node >= 0]
        named = nodes if self._names is None else map(self._names.node, nodes)
        return RankedSubgraph(tuple(named), self.probability[at], self.reward[at], self, at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return repr(list(self))

    def to_dict(self) -> list[dict[str, Any]]:
        """Returns plain values that JSON can hold, predictions included."""
        return [subgraph.to_dict() for subgraph in self]

    @classmethod
    def from_dict(cls, values: list[dict[str, Any]]) -> RankedSubgraphs:
        """Reads what :meth:`to_dict` returned."""
        return cls.of(tuple(row.values()) for row in values)

    def __reduce__(self) -> tuple[Any, ...]:
        known = self.nodes, self.probability, self.reward, self.only, self.without
        return self.known, (*known, self._names)


@dataclass(frozen=True)
class RankedPath:
    """One path between both ends of an explained link.

    Attributes:
        nodes: Its nodes from the first end to the second.
        edges: The edge of each step; one that runs along the path where there is one, else one against it.
        probability: Probability that a subgraph of the explanation holds it.
    """

    nodes: tuple[Any, ...]
    edges: tuple[Any, ...]
    probability: float

    def __len__(self) -> int:
        return len(self.edges)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return dict(vars(self))

    def renamed(self, names: Names) -> RankedPath:
        """Returns the same with the user's names of nodes and edges."""
        return replace(self, nodes=tuple(map(names.node, self.nodes)), edges=tuple(map(names.edge, self.edges)))


def class_of(prediction: Sequence[float]) -> int | None:
    """Returns the class that is predicted; ``None`` for regression."""
    return None if len(prediction) == 1 else max(range(len(prediction)), key=prediction.__getitem__)


def shown(prediction: Sequence[float], label: int | None = None) -> str:
    """Writes a prediction for a table: the class, or that of ``label``, and its probability; or a value."""
    best = class_of(prediction)
    if best is None:
        return f"{prediction[0]:.3f}"
    label = best if label is None else label
    return f"class {label} ({prediction[label]:.2f})"


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Writes a number of things: ``"1 node"``, ``"2 nodes"``; ``nouns`` is a plural without ``s`` alone."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def named(node: NodeName, before: str = "") -> str:
    """Writes a node as a person does: ``"3"``, with a word ``before`` it, or ``"paper 3"`` where it has a type."""
    return f"{before}{node}" if isinstance(node, int) else f"{node[0]} {node[1]}"


def _place(number: int, counts: Mapping[Any, int]) -> tuple[Any, int]:
    """Takes a number apart: what stands behind each other by kind, into the kind and the number within it."""
    for kind, count in counts.items():
        if number < count:
            return kind, number
        number -= count
    raise IndexError(number)
