"""What an explanation says, as plain values: the subgraphs in order, and how they were found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.certificate import Certificate, PendingCertificate
from gflowexplainer.explanation.parts import NodeName, Parts, Prediction, frozen


class SubgraphPredictions:
    """What the model predicts with only, and without, each of many subgraphs: computed when first looked at, at once.

    Args:
        compute: Evaluates the model on all of them: with only each, or, if it is called with ``True``, without each.
    """

    def __init__(self, compute: Callable[[bool], Sequence[Sequence[float]]]) -> None:
        self._compute = compute

    @cached_property
    def only(self) -> list[Prediction]:
        """What the model predicts with only each subgraph."""
        return [tuple(row) for row in self._compute(False)]

    @cached_property
    def without(self) -> list[Prediction]:
        """What the model predicts with all but each subgraph."""
        return [tuple(row) for row in self._compute(True)]

    @classmethod
    def known(cls, only: Sequence[Prediction], without: Sequence[Prediction]) -> SubgraphPredictions:
        """Holds predictions that are known already."""
        return cls(lambda gone: without if gone else only)

    def __reduce__(self) -> tuple[Any, ...]:
        return SubgraphPredictions.known, (self.only, self.without)


@dataclass(frozen=True, repr=False)
class RankedSubgraph:
    """One connected subgraph of an explanation.

    Attributes:
        nodes: Its nodes by their ids in the user's graph, in a heterogeneous one ``(type, id)``; the explained one, or
            both ends of a link, first, then the most probable first.
        probability: Its probability within the explanation.
        reward: How well it preserves the prediction: the bare reward, without exponent.
        predictions: What the model predicts with and without it and others, computed when it is looked at.
        row: Its place there.
    """

    nodes: tuple[Any, ...]
    probability: float
    reward: float
    predictions: SubgraphPredictions = field(repr=False, compare=False)
    row: int = field(default=0, repr=False, compare=False)

    @classmethod
    def of(
        cls, nodes: Sequence[NodeName], probability: float, reward: float, only: Prediction, without: Prediction
    ) -> RankedSubgraph:
        """Makes one whose predictions, with ``only`` it and ``without`` it, are known."""
        return cls(tuple(nodes), probability, reward, SubgraphPredictions.known([tuple(only)], [tuple(without)]))

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(nodes={self.nodes}, probability={self.probability:.3f}, reward={self.reward:.3f})"
        )

    @property
    def prediction_only(self) -> Prediction:
        """What the model predicts with only it: class probabilities, or values for regression.

        "Only" means that every other node is removed from the graph, with its edges: the model is called on the
        subgraph that the nodes induce, with their rows of every argument. The model is evaluated when this is first
        looked at, for all explanations of the same call at once.
        """
        return self.predictions.only[self.row]

    @property
    def prediction_without(self) -> Prediction:
        """What the model predicts without it: its nodes are removed from the whole graph, with their edges.

        The explained node always stays. Of a graph that loses every node, the first one stays, without edges.
        See :attr:`prediction_only`.
        """
        return self.predictions.without[self.row]

    @property
    def class_only(self) -> int | None:
        """The class predicted with only it; ``None`` for regression."""
        return class_of(self.prediction_only)

    @property
    def class_without(self) -> int | None:
        """The class predicted without it; ``None`` for regression."""
        return class_of(self.prediction_without)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold, predictions included."""
        names = ("nodes", "probability", "reward", "prediction_only", "prediction_without")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class RankedPath:
    """One path between both ends of an explained link.

    Attributes:
        nodes: Its nodes from the first end to the second.
        edges: The edge of each step; one that runs along the path where there is one, else one against it.
        probability: Probability that a subgraph of the explanation holds it.
    """

    nodes: tuple[Any, ...]
    edges: tuple[Any, ...]
    probability: float

    def __len__(self) -> int:
        return len(self.edges)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return {"nodes": self.nodes, "edges": self.edges, "probability": self.probability}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RankedPath:
        """Reads what :meth:`to_dict` gave."""
        return cls(frozen(values["nodes"]), frozen(values["edges"]), values["probability"])


STORED_PATHS = 100
"""Paths of a link that are stored with an explanation."""


