"""The face: GFlowExplainer, an explainer algorithm of PyG that answers with distributions over subgraphs."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.data.data import BaseData
from torch_geometric.explain import ExplainerAlgorithm, ModelConfig
from torch_geometric.explain.config import ExplanationType, MaskType, ModelTaskLevel
from tqdm.auto import tqdm

from gflowexplainer.certificate import PendingCertificate, certify
from gflowexplainer.errors import CheckpointError, ConfigError, InstanceError, ModelError, one_of
from gflowexplainer.explanation import Answer, RankedSubgraph, SubgraphExplanation, config_to_dict
from gflowexplainer.instances import GraphIndex, Instances, check_edges, check_features, check_index
from gflowexplainer.noise import combine, mix
from gflowexplainer.persistence import fingerprint, read_checkpoint, write_checkpoint
from gflowexplainer.readings import WEIGHTINGS, Reading, importance_weights, read_samples
from gflowexplainer.rewards.model import Predictor, embeddings
from gflowexplainer.rewards.target import Target
from gflowexplainer.segments import segment_ids, segment_sum
from gflowexplainer.settings import Settings
from gflowexplainer.subgraphs import edge_values
from gflowexplainer.training import CHECKPOINT, Callback, Trainer

FILE = "explainer.safetensors"
KIND = "explainer"
ALONE: dict[str, Any] = {
    "objective": "log_partition_variance",
    "epochs": 150,
    "rollouts": 32,
    "learning_rate": 0.03,
    "epsilon": 0.2,
    "node_identities": True,
}
"""Settings of the short training on one instance that replaces a missing fit; what the user sets goes before.

Every value that matters is named, as those that are best for many instances are not for one: with flow matching, the
distance to the exact target on nodes of Tree-Cycles is twice as large after the same training.
"""
_EXPLAINING = 100
"""Names the random stream of explanations, apart from those of training."""
_ROLLOUTS_AT_ONCE = 4096


@dataclass(frozen=True)
class UserGraph:
    """One graph as the user handed it over.

    Attributes:
        x: Node features, shape ``[N, F]``.
        edge_index: Edges, shape ``[2, E]``.
        arguments: What else the model is called with on this graph.
        nodes: Where its nodes lie in the graph that is shown, shape ``[N]``; ``None`` if that is this one.
        edges: The same for its edges, shape ``[E]``.
        shown: The graph that is shown, if it is another.
    """

    x: Tensor
    edge_index: Tensor
    arguments: dict[str, Any]
    nodes: Tensor | None = None
    edges: Tensor | None = None
    shown: UserGraph | None = None

    def detached(self) -> UserGraph:
        """Cuts the tensors off from any gradient, which is none of ours to fill."""
        free = {name: v.detach() if isinstance(v, Tensor) else v for name, v in self.arguments.items()}
        return replace(self, x=self.x.detach(), arguments=free)

    def split(self, batch: Tensor) -> list[UserGraph]:
        """Takes a disjoint union of graphs apart; ``batch`` ``[N]`` names the graph of each node."""
        if not isinstance(batch, Tensor) or batch.shape != (self.x.size(0),) or batch.dtype != torch.long:
            got = f"{batch.dtype} of shape {tuple(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__
            raise InstanceError(f"'batch' must be an int64 tensor with one entry a node (got {got}).")
        number = torch.unique(batch)
        if number.numel() == 1:
            return [self]
        source, target = self.edge_index
        if not torch.equal(batch[source], batch[target]):
            raise InstanceError("'batch' says that an edge joins two graphs. Pass a disjoint union.")
        parts = []
        for graph in number:
            nodes, edges = torch.nonzero(batch == graph).flatten(), torch.nonzero(batch[source] == graph).flatten()
            place = torch.zeros_like(batch)
            place[nodes] = torch.arange(nodes.numel(), device=batch.device)
            arguments = {}
            for name, value in self.arguments.items():
                kind = self._rows(name)
                if kind is None and isinstance(value, Tensor) and value.dim() and value.size(0) == number.numel():
                    raise InstanceError(
                        f"'{name}' seems to hold one row a graph, which is not supported. Pass it one row a node."
                    )
                arguments[name] = value if kind is None else value[nodes if kind == "node" else edges]
            parts.append(
                UserGraph(self.x[nodes], place[self.edge_index[:, edges]], arguments, nodes, edges, shown=self)
            )
        return parts

    def _rows(self, name: str) -> str | None:
        """Says whether an argument has one row a node, one an edge, or neither."""
        value, edges = self.arguments[name], self.edge_index.size(1)
        rows = value.size(0) if isinstance(value, Tensor) and value.dim() else -1
        if rows == edges and (name.startswith("edge") or rows != self.x.size(0)):
            return "edge"
        return "node" if rows == self.x.size(0) else None

    def sorted_arguments(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tells the arguments with one row a node or an edge from those that are handed on unchanged."""
        rows = {name: value for name, value in self.arguments.items() if self._rows(name) is not None}
        return rows, {name: value for name, value in self.arguments.items() if name not in rows}


