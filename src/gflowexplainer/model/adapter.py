"""A model that is called in another way than ``model(x, edge_index, ...)``, made one that is called like this.

Users may also have graphs in another form: adjacency matrices, whole numbers as features, no features at all. Each is
brought to float features and edges, and the model is put behind an adapter that turns them back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csc_tensor, to_torch_csr_tensor

from gflowexplainer.errors import ConfigError, InstanceError
from gflowexplainer.graphs.inputs import CARRIED, DeferredList, listed
from gflowexplainer.graphs.signature import Adapted, forward_parameters, takes_everything

Adapt = Callable[[nn.Module, "InputForm"], nn.Module]
WEIGHTS = CARRIED
NODE_IDS = "n_id"
"""Argument that carries the ids of the nodes, for models that look them up."""
_SPARSE: dict[Any, Callable[..., Tensor]] = {
    torch.sparse_csr: to_torch_csr_tensor,
    torch.sparse_csc: to_torch_csc_tensor,
    torch.sparse_coo: to_torch_coo_tensor,
}


@dataclass(frozen=True)
class InputForm:
    """How a model takes its input, where that is not as float features ``[N, F]`` and edges ``[2, E]``.

    Attributes:
        adjacency: It takes an adjacency matrix, transposed: a layout of torch, or the class ``SparseTensor``.
        dtype: It takes whole numbers as features, of this type.
        flat: Its features have no second dimension.
        names: It takes these arguments by name, and nothing else.
    """

    adjacency: Any = None
    dtype: torch.dtype | None = None
    flat: bool = False
    names: tuple[str, ...] = ()

    def features(self, x: Tensor) -> Tensor:
        """Returns the features as the model takes them."""
        if self.dtype is not None:
            if not bool(torch.isfinite(x).all()):
                raise ValueError("whole numbers cannot be NaN")
            x = x.round().to(self.dtype)
        return x.squeeze(-1) if self.flat else x

    def edges(self, edge_index: Tensor, weight: Tensor | None, num_nodes: int) -> Any:
        """Returns the edges as the model takes them."""
        if self.adjacency is None:
            return edge_index
        target, source = edge_index.flip(0)
        if self.adjacency in _SPARSE:
            return _SPARSE[self.adjacency](torch.stack([target, source]), weight, size=(num_nodes, num_nodes))
        return self.adjacency(row=target, col=source, value=weight, sparse_sizes=(num_nodes, num_nodes))


class ModelAdapter(Adapted):
    """A model behind another way to call it; see :func:`adapt`.

    Args:
        model: The model.
        call: Calls it on a ``Data``.
        output: Picks what is explained of its output.
        form: How it takes its input, where ``call`` does not say it.
    """

    def __init__(
        self,
        model: nn.Module,
        call: Callable[[Any, Data], Any] | None = None,
        output: Callable[[Any], Tensor] | None = None,
        form: InputForm | None = None,
    ) -> None:
        super().__init__()
        self.model, self.call, self.output, self.form = model, call, output, InputForm() if form is None else form

    @property
    def takes(self) -> tuple[str, ...] | None:
        """Names of the arguments beside features and edges; ``None`` if it takes whatever the graph has."""
        if self.call is not None:
            return None
        return tuple(name for name in self.form.names if name not in ("edge_index", "x")) if self.form.names else None

    def forward(self, x: Tensor, edge_index: Tensor, **arguments: Any) -> Any:
        """Calls the model on features ``[N, F]`` and edges ``[2, E]``, the way it wants to be called."""
        form, weight = self.form, arguments.pop(WEIGHTS, None)
        edges = edge_index
        if isinstance(x, Tensor):
            edges, x = form.edges(edge_index, weight, x.size(0)), form.features(x)
        if self.call is not None:
            where = "edge_index" if isinstance(edges, Tensor) and edges.layout == torch.strided else "adj_t"
            given: dict[str, Any] = {"x": x, where: edges, **arguments}
            found = self.call(self.model, Data(**given))
        elif form.names:
            known = {"x": x, "edge_index": edges, **arguments}
            found = self.model(**{name: known[name] for name in form.names if name in known})
        else:
            found = self.model(x, edges, **arguments)
        return found if self.output is None else self.output(found)

    def get_extra_state(self) -> dict[str, Any]:
        """Returns what tells two ways to call a model apart, for its fingerprint."""
        return {"call": _facts(self.call), "output": _facts(self.output), "form": repr(self.form)}

    def set_extra_state(self, state: Any) -> None:
        """Functions are not restored."""


def shown_name(model: nn.Module) -> str:
    """Names a model as its user knows it: by its own class, not by that of an adapter."""
    return type(model.model if isinstance(model, ModelAdapter) else model).__name__


def remedy(model: nn.Module, error: Exception, given: Mapping[str, Any]) -> str:
    """Says what to do where a model does not take what it was ``given`` by name."""
    if isinstance(model, ModelAdapter) and model.form.dtype is not None:
        return ". It was given whole numbers as features, as they came; if it wants real ones, pass x.float()."
    names = list(forward_parameters(model))[:2]
    if names == ["edge_index", "x"]:
        return (
            ". Its forward takes 'edge_index' before 'x'. Say so: adapt(model, call=lambda model, data: "
            "model(data.edge_index, data.x))."
        )
    if "dtype" in str(error) or "scalar type" in str(error):
        return _other_types(model, given)
    if not isinstance(error, TypeError | AttributeError):
        return ""
    return ". If it is called in another way, say how: adapt(model, call=lambda model, data: model(data))."


def _other_types(model: nn.Module, given: Mapping[str, Any]) -> str:
    """Names what a model was given in another floating-point type than its weights have."""
    own = next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), None)
    for name, value in given.items():
        if own is not None and isinstance(value, Tensor) and value.is_floating_point() and value.dtype != own:
            if own == torch.bfloat16:
                advice = f"Explain model.float(), with data.{name}.float()."
                return f". Its weights are {own}, which NumPy does not know. {advice}"
            cast = "float()" if own == torch.float else f"to({own})"
            return f". Its weights are {own}, but '{name}' is {value.dtype}. Convert it: data.{name}.{cast}."
    return ""


def adapt(
    model: nn.Module,
    *,
    call: Callable[[Any, Data], Any] | None = None,
    output: Callable[[Any], Tensor] | None = None,
) -> nn.Module:
    """Makes a model explainable that is called in another way than ``model(x, edge_index, ...)``.

    .. code-block:: python

        adapt(model, call=lambda model, data: model(data))                          # forward(data)
        adapt(model, call=lambda model, data: model(data.z, data.pos, data.batch))  # no features
        adapt(model, call=lambda model, data: model(data.n_id, data.edge_index))    # an embedding of every node
        adapt(model, output=lambda out: out[0])                                     # one of several outputs
        adapt(model, output=lambda out: out[:, 2:3])                                # one of several labels

    Args:
        model: The model.
        call: Is given the model and a ``Data`` with everything that the graph has for nodes and edges, of a part of the
            graph or of several parts side by side (``data.batch`` tells graphs apart, ``data.n_id`` are the ids of
            nodes in the whole graph), and returns what the model predicts for it.
        output: Is given what the model returns, and returns the scores to explain, one row a node, graph or link.

    Returns:
        A module that ``Explainer``, ``fit`` and ``explain`` take in place of the model.
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"'model' must be a torch.nn.Module (got {type(model).__name__}).")
    for name, function in (("call", call), ("output", output)):
        if function is not None and not callable(function):
            raise ConfigError(f"'{name}' must be a function (got {type(function).__name__}).")
    if call is None and output is None:
        raise ConfigError("There is nothing to adapt. Pass 'call', 'output', or both.")
    return ModelAdapter(model, call, output)


