"""What is refused of a graph before anything is computed: features, edges and ids that cannot be meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer.errors import InstanceError
from gflowexplainer.ops.devices import device_of


def check_parts(graph: Data, where: str = "the graph") -> None:
    """Refuses a graph without features or without edges, and says which of them it lacks."""
    what = {"x": "node features [num_nodes, width]", "edge_index": "node ids [2, num_edges]"}
    missing = [name for name in what if graph.get(name) is None]
    if missing:
        said = " and ".join(f"'{name}' ({what[name]})" for name in missing)
        names = " and no ".join(f"'{name}'" for name in missing)
        raise InstanceError(f"{where[:1].upper()}{where[1:]} has no {names}. Set {said}.")


def check_features(x: Tensor, where: str = "the graph") -> int:
    """Refuses features that are no ``[N, F]`` floats, without reading them; returns the number of nodes."""
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
        got = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise InstanceError(f"The features of {where} must be a float tensor [num_nodes, width] (got {got}).")
    if x.layout != torch.strided:
        raise InstanceError(f"The features of {where} are sparse ({x.layout}). Call .to_dense() on them.")
    if x.size(1) == 0:
        raise InstanceError(f"The features of {where} have no columns, shape {tuple(x.shape)}. Give a constant one.")
    if x.size(0) == 0:
        raise InstanceError(f"There is nothing to explain: {where} has no nodes.")
    return x.size(0)


def check_finite(x: Tensor, nodes: Tensor | None = None, where: str = "the graph") -> None:
    """Refuses features ``[n, F]`` that are no numbers; ``nodes`` ``[n]`` names the rows, if they are some of many."""
    if not torch.isfinite(x).all():
        row = int(torch.nonzero(~torch.isfinite(x).all(dim=1))[0])
        row = row if nodes is None else int(nodes[row])
        raise InstanceError(f"The features of {where} hold NaN or infinity, first at node {row}. Clean them first.")


def check_shape(edge_index: Tensor, where: str = "the graph") -> None:
    """Refuses an ``edge_index`` that is no ``[2, E]`` tensor of int64, without reading it."""
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        got = tuple(edge_index.shape) if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise InstanceError(f"'edge_index' of {where} must be a tensor of shape [2, num_edges] (got {got}).")
    if edge_index.layout != torch.strided:
        raise InstanceError(f"'edge_index' of {where} is sparse ({edge_index.layout}). Pass node ids [2, num_edges].")
    if edge_index.dtype != torch.long:
        raise InstanceError(f"'edge_index' of {where} must be int64 (got {edge_index.dtype}). Call .long() on it.")


def check_edges(edge_index: Tensor, num_nodes: int, where: str = "the graph") -> None:
    """Refuses an ``edge_index`` that is no ``[2, E]`` tensor of valid node ids."""
    check_shape(edge_index, where)
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < num_nodes:
        worst = edge_index[(edge_index < 0) | (edge_index >= num_nodes)][0]
        raise InstanceError(
            f"'edge_index' names node {int(worst)}, but {where} has {num_nodes} nodes. "
            f"Every id must lie in [0, {num_nodes})."
        )


def check_graph(x: Tensor, edge_index: Tensor, where: str) -> None:
    """Refuses a graph whose features or edges cannot be meant; reads all of it."""
    check_edges(edge_index, check_features(x, where), where)
    check_finite(x, where=where)


def check_index(
    index: Tensor | Sequence[int] | int, num_nodes: int, device: torch.device, where: str = "the graph"
) -> Tensor:
    """Turns ids into a tensor ``[I]``, or says which one does not exist."""
    try:
        nodes = torch.as_tensor(index, device=device)
        nodes = nodes if nodes.dim() == 1 else nodes.reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'index' must hold node ids (got {index!r}).") from error
    if nodes.dtype == torch.bool:
        if nodes.numel() != num_nodes:
            raise InstanceError(
                f"'index' is a mask of {nodes.numel()} entries, but {where} has {num_nodes} nodes. Pass one a node."
            )
        nodes = torch.nonzero(nodes).flatten()
    if nodes.numel() == 0:
        raise InstanceError("'index' is empty. Pass at least one node id.")
    if nodes.is_floating_point() or nodes.is_complex():
        raise InstanceError(f"'index' must hold whole numbers (got {nodes.dtype}). Call .long() on it.")
    nodes = nodes.long()
    # Of one node there is nothing to compare, and torch takes long to begin.
    least, most = (nodes, nodes) if nodes.numel() == 1 else nodes.aminmax()
    if int(least) < 0 or int(most) >= num_nodes:
        wrong = nodes[(nodes < 0) | (nodes >= num_nodes)]
        raise InstanceError(
            f"'index' names node {int(wrong[0])}, but {where} has {num_nodes} nodes. Pass ids in [0, {num_nodes})."
        )
    return nodes


def check_devices(given: Mapping[str, Any], model: nn.Module, default: torch.device) -> None:
    """Refuses tensors ``given`` by name that are not where the model is; without weights, that is ``default``."""
    if not isinstance(model, nn.Module):
        return
    own = device_of(model, default)
    for name, value in given.items():
        if isinstance(value, Tensor) and value.device != own:
            raise InstanceError(f"'{name}' is on {value.device}, but the model on {own}. Move one of them.")