def _user_graph(x: Any, edge_index: Any, arguments: Mapping[str, Any], model: nn.Module) -> UserGraph:
    """Checks what cannot be explained at all, and that everything is where the model is."""
    if isinstance(x, Mapping) or isinstance(edge_index, Mapping):
        raise InstanceError("Heterogeneous graphs are not supported. Convert it with HeteroData.to_homogeneous().")
    number = check_features(x)
    check_edges(edge_index, number)
    if "batch_size" in arguments and arguments["batch_size"] is not None:
        raise InstanceError("'batch_size' cannot be passed: the model is asked about many subgraphs at once.")
    if isinstance(model, nn.Module):
        places = (tensor.device for tensor in (*model.parameters(), *model.buffers()))
        device = next(places, x.device)
        for name, value in {"x": x, "edge_index": edge_index, **arguments}.items():
            if isinstance(value, Tensor) and value.device != device:
                raise InstanceError(f"'{name}' is on {value.device}, but the model on {device}. Move one of them.")
    return UserGraph(x, edge_index, dict(arguments))


def _graphs_of(data: Any, model: nn.Module, arguments: dict[str, Any]) -> list[UserGraph]:
    """Takes what :meth:`GFlowExplainer.fit` accepts as data apart into graphs."""
    try:
        graphs = [data] if isinstance(data, BaseData) else list(data)
    except TypeError:
        graphs = [data]
    wrong = next((graph for graph in graphs if not isinstance(graph, Data)), None)
    if wrong is not None:
        raise InstanceError(
            f"'data' must be a Data of PyG, or a list or dataset of them (got {type(wrong).__name__})."
            + (" Convert it with HeteroData.to_homogeneous()." if type(wrong).__name__ == "HeteroData" else "")
        )
    found = []
    for number, graph in enumerate(graphs):
        if graph.x is None or graph.edge_index is None:
            raise InstanceError(f"Graph {number} has no 'x' or no 'edge_index'. Set both.")
        own = {
            name: graph[name]
            for name in _parameters(model)
            if name in graph and isinstance(graph[name], Tensor) and name not in ("batch", "batch_size")
        }
        found.append(_user_graph(graph.x, graph.edge_index, own | arguments, model))
    return found


def _parameters(model: nn.Module) -> list[str]:
    """Names what the model's ``forward`` takes after features and edges."""
    parameters = list(inspect.signature(model.forward).parameters.values())[2:]
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def _without_batch(graph: UserGraph) -> list[UserGraph]:
    """Takes a disjoint union apart as its argument ``batch`` says; the model is given a ``batch`` of our own."""
    arguments = dict(graph.arguments)
    batch = arguments.pop("batch", None)
    bare = replace(graph, arguments=arguments)
    if batch is None:
        return [bare]
    # What is shown is what the user passed, 'batch' included.
    return [replace(part, shown=graph) for part in bare.split(batch)]


@dataclass(frozen=True)
class Question:
    """``I`` instances of a model's predictions, ready to be trained on or answered.

    Attributes:
        predictor: The model.
        instances: The instances.
        target: What is to be held.
        embedding: The model's embeddings at the nodes of the instances, shape ``[n, H]``.
        graphs: The graph that each instance lies in.
        shown: What the explanation of each repeats: ``prediction``, ``target`` and ``index``, as PyG has them.
    """

    predictor: Predictor
    instances: Instances
    target: Target
    embedding: Tensor
    graphs: list[UserGraph]
    shown: list[dict[str, Tensor]]


