"""Several predictions explained by one call of PyG's ``Explainer``: one pair of masks, and what is behind it."""

from __future__ import annotations

import copy
from functools import reduce

import torch

from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.explanation_list import ExplanationList
from gflowexplainer.explanation.masked import MaskedExplanation


class JointExplanation(MaskedExplanation):
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

    @property
    def explanations(self) -> ExplanationList:
        """The explanation of each, in the order of ``index``."""
        found = vars(self._store).get("_explanations")
        if found is None:
            raise ConfigError("This explanation is empty. Joint explanations are made by GFlowExplainer.")
        return found

    def best(self) -> JointExplanation:
        """Returns the first subgraphs of all of them as hard masks."""
        hard, each = copy.copy(self), [explanation.best() for explanation in self.explanations]
        hard.node_mask = reduce(torch.maximum, [one.node_mask for one in each])
        hard.edge_mask = reduce(torch.maximum, [one.edge_mask for one in each])
        hard._thresholded = True
        return hard

    def __repr__(self) -> str:
        found = vars(self._store).get("_explanations")
        return super().__repr__() if found is None else f"{type(self).__name__}: {found!r}"

    def _repr_html_(self) -> str:
        """Shows all of them in a notebook."""
        return self.explanations._repr_html_()
