"""What an explanation knows beside its masks: facts, and the answers to whatever was asked about it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.findings import Certificate, Counterfactual, FeatureContributions, Parts, frozen
from gflowexplainer.explanation.ranked import Prediction, RankedPath, RankedSubgraphs

_READ: dict[str, Any] = {
    "subgraphs": RankedSubgraphs.from_dict,
    "parts": Parts.from_dict,
    "certificate": lambda values: Certificate(**values),
    "paths": lambda values: tuple(RankedPath(**{name: frozen(v) for name, v in one.items()}) for one in values),
    "doubts": tuple,
    "counterfactual": lambda values: None if values is None else Counterfactual.from_dict(values),
    "features": FeatureContributions.from_dict,
}
"""Reads stored answers, by the kind of question."""


@dataclass(eq=False)
class SubgraphDistribution:
    """A distribution over connected subgraphs. What is asked of it is computed once; the rest never.

    Nodes are numbered as in the user's graph; in a heterogeneous one as if all types stood behind each other.

    Attributes:
        node: The explained node; ``None`` at graph level and for links.
        graph: Position of the explained graph among several; ``None`` if no graph, or the only one, is explained.
        link: Both ends of the explained link; ``None`` if none is explained.
        connected: Whether subgraphs are connected.
        num_samples: Particles of each size, or subgraphs that were sampled.
        error: How far the probabilities may be off, in total variation; 0 where they are exact.
        left_out: Nodes of the computation graph that were left out because there were too many.
        prediction_kept: What the model predicts where these are missing; ``None`` if there are none.
        model: Fingerprint of the explained model.
        known: Answers by question: a kind such as ``"parts"``, and what was asked for by name.
        source: Computes what is not known, by a method for each kind; ``None`` where the model is not at hand.
        position: The instance there.
    """

    node: int | None = None
    graph: int | None = None
    link: tuple[int, int] | None = None
    connected: bool = True
    num_samples: int = 0
    error: float = 0.0
    left_out: int = 0
    prediction_kept: Prediction | None = None
    model: str = ""
    known: dict[str, Any] = field(default_factory=dict, repr=False)
    source: Any = field(default=None, repr=False)
    position: int = 0

    def get(self, kind: str, **question: Any) -> Any:
        """Returns the answer to a question, computed where it is not known."""
        key = f"{kind} {json.dumps(question, sort_keys=True, default=_plain)}" if question else kind
        if key not in self.known:
            if self.source is None:
                raise ConfigError(
                    f"The model is not at hand: this explanation was stored or sent, and its {kind} had not been asked "
                    "for with these arguments before. Explain again, and ask before it is stored."
                )
            self.known[key] = getattr(self.source, kind)(self.position, **question)
        return self.known[key]

    def has(self, kind: str) -> bool:
        """Whether a question without arguments is answered, or can be."""
        return kind in self.known or self.source is not None

    def answers(self, kind: str) -> list[Any]:
        """Returns all answers of a kind that are known."""
        return [answer for key, answer in self.known.items() if key.split(" ", 1)[0] == kind]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold, with all that belongs into a file; a certificate if it is known."""
        self._complete("parts")
        known = {key: _stored(answer) for key, answer in self.known.items()}
        return {name: getattr(self, name) for name in _FACTS} | {"known": known}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> SubgraphDistribution:
        """Reads what :meth:`to_dict` returned."""
        known = {key: _READ[key.split(" ", 1)[0]](answer) for key, answer in values["known"].items()}
        return cls(**{name: frozen(values[name]) for name in _FACTS}, known=known)

    def _complete(self, *more: str) -> None:
        """Computes what travels, as far as the model is at hand."""
        wanted = ["subgraphs", "doubts", *(["paths"] if self.link is not None else []), *more]
        for kind in wanted if self.source is not None else []:
            self.get(kind)

    def __getstate__(self) -> dict[str, Any]:
        self._complete()
        return vars(self) | {"source": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> SubgraphDistribution:
        return self


_FACTS = [name for name in vars(SubgraphDistribution()) if name not in ("known", "source", "position")]


def _stored(answer: Any) -> Any:
    """Returns an answer, or several, as plain values."""
    if isinstance(answer, tuple):
        return [_stored(one) for one in answer]
    return answer.to_dict() if hasattr(answer, "to_dict") else answer


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else repr(value)
