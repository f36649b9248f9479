"""What is said of an explanation, everywhere alike: the prediction, what it is because of, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gflowexplainer.drawing.case import Case
from gflowexplainer.errors import ModelError
from gflowexplainer.steering import MARGIN

_MOST_NAMES = 12


def main_set(explanation: Any) -> Any:
    """Returns the one set of nodes that everything shows: the parts, or the first subgraph where these are not known.

    It has ``nodes``, ``prediction_only`` and ``prediction_without``.
    """
    parts = explanation.known_parts
    return explanation.subgraphs[0] if parts is None else parts


def predictions(subgraph: Any) -> tuple[Any, Any]:
    """Returns what the model predicts with only a set and without it; ``None`` where that can no longer be told."""
    try:
        return subgraph.prediction_only, subgraph.prediction_without
    except ModelError:  # the model has changed since; what is known otherwise is still shown
        return None, None


def best_class(prediction: Sequence[float]) -> int:
    """Returns the class of the largest probability."""
    return max(range(len(prediction)), key=prediction.__getitem__)


def shown(case: Case, prediction: Sequence[float], label: int | None = None) -> str:
    """Writes a prediction: the class (or that of ``label``) and its probability, or a value."""
    if len(prediction) == 1 and label is None:
        return f"{prediction[0]:.3f}"
    label = best_class(prediction) if label is None else label
    return f"{case.class_name(label)} ({prediction[label]:.2f})"


def called(case: Case) -> str:
    """Returns the name of a case, and that of the explained node where it has one of its own."""
    node, texts = case.explanation.explained_node, case.labels if case.words is None else case.words
    if texts is None or case.names is not None or not isinstance(node, int) or texts[node] in ("", str(node)):
        return case.name
    return f"{case.name} ({texts[node]})"


def enough(explanation: Any) -> str:
    """Says whether the main set alone preserves the prediction: ``"yes"``, ``"partly"`` or ``"no"``; empty if unknown.

    "Yes" is to within the margin that an explanation must be better than random sets by; "partly" where the class is
    still the one that is predicted, or a value is preserved better than by random sets.
    """
    whole, label, parts = explanation.whole_prediction, explanation.explained_class, explanation.known_parts
    only, _ = predictions(main_set(explanation))
    if whole is None or only is None or (label is None and parts is None):
        return ""
    if label is None:
        random = parts.preserved_by_random or 0.0
        return "yes" if parts.preserved >= 1 - MARGIN else "partly" if parts.preserved > random + MARGIN else "no"
    if only[label] >= whole[label] - MARGIN:
        return "yes"
    return "partly" if best_class(only) == label else "no"


def needed(explanation: Any) -> str:
    """Says whether a class is lost without the main set: ``"yes"``, ``"partly"`` or ``"no"``; empty for a value."""
    whole, label = explanation.whole_prediction, explanation.explained_class
    _, without = predictions(main_set(explanation))
    if whole is None or without is None or label is None:
        return ""
    if best_class(whole) == label != best_class(without):
        return "yes"
    return "no" if without[label] >= whole[label] - MARGIN else "partly"


def lines(case: Case) -> list[tuple[str, str]]:
    """Says everything that matters in five lines, each a head and a sentence."""
    explanation, main = case.explanation, main_set(case.explanation)
    whole, label = explanation.whole_prediction, explanation.explained_class
    only, without = predictions(main)
    found = []
    if whole is not None:
        other = label is not None and label != best_class(whole)
        found.append(
            ("prediction", shown(case, whole) + (f"; explained is {shown(case, whole, label)}" if other else ""))
        )
    found.append(("because of", _because(case, main)))
    them = "it" if len(main.nodes) == 1 else "them"
    if only is not None:
        found.append(
            ("enough?", _answer(enough(explanation), f"with only {them} {shown(case, only)}{_random(explanation)}"))
        )
        found.append(("needed?", _answer(needed(explanation), f"without {them} {shown(case, without)}")))
    found.append(("how sure", _sure(explanation)))
    return found


def sentences(case: Case) -> str:
    """Writes the five lines, and reasons for doubt, as text for a terminal."""
    rows = [*lines(case), *(("note", text) for text in case.explanation.warnings)]
    return "\n".join([called(case), *(f"  {head:<11} {text}" for head, text in rows)])


def title(case: Case) -> str:
    """Names the instance, its class and probability, and whether the shown nodes are enough and needed."""
    explanation, main = case.explanation, main_set(case.explanation)
    whole, (only, without) = explanation.whole_prediction, predictions(main)
    name = called(case) if len(called(case)) <= 40 else called(case)[:39] + "…"
    first = name if whole is None else f"{name}: {shown(case, whole, explanation.explained_class)}"
    said = [_count(main)]
    if only is not None:
        label = explanation.explained_class
        numbers = [
            row[0 if label is None and len(row) == 1 else best_class(row) if label is None else label]
            for row in (only, without)
        ]
        said += [f"with only {'it' if len(main.nodes) == 1 else 'them'} {numbers[0]:.2f}", f"without {numbers[1]:.2f}"]
    return f"{first}\n{', '.join(said)}"


def _answer(verdict: str, text: str) -> str:
    return f"{verdict}: {text}" if verdict else text


def _because(case: Case, main: Any) -> str:
    names = [case.node_name(node) for node in main.nodes]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    apart = " " if case.words is not None else ", "
    return f"{_count(main)}: {apart.join(names[:_MOST_NAMES])}{more}"


def _count(main: Any) -> str:
    number = len(main.nodes)
    count = "1 node" if number == 1 else f"{number} nodes"
    parts = getattr(main, "parts", ())
    return f"{count} in {len(parts)} parts" if len(parts) > 1 else count


def _random(explanation: Any) -> str:
    """Says what random sets of the same size do."""
    parts = explanation.known_parts
    if parts is None or parts.preserved_by_random is None:
        return ""
    kept, random = 100 * parts.preserved, 100 * parts.preserved_by_random
    return f", {kept:.0f} % of the prediction (random sets of this size {random:.0f} %)"


def _sure(explanation: Any) -> str:
    """Says how right the probabilities of the subgraphs are, and how that is known."""
    number, error, known = len(explanation.subgraphs), explanation.error, explanation.known_certificate
    count = f"{number} different subgraph{'' if number == 1 else 's'} sampled"
    if known.distance is not None:
        return (
            f"{count}; probabilities are off by {known.distance:.3f}, measured over all {known.num_subgraphs} there are"
        )
    certificate = f"; not certified: {str(known.reason).split('. ')[0]}" if known.asked else ""
    return f"{count}; probabilities are {'exact' if error == 0 else f'off by about {error:.2f}'}{certificate}"
