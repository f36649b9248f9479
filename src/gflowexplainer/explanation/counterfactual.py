"""The counterfactual: what would have to go for the prediction to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gflowexplainer.explanation.parts import frozen
from gflowexplainer.explanation.ranked_subgraphs import Prediction, class_of, shown


@dataclass(frozen=True)
class Counterfactual:
    """A small set of nodes or edges without which the model predicts something else. The model has said so.

    Attributes:
        by: ``"nodes"`` or ``"edges"``: what is removed.
        nodes: The removed nodes, or the ends of the removed edges, by their ids in the user's graph.
        edges: The removed edges as pairs of nodes, smaller id first, each standing for both directions; empty where
            nodes are removed.
        prediction: What the model predicts without them: class probabilities, or values for regression.
        before: What it predicts on the whole graph.
        minimal: Whether exhaustive search has shown that no smaller set does.
        connected: Whether what is removed hangs together.
        alternatives: Further sets of the same size that were found, as nodes or as edges.
        evaluations: Subgraphs that the model was evaluated on for it.
    """

    by: str
    nodes: tuple[Any, ...]
    edges: tuple[tuple[Any, Any], ...]
    prediction: Prediction
    before: Prediction
    minimal: bool
    connected: bool
    alternatives: tuple[tuple[Any, ...], ...] = ()
    evaluations: int = 0

    def __len__(self) -> int:
        """How many nodes, or edges, are removed."""
        return len(self.edges if self.by == "edges" else self.nodes)

    @property
    def predicted_class(self) -> int | None:
        """The class predicted without them; ``None`` for regression."""
        return class_of(self.prediction)

    @property
    def together(self) -> tuple[Any, ...]:
        """The nodes, or edges, of this set and of all :attr:`alternatives`, each once."""
        sets = (self.edges if self.by == "edges" else self.nodes, *self.alternatives)
        return tuple(dict.fromkeys(thing for one in sets for thing in one))

    def __str__(self) -> str:
        things = self.edges if self.by == "edges" else self.nodes
        named = ", ".join("-".join(map(str, thing)) if self.by == "edges" else str(thing) for thing in things)
        noun = self.by[:-1] if len(things) == 1 else self.by
        proof = "no smaller set does" if self.minimal else "smaller sets were not all tried"
        return (
            f"Without {noun} {named} the model says {shown(self.prediction)} instead of {shown(self.before)}; {proof}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Counterfactual:
        """Reads what :meth:`to_dict` gave, also after JSON has made lists of tuples."""
        return cls(**{name: frozen(value) for name, value in values.items()})
