"""An explanation in words: what a terminal shows of it without evaluating the model, and its summary."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.explanation.ranked import class_of, counted, named, shown

_MOST_NODES = 12


def in_words(explanation: Any) -> str:
    """Says in a few lines what is predicted, which subgraph comes first, and how sure that is.

    Nothing is computed for it: what the model predicts with and without a subgraph is asked for at the subgraph.
    """
    best, parts = explanation.subgraphs[0], next(iter(explanation.known("parts")), None)
    listed = [f"{_nodes(part.nodes)}; with only it {shown(part.prediction_only)}" for part in parts or ()]
    rows = [
        ("prediction", _predicted(explanation)),
        ("subgraph", f"{_nodes(best.nodes)}; probability {best.probability:.3f}, reward {best.reward:.3f}"),
        ("others", f"{counted(len(explanation.subgraphs) - 1, 'further subgraph')} in .subgraphs"),
        ("samples", _samples(explanation)),
        ("certificate", _certificate(explanation)),
        *(("part", text) for text in listed),
        ("holds", "asked for by .holds, parts by .parts" if parts is None else parts.verdict()),
        *(("change", str(found)) for found in explanation.known_counterfactuals[:1]),
        *(("note", warning) for warning in explanation.warnings),
    ]
    lines = [f"  {name:<12} {text}" for name, text in rows if text]
    return "\n".join([f"{type(explanation).__name__} of {explanation.name}", *lines])


def one_line(explanation: Any) -> str:
    """Says in one line which class or value is explained and which subgraph comes first."""
    best, whole = explanation.subgraphs[0], explanation.whole_prediction
    explained = "" if whole is None else f"{shown(whole, explanation.explained_class)}: "
    return f"{explanation.name}, {explained}{_nodes(best.nodes)} ({best.probability:.2f})"


def _samples(explanation: Any) -> str:
    number = counted(len(explanation.subgraphs), "different subgraph")
    return f"{number}, probabilities {'exact' if explanation.error == 0 else f'off by about {explanation.error:.2f}'}"


def _certificate(explanation: Any) -> str:
    known = explanation.known_certificate
    if known.distance is not None:
        return f"distance {known.distance:.3f} to the target"
    return "asked for by .certificate" if explanation.can_certify else str(known)


def _predicted(explanation: Any) -> str:
    """Says what is predicted, and which class is explained if that is another one."""
    whole, held = explanation.whole_prediction, explanation.explained_class
    if whole is None:
        return ""
    other = held is not None and held != class_of(whole)
    return f"{shown(whole)}; explained is {shown(whole, held)}" if other else shown(whole)


def _nodes(nodes: Sequence[Any]) -> str:
    listed = ", ".join(map(named, nodes[:_MOST_NODES]))
    return f"{counted(len(nodes), 'node')} {listed}{', ...' if len(nodes) > _MOST_NODES else ''}"


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
        nodes = ", ".join(map(named, part.nodes))
        said.append(
            f"{lead} {nodes} {verb} most: with only {them} the model says {shown(part.prediction_only)}, "
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
