"""What every explanation says, of graphs with one or several types: all of it read from one distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from gflowexplainer.errors import ConfigError, GFlowExplainerError, ModelError, check_counts
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.explanation.findings import NOT_ASKED, Certificate, Counterfactual, FeatureContributions, Parts
from gflowexplainer.explanation.ranked import NodeName, RankedPath, RankedSubgraph, named, shown
from gflowexplainer.explanation.words import Summary, summarize
from gflowexplainer.model.output import read_output
from gflowexplainer.ops.sparse_rows import SparseRows

_FEW_FEATURES = 32
"""Features up to which their contributions are measured for a report without being asked for."""


class ExplainedDistribution:
    """A distribution over connected subgraphs, with everything that can be asked about it.

    What takes an evaluation of the model is computed when it is first asked for, and kept.
    """

    # Where it is kept, and how nodes are called.

    @property
    def _whole(self) -> Any:
        """The store of the fields of the whole graph."""
        parts = vars(self)
        return parts["_store"] if "_store" in parts else parts["_global_store"]

    @property
    def _own(self) -> dict[str, Any]:
        """What the explanation knows beside its fields."""
        return vars(self._whole)

    def _fields(self) -> dict[str, Any]:
        """Returns the fields of the whole without writing out those that are known at a few rows."""
        fields = self._whole._mapping
        return fields.raw() if hasattr(fields, "raw") else fields

    @property
    def _known(self) -> SubgraphDistribution:
        distribution = self._own.get("_distribution")
        if distribution is None:
            raise ConfigError("This explanation is empty. Explanations are made by GFlowExplainer.")
        return distribution

    def _named(self, answer: Any) -> Any:
        """Returns an answer with the user's names of nodes and edges."""
        return answer

    def _get(self, kind: str, **question: Any) -> Any:
        return self._named(self._known.get(kind, **question))

    def known(self, kind: str) -> list[Any]:
        """Returns what was asked before of a kind, ``"counterfactual"`` or ``"features"``; computes nothing."""
        return [self._named(answer) for answer in self._known.answers(kind)]

    @property
    def has_model(self) -> bool:
        """Whether the model is at hand, so that more can be asked."""
        return self._known.source is not None

    # What is explained.

    @property
    def explained_node(self) -> Any:
        """The node whose prediction is explained; ``None`` at graph level and for links."""
        return self._named(self._known.node)

    @property
    def explained_graph(self) -> int | None:
        """Position of the explained graph in the list or batch; ``None`` of one passed by itself, or no graph."""
        return self._known.graph

    @property
    def explained_link(self) -> tuple[NodeName, NodeName] | None:
        """Both ends of the link whose prediction is explained; ``None`` if none is."""
        link = self._known.link
        return None if link is None else (self._named(link[0]), self._named(link[1]))

    @property
    def name(self) -> str:
        """What is explained, in words: ``"node 42"``, ``"paper 3"``, ``"link 0 - 4"``, ``"graph 7"`` or ``"graph"``."""
        if self.explained_link is not None:
            return f"link {' - '.join(map(named, self.explained_link))}"
        if self.explained_node is None:
            return "graph" if self.explained_graph is None else f"graph {self.explained_graph}"
        return named(self.explained_node, "node ")

    @property
    def whole_prediction(self) -> tuple[float, ...] | None:
        """What the model predicts on the whole graph: class probabilities, or values for regression.

        ``None`` where the explanation does not hold the model's output or does not know how to read it.
        """
        config = self._own.get("_model_config")
        if "prediction" not in self._fields() or config is None:
            return None
        row = self._row("prediction").reshape(1, -1).detach().double()
        return tuple(read_output(row, config.mode.value, config.return_type.value)[0].tolist())

    @property
    def explained_class(self) -> int | None:
        """The class whose probability the subgraphs hold; ``None`` for regression or where it is not known."""
        if "target" not in self._fields():
            return None
        row = self._row("target")
        return None if row.is_floating_point() else int(row)

    def _row(self, name: str) -> Tensor:
        """Picks the row of the explained node, link or graph."""
        value, row = self._fields()[name], self.explained_node
        if self._known.link is not None and isinstance(self._fields().get("index"), Tensor):
            row = int(self._fields()["index"])
        row = row[1] if isinstance(row, tuple) else row or 0
        if isinstance(value, SparseRows):
            return value.row(row)
        return value[0 if value.size(0) == 1 else row]

    # The distribution.

    @property
    def subgraphs(self) -> Sequence[RankedSubgraph]:
        """The different subgraphs that were sampled, the most probable first; each is built when it is looked at."""
        return self._get("subgraphs")

    def top(self, k: int = 5) -> list[RankedSubgraph]:
        """Returns the ``k`` best subgraphs, or as many as there are."""
        check_counts(k=k)
        return list(self.subgraphs[:k])

    @property
    def num_samples(self) -> int:
        """How many subgraphs were sampled."""
        return self._known.num_samples

    @property
    def error(self) -> float:
        """How far the probabilities may be off, in total variation: 0 where every connected subgraph was listed.

        Otherwise it is told by how much independent samples differ. The :attr:`certificate` measures it.
        """
        return self._known.error

    @property
    def certificate(self) -> Certificate:
        """The exact distance to the target distribution, or why it was not computed; computed when first asked for."""
        return self._known.get("certificate") if self.can_certify else self.known_certificate

    @property
    def known_certificate(self) -> Certificate:
        """The certificate if it has been asked for before, else one that says that it has not; computes nothing."""
        return self._known.known.get("certificate", Certificate(reason=NOT_ASKED))

    @property
    def can_certify(self) -> bool:
        """Whether the certificate has not been asked for yet and would be computed."""
        return self.has_model and "certificate" not in self._known.known

    @property
    def connected(self) -> bool:
        """Whether subgraphs are connected. Only those of a link are not, where no way joins its ends within the bound;
        then each is connected but for the link itself.
        """
        return self._known.connected

    def paths(self, k: int = 5) -> list[RankedPath]:
        """Returns the ``k`` best paths between both ends of an explained link, or as many as were found, at most 100.

        A path that lies in sampled subgraphs has their probability. If these are too few, paths along probable edges
        follow, with probability 0: nobody has sampled them.
        """
        if self._known.link is None:
            raise ConfigError("Paths join the ends of a link, and this is no explanation of one.")
        check_counts(k=k)
        return list(self._get("paths"))[:k]

    # What the model says of it.

    @property
    def parts(self) -> Parts:
        """The connected parts that together preserve the prediction, most needed first; one where one does.

        They are found, and measured on the model, when they are first looked at, for all explanations of the same call
        at once.
        """
        return self._get("parts")

    @property
    def holds(self) -> bool:
        """Whether the :attr:`parts` preserve the prediction, and better than random parts of their size do.

        The two numbers are ``parts.preserved`` and ``parts.preserved_by_random``. Where it is false there is nothing to
        say: no subgraph was found that speaks for this prediction more than any other of its size.
        """
        return self.parts.holds

    @property
    def known_parts(self) -> Parts | None:
        """The :attr:`parts`, or ``None`` where they can no longer be measured."""
        try:
            return self.parts if self._known.has("parts") else None
        except ModelError:  # the model has changed since
            return None

    @property
    def verdict(self) -> str:
        """Says in a sentence whether the explanation :attr:`holds`; empty where that can no longer be measured."""
        parts = self.known_parts
        return "" if parts is None else parts.verdict()

    def counterfactual(
        self, to: float | None = None, *, amount: float | None = None, by: str = "nodes", exhaustive: int = 200
    ) -> Counterfactual | None:
        """Finds a small set of nodes or edges without which the model predicts something else.

        Single nodes or edges are tried first, then sampled subgraphs, which are made smaller; everything is verified on
        the model. Once a set is known, no more than 200 are tried for a smaller one.

        Args:
            to: The class that is wanted, or for regression the value to reach or pass; by default any other class.
            amount: For regression, how far the value has to move, in any direction.
            by: What is removed: ``"nodes"`` or ``"edges"``. The explained node always stays.
            exhaustive: Sets that may be tried in all for every smaller one to be among them
                (:attr:`Counterfactual.minimal`).

        Returns:
            The counterfactual, or ``None`` if none was found.
        """
        return self._get("counterfactual", to=to, amount=amount, by=by, exhaustive=exhaustive)

    @property
    def known_counterfactuals(self) -> list[Counterfactual]:
        """What was found before that would change the prediction; computes nothing."""
        return [found for found in self.known("counterfactual") if found is not None]

    def feature_contributions(
        self, of: str = "x", *, reference: float | list[float] | Tensor | None = None, each: bool = False,
        evaluations: int = 2048,
    ) -> FeatureContributions:  # fmt: skip
        """Measures what each feature inside the explained subgraph contributes, as Shapley values.

        Args:
            of: ``"x"``, or the name of another argument of the model, such as ``"edge_attr"``.
            reference: What stands for "not there": a number, or one a feature; by default the mean over the instance,
                and of a feature that is only ever 0 or 1 the more frequent of both.
            each: Whether every entry of the subgraph is measured by itself, not every feature.
            evaluations: Combinations that are evaluated, about; if all of them are fewer, values are exact.
        """
        return self._get("features", of=of, reference=reference, each=each, evaluations=evaluations)

    def ask(self) -> None:
        """Asks what a report shows beside the subgraphs: what would change the class and, where they are few, features.

        Nothing is asked where the model is not at hand, or has changed. A value has no counterfactual of its own:
        nobody has said how far it should move.
        """
        if not self.has_model:
            return
        try:
            if self.explained_class is not None:
                self.counterfactual()
            x = self._fields().get("x")
            if isinstance(x, Tensor) and x.is_floating_point() and x.dim() == 2 and x.size(1) <= _FEW_FEATURES:
                self.feature_contributions()
        except GFlowExplainerError:  # a drawing is one without it too: the model may have changed since
            return

    # How far to trust it.

    @property
    def left_out(self) -> int:
        """Nodes that were left out as the computation graph has more than ``max_graph_nodes``; 0 if it has not.

        Only those that were seen are counted: what lies behind them was not looked at.
        """
        return self._known.left_out

    @property
    def prediction_kept(self) -> tuple[float, ...] | None:
        """What the model predicts where the nodes that were :attr:`left_out` are missing; ``None`` if none were."""
        return self._known.prediction_kept

    @property
    def bound_note(self) -> str:
        """Says in words what was :attr:`left_out`; empty if nothing was."""
        if not self.left_out:
            return ""
        kept = self.prediction_kept
        said = "" if kept is None else f"; where they are missing the model says {shown(kept)}"
        return f"At least {self.left_out} nodes of the computation graph were left out (max_graph_nodes){said}"

    @property
    def warnings(self) -> list[str]:
        """Reasons not to trust this explanation, in words, with the numbers; empty where none was found.

        Among them: probabilities that are not right, evidence that explains nothing, features on different scales,
        nodes that were left out, and a model that is random, writes into its input or has to be evaluated one by one.
        """
        doubts = self._known.get("doubts") if self._known.has("doubts") else ()
        return [*filter(None, [self.bound_note]), *doubts]

    # All of it in words.

    def summary(self, *, features: bool = True) -> Summary:
        """Says in plain sentences what preserves the prediction, what would change it, and which features count.

        ``str(e.summary())`` is the text, ``e.summary().to_dict()`` the same for machines. Every number is the model's.

        Args:
            features: Whether features are measured, which takes most evaluations of the model.
        """
        return summarize(self, features=features)
