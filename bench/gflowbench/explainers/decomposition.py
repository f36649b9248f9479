"""A GCN's forward pass in two portions: what comes from a target set of nodes, and the background (DEGREE).

The rules are those of DEGREE (Feng et al., ICLR 2022). With ``t`` the target portion of a value and ``b`` the rest:

- a linear map acts on each portion by itself, so a graph convolution does (its normalisation is kept);
- a bias is shared by absolute size: the target gets ``|t| / (|t| + |b|)`` of it, and nothing where both are zero;
- ReLU gives the target ``relu(t)``, the background ``relu(t + b) - relu(t)``;
- maximum pooling takes both portions at the node where the whole is largest.

Two things the GNNs here have are not in that paper, and follow from the rules: to scale a row to length one divides
both portions by the length of the whole; batch normalisation in evaluation mode is a factor and a bias.

The whole ``t + b`` does not depend on the target set. It is computed once, and only target portions are propagated,
for many target sets in one disjoint union; the background is what is missing to the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GCNConv, MessagePassing
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from gflowbench.models.networks import GraphNetwork, NodeNetwork
from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, kept_mask
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.ops.segments import pointers, ranges, segment_argmax, segment_max, segment_sum


def with_bias(portion: Tensor, whole: Tensor, bias: Tensor) -> Tensor:
    """Adds the share of a bias that falls to a target portion, by its absolute size beside the background's."""
    size, rest = portion.abs(), (whole - portion).abs()
    share = torch.where(size > 0, size / (size + rest), 0.0)
    return portion + share * bias


@dataclass(frozen=True)
class _Layer:
    """What the whole forward pass left behind at one layer, for ``n`` nodes.

    Attributes:
        received: What the nodes received, before the bias, shape ``[n, H]``.
        length: Length of each row that normalisation divides by, shape ``[n, 1]``; ``None`` without it.
        active: The layer's values after ReLU, before batch normalisation, shape ``[n, H]``.
    """

    received: Tensor
    length: Tensor | None
    active: Tensor


