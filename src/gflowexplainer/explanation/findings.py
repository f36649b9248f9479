"""What is found out about a prediction on its model, as plain values: parts, counterfactual, features, certificate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, TypeVar, overload

from gflowexplainer.explanation.ranked import Names, Prediction, class_of, counted, named, shown

NOT_ASKED = "It has not been asked for; ask for it before the explanation is stored or shown."
"""The reason of a certificate that was never asked for."""

Found = TypeVar("Found", bound="Finding")


class Finding:
    """Plain values that are stored with an explanation; printed as sentences."""

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls: type[Found], values: dict[str, Any]) -> Found:
        """Reads what :meth:`to_dict` returned, also after JSON has made lists of tuples."""
        return cls(**{name: frozen(value) for name, value in values.items()})

    def renamed(self: Found, names: Names) -> Found:
        """Returns the same with the user's names of nodes."""
        return self


@dataclass(frozen=True, repr=False)
class Certificate(Finding):
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


@dataclass(frozen=True, repr=False)
class Part(Finding):
    """One connected part.

    Attributes:
        nodes: Its nodes by their ids in the user's graph, in a heterogeneous one ``(type, id)``.
        prediction_only: What the model predicts with only it.
        prediction_without: What the model predicts with all but it.
    """

    nodes: tuple[Any, ...]
    prediction_only: Prediction
    prediction_without: Prediction

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        nodes = ", ".join(map(named, self.nodes))
        only, without = shown(self.prediction_only), shown(self.prediction_without)
        return f"{counted(len(self), 'node')} {nodes}: with only this {only}, without it {without}"


