"""An explanation of a heterogeneous graph: a distribution over connected subgraphs across types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.explain import HeteroExplanation, ModelConfig

from gflowexplainer.drawing.answer import sentences, title
from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.page import View
from gflowexplainer.drawing.painting import draw
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.explanation.explained_distribution import ExplainedDistribution
from gflowexplainer.explanation.explanation import KIND, TYPED
from gflowexplainer.explanation.flat_view import FlatView
from gflowexplainer.explanation.notebook import in_words
from gflowexplainer.explanation.ranked_subgraphs import SubgraphDistribution
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.ops.sparse_rows import Fields, pack_fields, unpack_fields
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_APART = " | "
"""Stands between type and field in the names of a file."""


class TypedExplanation(ExplainedDistribution, HeteroExplanation):
    """A PyG explanation of a heterogeneous graph that holds a distribution over connected subgraphs.

    ``node_mask_dict`` and ``edge_mask_dict`` are the probabilities that a node ``[N_t, 1]``, or both ends of an edge
    ``[E_r]``, lie in a subgraph that is sampled. Nodes are named by type and id, as ``("paper", 3)``. Everything that
    PyG does with a ``HeteroExplanation`` works.
    """

    @classmethod
    def of(
        cls,
        distribution: SubgraphDistribution,
        by_type: Mapping[Any, Mapping[str, Any]],
        fields: Mapping[str, Any],
    ) -> TypedExplanation:
        """Makes an explanation of masks and inputs by node type or relation, and of fields of the whole."""
        explanation = cls()
        for key, values in by_type.items():
            store = explanation[key]
            store._mapping = Fields(dict(values))
        explanation._global_store._mapping = Fields(dict(fields))
        explanation._distribution = distribution
        return explanation

    @property
    def explained_node(self) -> Any:
        """The node whose prediction is explained, by type and id; ``None`` at graph level and for links."""
        return None if self._known.node is None else (self._known.node_type, self._known.node)

    def drop(self, names: Iterable[str]) -> None:
        """Removes masks that nobody asked for."""
        for name in names:
            for store in self.stores:
                store._mapping.pop(name, None)

    def _fields(self) -> dict[str, Any]:
        fields = self._global_store._mapping
        return fields.raw() if isinstance(fields, Fields) else fields

    def _apply_masks(self, node_mask_dict: dict[str, Tensor], edge_mask_dict: dict[Any, Tensor]) -> HeteroExplanation:
        """Cuts the graph, as PyG does. Nodes get new ids, so the subgraphs do not come along."""
        cut = super()._apply_masks(node_mask_dict, edge_mask_dict)
        plain = HeteroExplanation()
        for store in cut.stores:
            own = plain._global_store if store._key is None else plain[store._key]
            own._mapping.update(store._mapping)
        if "_model_config" in self._own:
            plain._model_config = self._own["_model_config"]
        return plain

    def __repr__(self) -> str:
        return super().__repr__() if self._own.get("_distribution") is None else in_words(self)

    def case(self, name: str | None = None, **words: Any) -> Case:
        """Returns what drawings and reports show: types by shape and colour, relations on the edges, links as two ends.

        Args:
            name: What to call it; unique in a report.
            **words: ``labels`` (lists of texts by node type), ``classes`` and ``note``, as in
                :class:`~gflowexplainer.report.Case`.
        """
        return FlatView(self).case(self.name if name is None else name, **words)

    def draw(
        self,
        path: str | Path | None = None,
        *,
        max_nodes: int = 60,
        surroundings: bool = False,
        ax: Axes | None = None,
        **words: Any,
    ) -> Axes:
        """Draws the explanation by matplotlib; see :meth:`SubgraphExplanation.draw` and :meth:`case`."""
        if max_nodes < 1:
            raise ConfigError(f"'max_nodes' must be at least 1 (got {max_nodes}).")
        case = self.case(**words)
        return draw(Scene.of(case, max_nodes), title(case), path, ax, level=2 if surroundings else 1)

    def show(self, **words: Any) -> View:
        """Returns the drawing that a notebook shows; see :meth:`case`."""
        return View([self.case(**words)])

    def __str__(self) -> str:
        """Says in five lines what is predicted, because of what, and how sure that is; finds the parts for it."""
        return repr(self) if self._own.get("_distribution") is None else sentences(self.case())

    def _repr_html_(self) -> str:
        """Shows the interactive drawing in a notebook, or the words where there is nothing to draw."""
        if self._own.get("_distribution") is None or any("edge_index" not in self[key] for key in self.edge_types):
            return f"<pre>{escape(repr(self))}</pre>"
        return self.show()._repr_html_()

    def save(self, path: str | Path) -> None:
        """Stores the explanation in one safetensors file with JSON in its header.

        A certificate that has not been asked for is not computed for this; ask for it first to keep it.
        """
        tensors: dict[str, Tensor] = {}
        sparse: dict[str, Any] = {}
        keys: list[Any] = []
        plain: dict[str, Any] = {}
        for store in self.stores:
            key = store._key
            keys.append(list(key) if isinstance(key, tuple) else key)
            raw = store._mapping.raw() if isinstance(store._mapping, Fields) else dict(store._mapping)
            named = {f"{len(keys) - 1}{_APART}{name}": value for name, value in raw.items()}
            own, packed = pack_fields(named)
            tensors |= own
            sparse |= packed
            for name, value in named.items():
                if isinstance(value, Tensor):
                    tensors[name] = value.detach().clone()
                elif isinstance(value, int | float | str | bool | None):
                    plain[name] = value
                elif name not in packed:
                    raise CheckpointError(
                        f"The field '{name.split(_APART)[1]}' of the explanation is a {type(value).__name__}, which "
                        "cannot be stored. Remove it first."
                    )
        config = self._own.get("_model_config")
        meta = {
            "kind": TYPED,
            "distribution": self._known.to_dict(),
            "keys": keys,
            "fields": plain,
            "sparse": sparse,
            "model_config": None if config is None else config_to_dict(config),
        }
        write_checkpoint(Path(path), {"fields": tensors}, meta)

    @classmethod
    def load(cls, path: str | Path, device: torch.device | str = "cpu") -> TypedExplanation:
        """Reads what :meth:`save` stored, onto ``device``."""
        sections, meta = read_checkpoint(Path(path), device, holds=KIND)
        if meta.get("kind") == KIND:
            raise CheckpointError(
                f"'{path}' holds an explanation of a graph with one type. Load it by SubgraphExplanation.load."
            )
        if meta.get("kind") != TYPED:
            raise CheckpointError(f"'{path}' holds no explanation of a typed graph (but {meta.get('kind')!r}).")
        try:
            named = unpack_fields(sections.get("fields", {}), meta["sparse"]) | meta["fields"]
            stores: list[dict[str, Any]] = [{} for _ in meta["keys"]]
            for name, value in named.items():
                number, field = name.split(_APART, 1)
                stores[int(number)][field] = value
            fields: dict[str, Any] = {}
            by_type: dict[Any, dict[str, Any]] = {}
            for key, values in zip(meta["keys"], stores, strict=True):
                if key is None:
                    fields = values
                else:
                    by_type[tuple(key) if isinstance(key, list) else key] = values
            explanation = cls.of(SubgraphDistribution.from_dict(meta["distribution"]), by_type, fields)
            if meta["model_config"] is not None:
                explanation._model_config = ModelConfig(**meta["model_config"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"'{path}' holds an explanation of another version ({error}).") from error
        return explanation
