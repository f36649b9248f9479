"""Several predictions explained by one call of PyG's ``Explainer``: one pair of masks, and what is behind it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch_geometric.explain import Explanation

from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.explanation_list import ExplanationList
from gflowexplainer.model.adapter import is_adjacency


class JointExplanation(Explanation):
    """A PyG explanation of several nodes, or graphs of a batch.

    ``node_mask`` ``[N, 1]`` and ``edge_mask`` ``[E]`` hold the largest probability over the explained instances. What
    each of them says by itself is in :attr:`explanations`.
    """

    @classmethod
    def of(cls, explanations: ExplanationList) -> JointExplanation:
        """Makes one of explanations in the same graph, or in graphs of the same batch."""
        first = explanations[0]
        node, edge = explanations.largest("node"), explanations.largest("edge")
        joint = cls(x=first.x, edge_index=first.edge_index, node_mask=node[:, None], edge_mask=edge)
        joint._explanations = explanations
        return joint

    def __setattr__(self, name: str, value: Any) -> None:
        """Keeps the edges as ids where PyG's ``Explainer`` would put the adjacency matrix that it was called with."""
        if name != "edge_index" or not is_adjacency(value):
            super().__setattr__(name, value)

    @property
    def explanations(self) -> ExplanationList:
        """The explanation of each, in the order of ``index``."""
        found = self._store.__dict__.get("_explanations")
        if found is None:
            raise ConfigError("This explanation is empty. Joint explanations are made by GFlowExplainer.")
        return found

    def drop(self, names: Iterable[str]) -> None:
        """Removes masks that nobody asked for."""
        for name in names:
            del self[name]

    def best(self) -> JointExplanation:
        """Returns the first subgraphs of all of them as hard masks."""
        hard = copy.copy(self)
        first = self.explanations[0].best()
        hard.node_mask, hard.edge_mask = first.node_mask, first.edge_mask
        for other in self.explanations[1:]:
            best = other.best()
            hard.node_mask = torch.maximum(hard.node_mask, best.node_mask)
            hard.edge_mask = torch.maximum(hard.edge_mask, best.edge_mask)
        hard._thresholded = True
        return hard

    def threshold(self, *args: Any, **kwargs: Any) -> JointExplanation:
        """Thresholds the masks, as PyG does."""
        cut = super().threshold(*args, **kwargs)
        if cut is not self:
            cut._thresholded = True
        return cut

    def get_explanation_subgraph(self) -> Explanation:
        """Cuts out the first subgraphs; after :meth:`threshold`, what that has left, as PyG does."""
        chosen = self if "_thresholded" in self._store.__dict__ else self.best()
        return super(JointExplanation, chosen).get_explanation_subgraph()

    def __repr__(self) -> str:
        found = self._store.__dict__.get("_explanations")
        return super().__repr__() if found is None else f"{type(self).__name__}: {found!r}"

    def _repr_html_(self) -> str:
        """Shows all of them in a notebook."""
        return self.explanations._repr_html_()
