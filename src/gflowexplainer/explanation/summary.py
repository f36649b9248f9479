"""The summary of an explanation: plain sentences, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.explanation.ranked import class_of, named, shown


@dataclass(frozen=True, repr=False)
class Summary:
    """What there is to say about one prediction.

    Attributes:
        sentences: Plain sentences.
        values: The numbers in them, as plain values.
    """

    sentences: tuple[str, ...]
    values: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return {"sentences": list(self.sentences), **self.values}


def summarize(explanation: Any, *, features: bool = True) -> Summary:
    """Writes the summary of a :class:`~gflowexplainer.SubgraphExplanation`; see its method of the same name."""
    said: list[str] = []
    values: dict[str, Any] = {"class": explanation.explained_class, "prediction": explanation.whole_prediction}
    whole = explanation.whole_prediction
    subject = "the graph" if explanation.name == "graph" else explanation.name
    if whole is not None:
        said.append(f"The model says {shown(whole)} of {subject}.")
        held = explanation.explained_class
        if held is not None and held != class_of(whole):
            said.append(f"Explained is {shown(whole, held)}.")
    known = explanation.known_parts
    parts = list(known or explanation.subgraphs[:1])
    for number, part in enumerate(parts):
        one = len(part.nodes) == 1
        noun, verb, them = ("node", "counts", "it") if one else ("nodes", "count", "them")
        lead = noun.capitalize() if number == 0 else f"Also {noun}"
        said.append(
            f"{lead} {_listed(part.nodes)} {verb} most: with only {them} the model says {shown(part.prediction_only)}, "
            f"without {them} {shown(part.prediction_without)}."
        )
    if known is not None and len(parts) > 1:
        only, without = shown(known.prediction_only), shown(known.prediction_without)
        said.append(f"With only all of them the model says {only}, without all of them {without}.")
    values["parts"] = [
        {name: getattr(part, name) for name in ("nodes", "prediction_only", "prediction_without")} for part in parts
    ]
    if known is not None:
        values["holds"] = known.holds
        if not known.holds:
            who = "It preserves" if len(parts) == 1 and len(parts[0].nodes) == 1 else "They preserve"
            said.append(f"{who} the prediction no better than random subgraphs of the same size.")
    said.append(_sureness(explanation, values))
    _counterfactual(explanation, said, values)
    if features:
        _features(explanation, said, values)
    return Summary(tuple(said), values)


def _sureness(explanation: Any, values: dict[str, Any]) -> str:
    first, certificate = explanation.subgraphs[0], explanation.known_certificate
    values["probability"], values["num_samples"] = first.probability, explanation.num_samples
    values["error"], values["certificate"] = explanation.error, certificate.to_dict()
    sure = "exact" if explanation.error == 0 else f"off by at most about {explanation.error:.2f}"
    return f"The most probable subgraph has probability {first.probability:.2f} ({sure})."


def _counterfactual(explanation: Any, said: list[str], values: dict[str, Any]) -> None:
    """Adds what would change a class; for a value nobody has said by how much, so what was asked before is repeated."""
    known = explanation.known("counterfactual")
    if explanation.explained_class is not None and explanation.has_model:
        with suppress(ModelError):  # the model has changed since: what is known is repeated
            known = [explanation.counterfactual()]
    values["counterfactuals"] = [None if found is None else found.to_dict() for found in known]
    for found in known:
        said.append("No set of nodes was found whose removal changes the prediction." if found is None else str(found))


def _features(explanation: Any, said: list[str], values: dict[str, Any]) -> None:
    known = explanation.known("features")[:1]
    if explanation.has_model:
        with suppress(ConfigError, ModelError):  # features that are no numbers, or a model that has changed since
            known = [explanation.feature_contributions()]
    for found in known:
        top = found.top(3)
        values["features"] = [{"feature": feature, "contribution": value} for feature, value in top]
        values["features_error"] = found.error
        if not top:
            said.append(f"No feature in '{found.of}' of these nodes changes the prediction.")
            continue
        listed = ", ".join(f"{found.name(feature)} ({value:+.2f})" for feature, value in top)
        sure = "exact Shapley values" if found.exact else f"Shapley values, standard error {found.error:.3f}"
        said.append(f"Their features that count most: {listed}; {sure}.")


def _listed(nodes: Sequence[Any]) -> str:
    return ", ".join(map(named, nodes))
