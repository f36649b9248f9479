"""The catalogue of motifs: parts that recur over many explanations, and what they mean to the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gflowexplainer.catalogue.canonical_form import CanonicalForm
from gflowexplainer.catalogue.matching import LabelledGraph, holds
from gflowexplainer.catalogue.rules import Presence, Rule, find_rules, measured
from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.explanation import SubgraphExplanation

Labels = Callable[[SubgraphExplanation], Sequence[str]] | Sequence[Sequence[str]] | None
_KINDS = 64
"""Different rows of features up to which they are labels; above, only structure counts."""
_LISTED = 5
_CANDIDATES = 40
_USED = 6
_EXAMPLES = 5
_SHOWN_WHOLE = 0.25
"""How often a motif must be shown, as a share of how often a fragment of it is, for the fragment to count for it."""


@dataclass(frozen=True)
class Motif:
    """A part that recurs in the explanations of one class.

    Attributes:
        number: Its number in the catalogue, by which rules name it.
        label: The class; ``None`` for regression.
        form: The motif itself: labels of its nodes, and edges.
        share: Mean weight of this motif, and of fragments that only it has, among the first subgraphs.
        support: Share of the class's explanations whose first subgraph, or parts, hold it or such a fragment.
        present: Share of the class's graphs (at node level: computation graphs, at the explained node) that hold it.
        elsewhere: The same of the other classes; ``None`` where there are none.
        probability_with: Mean probability of the class, or value, with only it.
        probability_without: The same without it.
        examples: Positions of explanations that show exactly it, with its nodes there.
    """

    number: int
    label: int | None
    form: CanonicalForm
    share: float
    support: float
    present: float
    elsewhere: float | None
    probability_with: float
    probability_without: float
    examples: tuple[tuple[int, tuple[Any, ...]], ...]

    def __len__(self) -> int:
        return len(self.form)

    @property
    def score(self) -> float:
        """What motifs of a class are ordered by: how much more the class has it than others, and how often shown."""
        contrast = 1.0 if self.elsewhere is None else max(self.present - self.elsewhere, 0.0)
        return contrast * self.share**0.5

    def smiles(self) -> str:
        """Writes a motif whose labels are elements as canonical SMILES; edge labels 1, 2, 3 and 1.5 are bond orders."""
        try:
            from rdkit import Chem
        except ImportError as error:
            raise ConfigError(
                "'smiles' needs rdkit. Install it with 'pip install gflowexplainer[molecules]'."
            ) from error
        orders = {"": 1.0, "1": 1.0, "2": 2.0, "3": 3.0, "1.5": 1.5}
        kinds = {1.0: Chem.BondType.SINGLE, 2.0: Chem.BondType.DOUBLE, 3.0: Chem.BondType.TRIPLE}
        molecule = Chem.RWMol()
        table = Chem.GetPeriodicTable()
        for symbol in self.form.labels:
            try:
                table.GetAtomicNumber(symbol)
            except RuntimeError as error:
                raise ConfigError(f"The label {symbol!r} is no element. Pass elements as 'labels'.") from error
            atom = Chem.Atom(symbol)
            atom.SetNoImplicit(True)
            molecule.AddAtom(atom)
        for i, j, label in self.form.edges:
            order = orders.get(label, 1.0)
            molecule.AddBond(i, j, kinds.get(order, Chem.BondType.AROMATIC))
        return Chem.MolToSmiles(molecule)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "form"}
        return plain | {"labels": self.form.labels, "edges": self.form.edges, "score": self.score}

    def __str__(self) -> str:
        other = "" if self.elsewhere is None else f" (other classes {self.elsewhere:.0%})"
        return (
            f"motif {self.number}: {len(self)} nodes {', '.join(self.form.labels)}; support {self.support:.0%}, "
            f"in {self.present:.0%} of the graphs{other}; probability with only it {self.probability_with:.2f}, "
            f"without it {self.probability_without:.2f}"
        )


@dataclass(frozen=True)
class MotifCatalogue:
    """What a model looks at over many explanations.

    Attributes:
        by_class: Motifs of each class, the most important first.
        rules: One rule for every class, of presence and absence.
        num_explanations: Explanations of each class.
        label_graph: Reads the graph of an explanation with the labels of this catalogue.
    """

    by_class: dict[int | None, tuple[Motif, ...]]
    rules: tuple[Rule, ...]
    num_explanations: dict[int | None, int]
    label_graph: Callable[[int, SubgraphExplanation], LabelledGraph]

    @property
    def motifs(self) -> tuple[Motif, ...]:
        """All motifs by number."""
        return tuple(sorted((m for found in self.by_class.values() for m in found), key=lambda m: m.number))

    def presence(self, explanations: Sequence[SubgraphExplanation]) -> list[Presence]:
        """Says which motifs lie in the graph of each explanation."""
        known, found = self.motifs, list[Presence]()
        for place, explanation in enumerate(explanations):
            graph = self.label_graph(place, explanation)
            found.append({m.number: holds(graph, m.form, at=explanation.explained_node) for m in known})
        return found

    def check_rules(self, explanations: Sequence[SubgraphExplanation]) -> list[Rule]:
        """Measures the rules on other explanations, such as held-out graphs of the same model."""
        presences = self.presence(explanations)
        classes = [_class_of(e) for e in explanations]
        return [measured(rule.label, rule.literals, presences, classes) for rule in self.rules]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return {
            "motifs": [motif.to_dict() for motif in self.motifs],
            "rules": [rule.to_dict() for rule in self.rules],
            "num_explanations": {str(label): count for label, count in self.num_explanations.items()},
        }

    def __str__(self) -> str:
        lines = []
        for label, found in self.by_class.items():
            name = "all explanations" if label is None else f"class {label}"
            lines.append(f"{name} ({self.num_explanations[label]} explanations)")
            lines += [f"  {motif}" for motif in found] or ["  nothing recurs"]
        return "\n".join([*lines, *map(str, self.rules)])


def motifs(
    explanations: Sequence[SubgraphExplanation],
    *,
    labels: Labels = None,
    min_support: float = 0.05,
    top: int = 5,
) -> MotifCatalogue:
    """Finds what a model looks at: motifs that recur over many explanations, for each class.

    Explanations of all classes belong into one call: a motif counts by how much more often its class has it.

    Args:
        explanations: Explanations of one model.
        labels: Labels of the nodes of each explanation's graph: a function of the explanation, or a list for each. By
            default the features where they are of few kinds, as colours or atoms are; otherwise only structure counts.
        min_support: Share of a class's explanations below which a motif is left out.
        top: Motifs of a class at most.
    """
    found = list(explanations)
    if not found:
        raise ConfigError("There are no explanations to compare. Pass at least one.")
    if not 0 <= min_support <= 1:
        raise ConfigError(f"'min_support' must lie in [0, 1] (got {min_support!r}).")
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise ConfigError(f"'top' must be a whole number of at least 1 (got {top!r}).")
    models = {e.studies.model for e in found if e.studies.model}
    if len(models) > 1:
        raise ConfigError(
            f"These explanations are of {len(models)} different models. Make one catalogue for each of them."
        )
    reader = _GraphReader(labels, found)
    graphs = [reader(place, e) for place, e in enumerate(found)]
    classes = [e.explained_class for e in found]
    chosen = [c for label in _ordered(classes) for c in _candidates(found, graphs, classes, label, min_support)]
    forms = list(dict.fromkeys(form for _, form, _, _ in chosen))
    inside = {
        form: [holds(graph, form, at=e.explained_node) for graph, e in zip(graphs, found, strict=True)]
        for form in forms
    }
    made: dict[int | None, list[Motif]] = {label: [] for label in _ordered(classes)}
    for (label, form, share, uses), fragments in _closed(chosen, inside):
        motif = _motif(label, form, fragments, share, uses, found, graphs, classes, inside[form])
        if motif.support >= min_support:
            made[label].append(motif)
    numbered: dict[int | None, tuple[Motif, ...]] = {}
    number = 0
    for label, entries in made.items():
        # Where no motif tells the class from others, all scores are 0: then what is shown most goes first.
        best = sorted(entries, key=lambda m: (-m.score, -m.share, -len(m), m.form.labels, m.form.edges))[:top]
        numbered[label] = tuple(_numbered(motif, number + i) for i, motif in enumerate(best))
        number += len(best)
    catalogue = MotifCatalogue(numbered, (), {label: classes.count(label) for label in numbered}, reader.again)
    used = [motif.number for entries in numbered.values() for motif in entries[:_USED]]
    if None in classes:
        return catalogue
    presences = [
        {m.number: inside[m.form][place] for entries in numbered.values() for m in entries}
        for place in range(len(found))
    ]
    rules = find_rules(presences, [_class_of(e) for e in found], used)
    return MotifCatalogue(numbered, tuple(rules), catalogue.num_explanations, reader.again)


Candidate = tuple[int | None, CanonicalForm, float, list[tuple[int, Any]]]
"""Class, motif, mean probability, and where it is shown: explanation and subgraph."""


def _candidates(
    found: Sequence[SubgraphExplanation],
    graphs: Sequence[LabelledGraph],
    classes: Sequence[int | None],
    label: int | None,
    min_support: float,
) -> Iterable[Candidate]:
    """Groups the first subgraphs of a class's explanations by their canonical forms."""
    own = [place for place, c in enumerate(classes) if c == label]
    mass: dict[CanonicalForm, float] = defaultdict(float)
    uses: dict[CanonicalForm, list[tuple[int, Any]]] = defaultdict(list)
    for place in own:
        listed = _shown(found[place])
        total = sum(weight for _, weight in listed) or 1.0
        for subgraph, weight in listed:
            form = graphs[place].form(subgraph.nodes)
            mass[form] += weight / total / len(own)
            uses[form].append((place, subgraph))
    best = sorted(mass, key=lambda form: (-mass[form], form.labels, form.edges))[:_CANDIDATES]
    few = 2 if len(own) > 2 or min_support * len(own) >= 2 else 1
    return [(label, form, mass[form], uses[form]) for form in best if len({p for p, _ in uses[form]}) >= few]


