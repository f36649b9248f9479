"""PyG explanations with masks of probabilities: what is cut out of them is what comes first, not all above zero."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

from torch import Tensor
from torch_geometric.explain import Explanation

from gflowexplainer.model.adapter import is_adjacency

Masked = TypeVar("Masked", bound="MaskedExplanation")


class MaskedExplanation(Explanation):
    """An explanation whose masks are probabilities, which are rarely 0.

    Without a threshold, :meth:`best` is what is cut out and drawn; after :meth:`threshold`, what that has left.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Keeps the edges as ids where PyG's ``Explainer`` would put the adjacency matrix that it was called with."""
        if name != "edge_index" or not is_adjacency(value):
            super().__setattr__(name, value)

    @abstractmethod
    def best(self: Masked) -> Masked:
        """Returns what comes first, as hard masks."""

    def drop(self, names: Iterable[str]) -> None:
        """Removes masks that nobody asked for."""
        for name in names:
            del self[name]

    def threshold(self: Masked, *args: Any, **kwargs: Any) -> Masked:
        """Thresholds the masks, as PyG does. What is cut out or visualised afterwards follows these masks."""
        cut = super().threshold(*args, **kwargs)
        if cut is not self:
            cut._thresholded = True
        return cut

    def _chosen(self: Masked) -> Masked:
        return self if "_thresholded" in vars(self._store) else self.best()

    def get_explanation_subgraph(self) -> Explanation:
        """Cuts out the first subgraph; after :meth:`threshold`, what that has left, as PyG does."""
        return super(MaskedExplanation, self._chosen()).get_explanation_subgraph()

    def get_complement_subgraph(self) -> Explanation:
        """Cuts out all but the first subgraph; after :meth:`threshold`, all but what that has left."""
        return super(MaskedExplanation, self._chosen()).get_complement_subgraph()

    def visualize_graph(
        self, path: str | None = None, backend: str | None = None, node_labels: list[str] | None = None
    ) -> None:
        """Draws the first subgraph as PyG does; after :meth:`threshold`, what that has left."""
        super(MaskedExplanation, self._chosen()).visualize_graph(path, backend, node_labels)

    def _apply_masks(self, node_mask: Tensor | None = None, edge_mask: Tensor | None = None) -> Explanation:
        """Cuts the graph, as PyG does. Nodes get new ids, so the subgraphs do not come along."""
        cut = super()._apply_masks(node_mask, edge_mask)
        plain = Explanation(**dict(cut.items()))
        for name in ("_model_config", "_model_args"):
            if name in vars(self._store):
                setattr(plain, name, vars(self._store)[name])
        return plain
