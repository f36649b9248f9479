"""What every explanation says of its distribution over connected subgraphs, on graphs with one or several types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from gflowexplainer.errors import ConfigError, ModelError, check_counts
from gflowexplainer.explanation.certificate import Certificate
from gflowexplainer.explanation.counterfactual import Counterfactual
from gflowexplainer.explanation.parts import Parts
from gflowexplainer.explanation.ranked_subgraphs import (
    NodeName,
    RankedPath,
    RankedSubgraph,
    SubgraphDistribution,
    named,
)
from gflowexplainer.model.output import read_output
from gflowexplainer.ops.sparse_rows import SparseRows


class ExplainedDistribution:
    """What explanations of graphs with one or several types have in common: a distribution over connected subgraphs."""

    @property
    def _own(self) -> dict[str, Any]:
        """What the explanation knows beside its fields."""
        parts = vars(self)
        return vars(parts["_store"] if "_store" in parts else parts["_global_store"])

    @property
    def _known(self) -> SubgraphDistribution:
        distribution = self._own.get("_distribution")
        if distribution is None:
            raise ConfigError("This explanation is empty. Explanations are made by GFlowExplainer.")
        return distribution

    @property
    def subgraphs(self) -> list[RankedSubgraph]:
        """The different subgraphs that were sampled, the most probable first."""
        return list(self._known.subgraphs)

    @property
    def parts(self) -> Parts:
        """The connected parts that together preserve the prediction, most needed first; one where one does.

        They are found, and measured on the model, when they are first looked at, for all explanations of the same call
        at once.
        """
        return self._known.parts

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
        if self._known.find_parts is None:
            return None
        try:
            return self._known.parts
        except ModelError:  # the model has changed since
            return None

    @property
    def found_parts(self) -> Parts | None:
        """The :attr:`parts` if they have been asked for before; computes nothing."""
        return vars(self._known).get("parts")

    @property
    def known_counterfactuals(self) -> list[Counterfactual]:
        """What was found before that would change the prediction; computes nothing."""
        known = self._own.get("_studies")
        return [] if known is None else [found for found in known.knows("counterfactual") if found is not None]

    @property
    def verdict(self) -> str:
        """Says in a sentence whether the explanation :attr:`holds`; empty where that can no longer be measured."""
        parts = self.known_parts
        return "" if parts is None else parts.verdict()

    def top(self, k: int = 5) -> list[RankedSubgraph]:
        """Returns the ``k`` best subgraphs, or as many as there are."""
        check_counts(k=k)
        return list(self._known.subgraphs[:k])

    @property
    def explained_node(self) -> int | None:
        """The node whose prediction is explained; ``None`` at graph level and for links."""
        return self._known.node

    @property
    def name(self) -> str:
        """What is explained, in words: ``"node 42"``, ``"paper 3"``, ``"link 0 - 4"``, ``"graph 7"`` or ``"graph"``."""
        known = self._known
        if known.link is not None:
            return f"link {' - '.join(map(named, known.link))}"
        if known.node is None:
            return "graph" if known.graph is None else f"graph {known.graph}"
        return named(known.node if known.node_type is None else (known.node_type, known.node), "node ")

    @property
    def explained_graph(self) -> int | None:
        """Position of the explained graph in the list or batch; ``None`` of one passed by itself, or no graph."""
        return self._known.graph

    @property
    def explained_link(self) -> tuple[NodeName, NodeName] | None:
        """Both ends of the link whose prediction is explained; ``None`` if none is."""
        return self._known.link

    @property
    def connected(self) -> bool:
        """Whether subgraphs are connected. Only those of a link are not, where no way joins its ends within the bound;
        then each is connected but for the link itself.
        """
        return self._known.connected

    def paths(self, k: int = 5) -> list[RankedPath]:
        """Returns the ``k`` best paths between both ends of an explained link, or as many as there are.

        A path that lies in sampled subgraphs has their probability. If these are too few, paths along probable edges
        follow, with probability 0: nobody has sampled them.
        """
        if self._known.link is None:
            raise ConfigError("Paths join the ends of a link, and this is no explanation of one.")
        check_counts(k=k)
        return list(self._known.find_paths(k))[:k]

    @property
    def error(self) -> float:
        """How far the probabilities may be off, in total variation: 0 where every connected subgraph was listed.

        Otherwise it is told by how much independent samples differ. The :attr:`certificate` measures it.
        """
        return self._known.error

    @property
    def certificate(self) -> Certificate:
        """The exact distance to the target distribution, or why it was not computed; computed when first asked for."""
        return self._known.certificate.get()

    @property
    def known_certificate(self) -> Certificate:
        """The certificate if it has been asked for before, else one that says that it has not; computes nothing."""
        return self._known.certificate.known

    @property
    def can_certify(self) -> bool:
        """Whether the certificate has not been asked for yet and would be computed."""
        return self._known.certificate.can_compute

    @property
    def num_samples(self) -> int:
        """How many subgraphs were sampled."""
        return self._known.num_samples

    @property
    def whole_prediction(self) -> tuple[float, ...] | None:
        """What the model predicts on the whole graph: class probabilities, or values for regression.

        ``None`` where the explanation does not hold the model's output or does not know how to read it.
        """
        config = self._own.get("_model_config")
        if "prediction" not in self._fields() or config is None:
            return None
        row = self._row("prediction")
        row = row.reshape(1, -1).detach().double()
        return tuple(read_output(row, config.mode.value, config.return_type.value)[0].tolist())

    @property
    def explained_class(self) -> int | None:
        """The class whose probability the subgraphs hold; ``None`` for regression or where it is not known."""
        if "target" not in self._fields():
            return None
        row = self._row("target")
        return None if row.is_floating_point() else int(row)

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
        return self._known.bound_note()

    @property
    def warnings(self) -> list[str]:
        """Reasons not to trust this explanation, in words, with the numbers; empty where none was found.

        Among them: probabilities that are not right, evidence that explains nothing, features on different scales,
        nodes that were left out, and a model that is random, writes into its input or has to be evaluated one by one.
        """
        return list(self._known.warnings)

    def _row(self, name: str) -> Tensor:
        """Picks the row of the explained node or graph."""
        value, node = self._fields()[name], self._known.node
        if self._known.link is not None and isinstance(self._fields().get("index"), Tensor):
            node = int(self._fields()["index"])
        if isinstance(value, SparseRows):
            return value.row(0 if node is None else node)
        return value[0 if value.size(0) == 1 or node is None else node]

    if TYPE_CHECKING:

        def _fields(self) -> dict[str, Any]:
            """Returns the fields of the whole explanation."""