def _closed(
    chosen: Sequence[Candidate], inside: dict[CanonicalForm, list[bool]]
) -> list[tuple[Candidate, list[CanonicalForm]]]:
    """Counts a fragment for the whole: a motif that lies in a larger one, and in no other graphs than that.

    An explanation that shows a motif but for one node shows something that only the motif has. The larger one must be
    shown often enough by itself. Returns what is left, each with its fragments.
    """
    left: list[tuple[Candidate, list[CanonicalForm]]] = []
    for label, form, share, uses in sorted(chosen, key=lambda c: -len(c[1])):
        for place, ((of, whole, more, places), fragments) in enumerate(left):
            same = of == label and len(whole) > len(form) and inside[whole] == inside[form]
            if same and more >= _SHOWN_WHOLE * share and holds(LabelledGraph(whole.labels, whole.neighbors()), form):
                left[place] = ((of, whole, more + share, places), [*fragments, form])
                break
        else:
            left.append(((label, form, share, uses), []))
    return left


def _shown(explanation: SubgraphExplanation) -> list[tuple[Any, float]]:
    """Returns the parts of an explanation, else its first subgraphs, with their weights: the first counts for half."""
    parts = explanation.known_parts
    if parts is not None and len(parts) > 1:
        return [(part, 1.0) for part in parts]
    listed = explanation.subgraphs[:_LISTED]
    rest = sum(s.probability for s in listed) or 1.0
    return [(s, s.probability / rest + (1.0 if i == 0 else 0.0)) for i, s in enumerate(listed)]


