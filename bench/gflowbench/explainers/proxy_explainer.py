r"""ProxyExplainer: PGExplainer's network, judged by graphs that look like those the model knows.

Chen et al., *Generating In-Distribution Proxy Graphs for Explaining Graph Neural Networks*, ICML 2024. What a mask
leaves of a graph is none of the kind that the model was trained on, so what the model says of it means little. Here a
generator (:mod:`~gflowbench.explainers.proxy_generator`) makes a proxy graph :math:`\tilde G` of it: an
autoencoder keeps what explains, a variational one perturbs the rest. Two levels are optimised in turn. The inner one
brings proxy graphs near the graphs that they stand for,

.. math:: -\frac{\beta}{|E|} \sum_{uv \in E} \log p_{uv} - \frac{1}{|\bar E|} \sum_{uv \in \bar E} \log (1 - p_{uv})
          + \lambda \operatorname{mean}_v D(q(z_v) \,\|\, \mathcal N(0, 1))

and the outer one learns the mask :math:`m`, :math:`c` being the class that the model itself predicts:

.. math:: -\log P(c \mid \tilde G) + \lambda_{size} \sum_e m_e + \lambda_{entropy} \operatorname{mean}_e H(m_e)

The generator is needed to learn only; an explanation is what PGExplainer's network says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gflowbench.explainers.interface import Subject
from gflowbench.explainers.masked_model import MaskedModel, differentiable, parts
from gflowbench.explainers.pg_explainer import GivenNoise, PGExplainer
from gflowbench.explainers.proxy_generator import ProxyGenerator, reconstruction
from gflowbench.explainers.proxy_graphs import ProxyGraphs, takes_weights
from gflowexplainer.errors import ConfigError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.segments import segment_sum


@dataclass(kw_only=True, eq=False)
class ProxyExplainer(PGExplainer):
    """Learns one network for all instances, by what the model says of proxy graphs.

    Args:
        epochs, entropy, last_temperature: As of :class:`~gflowbench.explainers.pg_explainer.PGExplainer`.
        inner_steps: Updates of the generator before each of the network that explains.
        generator_rate: Of Adam, of the generator.
        width: Length of the codes of nodes in the generator.
        beta: Weight of edges against pairs that no edge joins, in what the generator has to reproduce.
        divergence: Weight of the divergence from a standard Gaussian, of the variational part.
        noise: Scale of its noise: 1 in the paper, 0.01 in the authors' code.
        non_edges: Pairs that no edge joins at most, for each edge of an instance; in small instances all are taken.
    """

    name = "proxy-explainer"
    positive = (*PGExplainer.positive, "inner_steps", "generator_rate", "width", "beta")
    usual_size: ClassVar[float] = 0.01
    sizes: ClassVar[dict[str, float]] = {"ba-2motifs": 0.001, "tree-cycles": 0.05, "tree-grid": 0.03}

    epochs: int = 40
    entropy: float = 0.1
    last_temperature: float = 1.0
    inner_steps: int = 5
    generator_rate: float = 0.01
    width: int = 64
    beta: float = 0.1
    divergence: float = 0.03
    noise: float = 1.0
    non_edges: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("divergence", "noise", "non_edges"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ConfigError(f"'{name}' must be a finite number that is not negative (got {value!r}).")

    def fit(self, subject: Subject, seed: int) -> None:
        """Trains network and generator in turn on the instances of ``subject``."""
        instances = subject.instances
        torch.manual_seed(seed)
        self._generator = ProxyGenerator(self.width, self.noise)
        self._generator.to(instances.device, instances.x.dtype)
        self._inner = torch.optim.Adam(self._generator.parameters(), lr=self.generator_rate)
        with differentiable(subject.predictor):
            first = subject.select(torch.zeros(1, dtype=torch.long, device=instances.device))
            self._weighted = takes_weights(MaskedModel.of(first))
        super().fit(subject, seed)

    def _update(self, algorithm: GivenNoise, subject: Subject, epoch: int, seed: int) -> None:
        """Makes some updates of the generator, then one of the network that explains; both by several instances."""
        some = [_Part.of(part, self._generator, self.non_edges, epoch, seed) for part in self._parts(subject)]
        with torch.no_grad():
            masks = [algorithm.sample(part.subject, part.graphs.model, epoch, seed).sigmoid() for part in some]
        for step in range(self.inner_steps):
            self._inner.zero_grad()
            for part, mask in zip(some, masks, strict=True):
                logits, divergence = part.generate(self._generator, mask, seed, 3, epoch, step)
                self._distance(part, logits, divergence).sum().backward()
            self._inner.step()
        self._generator.requires_grad_(False)
        algorithm.optimizer.zero_grad()
        for part in some:
            model = part.graphs.model
            mask = algorithm.sample(part.subject, model, epoch, seed).sigmoid()
            logits, _ = part.generate(self._generator, mask, seed, 3, epoch, self.inner_steps)
            output = part.graphs.evaluate(logits.sigmoid(), seed, 4, epoch, weighted=self._weighted)
            loss = model.losses(output).sum()
            loss = loss + algorithm.penalty(mask, model.edge_owner[model.own], len(part.subject))
            loss.backward()
        algorithm.optimizer.step()
        self._generator.requires_grad_(True)

    def _parts(self, subject: Subject) -> list[Subject]:
        """Cuts a subject into parts whose proxy graphs fit the memory."""
        return list(parts(subject, times=1 + self.non_edges))

    def _distance(self, part: _Part, logits: Tensor, divergence: Tensor) -> Tensor:
        """Computes how far proxy graphs are from the graphs that they stand for (inner objective), shape ``[I]``."""
        graphs, instances, count = part.graphs, part.instances, len(part.subject)
        mean = segment_sum(divergence, instances.owner, count) / instances.node_counts
        return reconstruction(logits, graphs.num_edges, graphs.owner, count, self.beta) + self.divergence * mean


@dataclass(frozen=True)
class _Part:
    """Some instances, their candidate edges, and the codes of their nodes."""

    subject: Subject
    graphs: ProxyGraphs
    codes: Tensor

    @classmethod
    def of(cls, subject: Subject, generator: ProxyGenerator, non_edges: float, epoch: int, seed: int) -> _Part:
        instances = subject.instances
        graphs = ProxyGraphs.of(MaskedModel.of(subject), instances, non_edges, seed)
        return cls(subject, graphs, generator.codes(instances, seed, 2, epoch))

    @property
    def instances(self) -> Instances:
        return self.subject.instances

    def generate(self, generator: ProxyGenerator, mask: Tensor, *stream: int) -> tuple[Tensor, Tensor]:
        """Generates proxy graphs: logits of candidate edges ``[P]`` and divergences of nodes ``[n]``."""
        noise = generator.draw(self.instances, *stream)
        mask = mask.to(self.codes.dtype)
        return generator(self.codes, self.instances.edge_index, mask, self.graphs.ends, noise)
