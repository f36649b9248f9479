r"""The generator of proxy graphs: an autoencoder of what explains, and a variational one of the rest.

Each encodes nodes by one layer of messages along the edges, weighted by the mask :math:`m` of what explains or by
:math:`1 - m`. A pair is joined with probability :math:`\sigma(s \, z_u \cdot z_v + b)`, and a proxy graph takes the
larger one of both autoencoders. What is encoded are random codes of nodes, drawn anew for each update, and not their
features: a generator that recognises nodes gives edges back that the mask has taken away, and then any mask will do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GraphConv

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.hashed_random import combine, uniform
from gflowexplainer.ops.segments import segment_sum

_FIRST_NOISE = 0.1
"""Standard deviation that the variational autoencoder begins with."""


class GraphEncoder(nn.Module):
    r"""One layer of messages along weighted edges, and pairs of nodes by what the layer makes of them.

    A pair is joined with probability :math:`\sigma(s \, z_u \cdot z_v + b)`. Codes begin as they are: nodes are alike
    if the code of one is among those that reach the other.

    Args:
        width: Length of the codes of nodes, and of what they are encoded by.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.messages = GraphConv(width, width, bias=False)
        self.scale = nn.Parameter(torch.tensor(5.0).log())
        self.bias = nn.Parameter(torch.tensor(-5.0))
        nn.init.eye_(self.messages.lin_root.weight)
        nn.init.eye_(self.messages.lin_rel.weight)

    def forward(self, codes: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        """Encodes nodes with codes ``[n, width]``, shape ``[n, width]``."""
        return self.messages(codes, edge_index, weight)

    def decode(self, z: Tensor, ends: Tensor) -> Tensor:
        """Returns the logit of each pair of nodes, shape ``[P]``."""
        return self.scale.exp() * (z[ends[0]] * z[ends[1]]).sum(dim=1) + self.bias


class ProxyGenerator(nn.Module):
    """Generates proxy graphs of masked graphs.

    Args:
        width: Length of the codes of nodes, and of what they are encoded by.
        noise: Scale of the noise of the variational autoencoder.
    """

    def __init__(self, width: int, noise: float = 1.0) -> None:
        super().__init__()
        self.width = width
        self.noise = noise
        self.explaining = GraphEncoder(width)
        self.rest = GraphEncoder(width)
        self.log_variance = nn.Linear(width, width)
        nn.init.zeros_(self.log_variance.weight)
        nn.init.constant_(self.log_variance.bias, 2 * math.log(_FIRST_NOISE))

    def codes(self, instances: Instances, *stream: int) -> Tensor:
        """Draws codes that tell the nodes of an instance from one another, and nothing else, shape ``[n, width]``.

        Where an instance has no more than ``width`` nodes, a code is a number in random order, one-hot; else it is a
        random vector of unit length on average.
        """
        owner = instances.owner
        chance = uniform(*stream, instances.own_key[owner], instances.key)
        place = torch.empty_like(owner)
        place[torch.argsort(owner + chance)] = torch.arange(instances.num_nodes, device=instances.device)
        number = functional.one_hot((place - instances.ptr[owner]) % self.width, self.width)
        vector = self._gaussian(instances, *stream) / self.width**0.5
        return torch.where((instances.node_counts <= self.width)[owner, None], number, vector).to(instances.x.dtype)

    def draw(self, instances: Instances, *stream: int) -> Tensor:
        """Draws the noise of a proxy graph, shape ``[n, width]``."""
        return self.noise * self._gaussian(instances, *stream).to(instances.x.dtype)

    def _gaussian(self, instances: Instances, *stream: int) -> Tensor:
        node = combine(*stream, instances.own_key[instances.owner], instances.key)
        return torch.special.ndtri(uniform(node[:, None], torch.arange(self.width, device=instances.device)))

    def forward(
        self, codes: Tensor, edge_index: Tensor, mask: Tensor, ends: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Generates proxy graphs.

        Args:
            codes: What :meth:`codes` returns.
            edge_index: Edges of the graphs, shape ``[2, e]``.
            mask: How much each edge belongs to what explains, shape ``[e]``, in (0, 1).
            ends: Pairs of nodes, shape ``[2, P]``.
            noise: What :meth:`draw` returns.

        Returns:
            Logits of the pairs, shape ``[P]``; and the divergence of each node's code from a standard Gaussian in the
            variational autoencoder, shape ``[n]``.
        """
        explaining = self.explaining(codes, edge_index, mask)
        mean = self.rest(codes, edge_index, 1 - mask)
        log_variance = self.log_variance(mean)
        rest = mean + noise * (0.5 * log_variance).exp()
        logits = torch.maximum(self.explaining.decode(explaining, ends), self.rest.decode(rest, ends))
        return logits, 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=1)


def reconstruction(logits: Tensor, num_edges: int, owner: Tensor, num_instances: int, beta: float) -> Tensor:
    r"""Computes the weighted cross-entropy between proxy graphs and the graphs that they stand for.

    .. math:: -\frac{\beta}{|E|} \sum_{uv \in E} \log p_{uv} - \frac{1}{|\bar E|} \sum_{uv \in \bar E} \log (1 - p_{uv})

    Args:
        logits: Logits of pairs, those of the ``num_edges`` edges first, shape ``[P]``.
        num_edges: How many of them are edges.
        owner: Instance of each pair, shape ``[P]``.
        num_instances: Number of instances ``I``.
        beta: Weight of the edges.

    Returns:
        One value an instance, shape ``[I]``.
    """
    total = logits.new_zeros(num_instances)
    for cost, mine, weight in (
        (functional.softplus(-logits[:num_edges]), owner[:num_edges], beta),
        (functional.softplus(logits[num_edges:]), owner[num_edges:], 1.0),
    ):
        count = torch.bincount(mine, minlength=num_instances).clamp(min=1)
        total = total + weight * segment_sum(cost, mine, num_instances) / count
    return total