def _motif(
    label: int | None,
    form: CanonicalForm,
    fragments: Sequence[CanonicalForm],
    share: float,
    uses: Sequence[tuple[int, Any]],
    found: Sequence[SubgraphExplanation],
    graphs: Sequence[LabelledGraph],
    classes: Sequence[int | None],
    inside: Sequence[bool],
) -> Motif:
    """Measures a motif on the explanations and their graphs."""
    own = [place for place, c in enumerate(classes) if c == label]
    others = [place for place, c in enumerate(classes) if c != label]
    shown = 0
    for place in own:
        parts = found[place].known_parts or found[place].subgraphs[:1]
        nodes = {node for part in parts for node in part.nodes}
        at = found[place].explained_node
        shown += inside[place] and any(holds(graphs[place], one, at=at, among=nodes) for one in (form, *fragments))
    column = 0 if label is None else label
    with_it = [subgraph.prediction_only[column] for _, subgraph in uses[:50]]
    without = [subgraph.prediction_without[column] for _, subgraph in uses[:50]]
    return Motif(
        number=-1,
        label=label,
        form=form,
        share=share,
        support=shown / len(own),
        present=sum(inside[place] for place in own) / len(own),
        elsewhere=sum(inside[place] for place in others) / len(others) if others else None,
        probability_with=sum(with_it) / len(with_it),
        probability_without=sum(without) / len(without),
        examples=tuple((place, tuple(subgraph.nodes)) for place, subgraph in uses[:_EXAMPLES]),
    )


