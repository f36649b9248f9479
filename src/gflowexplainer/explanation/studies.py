"""What can be asked about an explanation beyond it: counterfactuals, features, a summary. Computed when asked, once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch_geometric.explain.config import MaskType

from gflowexplainer.errors import ConfigError, GFlowExplainerError
from gflowexplainer.explanation.counterfactual import Counterfactual
from gflowexplainer.explanation.feature_contributions import FeatureContributions
from gflowexplainer.explanation.summary import Summary, summarize

FEW_FEATURES = 32
"""Features up to which their contributions are measured without being asked for."""


class Study(Protocol):
    """Evaluates the explained model on changed inputs of one instance."""

    def counterfactual(self, **question: Any) -> Counterfactual | None:
        """Finds what would have to go for the prediction to change."""
        ...

    def features(self, **question: Any) -> FeatureContributions:
        """Measures what features contribute."""
        ...


class Studies:
    """What was asked about an explanation, remembered. What is known travels with it; the model does not.

    Args:
        study: Computes what is not known; ``None`` where the model is not at hand.
        known: Answers by question.
        model: Fingerprint of the explained model.
    """

    def __init__(self, study: Study | None = None, known: dict[str, Any] | None = None, model: str = "") -> None:
        self._study, self._known, self.model = study, dict(known or {}), model

    def get(self, kind: str, question: dict[str, Any]) -> Any:
        """Returns the answer to a question, computed where it is not known."""
        key = f"{kind} {json.dumps(question, sort_keys=True, default=_plain)}"
        if key not in self._known:
            if self._study is None:
                raise ConfigError(
                    f"The model is not at hand: this explanation was stored, and its {kind} had not been asked for "
                    "with these arguments before. Explain again, and ask before it is stored."
                )
            self._known[key] = getattr(self._study, kind)(**question)
        return self._known[key]

    def knows(self, kind: str) -> list[Any]:
        """Returns all answers of a kind that are known."""
        return [answer for key, answer in self._known.items() if key.split(" ", 1)[0] == kind]

    @property
    def can_compute(self) -> bool:
        """Whether the model is at hand."""
        return self._study is not None

    def to_dict(self) -> dict[str, Any]:
        """Returns what is known as plain values that JSON can hold."""
        known = {key: None if answer is None else answer.to_dict() for key, answer in self._known.items()}
        return {"model": self.model, "known": known}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Studies:
        """Reads what :meth:`to_dict` gave."""
        if not set(values) <= {"known", "model"}:
            raise ValueError(f"studies {sorted(values)}")
        kinds: dict[str, Any] = {"counterfactual": Counterfactual, "features": FeatureContributions}
        known = {
            key: None if answer is None else kinds[key.split(" ", 1)[0]].from_dict(answer)
            for key, answer in values.get("known", {}).items()
        }
        return cls(None, known, values.get("model", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return Studies, (None, self._known, self.model)

    def __deepcopy__(self, memo: dict[int, Any]) -> Studies:
        return Studies(self._study, self._known, self.model)


class Studied:
    """The part of an explanation that asks the model again; mixed into :class:`SubgraphExplanation`."""

    if TYPE_CHECKING:

        @property
        def _own(self) -> dict[str, Any]: ...

    @property
    def studies(self) -> Studies:
        """What was asked about this explanation, and what the model is asked with."""
        return self._own.get("_studies") or Studies()

    def counterfactual(
        self, to: float | None = None, *, amount: float | None = None, by: str = "nodes", exhaustive: int = 200
    ) -> Counterfactual | None:
        """Finds a small set of nodes or edges without which the model predicts something else.

        Single nodes or edges are tried first, then sampled subgraphs, which are made smaller; everything is verified on
        the model. Once a set is known, no more than 200 are tried for a smaller one. Computed when first asked for, and
        kept.

        Args:
            to: The class that is wanted, or for regression the value to reach or pass; by default any other class.
            amount: For regression, how far the value has to move, in any direction.
            by: What is removed: ``"nodes"`` or ``"edges"``. The explained node always stays.
            exhaustive: Sets that may be tried in all for every smaller one to be among them
                (:attr:`Counterfactual.minimal`).

        Returns:
            The counterfactual, or ``None`` if none was found.
        """
        question = {"to": to, "amount": amount, "by": by, "exhaustive": exhaustive}
        return self.studies.get("counterfactual", question)

    def feature_contributions(
        self, of: str = "x", *, reference: float | list[float] | Tensor | None = None, each: bool = False,
        evaluations: int = 2048,
    ) -> FeatureContributions:  # fmt: skip
        """Measures what each feature inside the explained subgraph contributes, as Shapley values.

        Args:
            of: ``"x"``, or the name of another argument of the model, such as ``"edge_attr"``.
            reference: What stands for "not there": a number, or one a feature; by default the mean over the instance,
                and of a feature that is only ever 0 or 1 the more frequent of both.
            each: Whether every entry of the subgraph is measured by itself, not every feature.
            evaluations: Combinations that are evaluated, about; if all of them are fewer, values are exact.
        """
        return self.studies.get(
            "features", {"of": of, "reference": reference, "each": each, "evaluations": evaluations}
        )

    def ask(self) -> None:
        """Asks what a report shows beside the subgraphs: what would change the class and, where they are few, features.

        Nothing is asked where the model is not at hand, or has changed. A value has no counterfactual of its own:
        nobody has said how far it should move.
        """
        explanation: Any = self
        if not self.studies.can_compute:
            return
        try:
            if explanation.explained_class is not None:
                self.counterfactual()
            x = explanation.get("x")
            if isinstance(x, Tensor) and x.is_floating_point() and x.dim() == 2 and x.size(1) <= FEW_FEATURES:
                self.feature_contributions()
        except GFlowExplainerError:  # a drawing is one without it too: the model may have changed since
            return

    def show_features(self, mask_type: MaskType | None) -> None:
        """Puts contributions of features into ``node_mask``, as PyG's ``node_mask_type`` asks for.

        ``"attributes"``: of every entry, shape ``[N, F]``. ``"common_attributes"``: of every feature, shape ``[1, F]``.
        Any other type leaves the mask as it is.
        """
        explanation: Any = self
        if mask_type == MaskType.attributes:
            mask = torch.zeros_like(explanation.x)
            found = self.feature_contributions(each=True)
            for node, feature, value in found.rows:
                mask[node, feature] = value
        elif mask_type == MaskType.common_attributes:
            mask = torch.tensor([self.feature_contributions().columns]).to(explanation.x)
        else:
            return
        explanation.node_mask, explanation._features_shown = mask, True

    def summary(self, *, features: bool = True) -> Summary:
        """Says in plain sentences what preserves the prediction, what would change it, and which features count.

        ``str(e.summary())`` is the text, ``e.summary().to_dict()`` the same for machines. Every number is the model's.

        Args:
            features: Whether features are measured, which takes most evaluations of the model.
        """
        return summarize(self, features=features)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else repr(value)