class NodeQuestions:
    """Predictions at nodes of one graph.

    Args:
        predictor: The model.
        graph: The whole graph.
        index: The nodes; all if ``None``.
        target: Classes or values to hold instead of the predicted ones: one a node of the graph, or one each.
    """

    def __init__(self, predictor: Predictor, graph: UserGraph, index: Any, target: Any) -> None:
        self.predictor, self.graph = predictor, graph
        given = graph.detached()
        number = check_features(given.x)
        self._index = GraphIndex.build(given.edge_index, number)
        every = torch.arange(number, device=given.x.device)
        self.nodes = every if index is None else check_index(index, number, given.x.device)
        self._embedding = embeddings(predictor.model, given.x, given.edge_index, given.arguments)
        with predictor.borrow():
            self._output = predictor.model(given.x, given.edge_index, **given.arguments)
            # The whole graph decides what was predicted.
            self._whole = predictor.read(predictor._checked(self._output, number))
        self._given = _labels(predictor, target, self.nodes, number)
        self._detached = given

    def __len__(self) -> int:
        return self.nodes.numel()

    def question(self, which: slice) -> Question:
        """Cuts out the instances ``which``."""
        nodes, graph = self.nodes[which], self._detached
        instances = Instances.around_nodes(
            graph.x, graph.edge_index, nodes, self.predictor.num_hops, graph_index=self._index, **graph.arguments
        )
        whole, regression = self._whole[nodes], self.predictor.mode == "regression"
        everywhere = self._output if regression else self._whole.argmax(dim=1)
        if self._given is None:
            label = whole if regression else everywhere[nodes]
            targets = [everywhere] * len(nodes)
        else:
            label = self._given[which]
            # The same node may be asked about with several targets: these are different instances.
            instances = _named(instances, combine(instances.graph, _row_hash(label)))
            targets = [_with_row(everywhere, node, value) for node, value in zip(nodes, label, strict=True)]
        target = Target.of(self.predictor, instances, label)
        if not regression:
            target = replace(target, prediction=whole)
        shown = [
            {"prediction": self._output, "target": target, "index": node.reshape(1)}
            for node, target in zip(nodes, targets, strict=True)
        ]
        embedding = self._embedding[instances.node_id]
        return Question(self.predictor, instances, target, embedding, [self.graph] * len(nodes), shown)


class GraphQuestions:
    """Predictions of whole graphs.

    Args:
        predictor: The model.
        graphs: The graphs.
        index: Positions of those to explain; all if ``None``.
        target: Classes or values to hold instead of the predicted ones: one a graph, or one each.
    """

    def __init__(self, predictor: Predictor, graphs: Sequence[UserGraph], index: Any, target: Any) -> None:
        self.predictor, self._given = predictor, None
        if len(graphs) == 0:
            raise InstanceError("There is no graph to explain. Pass at least one.")
        places = _positions(index, len(graphs))
        self._graphs = [graphs[place] for place in places]
        for number, graph in zip(places, self._graphs, strict=True):
            check_edges(graph.edge_index, check_features(graph.x, f"graph {number}"), f"graph {number}")
        device = self._graphs[0].x.device
        self._given = _labels(predictor, target, torch.tensor(places, device=device), len(graphs))

    def __len__(self) -> int:
        return len(self._graphs)

    def question(self, which: slice) -> Question:
        """Puts the graphs ``which`` together."""
        graphs, predictor = self._graphs[which], self.predictor
        data = []
        names: set[str] = set()
        shared: dict[str, Any] = {}
        for graph in graphs:
            given = graph.detached()
            rows, shared = given.sorted_arguments()
            names.update(rows)
            data.append(Data(x=given.x, edge_index=given.edge_index, **rows))
        given_label = None if self._given is None else self._given[which]
        shared = {name: value for name, value in shared.items() if name not in names}
        instances = _by_content(Instances.of_graphs(data, arguments=sorted(names), **shared), given_label)
        output, embedding = _ask_graphs(predictor, instances)
        target = Target.of(predictor, instances, given_label)
        held: Any = target.prediction if target.label is None else target.label
        shown = [{"prediction": output[i : i + 1], "target": held[i : i + 1]} for i in range(len(graphs))]
        return Question(predictor, instances, target, embedding, graphs, shown)


def _positions(index: Any, count: int) -> list[int]:
    """Turns positions of graphs into a list, or says which one does not exist."""
    if index is None:
        return list(range(count))
    try:
        places = torch.as_tensor(index).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'index' must hold positions of graphs (got {index!r}).") from error
    if places.dtype == torch.bool and places.numel() == count:
        places = torch.nonzero(places).flatten()
    if places.numel() == 0:
        raise InstanceError("'index' is empty. Pass at least one graph.")
    if places.is_floating_point() or places.is_complex() or places.dtype == torch.bool:
        raise InstanceError(f"'index' must hold whole numbers (got {places.dtype}). Call .long() on it.")
    wrong = [place for place in places.tolist() if not 0 <= place < count]
    if wrong:
        raise InstanceError(
            f"'index' names graph {wrong[0]}, but there are {count}. Pass positions in [0, {count}); to explain a "
            "node, use a node-level model with task_level='node'."
        )
    return places.tolist()


