"""What an explanation says, as plain values: the subgraphs in order, and how they were found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gflowexplainer.explanation.certificate import Certificate, PendingCertificate


@dataclass(frozen=True)
class RankedSubgraph:
    """One connected subgraph of an explanation.

    Attributes:
        nodes: Its nodes by their ids in the user's graph; the explained one first, then the most probable first.
        probability: Its probability within the explanation.
        reward: How well it holds the prediction: the bare reward, without exponent.
        prediction_only: What the model predicts with only it: class probabilities, or values for regression.
        prediction_without: What the model predicts with all but it (the explained node always stays).
    """

    nodes: tuple[int, ...]
    probability: float
    reward: float
    prediction_only: tuple[float, ...]
    prediction_without: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def class_only(self) -> int | None:
        """The class predicted with only it; ``None`` for regression."""
        return class_of(self.prediction_only)

    @property
    def class_without(self) -> int | None:
        """The class predicted without it; ``None`` for regression."""
        return class_of(self.prediction_without)


@dataclass(frozen=True)
class Answer:
    """What an explanation knows beside its masks.

    Attributes:
        subgraphs: The different subgraphs among the samples, most probable first.
        node: The explained node; ``None`` at graph level.
        weighting: ``"policy"`` or ``"reward"``.
        num_samples: Subgraphs that were sampled.
        effective_sample_size: What they are worth as samples of the target.
        certificate: The certificate, perhaps still to be computed.
        left_out: Nodes of the computation graph that were left out because there were too many.
        prediction_kept: What the model predicts where these are missing; ``None`` if there are none.
    """

    subgraphs: tuple[RankedSubgraph, ...]
    node: int | None
    weighting: str
    num_samples: int
    effective_sample_size: float
    certificate: PendingCertificate
    left_out: int = 0
    prediction_kept: tuple[float, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold; of a certificate that was not asked for, that it was not."""
        plain = {name: value for name, value in vars(self).items() if name not in ("subgraphs", "certificate")}
        known = self.certificate.known.to_dict()
        return plain | {"subgraphs": [asdict(s) for s in self.subgraphs], "certificate": known}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Answer:
        """Reads what :meth:`to_dict` gave."""
        rest: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        subgraphs = tuple(_ranked(entry) for entry in rest.pop("subgraphs"))
        certificate = PendingCertificate.computed(Certificate(**rest.pop("certificate")))
        return cls(subgraphs=subgraphs, certificate=certificate, **rest)

    def bound_note(self) -> str:
        """Says in words what was left out, or nothing."""
        if not self.left_out:
            return ""
        kept = (
            ""
            if self.prediction_kept is None
            else f"; where they are missing the model says {shown(self.prediction_kept)}"
        )
        return f"At least {self.left_out} nodes of the computation graph were left out (max_graph_nodes){kept}"


def class_of(prediction: tuple[float, ...]) -> int | None:
    """Returns the class that is predicted; ``None`` for regression."""
    return None if len(prediction) == 1 else max(range(len(prediction)), key=prediction.__getitem__)


def shown(prediction: tuple[float, ...]) -> str:
    """Writes a prediction for a table: the class and its probability, or the value of a regression."""
    best = class_of(prediction)
    return f"{prediction[0]:.3f}" if best is None else f"class {best} ({prediction[best]:.2f})"


def _ranked(entry: dict[str, Any]) -> RankedSubgraph:
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}
    return RankedSubgraph(**fields)
