"""The catalogue of motifs: parts that recur over many explanations, and what they mean to the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from torch import Tensor

from gflowexplainer.catalogue.candidates import Candidate, closed, find_candidates
from gflowexplainer.catalogue.canonical_form import CanonicalForm
from gflowexplainer.catalogue.matching import LabelledGraph, holds
from gflowexplainer.catalogue.rules import Presence, Rule, find_rules, measured
from gflowexplainer.drawing.motifs import motif_cards
from gflowexplainer.errors import ConfigError, check_counts
from gflowexplainer.explanation.explained import ExplainedDistribution
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.ranked import counted
from gflowexplainer.explanation.typed_explanation import TypedExplanation

Labels = Callable[[SubgraphExplanation], Sequence[str]] | Sequence[Sequence[str]] | None
_KINDS = 64
"""Different rows of features up to which they are labels; above, only structure counts."""
_USED = 6
_EXAMPLES = 5


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
        contrast: How much more often the class has it than others; 0 where that may be chance, 1 without others.
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
    contrast: float
    probability_with: float
    probability_without: float
    examples: tuple[tuple[int, tuple[Any, ...]], ...]

    def __len__(self) -> int:
        return len(self.form)

    @property
    def score(self) -> float:
        """What motifs of a class are ordered by: how much more the class has it than others, and how often shown."""
        return self.contrast * self.share**0.5

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
        labels = " " + ", ".join(self.form.labels) if any(self.form.labels) else ""
        return (
            f"motif {self.number}: {counted(len(self), 'node')}{labels}; support {self.support:.0%}, "
            f"in {self.present:.0%} of the graphs{other}; probability with only it {self.probability_with:.2f}, "
            f"without it {self.probability_without:.2f}"
        )


@dataclass(frozen=True, repr=False)
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
        """Returns which motifs lie in the graph of each explanation."""
        known, found = self.motifs, list[Presence]()
        for place, explanation in enumerate(_listed(explanations)):
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
            lines.append(f"{name} ({counted(self.num_explanations[label], 'explanation')})")
            lines += [f"  {motif}" for motif in found] or ["  nothing recurs"]
        return "\n".join([*lines, *map(str, self.rules)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Shows cards with pictures in a notebook."""
        return motif_cards(self)


def motifs(
    explanations: SubgraphExplanation | Sequence[SubgraphExplanation],
    *,
    labels: Labels = None,
    min_support: float = 0.05,
    top: int = 5,
) -> MotifCatalogue:
    """Finds what a model looks at: motifs that recur over many explanations, for each class.

    Explanations of all classes belong into one call: a motif counts by how much more often its class has it.

    Args:
        explanations: Explanations of one model, or a single one.
        labels: Labels of the nodes of each explanation's graph: a function of the explanation, or a list for each. By
            default the features where they are of few kinds, as colours or atoms are; otherwise only structure counts.
            In heterogeneous graphs, whose nodes stand behind each other type by type, they are the types.
        min_support: Share of a class's explanations below which a motif is left out.
        top: Motifs of a class at most.
    """
    found = _listed(explanations)
    if not 0 <= min_support <= 1:
        raise ConfigError(f"'min_support' must lie in [0, 1] (got {min_support!r}).")
    check_counts(top=top)
    models = {e._known.model for e in found if e._known.model}
    if len(models) > 1:
        raise ConfigError(
            f"These explanations are of {len(models)} different models. Make one catalogue for each of them."
        )
    reader = _GraphReader(labels, found)
    graphs = [reader(place, e) for place, e in enumerate(found)]
    classes = [e.explained_class for e in found]
    chosen = [c for label in _ordered(classes) for c in find_candidates(found, graphs, classes, label, min_support)]
    forms = list(dict.fromkeys(one.form for one in chosen))
    inside = {
        form: [holds(graph, form, at=e.explained_node) for graph, e in zip(graphs, found, strict=True)]
        for form in forms
    }
    made: dict[int | None, list[Motif]] = {label: [] for label in _ordered(classes)}
    for one in closed(chosen, inside):
        motif = _motif(one, found, graphs, classes, inside[one.form])
        if motif.support >= min_support:
            made[one.label].append(motif)
    numbered: dict[int | None, tuple[Motif, ...]] = {}
    number = 0
    for label, entries in made.items():
        # Where no motif tells the class from others, all scores are 0: then what is shown most goes first.
        best = sorted(entries, key=lambda m: (-m.score, -m.share, -len(m), m.form.labels, m.form.edges))[:top]
        numbered[label] = tuple(replace(motif, number=number + i) for i, motif in enumerate(best))
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