def _labels(predictor: Predictor, target: Any, index: Tensor, total: int) -> Tensor | None:
    """Picks the given targets of the asked rows, shape ``[I, C]`` for regression and ``[I]`` otherwise."""
    if target is None:
        return None
    try:
        values = torch.as_tensor(target, device=index.device).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InstanceError(f"'target' must be a tensor of classes or values (got {target!r}).") from error
    values = values.reshape(1) if values.dim() == 0 else values
    if values.size(0) == total:
        values = values[index]
    elif values.size(0) != index.numel():
        raise InstanceError(
            f"'target' has {values.size(0)} rows. Pass one for each of the {total} rows of the model's output, "
            f"or one for each of the {index.numel()} asked ones."
        )
    values = values.reshape(index.numel(), -1)
    if predictor.mode == "regression":
        return values
    if values.size(1) != 1:
        raise InstanceError(f"'target' must hold one class each (got {values.size(1)} columns).")
    if values.is_floating_point() and not torch.equal(values, values.round()):
        raise InstanceError("'target' must hold classes, which are whole numbers (got fractions).")
    return values[:, 0].long()


def _with_row(values: Tensor, row: Tensor, value: Tensor) -> Tensor:
    """Copies ``values`` with one row replaced."""
    copy = values.clone()
    copy[row] = value.reshape(copy[row].shape).to(copy)
    return copy


def _row_hash(values: Tensor) -> Tensor:
    """Hashes each row of a tensor ``[R, ...]`` by its contents, shape ``[R]``."""
    bits = values.detach().reshape(values.size(0), -1).double().contiguous().view(torch.int64)
    return mix(bits + mix(torch.arange(bits.size(1), device=bits.device))).sum(dim=1)


def _named(instances: Instances, number: Tensor) -> Instances:
    """Gives each instance a number ``[I]`` of its own, from which all its noise follows."""
    return replace(instances, graph=number, key=combine(number[instances.owner], instances.node_id))


def _by_content(instances: Instances, label: Tensor | None) -> Instances:
    """Names graphs by what they hold instead of their position, so that no batch changes their explanation."""
    count, first = len(instances), instances.ptr[:-1]
    edge_owner = segment_ids(instances.edge_counts, instances.edge_id.numel())
    source, target = instances.edge_index - first[edge_owner]
    node = combine(instances.node_id, _row_hash(instances.x))
    edge = combine(instances.edge_id, source, target)
    for _, value in sorted(instances.node_arguments.items()):
        node = combine(node, _row_hash(value))
    for _, value in sorted(instances.edge_arguments.items()):
        edge = combine(edge, _row_hash(value))
    number = combine(segment_sum(node, instances.owner, count), segment_sum(edge, edge_owner, count))
    return _named(instances, number if label is None else combine(number, _row_hash(label)))


def _ask_graphs(predictor: Predictor, instances: Instances) -> tuple[Tensor, Tensor]:
    """Gives the model's raw output on each graph ``[I, C]`` and its embeddings at every node ``[n, H]``."""
    if not predictor._takes_batch and len(instances) > 1:
        each = torch.arange(len(instances), device=instances.device)
        outputs, rows = zip(*(_ask_graphs(predictor, instances.select(one)) for one in each.split(1)), strict=True)
        return torch.cat(outputs), torch.cat(rows)
    arguments = instances.node_arguments | instances.edge_arguments | instances.shared_arguments
    if predictor._takes_batch:
        arguments |= {"batch": instances.owner}
    embedding = embeddings(predictor.model, instances.x, instances.edge_index, arguments)
    with predictor.borrow():
        output = predictor.model(instances.x, instances.edge_index, **arguments)
        return predictor._checked(output, len(instances)), embedding


