r"""PGExplainer of links: one small network, learned on training links, gives each edge around a link a probability.

Luo et al., *Parameterized Explainer for Graph Neural Network*, NeurIPS 2020; at links, as the authors of PaGE-Link
compare with it, the network sees the embeddings at both ends of an edge and at both ends of the link. While it learns,
edges are kept by a relaxed coin flip :math:`m` with its logit, and

.. math:: -\log P(\text{link} \mid m) + \lambda_{size} \sum_e m_e + \lambda_{entropy} \operatorname{mean}_e H(m_e)

is minimised over all training links, one update an epoch. The embedding of a node is what arrives at it in the last
message-passing layer, the sum over relations; layers are found by the names that PyG's masks of typed models go by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.utils import get_embeddings

from gflowbench.explainers.masked_model import masks_alone
from gflowbench.explainers.peer import check_positive
from gflowbench.explainers.pg_explainer import entropy_of
from gflowbench.typed.cut_links import CutLink, cut_link
from gflowbench.typed.link_task import RELATION, EdgeType, LinkScores, LinkTask, TypedEdge
from gflowbench.typed.link_ways import edges_around, reach
from gflowexplainer.errors import ConfigError

_BIAS = 0.01
"""How far coin flips stay away from certainty."""


@dataclass(kw_only=True, eq=False)
class LinkPGExplainer:
    """Scores an edge by the probability that a network gives it, learned on the training links.

    Args:
        epochs: Updates, each by all training links.
        learning_rate: Of Adam.
        size: Weight of the sum of a mask.
        entropy: Weight of the mean entropy of its entries.
        temperatures: Of the coin flips, in the first epoch and in the last.
    """

    name = "pgexplainer"

    epochs: int = 30
    learning_rate: float = 0.005
    size: float = 0.01
    entropy: float = 0.0005
    temperatures: tuple[float, float] = (5.0, 2.0)

    def __post_init__(self) -> None:
        check_positive(epochs=self.epochs, learning_rate=self.learning_rate)

    def fit(self, task: LinkTask, seed: int) -> None:
        """Trains the network; the seed is that of its weights and of the coin flips."""
        self._embedding, hops = embeddings(task), reach(task)
        torch.manual_seed(seed)
        width = next(iter(self._embedding.values())).size(1)
        self._network = nn.Sequential(nn.Linear(4 * width, 64), nn.ReLU(), nn.Linear(64, 1))
        optimizer = torch.optim.Adam(self._network.parameters(), lr=self.learning_rate)
        known = [_prepared(task, self._embedding, link, edges_around(task, link, hops)) for link in task.train.t()]
        first, last = self.temperatures
        with masks_alone(task.model):
            for epoch in range(self.epochs):
                temperature = first * (last / first) ** (epoch / self.epochs)
                optimizer.zero_grad()
                for cut, inputs in known:
                    mask = coin_flips(self._network(inputs).view(-1), temperature)
                    loss = -functional.logsigmoid(cut.masked_score(mask))
                    (loss + self.size * mask.sum() + self.entropy * entropy_of(mask).mean()).backward()
                optimizer.step()

    @torch.no_grad()
    def explain(self, task: LinkTask, seed: int) -> LinkScores:
        """Scores the edges around each link."""
        scores = []
        for link, around in zip(task.test.t(), task.around, strict=True):
            chance = self._network(_prepared(task, self._embedding, link, around)[1]).view(-1).sigmoid()
            scores.append(dict(zip(around, chance.tolist(), strict=True)))
        return scores


@torch.no_grad()
def embeddings(task: LinkTask) -> dict[str, Tensor]:
    """Returns what arrives at each node in the last layer, by type, shapes ``[N, H]``; 0 where nothing can."""
    graph, model = task.graph, task.model
    if task.is_plain:
        return {RELATION[0]: get_embeddings(model, graph.x, graph.edge_index, task.test[:, :1])[-1]}
    arrived: dict[EdgeType, Tensor] = {}

    def keep(key: EdgeType) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(_module: nn.Module, _given: object, output: Tensor) -> None:
            arrived[key] = output  # a later layer takes the place of an earlier one

        return hook

    handles = [
        module["__".join(key)].register_forward_hook(keep(key))
        for module in model.modules()
        if isinstance(module, nn.ModuleDict)
        for key in task.edge_index
        if "__".join(key) in module
    ]
    try:
        model(graph.x_dict, graph.edge_index_dict, task.test[:, :1])
    finally:
        for handle in handles:
            handle.remove()
    if not arrived:
        raise ConfigError("The model has no layers by relation, such as HeteroConv has, to read embeddings off.")
    width = next(iter(arrived.values())).size(1)
    found = {kind: x.new_zeros(x.size(0), width) for kind, x in graph.x_dict.items()}
    for (_, _, target), output in arrived.items():
        found[target] = found[target] + output
    return found


def coin_flips(logits: Tensor, temperature: float) -> Tensor:
    """Flips a relaxed coin for each edge (the concrete distribution), values in (0, 1), shape ``[E]``."""
    chance = (1 - 2 * _BIAS) * torch.rand_like(logits) + _BIAS
    return ((chance.logit() + logits) / temperature).sigmoid()


def _prepared(
    task: LinkTask, embedding: dict[str, Tensor], link: Tensor, around: Sequence[TypedEdge]
) -> tuple[CutLink, Tensor]:
    """Cuts a link out, with what the network sees of each of its edges, shape ``[E, 4 H]``."""
    cut = cut_link(task, link, around)
    local = {kind: embedding[kind][nodes] for kind, nodes in cut.nodes.items()}
    ends = torch.cat([local[kind][end] for kind, end in zip(task.end_types, cut.link, strict=True)])
    inputs = ends.new_zeros(cut.num_edges, 2 * ends.numel())
    for key, index in cut.edge_index.items():
        sides = [local[key[0]][index[0]], local[key[2]][index[1]], ends.expand(index.size(1), -1)]
        inputs[cut.place[key]] = torch.cat(sides, dim=1)
    return cut, inputs