@dataclass(frozen=True, repr=False)
class Parts(Finding, Sequence[Part]):
    """The connected parts that together preserve a prediction, most needed first; one where one does.

    Attributes:
        parts: The parts.
        prediction_only: What the model predicts with only all of them.
        prediction_without: What the model predicts with none of them.
        preserved: Share of the prediction that is preserved with only all of them: its probability as a share of that
            on the whole graph, at most 1; of a value, 1 less the share of the way to it that is missing.
        preserved_by_random: What random connected subgraphs of the same sizes preserve on average: elsewhere in the
            graph, or anywhere in one that has no room elsewhere. ``None`` where there is but one node, or a link only.
        holds: Whether the parts preserve the prediction, and better than random ones do.
    """

    parts: tuple[Part, ...]
    prediction_only: Prediction
    prediction_without: Prediction
    preserved: float
    preserved_by_random: float | None
    holds: bool = field(default=True)

    @overload
    def __getitem__(self, index: int) -> Part: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Part, ...]: ...

    def __getitem__(self, index: int | slice) -> Part | tuple[Part, ...]:
        return self.parts[index]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The nodes of all parts."""
        return tuple(node for part in self.parts for node in part.nodes)

    def __str__(self) -> str:
        return "\n".join([*(f"{number}. {part}" for number, part in enumerate(self, start=1)), f"{self.verdict()}."])

    def verdict(self) -> str:
        """Says in a sentence whether the parts hold the prediction, with the two numbers."""
        kept = f"{100 * self.preserved:.0f} % of the prediction is preserved with only what is shown"
        if self.preserved_by_random is None:
            return f"{kept}; there is nothing else in the graph to compare it with"
        random = f"{100 * self.preserved_by_random:.0f} % with random parts of the same size"
        if self.holds:
            return f"{kept}, {random}"
        return f"Nothing found holds this prediction better than random parts do: {kept}, {random}"

    def to_dict(self) -> dict[str, Any]:
        """See :class:`Finding`."""
        return {**vars(self), "parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Parts:
        """See :class:`Finding`."""
        plain: dict[str, Any] = {name: frozen(value) for name, value in values.items()}
        return cls(**plain | {"parts": tuple(Part.from_dict(part) for part in values["parts"])})

    def renamed(self, names: Names) -> Parts:
        """See :class:`Finding`."""
        return replace(
            self, parts=tuple(replace(part, nodes=tuple(map(names.node, part.nodes))) for part in self.parts)
        )


@dataclass(frozen=True, repr=False)
class Counterfactual(Finding):
    """A small set of nodes or edges without which the model predicts something else. The model has said so.

    Attributes:
        by: ``"nodes"`` or ``"edges"``: what is removed.
        nodes: The removed nodes, or the ends of the removed edges, by their ids in the user's graph.
        edges: The removed edges as pairs of nodes, smaller id first, each standing for both directions; empty where
            nodes are removed.
        prediction: What the model predicts without them: class probabilities, or values for regression.
        before: What it predicts on the whole graph.
        minimal: Whether exhaustive search has shown that no smaller set does.
        connected: Whether what is removed hangs together.
        alternatives: Further sets of the same size that were found, as nodes or as edges.
        evaluations: Subgraphs that the model was evaluated on for it.
    """

    by: str
    nodes: tuple[Any, ...]
    edges: tuple[tuple[Any, Any], ...]
    prediction: Prediction
    before: Prediction
    minimal: bool
    connected: bool
    alternatives: tuple[tuple[Any, ...], ...] = ()
    evaluations: int = 0

    def __len__(self) -> int:
        """How many nodes, or edges, are removed."""
        return len(self.removed)

    @property
    def removed(self) -> tuple[Any, ...]:
        """The nodes, or edges, that are removed."""
        return self.edges if self.by == "edges" else self.nodes

    @property
    def predicted_class(self) -> int | None:
        """The class predicted without them; ``None`` for regression."""
        return class_of(self.prediction)

    @property
    def together(self) -> tuple[Any, ...]:
        """The nodes, or edges, of this set and of all :attr:`alternatives`, each once."""
        return tuple(dict.fromkeys(thing for one in (self.removed, *self.alternatives) for thing in one))

    def __str__(self) -> str:
        things = ("-".join(map(named, thing)) if self.by == "edges" else named(thing) for thing in self.removed)
        noun = self.by[:-1] if len(self) == 1 else self.by
        proof = "no smaller set does" if self.minimal else "smaller sets were not all tried"
        says = f"{shown(self.prediction)} instead of {shown(self.before)}"
        return f"Without {noun} {', '.join(things)} the model says {says}; {proof}."

    def renamed(self, names: Names) -> Counterfactual:
        """See :class:`Finding`."""
        name = names.node

        def pairs(edges: Sequence[tuple[Any, Any]]) -> tuple[Any, ...]:
            return tuple((name(u), name(v)) for u, v in edges)

        others = (pairs(other) if self.by == "edges" else tuple(map(name, other)) for other in self.alternatives)
        return replace(self, nodes=tuple(map(name, self.nodes)), edges=pairs(self.edges), alternatives=tuple(others))


@dataclass(frozen=True, repr=False)
class FeatureContributions(Finding):
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
        types: Of a heterogeneous graph, the types of nodes whose features stand behind each other in ``columns``, each
            with their number.
    """

    of: str
    nodes: tuple[Any, ...]
    columns: tuple[float, ...]
    rows: tuple[tuple[Any, int, float], ...]
    error: float
    whole: float
    bare: float
    evaluations: int
    types: tuple[tuple[str, int], ...] = ()

    @property
    def exact(self) -> bool:
        """Whether every combination of features was evaluated."""
        return self.error == 0

    def top(self, k: int = 5) -> list[tuple[int, float]]:
        """Returns the ``k`` features that count most, with their contributions; those without any are left out."""
        order = sorted(range(len(self.columns)), key=lambda f: (-abs(self.columns[f]), f))
        return [(f, self.columns[f]) for f in order[:k] if self.columns[f] != 0]

    def name(self, feature: int) -> str:
        """Names a feature as a sentence does: ``"x[3]"``, in a heterogeneous graph ``"paper x[3]"``."""
        for node_type, width in self.types:
            if feature < width:
                return f"{node_type} {self.of}[{feature}]"
            feature -= width
        return f"{self.of}[{feature}]"

    def renamed(self, names: Names) -> FeatureContributions:
        """See :class:`Finding`."""
        rows = tuple((names.node(node), feature, value) for node, feature, value in self.rows)
        return replace(self, nodes=tuple(map(names.node, self.nodes)), rows=rows)

    def __str__(self) -> str:
        listed = ", ".join(f"{self.name(feature)} {value:+.3f}" for feature, value in self.top()) or "none"
        sure = "exact Shapley values" if self.exact else f"Shapley values, standard error {self.error:.3f}"
        return f"Features that count most: {listed}; {sure}."

    def bars(self, names: list[str] | None = None, k: int = 10) -> str:
        """Draws the ``k`` features that count most as a bar chart, an SVG; ``names`` are those of all features."""
        found = self.top(k)
        largest = max((abs(value) for _, value in found), default=1.0)
        lines = []
        for place, (feature, value) in enumerate(found):
            label = escape(names[feature] if names else self.name(feature))
            width, y = 140 * abs(value) / largest, 18 * place
            begin, colour = (220 - width, "#2563a8") if value < 0 else (220, "#c2410c")
            lines.append(
                f'<text x="70" y="{y + 12}" text-anchor="end" font-size="11" fill="currentColor">{label}</text>'
                f'<rect x="{begin:.1f}" y="{y + 2}" width="{width:.1f}" height="13" fill="{colour}"/>'
                f'<text x="368" y="{y + 12}" font-size="11" fill="currentColor">{value:+.3f}</text>'
            )
        height = 18 * max(len(found), 1)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="420" height="{height}" role="img" '
            f'aria-label="Contributions of features">{"".join(lines)}</svg>'
        )

    def _repr_html_(self) -> str:
        """Shows the bar chart in a notebook."""
        return self.bars()


def frozen(value: Any) -> Any:
    """Turns lists, as JSON has them, into tuples, also inside one another."""
    return tuple(frozen(entry) for entry in value) if isinstance(value, list | tuple) else value
