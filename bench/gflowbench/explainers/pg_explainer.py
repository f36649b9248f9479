r"""PGExplainer: one small network, shared by all instances, that gives each edge a probability.

Luo et al., *Parameterized Explainer for Graph Neural Network*, NeurIPS 2020. The network sees the explained model's
embeddings at the two ends of an edge and, for node tasks, at the explained node, and returns a logit. While it learns,
edges are kept by a relaxed coin flip :math:`m` with that logit, and

.. math:: -\log P(c \mid m) + \lambda_{size} \sum_e m_e + \lambda_{entropy} \operatorname{mean}_e H(m_e)

is minimised, :math:`c` being the class that the model itself predicts. PyG's algorithm wants a class from outside
(``explanation_type="phenomenon"``); handed the predicted one it explains the model. Here it runs on many instances in
one call; one after the other, PyG's own code comes to the same (tested).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.explain import ExplainerConfig, ModelConfig
from torch_geometric.explain import PGExplainer as Algorithm

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.masked_model import MaskedModel, differentiable, parts, pyg_model_config
from gflowbench.explainers.peer import Peer
from gflowexplainer.errors import ConfigError
from gflowexplainer.ops.segments import segment_ids, segment_sum


@dataclass(kw_only=True, eq=False)
class PGExplainer(Peer):
    """Learns one network for all instances, which then explains any.

    Args:
        epochs: Passes over all instances.
        learning_rate: Of Adam.
        size: Weight of the sum of a mask; by default what :attr:`sizes` says of the dataset, or :attr:`usual_size`.
        entropy: Weight of the mean entropy of its entries.
        first_temperature: Of the coin flips, in the first epoch.
        last_temperature: The same in the last.
        bias: How far the coin flips stay away from certainty.
        batch_size: Instances of one update; 0 for all, as in the public replication of the paper. PyG's is 1.
    """

    name = "pgexplainer"
    positive: ClassVar[tuple[str, ...]] = ("epochs", "learning_rate", "first_temperature", "last_temperature")
    usual_size: ClassVar[float] = 0.05
    """Weight of the size of a mask that the authors and PyG begin with."""
    sizes: ClassVar[dict[str, float]] = {"tree-cycles": 0.2, "ba-community": 0.01, "mutagenicity": 0.2}
    """Other weights where that one fails, by dataset: chosen by the ground truth, in this peer's favour."""

    epochs: int = 30
    learning_rate: float = 0.003
    size: float | None = None
    entropy: float = 1.0
    first_temperature: float = 5.0
    last_temperature: float = 2.0
    bias: float = 0.01
    batch_size: int = 0
    _algorithm: GivenNoise | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size < 0:
            raise ConfigError(f"'batch_size' must not be negative (got {self.batch_size}).")
        if not 0 <= self.bias < 0.5:
            raise ConfigError(f"'bias' must lie in [0, 0.5) (got {self.bias}).")

    def fit(self, subject: Subject, seed: int) -> None:
        """Trains the network on the instances of ``subject``."""
        predictor = subject.predictor
        with differentiable(predictor):
            torch.manual_seed(seed)
            algorithm = GivenNoise(self.epochs, self.learning_rate).to(subject.instances.device)
            # PyG keeps these in one dictionary for all explainers; ours gets its own.
            algorithm.coeffs = {
                "edge_size": self.sizes.get(subject.name, self.usual_size) if self.size is None else self.size,
                "edge_ent": self.entropy,
                "temp": [self.first_temperature, self.last_temperature],
                "bias": self.bias,
            }
            config = ExplainerConfig(explanation_type="phenomenon", edge_mask_type="object")
            algorithm.connect(config, ModelConfig(**pyg_model_config(predictor)))
            algorithm.mlp.to(subject.require_embedding().dtype)
            for epoch in range(self.epochs):
                order = torch.randperm(len(subject)).to(subject.instances.device)
                for index in order.split(self.batch_size or len(subject)):
                    self._update(algorithm, subject.select(index), epoch, seed)
        self._algorithm = algorithm

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores each edge by its probability."""
        algorithm = self._algorithm
        if algorithm is None:
            raise ConfigError("This explainer has not been fitted. Call fit first.")
        with torch.no_grad():
            found = [algorithm.mlp(edge_inputs(part)).view(-1) for part in parts(subject)]
        return Scores.of_edges(subject.instances, torch.cat(found).double().sigmoid())

    def _update(self, algorithm: GivenNoise, subject: Subject, epoch: int, seed: int) -> None:
        """Makes one update by several instances; if they do not fit the memory together, bit by bit."""
        algorithm.optimizer.zero_grad()
        for part in parts(subject):
            graphs = MaskedModel.of(part)
            sample = algorithm.sample(part, graphs, epoch, seed)
            # Edges that lead into the instance from outside carry nothing that reaches the explained node.
            mask = sample.new_zeros(graphs.edge_owner.numel()).index_put((graphs.own,), sample)
            loss = graphs.losses(graphs(mask)).sum()
            loss = loss + algorithm.penalty(sample.sigmoid(), graphs.edge_owner[graphs.own], len(part))
            loss.backward()
        algorithm.optimizer.step()


def edge_inputs(subject: Subject) -> Tensor:
    """Puts the embeddings at both ends of each edge, and at the explained node, side by side, shape ``[e, 3 H]``."""
    instances, embedding = subject.instances, subject.require_embedding()
    source, target = instances.edge_index
    ends = [embedding[source], embedding[target]]
    if instances.level == "node":
        owner = segment_ids(instances.edge_counts, source.numel())
        ends.append(embedding[instances.center[owner]])
    return torch.cat(ends, dim=1)


def entropy_of(mask: Tensor) -> Tensor:
    """Returns the entropy of each entry of a mask, a little away from certainty, shape as ``mask``."""
    inner = 0.99 * mask + 0.005
    return -inner * inner.log() - (1 - inner) * (1 - inner).log()


class GivenNoise(Algorithm):
    """PyG's algorithm, with embeddings of the whole graph and coin flips that no batch changes."""

    noise: Tensor
    embedding: Tensor

    def _get_embeddings(self, *_: object, **__: object) -> Tensor:
        return self.embedding

    def _concrete_sample(self, logits: Tensor, temperature: float = 1.0) -> Tensor:
        bias = self.coeffs["bias"]
        chance = ((1 - 2 * bias) * self.noise + bias).to(logits)
        return (chance.log() - (1 - chance).log() + logits) / temperature

    def sample(self, subject: Subject, graphs: MaskedModel, epoch: int, seed: int) -> Tensor:
        """Flips the coins of an epoch: logits of the masks of all edges of the instances, shape ``[e]``."""
        self.noise = graphs.uniform(seed, 1, epoch)[graphs.own]
        logits = self.mlp(edge_inputs(subject)).view(-1)
        return self._concrete_sample(logits, self._get_temperature(epoch))

    def penalty(self, mask: Tensor, owner: Tensor, count: int) -> Tensor:
        """Adds up what the masks of ``count`` instances cost; ``owner`` is the instance of each entry, ``[e]``."""
        edges = torch.bincount(owner, minlength=count).clamp(min=1)
        mean = segment_sum(entropy_of(mask), owner, count) / edges
        return self.coeffs["edge_size"] * mask.sum() + self.coeffs["edge_ent"] * mean.sum()
