"""From what a user passes to a task: nodes, graphs or links, of graphs with one or several types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, HeteroData
from torch_geometric.explain import ModelConfig

from gflowexplainer.errors import InstanceError, ModelError
from gflowexplainer.graphs.inputs import DeferredList, InputGraph, input_graph, input_graphs, listed, without_batch
from gflowexplainer.graphs.links import DETOUR
from gflowexplainer.graphs.signature import forward_parameters
from gflowexplainer.graphs.typed import EdgeType, TypedGraph, flat_list
from gflowexplainer.graphs.typed_inputs import checked_graph, typed_graph
from gflowexplainer.model.adapter import shown_name, usual_call, usual_form
from gflowexplainer.model.cache import ModelCache
from gflowexplainer.model.config import config_to_dict, model_config_of
from gflowexplainer.model.one_graph import LinkTask, NodeTask
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import GraphTask, Task
from gflowexplainer.model.typed import TypedPredictor, find_node_type
from gflowexplainer.ops.memory import model_budget


def task_of_data(
    model: nn.Module,
    data: Any,
    cache: ModelCache,
    *,
    model_config: ModelConfig | Mapping[str, Any] | None,
    known: ModelConfig | None,
    num_hops: int | None,
    memory_budget: int | None,
    **wanted: Any,
) -> tuple[ModelConfig, Task]:
    """Makes the task of what a user passes to :meth:`~gflowexplainer.GFlowExplainer.explain`.

    Args:
        model: The model.
        data: One graph, or several.
        cache: What is known from earlier calls.
        model_config: Mode, level and return type of the model, where the call says them.
        known: The same, where they were said or fitted before.
        num_hops: Message-passing steps of the model; counted if ``None``.
        memory_budget: Bytes that one batch of work may take; found out if ``None``.
        **wanted: Further arguments of :func:`task_of`.

    Returns:
        What kind of model it is, and the task.
    """
    model, data = usual_form(model, data, cache.adapted)
    links, node_type = wanted["edge_label_index"] is not None, wanted["node_type"]
    config = model_config_of(model_config, known, data, wanted["index"], links=links, node_type=node_type, model=model)
    return config, task_of(_predictor(model, config, cache, num_hops, memory_budget), data, cache, **wanted)


def task_of_call(
    model: nn.Module,
    x: Any,
    edge_index: Any,
    arguments: Mapping[str, Any],
    cache: ModelCache,
    *,
    known: ModelConfig | None,
    num_hops: int | None,
    memory_budget: int | None,
    **wanted: Any,
) -> tuple[ModelConfig, Task]:
    """Makes the task of one call of PyG's ``Explainer``.

    Args:
        model: The model.
        x: Features, or features by node type.
        edge_index: Edges, or edges by relation.
        arguments: Further arguments of the model; ``edge_label_index`` among them names links.
        cache, known, num_hops, memory_budget, wanted: See :func:`task_of_data`.
    """
    config, given = model_config_of(None, known, None, wanted["index"]), dict(arguments)
    links = given.pop("edge_label_index", None)
    model, x, edge_index, given = usual_call(model, x, edge_index, given, cache.adapted)
    predictor = _predictor(model, config, cache, num_hops, memory_budget)
    wanted |= {"arguments": given, "edge_label_index": links, "called": True}
    return config, task_of(predictor, (x, edge_index), cache, **wanted)


def _predictor(
    model: nn.Module, config: ModelConfig, cache: ModelCache, num_hops: int | None, memory_budget: int | None
) -> Predictor:
    if not isinstance(model, nn.Module):
        raise ModelError(f"'model' must be a torch.nn.Module (got {type(model).__name__}).")
    names = config_to_dict(config)
    return Predictor(
        model,
        level=names["task_level"],
        mode=names["mode"],
        return_type=names["return_type"],
        num_hops=num_hops,
        memory_budget=None if memory_budget is None else model_budget(memory_budget),
        known=cache.model(model),
    )


def task_of(
    predictor: Predictor,
    data: Any,
    cache: ModelCache | None = None,
    *,
    index: Any = None,
    target: Any = None,
    node_type: str | None = None,
    edge_label_index: Any = None,
    edge_type: EdgeType | None = None,
    arguments: Mapping[str, Any] | None = None,
    graph_index: Any = None,
    called: bool = False,
    at_hand: bool = False,
    limit: int | None = None,
    bound: int = 8,
    detour: int | None = DETOUR,
    remove_link: bool = True,
) -> Task:
    """Makes the task of one graph, or for graph-level models of several.

    Args:
        predictor: The model.
        data: One graph, or for graph-level models a list, a ``Batch`` or a dataset of graphs.
        cache: What is known from earlier calls.
        index: Nodes, positions of graphs, or positions of links; all if ``None``.
        target: Classes or values to preserve instead of the predicted ones.
        node_type: In a heterogeneous graph, the type of the explained nodes.
        edge_label_index: Both ends of the explained links, shape ``[2, L]``.
        edge_type: In a heterogeneous graph, the relation that is predicted.
        arguments: Further arguments of the model.
        graph_index: The index of the one graph, where it has been built already.
        called: Whether ``data`` are features and edges, plain or by type, as PyG's ``Explainer`` passes them.
        at_hand: Whether few predictions on a GPU, of nodes or graphs of one type, may be worked on on the CPU.
        limit: Bound on the nodes of an instance, at node level and for links.
        bound: Nodes that an explanation may have.
        detour: See :func:`~gflowexplainer.graphs.links.join_ends`.
        remove_link: Whether an explained link is left out of the graph.
    """
    cache, level = ModelCache() if cache is None else cache, predictor.level
    given = {} if arguments is None else dict(arguments)
    graphs = _graphs_of_call(predictor, data, given) if called else _graphs(predictor, data, given)
    shown = None if called else data
    if level == "graph":
        if graph_index is not None:
            raise InstanceError("'graph_index' belongs to one graph whose nodes are explained. Leave it out.")
        if len(graphs) and isinstance(graphs[0], TypedGraph):
            storage, flat = flat_list(list(graphs))
            predictor = TypedPredictor.of(predictor, storage)
            tensors = zip(graphs, flat, strict=True)
            graphs = [InputGraph(own.pop("x"), own.pop("edge_index"), own, typed=graph) for graph, own in tensors]
        return GraphTask(predictor, graphs, index, target, data=shown, at_hand=at_hand)
    if len(graphs) != 1:
        raise InstanceError(
            f"A model of level '{level}' is explained on one graph (got {len(graphs)}). "
            "Pass one Data, or a model_config with task_level='graph'."
        )
    graph = graphs[0]
    if isinstance(graph, TypedGraph):
        if called and (level == "node" or edge_label_index is None or edge_label_index.numel() != 2):
            _check_one(index, "node" if level == "node" else "link")
        if level == "node":
            node_type = find_node_type(predictor.model, graph) if node_type is None else node_type
        predictor = TypedPredictor.of(predictor, graph, node_type, edge_type)
        graph = cache.flat(graph)
    elif (node_type if level == "node" else edge_type) is not None:
        name = "node_type" if level == "node" else "edge_type"
        raise InstanceError(f"'{name}' belongs to a HeteroData. Leave it out.")
    known: dict[str, Any] = {"graph_index": graph_index, "limit": limit, "data": shown, "cache": cache}
    if level == "node":
        return NodeTask(predictor, graph, index, target, at_hand=at_hand, **known)
    if edge_label_index is None:
        counts = "" if index is None else "'index' only counts the links in it. "
        raise InstanceError(
            f"Which links to explain is not said: 'edge_label_index' is missing. {counts}Pass both ends of each link: "
            "edge_label_index=torch.tensor([[0], [4]]) for the one from node 0 to node 4, shape [2, num_links]."
        )
    known |= {"remove_link": remove_link, "bound": bound, "detour": detour}
    return LinkTask(predictor, graph, edge_label_index, index, target, **known)


def _graphs_of_call(predictor: Predictor, data: tuple[Any, Any], arguments: dict[str, Any]) -> Sequence[Any]:
    """Makes checked graphs of features, edges and further arguments, plain or by type."""
    (x, edge_index), model, level = data, predictor.model, predictor.level
    if isinstance(x, Mapping) or isinstance(edge_index, Mapping):
        if level == "graph" and arguments.pop("batch_dict", None) is not None:
            raise InstanceError("One call explains one heterogeneous graph. Leave 'batch_dict' out.")
        return [checked_graph(x, edge_index, arguments, model)]
    graph = input_graph(x, edge_index, arguments, model, predictor.device)
    return without_batch(graph) if level == "graph" else [graph]


def _graphs(predictor: Predictor, data: Any, arguments: dict[str, Any]) -> Sequence[Any]:
    """Takes what the user passes apart into graphs, each of which is checked when it is asked for."""
    model, level = predictor.model, predictor.level
    data = listed(data) if isinstance(data, Batch) else data
    if _is_typed(data):
        graphs = [data] if isinstance(data, HeteroData) else list(data)
        return [typed_graph(graph, model, arguments) for graph in graphs]
    needed = forward_parameters(model).get("edge_label_index")
    if level != "edge" and needed is not None and needed.default is needed.empty:
        raise InstanceError(
            f"{shown_name(model)} takes 'edge_label_index', so it predicts links, and which to explain is not said. "
            "Pass both ends of each: edge_label_index=torch.tensor([[0], [4]]) for the link from node 0 to 4."
        )
    plain = input_graphs(data, model, arguments, predictor.device)
    if level != "graph":
        return plain
    if "batch" in arguments and len(without_batch(plain[0])) > 1:
        raise InstanceError("'batch' names several graphs. Pass them as a list, or as a Batch, instead.")
    return DeferredList(len(plain), lambda number: without_batch(plain[number])[0])


def _check_one(index: Any, what: str) -> None:
    """Refuses anything but one instance: an explanation of PyG is one pair of masks."""
    if index is None or (isinstance(index, Tensor | Sequence) and torch.as_tensor(index).numel() != 1):
        raise InstanceError(
            f"One call explains one {what} (got index={index!r}). Pass the 'index' of one, or call "
            "'algorithm.explain' for many at once."
        )


def _is_typed(data: Any) -> bool:
    """Whether something is a heterogeneous graph, or a list of them."""
    if isinstance(data, HeteroData) or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        return isinstance(data, HeteroData)
    try:
        return len(data) > 0 and isinstance(data[0], HeteroData)
    except (TypeError, KeyError, IndexError):
        return False