class Decomposition:
    """The forward pass of a GCN on ``I`` instances, ready to be split by any target sets.

    Args:
        predictor: The explained model; a :class:`~gflowbench.models.networks.NodeNetwork` or
            :class:`~gflowbench.models.networks.GraphNetwork` of GCN layers.
        instances: The instances.

    Attributes:
        total: The model's raw scores on the whole instances, shape ``[I, C]``.
    """

    def __init__(self, predictor: Predictor, instances: Instances) -> None:
        self.network = _known(predictor.model)
        self.predictor = predictor
        self.instances = instances
        self._refuse_arguments()
        with predictor.evaluating():
            self._record()

    def contributions(self, targets: Subgraphs) -> Tensor:
        """Computes the target portion of the model's raw scores for ``B`` target sets, which need not be connected.

        Returns:
            Target portions, shape ``[B, C]``; ``total[targets.instance]`` minus these is the background.
        """
        counts = 6 * self.instances.node_counts + 3 * self._edge_ptr.diff()
        cost = counts[targets.instance] * 4 * self.network.architecture.hidden_channels
        parts = [self.total[:0]]
        with self.predictor.evaluating():
            for chunk in self.predictor.chunks(cost):
                part = targets[torch.arange(chunk.start, chunk.stop, device=cost.device)]
                parts.append(self._split(part.instance, kept_mask(self.instances, part)))
        return torch.cat(parts)

    def _refuse_arguments(self) -> None:
        given = self.instances.node_arguments | self.instances.edge_arguments | self.instances.shared_arguments
        unknown = sorted(given.keys() - {"edge_weight"})
        if unknown:
            raise ModelError(
                f"DEGREE does not know what the model makes of {', '.join(map(repr, unknown))}. "
                "Leave these arguments out, or use another explainer."
            )

    def _record(self) -> None:
        """Runs the whole forward pass, with what surrounds the instances, and keeps it at their own nodes.

        A node of the surroundings is too far away for its features to reach the explained node: it only counts in
        the normalisation. So target portions need no more than the instances' own nodes and edges.
        """
        inner = self.instances
        outer = inner.surroundings or inner
        place = torch.arange(inner.num_nodes, device=inner.device) if outer is inner else inner.place_outside
        assert place is not None
        edge_index, weight = _normalized(self.network.convolutions[0], outer)
        h, self._layers, wholes = outer.rows(), [], []
        for number, convolution in enumerate(self.network.convolutions):
            received = _propagate(convolution.lin(h), edge_index, weight)
            biased = received + convolution.bias
            entering, length = biased, None
            if self.network.architecture.normalization == "l2":
                length = biased.norm(dim=1, keepdim=True).clamp(min=1e-12)
                entering = biased / length
                length = length[place]
            h = self.network.activate(biased, number)
            wholes.append(h)
            self._layers.append(_Layer(received[place], length, entering.relu()[place]))
        self._read_out([whole[place] for whole in wholes])
        position = torch.full((outer.num_nodes,), -1, dtype=torch.long, device=inner.device)
        position[place] = torch.arange(inner.num_nodes, device=inner.device)
        ends = position[edge_index]
        inside = (ends >= 0).all(dim=0)
        ends, weight = ends[:, inside], weight[inside]
        owner = inner.owner[ends[1]]
        order = torch.argsort(owner, stable=True)
        self._ends, self._weight = ends[:, order], weight[order]
        self._edge_ptr = pointers(torch.bincount(owner, minlength=len(inner)))

    def _read_out(self, outputs: list[Tensor]) -> None:
        """Computes the raw scores on the whole instances, ``total`` ``[I, C]``, and what their read-out looks at."""
        inner, network = self.instances, self.network
        if isinstance(network, NodeNetwork):
            self._pooled = torch.cat(outputs, dim=1)[inner.center]
        elif isinstance(network, GraphNetwork):
            nodes, count, width = outputs[-1], len(inner), outputs[-1].size(1)
            self._pooled = network.pool(nodes, inner.owner)
            padded = network.architecture.padded_nodes or 0
            self._size = inner.node_counts.clamp(min=padded)[:, None]
            # One segment for each graph and channel: where the channel is largest, unless a padding node is larger.
            segment = (inner.owner[:, None] * width + torch.arange(width, device=inner.device)).flatten()
            best = segment_argmax(nodes.flatten(), segment, count * width)
            largest = segment_max(nodes.flatten(), segment, count * width).view(count, width)
            node = (best // width).view(count, width) - inner.ptr[:-1, None]
            self._largest = torch.where(self._pooled[:, :width] > largest, -1, node)
        self.total = network.lin(self._pooled)

    def _split(self, instance: Tensor, target: Tensor) -> Tensor:
        """Propagates the target portions of some target sets, all at once."""
        inner = self.instances
        owner, node = ranges(inner.ptr[instance], inner.node_counts[instance])
        first = pointers(inner.node_counts[instance])[:-1]
        edge_owner, edge = ranges(self._edge_ptr[instance], self._edge_ptr.diff()[instance])
        ends = self._ends[:, edge] + (first - inner.ptr[instance])[edge_owner]
        weight = self._weight[edge]
        portion = torch.where(target[:, None], inner.rows(node), 0.0)
        portions = []
        for number, (convolution, layer) in enumerate(zip(self.network.convolutions, self._layers, strict=True)):
            received = _propagate(convolution.lin(portion), ends, weight)
            portion = with_bias(received, layer.received[node], convolution.bias)
            if layer.length is not None:
                portion = portion / layer.length[node]
            portion = portion.relu()
            if self.network.architecture.normalization == "batch" and number < 2:
                scale, shift = _affine((self.network.bn1, self.network.bn2)[number])
                portion = with_bias(portion * scale, layer.active[node] * scale, shift)
            portions.append(portion)
        if isinstance(self.network, NodeNetwork):
            center = first + inner.center[instance] - inner.ptr[instance]
            pooled = torch.cat([part[center] for part in portions], dim=1)
        else:
            largest = self._largest[instance]
            at = (largest.clamp(min=0) + first[:, None], torch.arange(portion.size(1), device=inner.device))
            most = torch.where(largest < 0, 0.0, portion[at])
            mean = segment_sum(portion, owner, instance.numel()) / self._size[instance]
            pooled = torch.cat([most, mean], dim=1)
        readout = self.network.lin
        return with_bias(pooled @ readout.weight.T, self._pooled[instance] @ readout.weight.T, readout.bias)


def _known(model: nn.Module) -> NodeNetwork | GraphNetwork:
    """Refuses a model whose layers there is no rule for."""
    if isinstance(model, NodeNetwork | GraphNetwork):
        unknown = [type(layer).__name__ for layer in model.convolutions if not isinstance(layer, GCNConv)]
        if not unknown:
            return model
    else:
        unknown = [type(layer).__name__ for layer in model.modules() if isinstance(layer, MessagePassing)]
    layers = ", ".join(dict.fromkeys(unknown)) or "no message-passing layer"
    raise ModelError(
        f"DEGREE has no rule to decompose {type(model).__name__} ({layers}): it knows "
        f"{NodeNetwork.__name__} and {GraphNetwork.__name__} of gflowbench.models with GCN layers. "
        "Use one of these, or another explainer."
    )


def _normalized(convolution: MessagePassing, instances: Instances) -> tuple[Tensor, Tensor]:
    """Lists the edges that the layers send along, self loops included, and the weight of each."""
    return gcn_norm(
        instances.edge_index,
        instances.edge_arguments.get("edge_weight"),
        instances.num_nodes,
        convolution.improved,
        convolution.add_self_loops,
        dtype=instances.x.dtype,
    )


def _propagate(values: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    """Sums what each node receives, ``[N, H]``."""
    source, target = edge_index
    return segment_sum(weight[:, None] * values[source], target, values.size(0))


def _affine(norm: BatchNorm) -> tuple[Tensor, Tensor]:
    """Reads batch normalisation in evaluation mode as a factor and a bias, both of shape ``[H]``."""
    module = norm.module
    scale = module.weight / (module.running_var + module.eps).sqrt()
    return scale, module.bias - scale * module.running_mean
