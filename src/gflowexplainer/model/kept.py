"""What belongs to a model and a graph, kept between calls: fingerprint, graph index, and what the model says at nodes.

It is dropped as soon as the model is another one, a plain attribute of one of its modules has changed, or a tensor of
model or graph is another one or was written to. Only weak references to the user's tensors are held, so that no graph
is kept alive.
"""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor, nn

from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import InputGraph, flat_graph, flat_tensors
from gflowexplainer.graphs.typed import TypedGraph
from gflowexplainer.model.adapter import InputForm, ModelAdapter
from gflowexplainer.model.locality import Locality, find_locality
from gflowexplainer.model.makeup import Makeup
from gflowexplainer.model.model_walk import PLAIN, ModelWalk
from gflowexplainer.model.observer import Observation
from gflowexplainer.model.parts_probe import probe_parts
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.tensor_mark import TensorMark
from gflowexplainer.ops.global_state import GLOBAL_STATE
from gflowexplainer.storage.identity import model_fingerprint


class ModelCache:
    """Remembers the last model and the last graph."""

    def __init__(self) -> None:
        self._model: TensorMark | None = None
        self._walk: ModelWalk | None = None
        self._makeup: Makeup | None = None
        self._fingerprint = ""
        self._graph: TensorMark | None = None
        self._rest: dict[str, Any] = {}
        self._index: GraphIndex | None = None
        self._whole: Observation | None = None
        self._typed: TensorMark | None = None
        self._flat: dict[str, Tensor] = {}
        self._far: TensorMark | None = None
        self._near: dict[str, Tensor] = {}
        self._localities: dict[tuple[Any, ...], Locality] = {}
        self._adapter: ModelAdapter | None = None
        self._found: dict[Any, Any] = {}
        self._looked_at: tuple[weakref.ref[Predictor], weakref.ref[InputGraph] | None] | None = None

    def adapted(self, model: nn.Module, form: InputForm) -> nn.Module:
        """Puts a model behind an adapter for a form of input; the same one as long as both are the same."""
        with GLOBAL_STATE:
            if self._adapter is None or self._adapter.model is not model or self._adapter.form != form:
                self._adapter = ModelAdapter(model, form=form)
            return self._adapter

    def predictor(self, model: nn.Module, **how: Any) -> Predictor:
        """Makes the predictor of a call; a model that is known still is not looked at again in that call.

        What is wrong with another one, and with what it is given, is said before its fingerprint is taken.

        Args:
            model: The model.
            **how: See :class:`Predictor`.
        """
        with GLOBAL_STATE:
            known = self._makeup if self._is_known(model) else None
            predictor = Predictor(model, makeup=known, **how)
            if known is not None:
                self._looked_at = weakref.ref(predictor), None
            return predictor

    def fingerprint_of(self, predictor: Predictor) -> str:
        """Returns the fingerprint of the model of a call, which has its own predictor; looked at once a call."""
        with GLOBAL_STATE:
            known = self._looked_at
            if known is None or known[0]() is not predictor:
                self.fingerprint(predictor.model)
                if self._makeup is None:
                    self._makeup = Makeup.of(predictor.model)
                self._looked_at = weakref.ref(predictor), None
            return self._fingerprint

    def fingerprint(self, model: nn.Module) -> str:
        """Returns the fingerprint of a model, computed anew only where it has changed."""
        with GLOBAL_STATE:
            if not self._is_known(model):
                walk = ModelWalk(model)
                self._walk, self._model = walk, TensorMark(walk.tensors(model) or {})
                self._fingerprint = model_fingerprint(model)
                self._makeup = self._whole = None
                self._localities, self._found = {}, {}
                self._looked_at = None
            return self._fingerprint

    def _is_known(self, model: nn.Module) -> bool:
        """Whether a model is what it was when its fingerprint was taken."""
        tensors = None if self._walk is None else self._walk.tensors(model)
        return tensors is not None and self._model is not None and self._model.fits(tensors)

    def locality(self, predictor: Predictor, graph: InputGraph) -> Locality:
        """Returns what the predictions of a model can depend on, found out once for each way to call it.

        A heterogeneous model, and one that fails on a graph of ours, is called on parts of the user's.
        """
        with GLOBAL_STATE:
            self.fingerprint_of(predictor)
            way = (predictor.level, graph.x.size(1), tuple(graph.arguments), predictor.way)
            if way not in self._localities:
                model, level, found = predictor.model, predictor.level, None
                if graph.typed is None:
                    found = find_locality(model, level, graph, takes_batch=predictor.takes_batch)
                self._localities[way] = probe_parts(predictor, graph) if found is None else found
            return self._localities[way]

    def flat(self, typed: TypedGraph) -> InputGraph:
        """Returns the flat form of a heterogeneous graph, put together anew only where the graph is another one."""
        with GLOBAL_STATE:
            tensors = typed.tensors()
            if self._typed is None or not self._typed.fits(tensors):
                self._typed, self._flat = TensorMark(tensors), flat_tensors(typed)
            return flat_graph(typed, self._flat)

    def at_hand(self, graph: InputGraph) -> InputGraph:
        """Returns the copy on the CPU of a graph on a GPU, made anew only where the graph is another one."""
        with GLOBAL_STATE:
            tensors = _tensors(graph)
            if self._far is None or not self._far.fits(tensors):
                self._far, self._near = TensorMark(tensors), _tensors(graph.on_cpu())
            near = dict(self._near)
            x, edge_index = near.pop("x"), near.pop("edge_index")
            return InputGraph(x, edge_index, graph.arguments | near, shown=graph)

    def find(self, predictor: Predictor, graph: InputGraph) -> tuple[GraphIndex | None, Observation | None]:
        """Returns the index of a graph and what the model predicts for all of it, where they are known still."""
        with GLOBAL_STATE:
            self.fingerprint_of(predictor)
            if not self._is_of(predictor, graph):
                self._graph = self._index = self._whole = None
                self._found = {}
            else:
                self._looked_at = weakref.ref(predictor), weakref.ref(graph)
            return self._index, self._whole

    def keep(self, predictor: Predictor, graph: InputGraph, index: GraphIndex, whole: Observation | None) -> None:
        """Remembers what was found out about a graph."""
        with GLOBAL_STATE:
            known = self._looked_at
            here = known is not None and known[0]() is predictor and known[1] is not None and known[1]() is graph
            if here and index is self._index and (whole is None or whole is self._whole):
                return
            if not self._is_of(predictor, graph):
                self._graph, self._rest, self._whole = TensorMark(_tensors(graph)), _rest(predictor, graph), None
                self._found = {}
            self._index, self._whole = index, self._whole if whole is None else whole

    def found(self, predictor: Predictor, graph: InputGraph) -> dict[Any, Any]:
        """Returns what else was found out about model and graph, to add to; it is dropped when either changes."""
        with GLOBAL_STATE:
            self.fingerprint_of(predictor)
            return self._found if self._is_of(predictor, graph) else {}

    def _is_of(self, predictor: Predictor, graph: InputGraph) -> bool:
        known = self._graph is not None and self._graph.fits(_tensors(graph))
        return known and self._rest == _rest(predictor, graph)

    def __getstate__(self) -> dict[str, Any]:
        """Travels empty: weak references cannot."""
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]


def _tensors(graph: InputGraph) -> dict[str, Tensor]:
    more = {name: value for name, value in graph.arguments.items() if isinstance(value, Tensor)}
    typed = {} if graph.typed is None else graph.typed.tensors()
    return {"x": graph.x, "edge_index": graph.edge_index} | more | typed


def _rest(predictor: Predictor, graph: InputGraph) -> dict[str, Any]:
    """Returns how the model's output is read, and the arguments that are no tensors.

    An argument that cannot be compared by its value is equal to nothing, so that nothing is kept beside it.
    """
    given = graph.arguments if graph.typed is None else graph.arguments | graph.typed.shared
    rest = {name: value for name, value in given.items() if not isinstance(value, Tensor)}
    comparable = {name: value if isinstance(value, PLAIN) else object() for name, value in rest.items()}
    typed = (predictor.node_type, predictor.edge_type, predictor.level)
    return comparable | {"mode of": predictor.mode, "return type of": predictor.return_type, "types of": typed}
