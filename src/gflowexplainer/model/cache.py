"""What was found out about a model and a graph, kept between calls as long as neither has changed.

Whether something has changed is told by its facts: a nest of plain values that is equal to that of an earlier call if,
and only if, all is as it was. Small tensors enter by their content, so that it does not matter how they were written
to. Large ones enter by what torch counts, and by some of their entries. Only weak references are held, so that no model
and no graph is kept alive.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from gflowexplainer.graphs.inputs import InputGraph, flat_graph
from gflowexplainer.graphs.typed import TypedGraph, flat_tensors
from gflowexplainer.model.adapter import InputForm, ModelAdapter
from gflowexplainer.model.observer import KnownGraph
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.structure import KnownModel
from gflowexplainer.ops.global_state import GLOBAL_STATE

_READ, _LISTED = 1 << 20, 1000
"""Bytes up to which all of a tensor is read, and entries up to which all of a list is."""
_SOME = 8
"""Entries of a larger one that are read."""
Value = TypeVar("Value")


class ModelCache:
    """Remembers what was found out about the last model and the last graph."""

    def __init__(self) -> None:
        self._model, self._graph = _Last[KnownModel](), _Last[KnownGraph]()
        self._flat, self._near = _Last[dict[str, Tensor]](), _Last[dict[str, Tensor]]()
        self._adapter: ModelAdapter | None = None

    def adapted(self, model: nn.Module, form: InputForm) -> nn.Module:
        """Puts a model behind an adapter for a form of input; the same one as long as both are the same."""
        with GLOBAL_STATE:
            if self._adapter is None or self._adapter.model is not model or self._adapter.form != form:
                self._adapter = ModelAdapter(model, form=form)
            return self._adapter

    def model(self, model: nn.Module) -> KnownModel:
        """Returns what is known of a model; one that cannot be explained is refused."""
        with GLOBAL_STATE:
            return self._model.of(facts_of(model), lambda: KnownModel(model))

    def graph(self, predictor: Predictor, graph: InputGraph) -> KnownGraph:
        """Returns what is known of a graph and of a model on it, to add to."""
        read = (predictor.mode, predictor.return_type, predictor.level, predictor.way)
        with GLOBAL_STATE:
            return self._graph.of((_Same(predictor.known), read, facts_of(graph.given())), KnownGraph)

    def flat(self, typed: TypedGraph) -> InputGraph:
        """Returns the flat form of a heterogeneous graph."""
        with GLOBAL_STATE:
            return flat_graph(typed, self._flat.of(facts_of(typed.tensors()), lambda: flat_tensors(typed)))

    def at_hand(self, graph: InputGraph) -> InputGraph:
        """Returns the copy on the CPU of a graph on a GPU."""
        with GLOBAL_STATE:
            near = dict(self._near.of(facts_of(graph.given()), lambda: graph.on_cpu().given()))
        return InputGraph(near.pop("x"), near.pop("edge_index"), near, shown=graph)

    def __getstate__(self) -> dict[str, Any]:
        """Travels empty: weak references cannot."""
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]


class _Last(Generic[Value]):
    """The value that belongs to the last facts."""

    def __init__(self) -> None:
        self._facts: Any = None
        self._value: Value | None = None

    def of(self, facts: Any, make: Callable[[], Value]) -> Value:
        """Returns the value of the last call where the facts are the same, else what ``make`` returns."""
        if self._value is None or facts != self._facts:
            self._value = None  # not both at once in memory
            self._facts, self._value = facts, make()
        return self._value


class _Same:
    """Equal for one and the same object only, as long as it lives."""

    __slots__ = ("_key",)

    def __init__(self, value: Any) -> None:
        try:
            self._key: Any = weakref.ref(value)
        except TypeError:  # what knows no weak references is small enough to be held
            self._key = lambda: value

    def __eq__(self, other: object) -> bool:
        own = self._key()
        return isinstance(other, _Same) and own is not None and own is other._key()

    __hash__ = None  # type: ignore[assignment]


def facts_of(value: Any, met: dict[int, tuple[int, Any]] | None = None) -> Any:
    """Returns the facts of a value: equal ones mean that it is the same one, and says the same of itself.

    Modules, mappings, sequences, dataclasses and what functions have enclosed are looked into.

    Args:
        value: The value.
        met: What was looked into already, by its id, and held, so that no id comes again.
    """
    kind = type(value)
    if kind in (bool, int, float, str, type(None), bytes):
        return kind, value
    if isinstance(value, Tensor):
        return _facts_of_tensor(value)
    met = {} if met is None else met
    if id(value) in met:
        return met[id(value)][0]
    met[id(value)] = len(met), value
    if isinstance(value, Mapping):
        return kind, [(key, facts_of(inner, met)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        entries = value if len(value) <= _LISTED else value[:: len(value) // _SOME]
        return kind, len(value), [facts_of(inner, met) for inner in entries]
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return kind, facts_of(torch.from_numpy(value))
    inside: Any = None
    if isinstance(value, types.FunctionType):
        # A list may be where it takes notes.
        known = inspect.getclosurevars(value).nonlocals.values()
        inside = [[v for v in known if not isinstance(v, list | dict | set)], value.__defaults__, value.__kwdefaults__]
    elif isinstance(value, types.MethodType):
        return value.__func__, facts_of(value.__self__, met)
    elif isinstance(value, torch.jit.ScriptModule):
        inside = [*value.parameters(), *value.buffers()]
    elif isinstance(value, nn.Module):
        inside = {name: inner for name, inner in vars(value).items() if name != "training"}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inside = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return _Same(value), kind, None if inside is None else facts_of(inside, met)


def _facts_of_tensor(tensor: Tensor) -> Any:
    """Returns the content of a small tensor; of a large one that it is the same one, and some of its content."""
    if (
        nn.parameter.is_lazy(tensor)
        or tensor.is_meta
        or tensor.layout != torch.strided
        or tensor.is_neg()
        or tensor.is_conj()
    ):
        return object()
    form, flat = (tensor.shape, tensor.dtype, tensor.device), tensor.detach()
    if tensor.is_cpu and tensor.nbytes <= _READ:
        return form, hash(_bytes(flat.reshape(-1)))
    if tensor.is_inference():
        return object()
    flat = (flat if flat.is_contiguous() else flat[:1]).reshape(-1)
    some = flat[:: max(1, flat.numel() // _SOME)][: _SOME + 1]
    return form, _Same(tensor), tensor._version, tensor.data_ptr(), tensor.stride(), _bytes(some.cpu())


def _bytes(values: Tensor) -> bytes:
    return values.contiguous().view(torch.uint8).numpy().tobytes() if values.numel() else b""
