"""What a model's predictions can depend on, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Locality:
    """What a model's predictions can depend on.

    Attributes:
        hops: Steps around a node that its prediction depends on; ``None`` if that could not be found out.
        local: Whether the prediction at a node is the same when all beyond these steps is cut off.
        together: How many subgraphs are evaluated at once: ``"union"``, ``"batch"`` or ``"alone"``.
        writes: Arguments that the model writes into.
        random: By how much outputs differ where the same is evaluated twice; 0 for a model that is a function.
        failure: Why it could not be found out, in words; empty if it could. Then everything counts.
        gap: By how much predictions on what was cut out of a graph differ from those on the graph, at most.
    """

    hops: int | None = None
    local: bool = True
    together: str = "union"
    writes: tuple[str, ...] = ()
    random: float = 0.0
    failure: str = ""
    gap: float = 0.0

    @classmethod
    def usual(cls, level: str, takes_batch: bool) -> Locality:
        """Returns the assumption that messages along edges are all there is."""
        return cls(together="union" if level != "graph" else "batch" if takes_batch else "alone")

    def notes(self, name: str, num_hops: int) -> tuple[str, ...]:
        """Describes in words what a user should know about a model called ``name``, seen ``num_hops`` steps deep."""
        said = []
        if self.failure:
            said.append(
                f"What predictions of {name} depend on could not be found out ({self.failure}). It is taken to look at "
                "everything it is given: subgraphs are evaluated one at a time, which is slow and safe."
            )
        elif self.together == "alone" and not self.local:
            said.append(
                f"{name} looks at all nodes it is given and does not tell graphs apart by 'batch', so subgraphs are "
                "evaluated one at a time, which is slow."
            )
        if self.hops is not None and self.local and self.hops > num_hops:
            said.append(
                f"{name} depends on nodes {self.hops} steps away, but only {num_hops} are looked at. "
                "Leave 'num_hops' out."
            )
        if self.gap:
            said.append(
                f"{name} depends on more of the graph than is looked at: on that part, its predictions differ by up to "
                f"{self.gap:.2g} from those on the whole graph. Raise 'max_graph_nodes'."
            )
        if self.writes:
            said.append(f"{name} writes into its input ({', '.join(self.writes)}); it is given copies.")
        if self.random:
            said.append(
                f"{name} is random in evaluation mode: evaluated twice, its outputs differ by up to "
                f"{self.random:.2g}. Probabilities cannot be closer to the truth than that."
            )
        return tuple(said)
