"""RG-Explainer's reward: does a subgraph alone keep the prediction and the embedding, and is it small and near."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing, global_mean_pool
from torch_geometric.nn.dense import Linear

from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, inner_neighbors
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.prediction import edges_inside, radius


class WithRepresentation(nn.Module):
    """A model that also tells what its last dense layer read: the embedding of each node, or of each graph.

    That is what the published code compares. A model without a dense layer behind its message passing is read
    at the output of its last message-passing layer, at graph level averaged over the nodes.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        inner = {part for layer in model.modules() if isinstance(layer, MessagePassing) for part in layer.modules()}
        self._dense = [m for m in model.modules() if isinstance(m, nn.Linear | Linear) and m not in inner]
        self._passing = [m for m in model.modules() if isinstance(m, MessagePassing)]

    def forward(self, x: Tensor, edge_index: Tensor, **arguments: Any) -> Tensor:
        """Returns the scores and then the embedding of each node or graph, shape ``[Q, C + H]``."""
        read: list[Tensor] = []
        sent: list[Tensor] = []
        handles = [m.register_forward_hook(lambda _m, given, _out: read.append(given[0])) for m in self._dense]
        handles += [m.register_forward_hook(lambda _m, _given, out: sent.append(out)) for m in self._passing]
        try:
            answer = self.model(x, edge_index, **arguments)
        finally:
            for handle in handles:
                handle.remove()
        # One column or squeezed to a number: still one row a node or graph.
        answer = answer[:, None] if answer.dim() == 1 and answer.size(0) > 1 else answer.reshape(-1, answer.shape[-1])
        if read and read[-1].dim() == 2 and read[-1].size(0) == answer.size(0):
            return torch.cat([answer, read[-1]], dim=1)
        if not sent or not isinstance(sent[-1], Tensor):
            raise ModelError(
                f"No embedding can be read from {type(self.model).__name__}: its last layer is neither dense nor "
                "message passing. RG-Explainer needs one; use distance_weight=0."
            )
        rows = sent[-1].flatten(1)
        return torch.cat([answer, rows if rows.size(0) == answer.size(0) else _pooled(rows, arguments)], dim=1)


def _pooled(rows: Tensor, arguments: dict[str, Any]) -> Tensor:
    return global_mean_pool(rows, arguments.get("batch"), size=None)


class _AllColumns(Predictor):
    """A model whose scores and representation, side by side, are read as they are."""

    def read(self, output: Tensor) -> Tensor:
        """See :class:`~gflowexplainer.model.predictor.Predictor`."""
        return output


class RGReward(Reward):
    r"""The reward of RG-Explainer's public code.

    .. math:: \log R(s) = \log P_\Phi(y \mid s) - \lambda_1 |E_s| - \lambda_2 \lVert z_s - z_G \rVert - \lambda_3\, r(s)

    with :math:`|E_s|` the directed edges inside, :math:`z` what the last dense layer of the model reads (of the
    explained node, or of the graph), once on the subgraph alone and once on everything, and :math:`r` the radius:
    the most steps from the start node to a member.

    Args:
        edge_weight, distance_weight, radius_weight: The three coefficients.
        **settings: See :class:`~gflowexplainer.rewards.base.Reward`.
    """

    def __init__(
        self,
        predictor: Predictor,
        instances: Instances,
        *,
        edge_weight: float,
        distance_weight: float,
        radius_weight: float,
        **settings: Any,
    ) -> None:
        super().__init__(predictor, instances, **settings)
        self.edge_weight, self.distance_weight, self.radius_weight = edge_weight, distance_weight, radius_weight
        self._watched = _AllColumns(
            WithRepresentation(predictor.model),
            level=predictor.level,
            mode="regression",
            num_hops=predictor.num_hops,
            memory_budget=predictor.memory_budget,
        )
        self._watched.takes_batch = predictor.takes_batch
        with self._watched.evaluating():
            whole = self._watched.whole(instances)
        self._num_scores = self.target.prediction.size(1) if predictor.mode != "binary_classification" else 1
        self._whole = whole[:, self._num_scores :]

    def log_score(self, subgraphs: Subgraphs) -> Tensor:
        """See :class:`~gflowexplainer.rewards.base.Reward`; the radius counts from the first member."""
        score = super().log_score(subgraphs)
        if self.radius_weight == 0:
            return score
        # The same nodes may have grown from different starts, and what is remembered knows nothing of that.
        adjacent = inner_neighbors(self.instances, subgraphs)
        return score - self.radius_weight * radius(adjacent)

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        cost = self.predictor.cost(self.instances)[subgraphs.instance]
        parts = []
        for chunk in self.predictor.chunks(cost):
            part = subgraphs[torch.arange(chunk.start, chunk.stop, device=cost.device)]
            kept = self.kept_mask(part)
            answer = self._watched.predict(self.instances, part.instance, kept, self.removal, alone=True)
            scores, representation = answer[:, : self._num_scores], answer[:, self._num_scores :]
            alone = self.predictor.read(self.predictor.checked(scores, len(part)))
            gap = (representation - self._whole[part.instance]).norm(dim=1)
            edges = edges_inside(self.instances, part, kept)
            held = self.target.log_preservation(alone, part.instance)
            parts.append(held - self.edge_weight * edges - self.distance_weight * gap)
        return torch.cat(parts)
