"""The certificate: how far an explanation is from the truth, measured by listing every connected subgraph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.distance import target_distribution
from gflowexplainer.errors import EnumerationError
from gflowexplainer.flow.exact import (
    Enumeration,
    enumerate_subgraphs,
    exact_marginals,
    terminal_distribution,
    total_variation,
)
from gflowexplainer.persistence import fingerprint
from gflowexplainer.readings import Reading
from gflowexplainer.sorting import find_sorted
from gflowexplainer.subgraphs import subgraph_keys
from gflowexplainer.training import Trainer


@dataclass(frozen=True)
class Certificate:
    """Exact distances of one explanation to its target distribution, or why there are none.

    All distances lie in [0, 1]; 0 is exact.

    Attributes:
        distance: Total variation between what the flow network samples from and the target: how well it learned.
        shown_distance: Total variation between the probabilities in ``explanation.subgraphs`` and the target; on top
            of ``distance`` it holds the noise of a finite number of samples, which the reward weighting lessens.
        node_error: Largest difference between a node's shown and its exact probability.
        num_subgraphs: Connected subgraphs that there are, up to the size bound.
        reason: Why nothing was computed; ``None`` if it was.
    """

    distance: float | None = None
    shown_distance: float | None = None
    node_error: float | None = None
    num_subgraphs: int | None = None
    reason: str | None = None

    def __str__(self) -> str:
        if self.distance is None:
            return f"not computed: {self.reason}"
        return (
            f"distance {self.distance:.3f} to the target over all {self.num_subgraphs} connected subgraphs; "
            f"shown probabilities: distance {self.shown_distance:.3f}, nodes off by at most {self.node_error:.3f}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Gives plain values that JSON can hold."""
        return asdict(self)


class PendingCertificate:
    """A certificate that is computed when it is first asked for.

    It cannot travel: pickled without having been asked for, it becomes a certificate that says so.
    """

    def __init__(self, compute: Callable[[], Certificate]) -> None:
        self._compute: Callable[[], Certificate] | None = compute
        self._known: Certificate | None = None

    @classmethod
    def computed(cls, certificate: Certificate) -> PendingCertificate:
        """Holds a certificate that is known already."""
        pending = cls(lambda: certificate)
        pending.get()
        return pending

    @property
    def known(self) -> Certificate:
        """The certificate if it has been computed, else one that says that it was not asked for in time."""
        if self._known is not None:
            return self._known
        return Certificate(reason="It has not been asked for; ask for it before the explanation is stored or shown.")

    def get(self) -> Certificate:
        """Computes it, once."""
        if self._known is None and self._compute is not None:
            self._known, self._compute = self._compute(), None
        return self.known

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.known,)


def _arrived(known: Certificate) -> PendingCertificate:
    return PendingCertificate.computed(known)


def certify(trainer: Trainer, reading: Reading, instance: int, limit: int, model_name: str) -> Certificate:
    """Measures what was learned and what is shown against the truth of one instance.

    Args:
        trainer: Holds instances, reward and trained network.
        reading: What is shown of all its instances.
        instance: Which of them to certify.
        limit: Number of connected subgraphs above which nothing is computed.
        model_name: Fingerprint of the model when it was explained; if it has changed since, nothing is computed.
    """
    instances, network = trainer.instances, trainer.network
    model = trainer.predictor.model
    if any(p.device != instances.device for p in model.parameters()) or fingerprint(model) != model_name:
        return Certificate(reason="The model was moved or trained on after it was explained. Explain it again.")
    one = torch.tensor([instance], device=instances.device)
    max_nodes = trainer.settings.max_nodes
    try:
        enumeration = enumerate_subgraphs(instances, one, network.starts(trainer.inputs, one), max_nodes, limit=limit)
    except EnumerationError:
        return Certificate(
            reason=f"There are more than {limit} connected subgraphs of at most {max_nodes} nodes. "
            "Raise 'certificate_limit' or lower 'max_nodes'."
        )
    target = target_distribution(enumeration, trainer.reward, trainer.settings.measure)
    encoding = network.policy.encode(instances, trainer.inputs.features)
    learned = terminal_distribution(enumeration, network.policy, encoding)
    shown = _shown(enumeration, reading, instance)
    nodes = slice(int(instances.ptr[instance]), int(instances.ptr[instance + 1]))
    exact_node = exact_marginals(enumeration, target)[0][nodes]
    return Certificate(
        distance=float(total_variation(enumeration, learned, target)),
        shown_distance=float(total_variation(enumeration, shown, target)),
        node_error=float((reading.node[nodes].clamp(0, 1) - exact_node).abs().max()),
        num_subgraphs=int((enumeration.states.size > 0).sum()),
    )


def _shown(enumeration: Enumeration, reading: Reading, instance: int) -> Tensor:
    """Gives the log-probability of every state as it is shown, shape ``[S]``; ``-inf`` where it was not sampled."""
    instances = enumeration.states.instances
    mine = torch.nonzero(reading.subgraphs.instance == instance).flatten()
    keys, order = torch.sort(subgraph_keys(instances, reading.subgraphs[mine]))
    position, found = find_sorted(keys, subgraph_keys(instances, enumeration.subgraphs))
    probability = reading.probability[mine][order][position]
    return torch.where(found, probability, 0.0).log()
