"""Contributions of features: what each feature inside the explained subgraph adds to the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True)
class FeatureContributions:
    """Shapley values of features, measured on the model.

    All values together are what the prediction loses when every feature inside the subgraph takes its reference value.

    Attributes:
        of: ``"x"``, or the name of another argument of the model.
        nodes: The explained subgraph.
        columns: Contribution of each feature ``0 .. F - 1``, all nodes or edges of the subgraph together.
        rows: Where single entries were measured, the contribution of each entry ``(node or edge id, feature)``.
        error: Largest standard error of a contribution; 0 where they are exact.
        whole: Probability of the explained class, or the value, as it is.
        bare: The same with every feature inside the subgraph at its reference value.
        evaluations: Times that the model was evaluated.
    """

    of: str
    nodes: tuple[Any, ...]
    columns: tuple[float, ...]
    rows: tuple[tuple[int, int, float], ...]
    error: float
    whole: float
    bare: float
    evaluations: int

    @property
    def exact(self) -> bool:
        """Whether every combination of features was evaluated."""
        return self.error == 0

    def top(self, k: int = 5) -> list[tuple[int, float]]:
        """Returns the ``k`` features that count most, with their contributions; those without any are left out."""
        order = sorted(range(len(self.columns)), key=lambda f: (-abs(self.columns[f]), f))
        return [(f, self.columns[f]) for f in order[:k] if self.columns[f] != 0]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> FeatureContributions:
        """Reads what :meth:`to_dict` gave, also after JSON has made lists of tuples."""
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return cls(**plain | {"rows": tuple((int(r), int(f), float(v)) for r, f, v in values["rows"])})

    def bars(self, names: list[str] | None = None, k: int = 10) -> str:
        """Draws the ``k`` features that count most as a bar chart, an SVG; ``names`` are those of all features."""
        shown = self.top(k)
        largest = max((abs(value) for _, value in shown), default=1.0)
        lines = []
        for place, (feature, value) in enumerate(shown):
            label = escape(names[feature] if names else f"{self.of}[{feature}]")
            width, y = 140 * abs(value) / largest, 18 * place
            begin, colour = (220 - width, "#b2182b") if value < 0 else (220, "#2166ac")
            lines.append(
                f'<text x="70" y="{y + 12}" text-anchor="end" font-size="11">{label}</text>'
                f'<rect x="{begin:.1f}" y="{y + 2}" width="{width:.1f}" height="13" fill="{colour}"/>'
                f'<text x="368" y="{y + 12}" font-size="11">{value:+.3f}</text>'
            )
        height = 18 * max(len(shown), 1)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="420" height="{height}" role="img" '
            f'aria-label="Contributions of features">{"".join(lines)}</svg>'
        )

    def _repr_html_(self) -> str:
        """Shows the bar chart in a notebook."""
        return self.bars()