def is_adjacency(value: Any) -> bool:
    """Whether something is a sparse adjacency matrix: of torch, or a ``SparseTensor``."""
    if isinstance(value, Tensor):
        return value.layout != torch.strided and value.dim() == 2 and value.size(0) == value.size(1)
    return type(value).__name__ == "SparseTensor" and hasattr(value, "coo")


def bare_model(model: nn.Module) -> nn.Module:
    """Takes off what only spreads a model over devices or compiles it: it is evaluated on one device, on parts."""
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(compiled := getattr(model, "_orig_mod", None), nn.Module):
            model = compiled
        else:
            return model


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
    model: nn.Module, x: Any, edge_index: Any, arguments: dict[str, Any], adapted: Adapt
) -> tuple[nn.Module, Any, Any, dict[str, Any]]:
    """Does the same for what PyG's ``Explainer`` hands over: features, edges and further arguments."""
    if not isinstance(model, nn.Module):
        return model, x, edge_index, arguments
    model = bare_model(model)
    graph = Data(x=x, **{"adj_t" if is_adjacency(edge_index) else "edge_index": edge_index})
    form = _tensors(graph) if isinstance(x, Tensor) and x.dim() else None
    if form is None:
        return model, x, edge_index, arguments
    found = _usual(model, graph, form)
    weights = {WEIGHTS: found[WEIGHTS]} if WEIGHTS in found else {}
    return adapted(model, form), found.x, found.edge_index, arguments | weights


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


def _facts(function: Any) -> Any:
    """Returns what a function does, in plain values that are the same in every version of Python."""
    if function is None:
        return None
    code = getattr(function, "__code__", None)
    if code is None:
        return repr(type(function))
    known = [cell.cell_contents for cell in function.__closure__ or ()]
    known += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [_names(code), [repr(value) for value in known if isinstance(value, int | float | str | tuple)]]


def _names(code: CodeType) -> list[str]:
    plain = [repr(value) for value in code.co_consts if not isinstance(value, CodeType)]
    inner = [name for value in code.co_consts if isinstance(value, CodeType) for name in _names(value)]
    return [*code.co_names, *plain, *inner]