class SinglePredictor(Predictor):
    """A predictor that answers in single precision, in which the flow network learns, whatever the model's is."""

    def read(self, output: Tensor) -> Tensor:
        """See :class:`Predictor`."""
        return super().read(output.float())


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves: the weights of the flow network, and which model and task they belong to."""

    weights: dict[str, Tensor]
    model: str
    config: dict[str, str]


class GFlowExplainer(ExplainerAlgorithm):
    """Explains predictions by connected subgraphs, sampled in proportion to how well they hold the prediction.

    .. code-block:: python

        algorithm = GFlowExplainer(max_nodes=8, seed=0)
        explainer = Explainer(model, algorithm, explanation_type="model", node_mask_type="object",
                              edge_mask_type="object", model_config=dict(mode="multiclass_classification",
                                                                         task_level="node", return_type="raw"))
        explanation = explainer(data.x, data.edge_index, index=42)

    Without :meth:`fit`, each asked instance gets a short training of its own (:data:`ALONE`; a few seconds). After
    :meth:`fit`, the one trained flow network explains any instance of the same model, also unseen ones, at once.

    The same seed gives the same answer on every run, and an instance is explained the same alone and among others.

    Args:
        preset: Name of the settings to begin with; see :meth:`Settings.preset`.
        num_samples: Subgraphs sampled for each explanation.
        weighting: ``"policy"``: probabilities are how often the flow network samples a subgraph. ``"reward"``: samples
            are weighed by their reward, so that they are right for this one instance even where the network is off.
        num_hops: Message-passing steps of the models to explain; counted if not given.
        certificate_limit: Connected subgraphs up to which the exact distance is computed when it is asked for.
        **settings: Any field of :class:`~gflowexplainer.settings.Settings`, such as ``max_nodes`` or ``seed``.
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        num_samples: int = 64,
        weighting: str = "policy",
        num_hops: int | None = None,
        certificate_limit: int = 20_000,
        **settings: Any,
    ) -> None:
        super().__init__()
        for name, value in (("num_samples", num_samples), ("certificate_limit", certificate_limit)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"'{name}' must be a whole number of at least 1 (got {value!r}).")
        self.settings = Settings.preset(preset, **settings)
        alone = {} if preset == "paper" else ALONE
        self.settings_alone = Settings.preset(preset, **{**alone, **settings})
        self.num_samples = num_samples
        self.weighting = one_of("weighting", weighting, WEIGHTINGS)
        self.num_hops = num_hops
        self.certificate_limit = certificate_limit
        self._preset, self._changes = preset, dict(settings)
        self._fitted: Fitted | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether there is a trained flow network."""
        return self._fitted is not None

    def supports(self) -> bool:
        """Says whether the connected settings can be explained; the reason why not is logged, as PyG does."""
        name = self.__class__.__name__
        level = self.model_config.task_level
        if level not in (ModelTaskLevel.node, ModelTaskLevel.graph):
            logging.error(f"'{name}' only supports node-level and graph-level explanations (got '{level.value}')")
            return False
        for kind in ("node_mask_type", "edge_mask_type"):
            mask = getattr(self.explainer_config, kind)
            if mask not in (None, MaskType.object):
                logging.error(f"'{name}' explains by whole nodes: '{kind}' must be 'object' (got '{mask.value}')")
                return False
        return True

    def forward(
        self,
        model: nn.Module,
        x: Tensor,
        edge_index: Tensor,
        *,
        target: Tensor | None = None,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> SubgraphExplanation:
        """Explains one prediction; called by PyG's ``Explainer``.

        Args:
            model: The model.
            x: Node features, shape ``[N, F]``.
            edge_index: Edges, shape ``[2, E]``.
            target: Classes or values, one a row of the model's output. Only heeded where they are asked for
                (``explanation_type="phenomenon"``); otherwise the model's own prediction is explained.
            index: The one node to explain. At graph level the position of the graph, needed where ``batch`` in
                ``kwargs`` says that there are several.
            **kwargs: Further arguments of the model.
        """
        connected = hasattr(self, "_explainer_config")
        config = self._config(None, None, index)
        if connected and self.explainer_config.explanation_type == ExplanationType.model:
            target = None
        graph = _user_graph(x, edge_index, kwargs, model)
        questions: NodeQuestions | GraphQuestions
        predictor = self._predictor(model, config)
        if predictor.level == "node":
            _one(index, "node")
            questions = NodeQuestions(predictor, graph, index, target)
        else:
            parts = _without_batch(graph)
            if len(parts) > 1:
                _one(index, "graph")
            questions = GraphQuestions(predictor, parts, index, target)
        explanation = self._explain(questions, config, progress=False)[0]
        if connected:
            for name in ("node_mask", "edge_mask"):
                if getattr(self.explainer_config, f"{name}_type") is None:
                    del explanation[name]
        return explanation

    def fit(
        self,
        model: nn.Module,
        data: Data | Iterable[Data],
        index: Any = None,
        *,
        target: Any = None,
        folder: str | Path | None = None,
        progress: bool = True,
        callback: Callback | None = None,
        model_config: ModelConfig | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> GFlowExplainer:
        """Trains one flow network on many instances; from then on it explains any instance of the same model.

        Attributes of the data that the model's ``forward`` takes by name, such as ``edge_attr``, are passed along.

        Args:
            model: The model.
            data: One graph, or for graph tasks a list, a ``Batch`` or a dataset of graphs.
            index: Nodes, or positions of graphs, to train on; all if not given.
            target: Classes or values to hold instead of the model's own predictions: one for each node of the graph
                (each graph), or one for each entry of ``index``.
            folder: Where checkpoint, curves and in the end the explainer are stored. A training that was interrupted
                is taken up again by the same call, and comes to the same weights.
            progress: Whether to show a progress bar on standard error.
            callback: Called after each update with the trainer and the record of the update.
            model_config: Mode, level and return type of the model, as in PyG's ``Explainer``. If not given, those of
                the connected ``Explainer``; else those of an earlier fit; else a multiclass classifier with raw
                outputs, of nodes if ``index`` is given or the one graph has a label for each node, otherwise of graphs.
            **kwargs: Further arguments of the model.
        """
        if self.settings.node_identities:
            raise ConfigError(
                "With node_identities=True the policy only knows the nodes it is trained on and explains no others. "
                "Leave it out, or explain without fit."
            )
        config, questions = self._questions(model, data, index, target, model_config, kwargs)
        question = questions.question(slice(None))
        with _learning():
            trainer = self._trainer(question, self.settings)
            trainer.run(folder, progress=progress, callback=callback)
        weights = {name: value.detach().cpu() for name, value in trainer.network.state_dict().items()}
        self._fitted = Fitted(weights, fingerprint(model), config_to_dict(config))
        if folder is not None:
            self.save(folder)
        return self

    def explain(
        self,
        model: nn.Module,
        data: Data | Iterable[Data],
        index: Any = None,
        *,
        target: Any = None,
        progress: bool = True,
        model_config: ModelConfig | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[SubgraphExplanation]:
        """Explains many predictions at once, in the order of ``index``.

        Args as in :meth:`fit`. A progress bar is only shown where there was no fit, so that each instance is trained
        on by itself.
        """
        config, questions = self._questions(model, data, index, target, model_config, kwargs)
        return self._explain(questions, config, progress=progress)

    def _explain(
        self, questions: NodeQuestions | GraphQuestions, config: ModelConfig, *, progress: bool
    ) -> list[SubgraphExplanation]:
        model = questions.predictor.model
        name = fingerprint(model)
        fitted = self._fitted
        if fitted is not None:
            self._refuse_others(fitted, name, config)
        at_once = 1 if fitted is None else max(1, _ROLLOUTS_AT_ONCE // self.num_samples)
        explanations = []
        for begin in tqdm(
            range(0, len(questions), at_once),
            disable=not progress or fitted is not None,
            desc="explain",
            leave=False,
        ):
            question = questions.question(slice(begin, begin + at_once))
            with _learning():
                if fitted is None:
                    trainer = self._trainer(question, self.settings_alone).run(progress=False)
                else:
                    trainer = self._trainer(question, self.settings)
                    _load_weights(trainer, fitted.weights)
            explanations += self._answers(trainer, question, name)
        for explanation in explanations:
            explanation._model_config = config
        return explanations

    @torch.no_grad()
    def _answers(self, trainer: Trainer, question: Question, name: str) -> list[SubgraphExplanation]:
        """Samples from a trained network and reads the samples."""
        instances, network = trainer.instances, trainer.network
        every = torch.arange(len(instances), device=instances.device)
        rollouts = network.sample(trainer.inputs, every.repeat_interleave(self.num_samples), _EXPLAINING)
        ends = rollouts.states.select(rollouts.last)
        log_reward = trainer.reward.log_reward(ends.subgraphs, ends.can_grow)
        encoding = network.policy.encode(instances, trainer.inputs.features)
        log_weight = importance_weights(network.policy, encoding, rollouts, log_reward, trainer.settings.parents)
        weighed = read_samples(instances, ends.subgraphs, log_weight)
        reading = weighed if self.weighting == "reward" else read_samples(instances, ends.subgraphs)
        ranked = _rank(trainer, question, reading)
        edge = edge_values(instances, reading.neighbor)
        source, destination = instances.edge_index
        edge = torch.where(source == destination, reading.node[source], edge)
        explanations = []
        for i, graph in enumerate(question.graphs):
            compute = partial(certify, trainer, reading, i, self.certificate_limit, name)
            center = int(instances.center[i])
            answer = Answer(
                subgraphs=ranked[i],
                node=None if center < 0 else int(instances.node_id[center]),
                weighting=self.weighting,
                num_samples=self.num_samples,
                effective_sample_size=float(weighed.effective_size[i]),
                certificate=PendingCertificate(compute),
            )
            nodes = slice(int(instances.ptr[i]), int(instances.ptr[i + 1]))
            edges = slice(int(instances.edge_ptr[i]), int(instances.edge_ptr[i + 1]))
            shown = graph.shown or graph
            node_mask = _scatter(reading.node[nodes], instances.node_id[nodes], graph.nodes, shown.x.size(0))
            edge_mask = _scatter(edge[edges], instances.edge_id[edges], graph.edges, shown.edge_index.size(1))
            arguments = {name: value for name, value in shown.arguments.items() if value is not None}
            explanation = SubgraphExplanation.of(
                answer,
                node_mask=node_mask[:, None],
                edge_mask=edge_mask,
                x=shown.x,
                edge_index=shown.edge_index,
                **question.shown[i],
                **arguments,
            )
            explanation._model_args = list(arguments)
            explanations.append(explanation)
        return explanations

    def save(self, folder: str | Path) -> None:
        """Stores the fitted explainer in ``folder``: safetensors and JSON, no pickle. The model is not stored."""
        if self._fitted is None:
            raise ConfigError("This explainer has not been fitted, so there is nothing to store. Call fit first.")
        meta = {
            "kind": KIND,
            "preset": self._preset,
            "settings": self._changes,
            "num_samples": self.num_samples,
            "weighting": self.weighting,
            "num_hops": self.num_hops,
            "certificate_limit": self.certificate_limit,
            "model": self._fitted.model,
            "config": self._fitted.config,
        }
        write_checkpoint(Path(folder) / FILE, self._fitted.weights, meta)

    @classmethod
    def load(cls, folder: str | Path) -> GFlowExplainer:
        """Reads an explainer that :meth:`save`, or :meth:`fit` with a folder, has stored."""
        path = Path(folder) / FILE
        if not path.is_file() and (Path(folder) / CHECKPOINT).is_file():
            raise CheckpointError(
                f"'{folder}' holds a training that was not finished. Call fit with this folder to go on with it."
            )
        weights, meta = read_checkpoint(path)
        if meta.get("kind") != KIND:
            raise CheckpointError(f"'{path}' holds no explainer (but {meta.get('kind') or 'a training'}).")
        try:
            options = {name: meta[name] for name in ("num_samples", "weighting", "num_hops", "certificate_limit")}
            explainer = cls(preset=meta["preset"], **options, **meta["settings"])
            explainer._fitted = Fitted(weights, meta["model"], config_to_dict(ModelConfig(**meta["config"])))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"'{path}' holds an explainer of another version ({error}).") from error
        return explainer

    def _questions(
        self,
        model: nn.Module,
        data: Any,
        index: Any,
        target: Any,
        model_config: ModelConfig | Mapping[str, Any] | None,
        kwargs: dict[str, Any],
    ) -> tuple[ModelConfig, NodeQuestions | GraphQuestions]:
        """Understands what a user asks of :meth:`fit` and :meth:`explain`."""
        if isinstance(data, Batch):
            data = data.to_data_list()
        config = self._config(model_config, data, index)
        predictor = self._predictor(model, config)
        graphs = _graphs_of(data, model, kwargs)
        if predictor.level == "graph":
            if "batch" in kwargs and len(_without_batch(graphs[0])) > 1:
                raise InstanceError("'batch' names several graphs. Pass them as a list, or as a Batch, instead.")
            return config, GraphQuestions(predictor, [_without_batch(g)[0] for g in graphs], index, target)
        if len(graphs) != 1:
            raise InstanceError(
                f"A node-level model is explained on one graph (got {len(graphs)}). "
                "Pass one Data, or a model_config with task_level='graph'."
            )
        return config, NodeQuestions(predictor, graphs[0], index, target)

    def _config(self, given: Any, data: Any, index: Any) -> ModelConfig:
        """Finds out what kind of model is explained; see :meth:`fit` for the order."""
        if given is not None:
            try:
                config = given if isinstance(given, ModelConfig) else ModelConfig(**given)
            except (TypeError, ValueError) as error:
                raise ConfigError(
                    f"'model_config' must be a ModelConfig of PyG or its arguments (got {given!r}: {error})."
                ) from error
        elif hasattr(self, "_model_config"):
            config = self.model_config
        elif self._fitted is not None:
            config = ModelConfig(**self._fitted.config)
        else:
            labelled = isinstance(data, Data) and isinstance(data.y, Tensor) and data.y.dim() > 0
            of_nodes = labelled and data.y.size(0) == data.num_nodes
            many = not isinstance(data, Data) and data is not None
            level = "node" if not many and (index is not None or of_nodes) else "graph"
            config = ModelConfig("multiclass_classification", level, "raw")
        if config.task_level == ModelTaskLevel.edge:
            raise ConfigError("Predictions of edges are not supported. Explain a node-level or graph-level model.")
        return config

    def _predictor(self, model: nn.Module, config: ModelConfig) -> Predictor:
        if not isinstance(model, nn.Module):
            raise ModelError(f"'model' must be a torch.nn.Module (got {type(model).__name__}).")
        names = config_to_dict(config)
        return SinglePredictor(
            model,
            level=names["task_level"],
            mode=names["mode"],
            return_type=names["return_type"],
            num_hops=self.num_hops,
        )

    def _trainer(self, question: Question, settings: Settings) -> Trainer:
        return Trainer(
            question.predictor, question.instances, settings, embedding=question.embedding, target=question.target
        )

    @staticmethod
    def _refuse_others(fitted: Fitted, model: str, config: ModelConfig) -> None:
        if model != fitted.model:
            raise ModelError(
                "This explainer was fitted to another model, or to other weights of this one. "
                "Fit it again, or use a new GFlowExplainer."
            )
        here = config_to_dict(config)
        if here != fitted.config:
            raise ConfigError(f"This explainer was fitted for {fitted.config}, but is asked for {here}. Fit it again.")

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self._changes.items())
        return f"{type(self).__name__}(preset={self._preset!r}{shown}, fitted={self.is_fitted})"


def _one(index: Any, what: str) -> None:
    """Refuses anything but one instance: an explanation of PyG is one pair of masks."""
    if index is None or (isinstance(index, Tensor | Sequence) and torch.as_tensor(index).numel() != 1):
        raise InstanceError(
            f"One call explains one {what} (got index={index!r}). Pass the 'index' of one, or call "
            "'algorithm.explain' for many at once."
        )


@contextmanager
def _learning() -> Iterator[None]:
    """Lets the flow network learn, even if the user asks from within ``no_grad`` or ``inference_mode``."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def _load_weights(trainer: Trainer, weights: dict[str, Tensor]) -> None:
    try:
        trainer.network.load_state_dict(weights)
    except RuntimeError as error:
        raise InstanceError(
            f"The fitted flow network does not fit these graphs; their features must be those of the training: {error}"
        ) from error


