"""The forms in which users have graphs: adjacency matrices, whole numbers as features, no features at all.

Each is brought to float features and edges, and the model is put behind an adapter that turns them back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, HeteroData

from gflowexplainer.errors import InstanceError
from gflowexplainer.graphs.inputs import listed
from gflowexplainer.graphs.signature import forward_parameters, takes_everything
from gflowexplainer.model.adapter import NODE_IDS, WEIGHTS, InputForm, bare_model, is_adjacency
from gflowexplainer.ops.deferred import DeferredList

Adapt = Callable[[nn.Module, InputForm], nn.Module]


def usual_form(model: nn.Module, data: Any, adapted: Adapt) -> tuple[nn.Module, Any]:
    """Brings a model and its graph, or graphs, to the usual form; what is in it already stays the same object.

    Each of several graphs is looked at when it is asked for.

    Args:
        model: The model.
        data: What :meth:`~gflowexplainer.GFlowExplainer.explain` takes; graphs with types are left alone.
        adapted: Puts a model behind an adapter for a form.
    """
    if not isinstance(model, nn.Module):
        return model, data
    model = bare_model(model)
    if isinstance(data, Data) and not isinstance(data, Batch):
        form = _form(model, data)
        graph = data if form is None and _complete(model, data) else _usual(model, data, form or InputForm())
        return model if form is None else adapted(model, form), graph
    if isinstance(data, HeteroData):
        return model, data
    graphs = listed(data)
    if len(graphs) == 0 or not isinstance(graphs[0], Data):
        return model, graphs
    form = _form(model, graphs[0])

    def one(number: int) -> Any:
        graph = graphs[number]
        if form is None and (not isinstance(graph, Data) or _complete(model, graph)):
            return graph
        if not isinstance(graph, Data) or _form(model, graph) != form:
            raise InstanceError(f"Graph {number} holds its features or edges in another form than graph 0.")
        return _usual(model, graph, form or InputForm())

    return model if form is None else adapted(model, form), DeferredList(len(graphs), one)


def usual_call(
    model: nn.Module, x: Any, edge_index: Any, arguments: Mapping[str, Any], adapted: Adapt
) -> tuple[nn.Module, Any, Any, dict[str, Any]]:
    """Does the same for what PyG's ``Explainer`` hands over: features, edges and further arguments."""
    if not isinstance(model, nn.Module):
        return model, x, edge_index, dict(arguments)
    model, given = bare_model(model), dict(arguments)
    if not isinstance(x, Tensor) or x.dim() == 0:
        return model, x, edge_index, given
    where = "adj_t" if is_adjacency(edge_index) else "edge_index"
    graph = Data(**{"x": x, where: edge_index})
    form = _tensors(graph)
    if form is None:
        return model, x, edge_index, given
    found = _usual(model, graph, form)
    if WEIGHTS in found:
        given[WEIGHTS] = found[WEIGHTS]
    return adapted(model, form), found.x, found.edge_index, given


def _complete(model: nn.Module, graph: Data) -> bool:
    """Whether nothing has to be added to a graph for a model that is in no form of its own."""
    return not takes_everything(model) or (graph.x is not None and NODE_IDS in graph)


def _form(model: nn.Module, graph: Data) -> InputForm | None:
    """Finds out in which form a graph and its model are; ``None`` for the usual one."""
    if takes_everything(model):
        return _tensors(graph)
    names = list(forward_parameters(model))
    first = names[0] if names else "x"
    by_name = first != "x" and first != "edge_index" and isinstance(graph.get(first), Tensor)
    if by_name and (graph.x is None or (len(names) > 1 and names[1] in graph and names[1] != "edge_index")):
        return InputForm(names=tuple(names))
    if graph.x is None and "x" not in names:
        raise InstanceError(
            "The graph has no 'x', and the model takes nothing else with one row a node. If it looks up its nodes in "
            "an embedding, let its forward take their ids, and pass adapt(model, call=lambda model, data: "
            f"model(data.{NODE_IDS}, data.edge_index))."
        )
    return _tensors(graph)


def _tensors(graph: Data) -> InputForm | None:
    """Finds out in which form features and edges are."""
    adjacency = graph.get("adj_t") if graph.get("edge_index") is None else None
    kind = None
    if is_adjacency(adjacency):
        kind = adjacency.layout if isinstance(adjacency, Tensor) else type(adjacency)
    x = graph.x
    whole = isinstance(x, Tensor) and x.dtype in (torch.long, torch.int, torch.short, torch.int8, torch.uint8)
    flat = isinstance(x, Tensor) and x.dim() == 1
    if kind is None and not whole and not flat:
        return None
    return InputForm(kind, x.dtype if whole and x is not None else None, flat)


def _usual(model: nn.Module, graph: Data, form: InputForm) -> Data:
    """Returns a graph with float features ``[N, F]`` and edges ``[2, E]``."""
    found = copy.copy(graph)
    if form.adjacency is not None:
        source, target, weight = _edges(graph.adj_t)
        del found.adj_t
        found.edge_index = torch.stack([source, target])
        if weight is not None:
            found[WEIGHTS] = weight
    if found.edge_index is None:
        raise InstanceError(
            "The graph has no 'edge_index', and subgraphs are connected along it. Set it; for points in space, "
            "torch_geometric.transforms.RadiusGraph or KNNGraph do."
        )
    number = graph.num_nodes
    assert number is not None
    if found.x is None:
        found.x = torch.ones(number, 1, device=found.edge_index.device)
    elif form.dtype is not None or form.flat:
        found.x = found.x.reshape(number, -1).to(torch.get_default_dtype())
    if takes_everything(model) and NODE_IDS not in found:
        found[NODE_IDS] = torch.arange(number, device=found.edge_index.device)
    return found


def _edges(adjacency: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Reads source, target and value of each edge off a transposed adjacency matrix, each ``[E]``."""
    if not isinstance(adjacency, Tensor):
        row, col, value = adjacency.coo()
        return col, row, value
    entries = adjacency.to_sparse_coo().coalesce()
    row, col = entries.indices()
    value = entries.values()
    return col, row, None if bool((value == 1).all()) else value