def _listed(explanations: Any) -> list[SubgraphExplanation]:
    """Returns explanations, or a single one, as a list; those of heterogeneous graphs in their flat form."""
    # An explanation is iterable too: over its fields.
    single = isinstance(explanations, ExplainedDistribution) or not isinstance(explanations, Iterable)
    given: list[Any] = [explanations] if single else list(explanations)
    if not given:
        raise ConfigError("There are no explanations to compare. Pass at least one.")
    found: list[SubgraphExplanation] = []
    edges: dict[tuple[int, ...], Tensor] = {}
    for one in given:
        if isinstance(one, TypedExplanation):
            flat = one.flat()
            # Explanations of one graph keep one tensor, by which it is known again.
            graph = tuple(id(one[key].edge_index) for key in one.edge_types)
            flat.edge_index = edges.setdefault(graph, flat.edge_index)
            found.append(flat)
        elif isinstance(one, SubgraphExplanation):
            found.append(one)
        else:
            raise ConfigError(
                f"Motifs are found in explanations that GFlowExplainer makes (got {type(one).__name__}). "
                "Pass a list of them."
            )
    return found


def _motif(
    one: Candidate,
    found: Sequence[SubgraphExplanation],
    graphs: Sequence[LabelledGraph],
    classes: Sequence[int | None],
    inside: Sequence[bool],
) -> Motif:
    """Measures a motif on the explanations and their graphs."""
    own = [place for place, c in enumerate(classes) if c == one.label]
    others = [place for place, c in enumerate(classes) if c != one.label]
    shown = 0
    for place in own:
        first = set(found[place].subgraphs[0].nodes)
        parts = {node for part in found[place].known_parts or () for node in part.nodes}
        at = found[place].explained_node
        shown += inside[place] and any(
            holds(graphs[place], form, at=at, among=nodes)
            for form in (one.form, *one.fragments)
            for nodes in (first, parts)
            if nodes
        )
    have, others_have = (sum(inside[place] for place in places) for places in (own, others))
    column = 0 if one.label is None else one.label
    with_it = [subgraph.prediction_only[column] for _, subgraph in one.uses[:50]]
    without = [subgraph.prediction_without[column] for _, subgraph in one.uses[:50]]
    examples = dict.fromkeys((place, _named(found[place], subgraph.nodes)) for place, subgraph in one.uses)
    return Motif(
        number=-1,
        label=one.label,
        form=one.form,
        share=one.share,
        support=shown / len(own),
        present=have / len(own),
        elsewhere=others_have / len(others) if others else None,
        contrast=_contrast(have, len(own), others_have, len(others)) if others else 1.0,
        probability_with=sum(with_it) / len(with_it),
        probability_without=sum(without) / len(without),
        examples=tuple(examples)[:_EXAMPLES],
    )


def _named(explanation: SubgraphExplanation, nodes: Sequence[int]) -> tuple[Any, ...]:
    """Returns the user's names of nodes: in a heterogeneous graph, type and id."""
    names = explanation._own.get("_names")
    return tuple(nodes) if names is None else tuple(map(names.node, nodes))


def _contrast(have: int, own: int, others_have: int, others: int) -> float:
    """Returns how much larger one share is than another; 0 where it is not by two standard errors.

    One graph with the motif and one without are added to either side for the error (Agresti and Caffo), so that a share
    of few graphs is never certain.
    """
    larger = have / own - others_have / others
    p, q = (have + 1) / (own + 2), (others_have + 1) / (others + 2)
    error = (p * (1 - p) / (own + 2) + q * (1 - q) / (others + 2)) ** 0.5
    return larger if larger >= 2 * error else 0.0


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
        relations = explanation._own.get("_relations") or repeat("")
        for (u, v), relation in zip(explanation.edge_index.t().tolist(), relations, strict=False):
            if u != v:
                # Both directions of a relation are one edge, with the first name.
                neighbors[u][v] = neighbors[v][u] = neighbors[u].get(v, relation)
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
        if "_types" in explanation._own:
            return explanation._own["_types"]
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