def _scatter(values: Tensor, place: Tensor, outer: Tensor | None, size: int) -> Tensor:
    """Writes probabilities to their places in the user's graph, zero elsewhere, shape ``[size]``."""
    mask = torch.zeros(size, device=values.device)
    mask[place if outer is None else outer[place]] = values.clamp(0, 1).float()
    return mask


def _rank(trainer: Trainer, question: Question, reading: Reading) -> list[tuple[RankedSubgraph, ...]]:
    """Lists the different subgraphs of each instance, most probable first, with what the model says of each."""
    instances, subgraphs = trainer.instances, reading.subgraphs
    with trainer.predictor.borrow():
        columns = (
            reading.probability,
            trainer.reward.log_score(subgraphs).exp(),
            trainer.reward.predict(subgraphs),
            trainer.reward.predict(subgraphs, without=True),
        )
    probability, node_id = reading.node.tolist(), instances.node_id.tolist()
    center = instances.center.tolist()
    found: list[list[RankedSubgraph]] = [[] for _ in range(len(instances))]
    rows = zip(subgraphs.instance.tolist(), subgraphs.members.tolist(), *(c.tolist() for c in columns), strict=True)
    for i, slots, share, reward, only, without in rows:
        members = sorted((m for m in slots if m >= 0), key=lambda m: (m != center[i], -probability[m], m))
        outer = question.graphs[i].nodes
        ids = [node_id[m] for m in members]
        nodes = tuple(ids if outer is None else outer[ids].tolist())
        found[i].append(RankedSubgraph(nodes, share, reward, tuple(only), tuple(without)))
    return [tuple(sorted(each, key=lambda s: (-s.probability, -s.reward, s.nodes))) for each in found]
