"""An explanation: a distribution over connected subgraphs, as PyG explanation, table and file."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from html import escape
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.explain import Explanation, ModelConfig

from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.painting import draw
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import CheckpointError, ConfigError, ModelError
from gflowexplainer.explanation.certificate import Certificate
from gflowexplainer.explanation.counterfactual import Counterfactual
from gflowexplainer.explanation.notebook import View, in_words, title_of
from gflowexplainer.explanation.parts import Parts
from gflowexplainer.explanation.ranked_subgraphs import (
    NodeName,
    RankedPath,
    RankedSubgraph,
    SubgraphDistribution,
    named,
)
from gflowexplainer.explanation.studies import Studied, Studies
from gflowexplainer.model.adapter import is_adjacency
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.model.predictor import read_output
from gflowexplainer.ops.sparse_rows import Fields, SparseRows, pack_fields, unpack_fields
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

KIND = "explanation"


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
        """The different subgraphs that were sampled, the one with the largest reward first."""
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
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise ConfigError(f"'k' must be a whole number of at least 1 (got {k!r}).")
        return list(self._known.subgraphs[:k])

    @property
    def explained_node(self) -> int | None:
        """The node whose prediction is explained; ``None`` at graph level and for links."""
        return self._known.node

    @property
    def name(self) -> str:
        """What is explained, in words: ``"node 42"``, ``"paper 3"``, ``"link 0 - 4"`` or ``"graph"``."""
        known = self._known
        if known.link is not None:
            return f"link {' - '.join(map(named, known.link))}"
        if known.node is None:
            return "graph"
        return named(known.node if known.node_type is None else (known.node_type, known.node), "node ")

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
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise ConfigError(f"'k' must be a whole number of at least 1 (got {k!r}).")
        return list(self._known.find_paths(k))[:k]

    @property
    def effective_sample_size(self) -> float:
        """How many independent samples of the target the samples are worth.

        It is as large as the number of samples where the flow network samples from its target, and small where most
        of the target's weight falls on few of the samples. It only knows what was sampled: a network that never visits
        the best subgraphs can have a large one. The certificate sees that.
        """
        return self._known.effective_sample_size

    @property
    def certificate(self) -> Certificate:
        """The exact distance to the target distribution, or why it was not computed; computed when first asked for."""
        return self._known.certificate.get()

    @property
    def known_certificate(self) -> Certificate:
        """The certificate if it has been asked for before, else one that says that it has not; computes nothing."""
        return self._known.certificate.known

    @property
    def weighting(self) -> str:
        """``"policy"``: a probability is how often a subgraph was sampled; ``"reward"``: re-weighted by reward."""
        return self._known.weighting

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

        Among them: a low effective sample size, evidence that explains nothing, features on different scales, nodes
        that were left out, and a model that is random, writes into its input or has to be evaluated one by one.
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


class SubgraphExplanation(Studied, ExplainedDistribution, Explanation):
    """A PyG explanation that holds a distribution over connected subgraphs.

    ``node_mask`` ``[N, 1]`` and ``edge_mask`` ``[E]`` are the probabilities that a node, or both ends of an edge, lie
    in a subgraph that is sampled. Everything that PyG does with an explanation works: ``validate``, ``threshold``,
    ``get_explanation_subgraph``, ``visualize_graph`` and the metrics.
    """

    @classmethod
    def of(cls, distribution: SubgraphDistribution, **fields: Any) -> SubgraphExplanation:
        """Makes an explanation; ``fields`` are masks and inputs, as PyG's ``Explanation`` takes them."""
        explanation = cls(**fields)
        explanation._store._mapping = Fields(explanation._store._mapping)
        explanation._distribution = distribution
        return explanation

    def __setattr__(self, name: str, value: Any) -> None:
        """Keeps the edges as ids where PyG's ``Explainer`` would put the adjacency matrix that it was called with."""
        if name != "edge_index" or not is_adjacency(value):
            super().__setattr__(name, value)

    def drop(self, names: Iterable[str]) -> None:
        """Removes masks that nobody asked for."""
        for name in names:
            del self[name]

    def _fields(self) -> dict[str, Any]:
        """Returns all fields without writing out those that are known at a few rows."""
        fields = self._store._mapping
        return fields.raw() if isinstance(fields, Fields) else fields

    def node_probability(self) -> np.ndarray:
        """Returns the probability that each node lies in a sampled subgraph, shape ``[N]``."""
        return self._node_values()

    def edge_probability(self, nodes: Iterable[int]) -> dict[tuple[int, int], float]:
        """Returns the probability that both ends are inside, for each pair of joined ``nodes``, smaller id first."""
        return self._edge_values(nodes)

    def best(self) -> SubgraphExplanation:
        """Returns the first subgraph as an explanation with hard masks: 1 for its nodes and the edges between them."""
        nodes = torch.tensor(self._known.subgraphs[0].nodes, device=self.edge_index.device)
        inside = torch.zeros(self._num_nodes(), dtype=torch.bool, device=nodes.device)
        inside[nodes] = True
        hard = copy.copy(self)
        hard.node_mask = inside[:, None].float()
        hard.edge_mask = (inside[self.edge_index[0]] & inside[self.edge_index[1]]).float()
        hard._thresholded = True
        return hard

    def threshold(self, *args: Any, **kwargs: Any) -> SubgraphExplanation:
        """Thresholds the masks, as PyG does. What is cut out or visualised afterwards follows these masks."""
        cut = super().threshold(*args, **kwargs)
        if cut is not self:
            cut._thresholded = True
        return cut

    def _chosen(self) -> SubgraphExplanation:
        """Returns itself if the user has chosen a threshold, otherwise :meth:`best`.

        Probabilities are rarely 0, so that everything above 0 is nearly the whole neighbourhood.
        """
        return self if "_thresholded" in self._store.__dict__ else self.best()

    def get_explanation_subgraph(self) -> Explanation:
        """Cuts out the first subgraph; after :meth:`threshold`, what that has left, as PyG does."""
        return super(SubgraphExplanation, self._chosen()).get_explanation_subgraph()

    def get_complement_subgraph(self) -> Explanation:
        """Cuts out all but the first subgraph; after :meth:`threshold`, all but what that has left."""
        return super(SubgraphExplanation, self._chosen()).get_complement_subgraph()

    def visualize_graph(
        self, path: str | None = None, backend: str | None = None, node_labels: list[str] | None = None
    ) -> None:
        """Draws the first subgraph as PyG does; after :meth:`threshold`, what that has left. See also :meth:`draw`."""
        super(SubgraphExplanation, self._chosen()).visualize_graph(path, backend, node_labels)

    def visualize_feature_importance(self, *args: Any, **kwargs: Any) -> None:
        """Draws contributions of features as PyG does, where masks of features were asked for."""
        if "_features_shown" not in self._store.__dict__:
            raise ConfigError(
                "This explanation names nodes and edges, not features. Draw it with 'explanation.draw()', ask for "
                "'explanation.feature_contributions()', or explain with node_mask_type='attributes'."
            )
        super().visualize_feature_importance(*args, **kwargs)

    def _apply_masks(self, node_mask: Tensor | None = None, edge_mask: Tensor | None = None) -> Explanation:
        """Cuts the graph, as PyG does. Nodes get new ids, so the subgraphs do not come along."""
        cut = super()._apply_masks(node_mask, edge_mask)
        plain = Explanation(**dict(cut.items()))
        for name in ("_model_config", "_model_args"):
            if name in self._store.__dict__:
                setattr(plain, name, self._store.__dict__[name])
        return plain

    # What is shown: masks where there are any, so that a thresholded explanation is shown thresholded.

    def _node_values(self) -> np.ndarray:
        if "node_mask" in self and "_features_shown" not in self._store.__dict__:
            return self.node_mask.sum(dim=1).double().cpu().numpy()
        values = np.zeros(self._num_nodes())
        for subgraph in self._known.subgraphs:
            values[list(subgraph.nodes)] += subgraph.probability
        return values

    def _num_nodes(self) -> int:
        number = self.num_nodes
        return max((max(s.nodes) for s in self._known.subgraphs), default=-1) + 1 if number is None else number

    def _ends(self) -> np.ndarray:
        if "edge_index" not in self:
            raise ConfigError("This explanation does not know its graph. Set 'explanation.edge_index'.")
        return self.edge_index.cpu().numpy()

    def _edge_values(self, nodes: Iterable[int]) -> dict[tuple[int, int], float]:
        """Returns the probability that both ends are inside, for each pair of joined ``nodes``, smaller id first."""
        ends, inside = self._ends(), np.zeros(self._num_nodes(), dtype=bool)
        inside[list(nodes)] = True
        kept = np.flatnonzero(inside[ends[0]] & inside[ends[1]] & (ends[0] != ends[1]))
        pairs = [(min(u, v), max(u, v)) for u, v in ends[:, kept].T.tolist()]
        values = dict.fromkeys(pairs, 0.0)
        if "edge_mask" in self:
            for pair, value in zip(pairs, self.edge_mask.cpu().numpy()[kept].tolist(), strict=True):
                values[pair] = max(values[pair], value)
            return values
        for subgraph in self._known.subgraphs:
            for pair in combinations(sorted(subgraph.nodes), 2):
                if pair in values:
                    values[pair] += subgraph.probability
        return values

    def to_networkx(self, *, everything: bool = False) -> networkx.Graph:
        """Returns an undirected graph of the nodes that have any probability, or of ``everything``.

        Nodes and edges carry ``probability``, the explained node ``explained=True``.
        """
        try:
            import networkx
        except ImportError as error:
            raise ConfigError("'to_networkx' needs networkx. Install it with 'pip install networkx'.") from error
        values = self._node_values()
        graph = networkx.Graph()
        for node, value in enumerate(values.tolist()):
            if everything or value > 0:
                graph.add_node(node, probability=value, explained=node == self._known.node)
        for (u, v), value in self._edge_values(graph).items():
            graph.add_edge(u, v, probability=value)
        return graph

    def draw(
        self,
        path: str | Path | None = None,
        *,
        max_nodes: int = 60,
        surroundings: bool = False,
        ax: Axes | None = None,
        **words: Any,
    ) -> Axes:
        """Draws the explanation by matplotlib: its nodes large and labelled, their direct neighbours beside them.

        Several parts are marked by bands of different colours, and numbered.

        Args:
            path: Where to save the picture; the ending chooses the format. Without one, it is left to pyplot.
            max_nodes: Nodes drawn at most: the parts, or the first subgraph, then the most probable, then the nearest.
            surroundings: Whether to draw what lies farther away too.
            ax: Axes to draw on.
            **words: What is known of the graph: ``labels``, ``smiles``, ``words``, ``types``, ``truth``, as in
                :class:`~gflowexplainer.report.Case`.
        """
        if max_nodes < 1:
            raise ConfigError(f"'max_nodes' must be at least 1 (got {max_nodes}).")
        scene = Scene.of(Case(self.name, self, **words), max_nodes)
        return draw(scene if surroundings else scene.up_to(1), title_of(self), path, ax)

    def show(self, **words: Any) -> View:
        """Returns the drawing that a notebook shows, with what is known of the graph.

        Args:
            **words: ``labels``, ``classes``, ``feature_names``, ``smiles``, ``words``, ``types``, ``truth``, ``others``
                and ``note``, as in :class:`~gflowexplainer.report.Case`.
        """
        self.ask()
        return View([Case(self.name, self, **words)], in_words(self))

    def __repr__(self) -> str:
        if self._store.__dict__.get("_distribution") is None:
            return super().__repr__()
        return in_words(self)

    def _repr_html_(self) -> str:
        """Shows the interactive drawing in a notebook, or the words where there is nothing to draw."""
        if self._store.__dict__.get("_distribution") is None or "edge_index" not in self:
            return f"<pre>{escape(repr(self))}</pre>"
        return self.show()._repr_html_()

    def save(self, path: str | Path) -> None:
        """Stores the explanation in one safetensors file with JSON in its header.

        A certificate that has not been asked for is not computed for this; ask for it first to keep it.
        """
        plain: dict[str, Any] = {}
        tensors, sparse = pack_fields(self._fields())
        for name, value in self._fields().items():
            if name in sparse:
                continue
            if isinstance(value, Tensor):
                # Cloned: two fields may share memory, as prediction and target of a regression do.
                tensors[name] = value.detach().clone()
            elif isinstance(value, int | float | str | bool | None):
                plain[name] = value
            else:
                raise CheckpointError(
                    f"The field '{name}' of the explanation is a {type(value).__name__}, which cannot be stored. "
                    f"Remove it first: del explanation.{name}."
                )
        config = self._store.__dict__.get("_model_config")
        meta = {
            "kind": KIND,
            "distribution": self._known.to_dict(),
            "fields": plain,
            "sparse": sparse,
            "model_config": None if config is None else config_to_dict(config),
            "model_args": self._store.__dict__.get("_model_args"),
            "studies": self.studies.to_dict(),
            "features_shown": "_features_shown" in self._store.__dict__,
        }
        write_checkpoint(Path(path), {"fields": tensors}, meta)

    @classmethod
    def load(cls, path: str | Path, device: torch.device | str = "cpu") -> SubgraphExplanation:
        """Reads what :meth:`save` stored, onto ``device``."""
        sections, meta = read_checkpoint(Path(path), device)
        if meta.get("kind") != KIND:
            raise CheckpointError(f"'{path}' holds no explanation (but {meta.get('kind') or 'a training'}).")
        try:
            explanation = cls.of(
                SubgraphDistribution.from_dict(meta["distribution"]),
                **unpack_fields(sections.get("fields", {}), meta.get("sparse", {})),
                **meta["fields"],
            )
            if meta["model_config"] is not None:
                explanation._model_config = ModelConfig(**meta["model_config"])
            if meta["model_args"] is not None:
                explanation._model_args = meta["model_args"]
            explanation._studies = Studies.from_dict(meta.get("studies", {}))
            if meta.get("features_shown", False) not in (True, False):
                raise ValueError("'features_shown'")
            if meta.get("features_shown", False) is True:
                explanation._features_shown = True
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"'{path}' holds an explanation of another version ({error}).") from error
        return explanation