def _numbered(motif: Motif, number: int) -> Motif:
    return Motif(**{**{name: getattr(motif, name) for name in motif.__dataclass_fields__}, "number": number})


def _ordered(classes: Sequence[int | None]) -> list[int | None]:
    return sorted(set(classes), key=lambda c: -1 if c is None else c)


def _class_of(explanation: SubgraphExplanation) -> int:
    """Returns the class that the model predicts on the whole graph, or the explained one where that is not known."""
    whole = explanation.whole_prediction
    if whole is not None and len(whole) > 1:
        return max(range(len(whole)), key=whole.__getitem__)
    assert explanation.explained_class is not None
    return explanation.explained_class


class _GraphReader:
    """Reads the graph of an explanation with labels; graphs that explanations share are read once."""

    def __init__(self, labels: Labels, explanations: Sequence[SubgraphExplanation]) -> None:
        self._given = labels
        if labels is not None and not callable(labels) and len(labels) != len(explanations):
            raise ConfigError(
                f"'labels' has {len(labels)} entries for {len(explanations)} explanations. Pass one each."
            )
        self._kinds = _feature_kinds(explanations) if labels is None else None
        self._known: dict[tuple[int, int], tuple[Any, LabelledGraph]] = {}

    def __call__(self, place: int, explanation: SubgraphExplanation) -> LabelledGraph:
        given = self._given
        shared = given is None
        key = (id(explanation.edge_index), id(explanation.x) if "x" in explanation else 0)
        if shared and key in self._known:
            return self._known[key][1]
        number = explanation._num_nodes()
        if given is None:
            texts = self._features(explanation, number)
        else:
            texts = [str(t) for t in (given(explanation) if callable(given) else given[place])]
            if len(texts) != number:
                raise ConfigError(f"'labels' has {len(texts)} entries for a graph of {number} nodes. Pass one each.")
        neighbors: list[dict[int, str]] = [{} for _ in range(number)]
        for u, v in explanation.edge_index.t().tolist():
            if u != v:
                neighbors[u][v] = neighbors[v][u] = ""
        graph = LabelledGraph(texts, neighbors)
        if shared:
            self._known[key] = ((explanation.edge_index, explanation.get("x")), graph)  # kept, so that no id is reused
        return graph

    def again(self, place: int, explanation: SubgraphExplanation) -> LabelledGraph:
        """Reads the graph of an explanation that was not there when the catalogue was made."""
        if self._given is not None and not callable(self._given):
            raise ConfigError("Labels were given as a list, so those of other graphs are not known. Pass a function.")
        return self(place, explanation)

    def _features(self, explanation: SubgraphExplanation, number: int) -> list[str]:
        if self._kinds is None:
            return [""] * number
        return [_kind(row) for row in explanation.x.tolist()]


def _feature_kinds(explanations: Sequence[SubgraphExplanation]) -> set[str] | None:
    """Returns the kinds of feature rows where there are several, but few; ``None`` where features are no labels."""
    kinds: set[str] = set()
    seen: set[int] = set()
    for explanation in explanations:
        x: Tensor | None = explanation.get("x")
        if x is None:
            return None
        if id(x) not in seen:
            seen.add(id(x))
            kinds.update(_kind(row) for row in x.unique(dim=0).tolist())
        if len(kinds) > _KINDS:
            return None
    return kinds if len(kinds) > 1 else None


def _kind(row: Sequence[float]) -> str:
    """Writes a row of features as a label: the column of a one-hot row, otherwise its values."""
    hot = [i for i, value in enumerate(row) if value != 0]
    return str(hot[0]) if len(hot) == 1 and row[hot[0]] == 1 else ",".join(f"{value:g}" for value in row)
