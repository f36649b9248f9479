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

from gflowexplainer.drawing.answer import sentences, title
from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.page import View
from gflowexplainer.drawing.painting import draw
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.explanation.explained_distribution import ExplainedDistribution
from gflowexplainer.explanation.notebook import in_words
from gflowexplainer.explanation.ranked_subgraphs import SubgraphDistribution
from gflowexplainer.explanation.studies import Studied, Studies
from gflowexplainer.model.adapter import is_adjacency
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.ops.sparse_rows import Fields, pack_fields, unpack_fields
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

KIND, TYPED = "explanation", "typed explanation"
"""What files of explanations say that they hold."""


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
        return self if "_thresholded" in self._own else self.best()

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
        if "_features_shown" not in self._own:
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
            if name in self._own:
                setattr(plain, name, self._own[name])
        return plain

    # What is shown: masks where there are any, so that a thresholded explanation is shown thresholded.

    def _node_values(self) -> np.ndarray:
        if "node_mask" in self and "_features_shown" not in self._own:
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
        case = Case(self.name, self, **words)
        return draw(Scene.of(case, max_nodes), title(case), path, ax, level=2 if surroundings else 1)

    def show(self, **words: Any) -> View:
        """Returns the drawing that a notebook shows, with what is known of the graph.

        Args:
            **words: ``labels``, ``classes``, ``feature_names``, ``smiles``, ``words``, ``types``, ``truth``, ``others``
                and ``note``, as in :class:`~gflowexplainer.report.Case`.
        """
        self.ask()
        return View([Case(self.name, self, **words)])

    def __repr__(self) -> str:
        if self._own.get("_distribution") is None:
            return super().__repr__()
        return in_words(self)

    def __str__(self) -> str:
        """Says in five lines what is predicted, because of what, and how sure that is; finds the parts for it."""
        known = self._own.get("_distribution") is not None and "edge_index" in self
        return sentences(Case(self.name, self)) if known else repr(self)

    @property
    def words_of_data(self) -> dict[str, Any]:
        """Names of nodes and features, and the SMILES, that came with the explained data."""
        return self._own.get("_words", {})

    def _repr_html_(self) -> str:
        """Shows the interactive drawing in a notebook, or the words where there is nothing to draw."""
        if self._own.get("_distribution") is None or "edge_index" not in self:
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
        config = self._own.get("_model_config")
        meta = {
            "kind": KIND,
            "distribution": self._known.to_dict(),
            "fields": plain,
            "sparse": sparse,
            "model_config": None if config is None else config_to_dict(config),
            "model_args": self._own.get("_model_args"),
            "studies": self.studies.to_dict(),
            "features_shown": "_features_shown" in self._own,
        }
        write_checkpoint(Path(path), {"fields": tensors}, meta)

    @classmethod
    def load(cls, path: str | Path, device: torch.device | str = "cpu") -> SubgraphExplanation:
        """Reads what :meth:`save` stored, onto ``device``."""
        sections, meta = read_checkpoint(Path(path), device, holds=KIND)
        if meta.get("kind") == TYPED:
            raise CheckpointError(
                f"'{path}' holds an explanation of a heterogeneous graph. Load it by TypedExplanation.load."
            )
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
