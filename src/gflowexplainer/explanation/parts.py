"""The parts of an explanation: the connected subgraphs that together preserve the prediction, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

Prediction = tuple[float, ...]
"""Class probabilities, or values for regression."""


@dataclass(frozen=True)
class Part:
    """One connected part.

    Attributes:
        nodes: Its nodes by their ids in the user's graph.
        prediction_only: What the model predicts with only it.
        prediction_without: What the model predicts with all but it.
    """

    nodes: tuple[int, ...]
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
        preserved_by_random: What 19 of 20 random connected subgraphs of the same sizes, elsewhere in the graph, do not
            surpass; ``None`` where there is no room for one.
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
    def nodes(self) -> tuple[int, ...]:
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
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        parts = (Part(**{name: tuple(v) for name, v in part.items()}) for part in plain.pop("parts"))
        return cls(tuple(parts), **plain)
