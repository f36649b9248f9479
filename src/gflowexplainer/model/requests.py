"""From what a user passes to a task: nodes, graphs or links, of graphs with one or several types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch_geometric.data import Batch, HeteroData

from gflowexplainer.errors import ConfigError, InstanceError
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import InputGraph, input_graph, input_graphs, listed, without_batch
from gflowexplainer.graphs.links import DETOUR
from gflowexplainer.graphs.signature import forward_parameters
from gflowexplainer.graphs.typed import EdgeType, TypedGraph, flat_list
from gflowexplainer.graphs.typed_inputs import checked_graph, typed_graph
from gflowexplainer.model.adapter import shown_name
from gflowexplainer.model.kept import ModelCache
from gflowexplainer.model.link_task import LinkTask
from gflowexplainer.model.positions import check_one
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import GraphTask, NodeTask
from gflowexplainer.model.typed import TypedPredictor, find_node_type
from gflowexplainer.ops.deferred import DeferredList

AnyTask = NodeTask | GraphTask | LinkTask


@dataclass(frozen=True)
class Request:
    """What a user asks to be explained.

    Attributes:
        index: Nodes, positions of graphs, or positions of links; all if ``None``.
        target: Classes or values to preserve instead of the predicted ones.
        node_type: In a heterogeneous graph, the type of the explained nodes.
        edge_label_index: Both ends of the explained links, shape ``[2, L]``.
        edge_type: In a heterogeneous graph, the relation that is predicted.
        remove_link: Whether the link itself is left out of the graph.
        arguments: Further arguments of the model.
        graph_index: The index of the one graph, where it has been built already.
        limit: Bound on the nodes of an instance, at node level and for links.
        bound: Nodes that an explanation may have.
        detour: See :func:`~gflowexplainer.graphs.links.join_ends`.
        at_hand: Whether few predictions on a GPU, of nodes or graphs of one type, may be worked on on the CPU.
    """

    index: Any = None
    target: Any = None
    node_type: str | None = None
    edge_label_index: Any = None
    edge_type: EdgeType | None = None
    remove_link: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)
    graph_index: GraphIndex | None = None
    limit: int | None = None
    bound: int = 8
    detour: int | None = DETOUR
    at_hand: bool = False


def task_of(predictor: Predictor, data: Any, request: Request, kept: ModelCache | None = None) -> AnyTask:
    """Makes the task of what a user passes to :meth:`~gflowexplainer.GFlowExplainer.explain`.

    Args:
        predictor: The model.
        data: One graph, or for graph tasks a list, a ``Batch`` or a dataset of graphs.
        request: What is to be explained of it.
        kept: What is known from earlier calls about the graph whose nodes or links are explained.
    """
    kept = ModelCache() if kept is None else kept
    if isinstance(data, Batch):
        data = listed(data)
    if isinstance(data, HeteroData) or _is_typed_list(data):
        return _typed_task(predictor, data, request, kept)
    _refuse_links_unsaid(predictor, request)
    given = dict(request.arguments)
    graphs = input_graphs(data, predictor.model, given, predictor.device)
    if predictor.level != "graph":
        return _task_on_one(predictor, _only(graphs, predictor), request, kept, data)
    if request.graph_index is not None:
        raise InstanceError("'graph_index' belongs to one graph whose nodes are explained. Leave it out.")
    if "batch" in given and len(without_batch(graphs[0])) > 1:
        raise InstanceError("'batch' names several graphs. Pass them as a list, or as a Batch, instead.")
    bare = DeferredList(len(graphs), lambda number: without_batch(graphs[number])[0])
    return GraphTask(predictor, bare, request.index, request.target, data=data, kept=kept, at_hand=request.at_hand)


def task_of_call(predictor: Predictor, x: Any, edge_index: Any, request: Request, kept: ModelCache) -> AnyTask:
    """Makes the task of one call of PyG's ``Explainer``, which explains one prediction, or several of one type.

    Args:
        predictor: The model.
        x: Features, or features by node type.
        edge_index: Edges, or edges by relation.
        request: What is to be explained.
        kept: What is known from earlier calls.
    """
    model, level, given = predictor.model, predictor.level, dict(request.arguments)
    if isinstance(x, Mapping) or isinstance(edge_index, Mapping):
        if level == "graph" and given.pop("batch_dict", None) is not None:
            raise InstanceError("One call explains one heterogeneous graph. Leave 'batch_dict' out.")
        typed = checked_graph(x, edge_index, given, model)
        if level == "graph":
            return _typed_graphs(predictor, [typed], request, kept, None)
        _check_one(request, level)
        return _typed_one(predictor, typed, request, kept, None)
    graph = input_graph(x, edge_index, given, model, predictor.device)
    if level == "graph":
        graphs, at_hand = without_batch(graph), request.at_hand
        return GraphTask(predictor, graphs, request.index, request.target, kept=kept, at_hand=at_hand)
    return _task_on_one(predictor, graph, request, kept, None)


def _check_one(request: Request, level: str) -> None:
    """Refuses anything but one node or link."""
    links = request.edge_label_index
    if level == "node" or links is None or not (hasattr(links, "numel") and links.numel() == 2):
        check_one(request.index, "node" if level == "node" else "link")


def _refuse_links_unsaid(predictor: Predictor, request: Request) -> None:
    """Refuses a model that cannot do without links as one of nodes or graphs."""
    needed = forward_parameters(predictor.model).get("edge_label_index")
    if predictor.level != "edge" and needed is not None and needed.default is needed.empty:
        raise InstanceError(
            f"{shown_name(predictor.model)} takes 'edge_label_index', so it predicts links, and which to explain is "
            "not said. Pass both ends of each: edge_label_index=torch.tensor([[0], [4]]) for the link from node 0 to 4."
        )


def _task_on_one(
    predictor: Predictor, graph: InputGraph, request: Request, kept: ModelCache, data: Any
) -> NodeTask | LinkTask:
    """Makes a task of nodes or links of one graph, flat or of one type."""
    known: dict[str, Any] = {"graph_index": request.graph_index, "limit": request.limit, "data": data, "kept": kept}
    if predictor.level == "node":
        known |= {"node_type": request.node_type, "at_hand": request.at_hand}
        return NodeTask(predictor, graph, request.index, request.target, **known)
    if request.edge_label_index is None:
        counts = "" if request.index is None else "'index' only counts the links in it. "
        raise InstanceError(
            f"Which links to explain is not said: 'edge_label_index' is missing. {counts}Pass both ends of each link: "
            "edge_label_index=torch.tensor([[0], [4]]) for the one from node 0 to node 4, shape [2, num_links]."
        )
    return LinkTask(
        predictor,
        graph,
        request.edge_label_index,
        request.index,
        request.target,
        edge_type=request.edge_type,
        remove_link=request.remove_link,
        bound=request.bound,
        detour=request.detour,
        **known,
    )


def _typed_task(predictor: Predictor, data: Any, request: Request, kept: ModelCache) -> AnyTask:
    """Makes a task on heterogeneous graphs."""
    if predictor.level == "graph":
        if request.graph_index is not None:
            raise InstanceError("'graph_index' belongs to one graph whose nodes are explained. Leave it out.")
        graphs = [data] if isinstance(data, HeteroData) else list(data)
        model, given = predictor.model, request.arguments
        return _typed_graphs(predictor, [typed_graph(graph, model, given) for graph in graphs], request, kept, data)
    if not isinstance(data, HeteroData):
        data = _only(list(data), predictor)
    return _typed_one(predictor, typed_graph(data, predictor.model, request.arguments), request, kept, data)


def _typed_one(
    predictor: Predictor, typed: TypedGraph, request: Request, kept: ModelCache, data: Any
) -> NodeTask | LinkTask:
    """Makes a task of nodes or links of one heterogeneous graph."""
    if predictor.level == "node" and request.node_type is None:
        raise ConfigError(
            f"Pass 'node_type', the type of the explained nodes: one of {', '.join(map(repr, typed.node_types))}."
        )
    own = TypedPredictor.of(predictor, typed, request.node_type, request.edge_type)
    return _task_on_one(own, kept.flat(typed), request, kept, data)


def _typed_graphs(
    predictor: Predictor, graphs: list[TypedGraph], request: Request, kept: ModelCache, data: Any
) -> GraphTask:
    """Makes a task of whole heterogeneous graphs."""
    if not graphs:
        raise InstanceError("There is no graph to explain. Pass at least one.")
    storage, flat = flat_list(graphs)
    own = TypedPredictor.of(predictor, storage)
    inputs = [
        InputGraph(tensors.pop("x"), tensors.pop("edge_index"), tensors, typed=graph)
        for graph, tensors in zip(graphs, flat, strict=True)
    ]
    return GraphTask(own, inputs, request.index, request.target, data=data, kept=kept)


def node_type_of(predictor: Predictor, data: Any, arguments: Mapping[str, Any]) -> str | None:
    """Finds the node type that a node-level model predicts at; ``None`` for a graph without types."""
    if predictor.level != "node":
        return None
    if isinstance(data, HeteroData):
        return find_node_type(predictor.model, typed_graph(data, predictor.model, arguments))
    if isinstance(data, tuple) and isinstance(data[0], Mapping):
        return find_node_type(predictor.model, checked_graph(data[0], data[1], arguments, predictor.model))
    return None


def _is_typed_list(data: Any) -> bool:
    if isinstance(data, HeteroData) or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        return isinstance(data, HeteroData)
    try:
        return len(data) > 0 and isinstance(data[0], HeteroData)
    except (TypeError, KeyError, IndexError):
        return False


def _only(graphs: Sequence[Any], predictor: Predictor) -> Any:
    """Returns the one graph whose nodes or links are explained."""
    if len(graphs) != 1:
        raise InstanceError(
            f"A model of level '{predictor.level}' is explained on one graph (got {len(graphs)}). "
            "Pass one Data, or a model_config with task_level='graph'."
        )
    return graphs[0]
