"""The parts of an explanation: the connected subgraphs that together preserve the prediction, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

Prediction = tuple[float, ...]
"""Class probabilities, or values for regression."""
NodeName = int | tuple[str, int]
"""A node by its id or, in a heterogeneous graph, by its type and its id among those of that type."""


@dataclass(frozen=True)
class Part:
    """One connected part.

    Attributes:
        nodes: Its nodes by their ids in the user's graph, in a heterogeneous one ``(type, id)``.
        prediction_only: What the model predicts with only it.
        prediction_without: What the model predicts with all but it.
    """

    nodes: tuple[Any, ...]
    prediction_only: Prediction
    prediction_without: Prediction

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True)
class Parts(Sequence[Part]):
    """The connected parts that together preserve a prediction, most needed first; one where one does.

    Attributes:
        parts: The parts.
        prediction_only: What the model predicts with only all of them.
        prediction_without: What the model predicts with none of them.
        preserved: Share of the prediction that is preserved with only all of them: its probability as a share of that
            on the whole graph, at most 1; of a value, 1 less the share of the way to it that is missing.
        preserved_by_random: What random connected subgraphs of the same sizes preserve on average: elsewhere in the
            graph, or anywhere in one that has no room elsewhere. ``None`` where there is but one node, or a link only.
        holds: Whether the parts preserve the prediction, and better than random ones do.
    """

    parts: tuple[Part, ...]
    prediction_only: Prediction
    prediction_without: Prediction
    preserved: float
    preserved_by_random: float | None
    holds: bool = field(default=True)

    @overload
    def __getitem__(self, index: int) -> Part: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Part, ...]: ...

    def __getitem__(self, index: int | slice) -> Part | tuple[Part, ...]:
        return self.parts[index]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The nodes of all parts."""
        return tuple(node for part in self.parts for node in part.nodes)

    def verdict(self) -> str:
        """Says in a sentence whether the parts hold the prediction, with the two numbers."""
        kept = f"{100 * self.preserved:.0f} % of the prediction is preserved with only what is shown"
        if self.preserved_by_random is None:
            return f"{kept}; there is nothing else in the graph to compare it with"
        random = f"{100 * self.preserved_by_random:.0f} % with random parts of the same size"
        if self.holds:
            return f"{kept}, {random}"
        return f"Nothing found holds this prediction better than random parts do: {kept}, {random}"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return {**vars(self), "parts": [vars(part) for part in self.parts]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Parts:
        """Reads what :meth:`to_dict` gave."""
        plain: dict[str, Any] = {name: frozen(v) for name, v in values.items() if name != "parts"}
        parts = (Part(**{name: frozen(v) for name, v in part.items()}) for part in values["parts"])
        return cls(tuple(parts), **plain)


def frozen(value: Any) -> Any:
    """Turns lists, as JSON has them, into tuples, also inside one another."""
    return tuple(frozen(entry) for entry in value) if isinstance(value, list | tuple) else value
