"""The certificate: how far an explanation is from the exact target distribution, or why that is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

NOT_ASKED = "It has not been asked for; ask for it before the explanation is stored or shown."
"""The reason of a certificate that was never asked for."""


@dataclass(frozen=True)
class Certificate:
    """Exact distances of one explanation to its target distribution, or why there are none.

    All distances lie in [0, 1]; 0 is exact.

    Attributes:
        distance: Total variation between the probabilities in ``explanation.subgraphs`` and the target.
        node_error: Largest difference between a node's shown and its exact probability.
        num_subgraphs: Connected subgraphs that there are, up to the size bound.
        reason: Why nothing was computed; ``None`` if it was.
    """

    distance: float | None = None
    node_error: float | None = None
    num_subgraphs: int | None = None
    reason: str | None = None

    def __str__(self) -> str:
        if self.distance is None:
            return f"not computed: {self.reason}"
        return (
            f"total variation {self.distance:.3f} to the target over all {self.num_subgraphs} connected subgraphs, "
            f"nodes off by at most {self.node_error:.3f}"
        )

    @property
    def asked(self) -> bool:
        """Whether it was asked for: computed, or found to be too large."""
        return self.reason != NOT_ASKED

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
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
    def can_compute(self) -> bool:
        """Whether it is still to be computed, and can be."""
        return self._known is None and self._compute is not None

    @property
    def known(self) -> Certificate:
        """The certificate if it has been computed, else one that says that it was not asked for in time."""
        if self._known is not None:
            return self._known
        return Certificate(reason=NOT_ASKED)

    def get(self) -> Certificate:
        """Computes it, once."""
        if self._known is None and self._compute is not None:
            self._known, self._compute = self._compute(), None
        return self.known

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.known,)


def _arrived(known: Certificate) -> PendingCertificate:
    return PendingCertificate.computed(known)