@dataclass(frozen=True)
class SubgraphDistribution:
    """What an explanation knows beside its masks.

    Attributes:
        rank: Lists the different subgraphs among the samples, the most probable first; called once.
        node: The explained node; ``None`` at graph level.
        num_samples: Particles of each size, or subgraphs that were sampled.
        error: How far the probabilities may be off, in total variation; 0 where they are exact.
        certificate: The certificate, perhaps still to be computed.
        left_out: Nodes of the computation graph that were left out because there were too many.
        prediction_kept: What the model predicts where these are missing; ``None`` if there are none.
        node_type: In a heterogeneous graph, the type of the explained node; ``None`` otherwise.
        graph: Position of the explained graph among several; ``None`` if no graph, or the only one, is explained.
        link: Both ends of the explained link; ``None`` if none is explained.
        connected: Whether subgraphs are connected; see :attr:`SubgraphExplanation.connected`.
        find_paths: Lists the best paths between both ends of the link, up to a number of them.
        find_parts: Finds the parts; called once, when they are wanted.
        doubt: Says what else speaks against the explanation; called once, when it is wanted.
    """

    rank: Callable[[], Sequence[RankedSubgraph]] = field(repr=False)
    node: int | None
    num_samples: int
    error: float
    certificate: PendingCertificate
    left_out: int = 0
    prediction_kept: Prediction | None = None
    node_type: str | None = None
    graph: int | None = None
    link: tuple[NodeName, NodeName] | None = None
    connected: bool = True
    find_paths: Callable[[int], Sequence[RankedPath]] = field(default=lambda _: (), repr=False)
    find_parts: Callable[[], Parts] | None = field(default=None, repr=False)
    doubt: Callable[[], Sequence[str]] = field(default=tuple, repr=False)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the explanation, in words."""
        return (*filter(None, [self.bound_note()]), *self.doubt())

    @cached_property
    def subgraphs(self) -> tuple[RankedSubgraph, ...]:
        """The different subgraphs among the samples, the most probable first."""
        return tuple(self.rank())

    @cached_property
    def parts(self) -> Parts:
        """The connected parts that together preserve the prediction."""
        if self.find_parts is None:
            raise ConfigError(
                "The parts of this explanation were not looked at before it was sent to another process, and the model "
                "is not there. Look at 'parts' first."
            )
        return self.find_parts()

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold; of a certificate that was not computed, that it was not."""
        names = ("node", "num_samples", "error", "left_out", "prediction_kept")
        plain = {name: getattr(self, name) for name in names}
        if self.node_type is not None:
            plain["node_type"] = self.node_type
        if self.graph is not None:
            plain["graph"] = self.graph
        if self.link is not None:
            paths = [path.to_dict() for path in self.find_paths(STORED_PATHS)]
            plain |= {"link": self.link, "connected": self.connected, "paths": paths}
        known = self.certificate.known.to_dict()
        parts = None if self.find_parts is None else self.parts.to_dict()
        doubts = [said for said in self.warnings if said != self.bound_note()]
        listed = {"subgraphs": [s.to_dict() for s in self.subgraphs], "certificate": known}
        return plain | listed | {"parts": parts, "doubts": doubts}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> SubgraphDistribution:
        """Reads what :meth:`to_dict` gave."""
        lazy = ("subgraphs", "paths", "parts", "doubts")
        rest: dict[str, Any] = {name: frozen(v) for name, v in values.items() if name not in lazy}
        entries, parts = values["subgraphs"], values.get("parts")
        paths = [RankedPath.from_dict(entry) for entry in values.get("paths", ())]
        found = None if parts is None else Parts.from_dict(parts)
        predictions = SubgraphPredictions.known(
            [tuple(entry["prediction_only"]) for entry in entries],
            [tuple(entry["prediction_without"]) for entry in entries],
        )
        subgraphs = [
            RankedSubgraph(frozen(entry["nodes"]), entry["probability"], entry["reward"], predictions, row)
            for row, entry in enumerate(entries)
        ]
        certificate = PendingCertificate.computed(Certificate(**rest.pop("certificate")))
        doubts = tuple(values.get("doubts", ()))
        find = None if found is None else lambda: found
        return cls(
            lambda: subgraphs,
            certificate=certificate,
            find_paths=lambda _: paths,
            find_parts=find,
            doubt=lambda: doubts,
            **rest,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        doubts = tuple(said for said in self.warnings if said != self.bound_note())
        paths = tuple(self.find_paths(STORED_PATHS)) if self.link is not None else ()
        lazy = ("rank", "subgraphs", "find_paths", "find_parts", "parts", "doubt", "warnings")
        plain = {name: value for name, value in vars(self).items() if name not in lazy}
        return _arrived, (self.subgraphs, paths, vars(self).get("parts"), doubts, plain)

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


def shown(prediction: tuple[float, ...], label: int | None = None) -> str:
    """Writes a prediction for a table: the class, or that of ``label``, and its probability; or a value."""
    best = class_of(prediction)
    if best is None:
        return f"{prediction[0]:.3f}"
    label = best if label is None else label
    return f"class {label} ({prediction[label]:.2f})"


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Writes a number of things: ``"1 node"``, ``"2 nodes"``; ``nouns`` is a plural without ``s`` alone."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def named(node: NodeName, before: str = "") -> str:
    """Writes a node as a person does: ``"3"``, with a word ``before`` it, or ``"paper 3"`` where it has a type."""
    return f"{before}{node}" if isinstance(node, int) else f"{node[0]} {node[1]}"


def _arrived(
    subgraphs: tuple[RankedSubgraph, ...],
    paths: tuple[RankedPath, ...],
    parts: Parts | None,
    doubts: tuple[str, ...],
    rest: dict[str, Any],
) -> SubgraphDistribution:
    find = None if parts is None else lambda: parts
    return SubgraphDistribution(
        lambda: subgraphs,
        find_paths=lambda _: paths,
        find_parts=find,
        doubt=lambda: doubts,
        **rest,
    )
