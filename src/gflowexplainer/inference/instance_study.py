"""The study of one instance: what the model is evaluated for again after it was explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gflowexplainer.errors import ModelError
from gflowexplainer.explanation.counterfactual import Counterfactual
from gflowexplainer.explanation.feature_contributions import FeatureContributions
from gflowexplainer.inference.certify import same_model
from gflowexplainer.inference.counterfactual_search import find_counterfactual
from gflowexplainer.inference.feature_shapley import measure_features
from gflowexplainer.sampler import FlowSampler


@dataclass(frozen=True)
class InstanceStudy:
    """Evaluates the explained model on changed inputs of one instance.

    Attributes:
        sampler: The sampler that has explained the instance.
        position: The instance.
        ranked: Lists the sampled subgraphs, the best first, by the user's names of their nodes.
        name: Returns the user's name of the node at a flat position.
        model_name: Fingerprint of the model when it was explained.
    """

    sampler: FlowSampler
    position: int
    ranked: Callable[[], Sequence[tuple[Any, ...]]]
    name: Callable[[int], Any]
    model_name: str

    def counterfactual(self, **question: Any) -> Counterfactual | None:
        """Finds what would have to go for the prediction to change."""
        self._refuse_another_model()
        samples = self._flat(self.ranked())
        return find_counterfactual(self.sampler, self.position, samples, self.name, **question)

    def features(self, **question: Any) -> FeatureContributions:
        """Measures what features of the first subgraph contribute."""
        self._refuse_another_model()
        nodes = tuple(self.ranked()[0])
        return measure_features(self.sampler, self.position, self._flat([nodes])[0], nodes, **question)

    def _flat(self, subgraphs: Sequence[tuple[Any, ...]]) -> list[list[int]]:
        """Turns the user's names of nodes into flat positions."""
        instances, i = self.sampler.instances, self.position
        place = {self.name(node): node for node in range(int(instances.ptr[i]), int(instances.ptr[i + 1]))}
        return [[place[node] for node in nodes] for nodes in subgraphs]

    def _refuse_another_model(self) -> None:
        if not same_model(self.sampler, self.model_name):
            raise ModelError(
                "The model was moved or trained on after it was explained, so it can no longer be asked. Explain it "
                "again."
            )
