"""The report on the evidence behind a consensus: how well it predicts the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gflowexplainer.choices import EvidenceType
from gflowexplainer.rewards.consensus import Consensus
from gflowexplainer.rewards.evidence_trial import EvidenceTrial

_MEANING = {
    EvidenceType.shared: "what means the same in every instance",
    EvidenceType.features: "what means the same in every instance, the features of nodes and edges among it",
    EvidenceType.own: "what the model loses without each node of the instance itself",
    EvidenceType.both: "what means the same in every instance, and what the model loses without each node",
}
_LEGEND = (
    "effect of the best: probability of a class with only the best rated subgraph, and its fall without it, the mean",
    "not enough: how far that subgraph is needed and still does not hold the class by itself",
)


@dataclass(frozen=True)
class EvidenceReport:
    """Which evidence was tried, how well each predicts the model on instances it was not fitted to, which was taken.

    Attributes:
        chosen: What was taken.
        trials: Everything that was tried.
        gradient_share: How far what a single node adds to a value is told by gradients, in [0, 1]; the rest by what is
            lost without it.
        by_likeness: Whether that counts half, and the other half is what nodes like it add in all graphs.
        cohesion: What it counts that a subgraph holds together, for each node all of whose edges stay inside; 0 where
            only evidence counts.
    """

    chosen: EvidenceTrial
    trials: tuple[EvidenceTrial, ...]
    gradient_share: float = 0.0
    by_likeness: bool = False
    cohesion: float = 0.0

    @classmethod
    def of(cls, consensus: Consensus) -> EvidenceReport:
        """Reads the report off what was learned."""
        likeness = consensus.likeness.counts
        return cls(consensus.chosen, consensus.trials, consensus.gradients.share, likeness, consensus.cohesion)

    @property
    def explained(self) -> float:
        """Share of what the model does on random subgraphs, within instances, that the chosen evidence predicts."""
        return self.chosen.explained

    @property
    def reproducible(self) -> float:
        """The most of it that can be predicted: what another draw of contexts would show again."""
        return self.chosen.reproducible

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        names = ("gradient_share", "by_likeness", "cohesion")
        trials = [trial.to_dict() for trial in self.trials]
        return {"chosen": self.chosen.to_dict(), "trials": trials} | {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        chosen = self.chosen
        said = "what the gradients of the model add up to in" if chosen.by_gradients else "what the model says of"
        lines = [
            f"Evidence: {_MEANING[chosen.evidence]}.",
            f"It predicts {100 * max(0.0, chosen.explained):.0f} % of {said} random subgraphs; "
            f"{100 * chosen.reproducible:.0f} % can be reproduced.",
        ]
        if self.gradient_share:
            lines.append(f"What a node adds by itself is told to {100 * self.gradient_share:.0f} % by gradients.")
        if self.by_likeness:
            lines.append("Half of it is what is usual of nodes of its kind, in such surroundings, in all graphs.")
        if self.cohesion:
            lines.append("What says most is not enough by itself, so subgraphs that hold together count more.")
        lines += [
            "",
            "evidence  kept  removal   by class  explained  reproducible  effect of the best  not enough",
        ]
        for trial in self.trials:
            mark = "  <- taken" if trial == chosen else ""
            did = trial.effect
            effect, incomplete = ("-" if did is None else f"{x:.2f}" for x in (trial.size, trial.incomplete))
            kept = "-" if trial.by_gradients else f"{trial.keep_probability:.2f}"
            removal = "gradient" if trial.by_gradients else trial.removal
            lines.append(
                f"{trial.evidence.value:<8}  {kept:<4}  {removal:<8}  "
                f"{'yes' if trial.by_class else 'no':<8}  {trial.explained:9.2f}  {trial.reproducible:12.2f}  "
                f"{effect:>18}  {incomplete:>10}{mark}"
            )
        return "\n".join([*lines, "", *_LEGEND])
