"""The face: GFlowExplainer, an explainer algorithm of PyG that answers with distributions over subgraphs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain import ExplainerAlgorithm, ModelConfig
from torch_geometric.explain.config import ExplanationType, MaskType, ModelTaskLevel

from gflowexplainer.choices import Inference, Measure, PolicyType, Weighting
from gflowexplainer.errors import CheckpointError, ConfigError, InstanceError, ModelError
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.explanation_list import ExplanationList
from gflowexplainer.explanation.joint import JointExplanation
from gflowexplainer.explanation.typed_explanation import TypedExplanation
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.links import DETOUR
from gflowexplainer.graphs.typed import EdgeType
from gflowexplainer.inference.explaining import Explaining
from gflowexplainer.inference.fitted_state import FittedState
from gflowexplainer.model.config import config_to_dict, model_config_of
from gflowexplainer.model.hops import check_hops
from gflowexplainer.model.input_forms import usual_call, usual_form
from gflowexplainer.model.kept import KeptForModel
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.requests import AnyTask, Request, node_type_of, task_of, task_of_call
from gflowexplainer.model.typed import TypedPredictor
from gflowexplainer.ops.devices import device_of
from gflowexplainer.rewards.evidence_report import EvidenceReport
from gflowexplainer.sampler import FlowSampler, SamplerState
from gflowexplainer.settings import SOUGHT, Settings
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.storage.files import is_file
from gflowexplainer.training.checkpoint import CHECKPOINT
from gflowexplainer.training.distributed import Fabric
from gflowexplainer.training.folder import EXPLAINER as FILE
from gflowexplainer.training.folder import writing
from gflowexplainer.training.trainer import Callback, Trainer, learning

KIND = "explainer"
LATER = ("node_type", "edge_type", "remove_link", "inference")
"""Arguments that files of earlier versions do not have."""
OPTIONS = ("num_samples", "weighting", "num_hops", "certificate_limit", "memory_budget")
"""Arguments that are no settings, and stored with them."""
ALONE: dict[str, Any] = {
    "objective": "log_partition_variance",
    "epochs": 20,
    "max_updates": 0,
    "rollouts": 32,
    "descents": 4,
    "learning_rate": 0.03,
    "epsilon": 0.2,
    "node_identities": True,
}
"""Settings of the short training on one instance that replaces a missing fit; what the user sets goes before.

Every value that matters is named, as those that are best for many instances are not for one.
"""
MOST_ALONE = 100
"""Predictions that one call of PyG's ``Explainer`` explains without ``index`` and without a fit."""


class GFlowExplainer(ExplainerAlgorithm):
    """Explains predictions by connected subgraphs, sampled in proportion to how well they preserve the prediction.

    .. code-block:: python

        algorithm = GFlowExplainer(max_nodes=8, seed=0)
        explainer = Explainer(model, algorithm, explanation_type="model", node_mask_type="object",
                              edge_mask_type="object", model_config=dict(mode="multiclass_classification",
                                                                         task_level="node", return_type="raw"))
        explanation = explainer(data.x, data.edge_index, index=42)

    Without :meth:`fit`, each asked instance is searched by itself, and nodes learn what preserves their class from
    reference nodes, once for a model and a graph. After :meth:`fit`, the one trained flow network explains any instance
    of the same model, also unseen ones, at once.

    The same seed gives the same answer on every run, and an instance is explained the same alone and among others.

    Args:
        preset: Name of the settings to begin with; see :meth:`Settings.preset`.
        num_samples: Subgraphs sampled for each explanation.
        weighting: ``"policy"``: probabilities are how often the flow network samples a subgraph. ``"reward"``: samples
            are weighed by their reward, so that they are right for this one instance even where the network is off.
        inference: ``"flow"``: a flow network is trained and samples subgraphs; without a fit, one for each instance
            (:data:`ALONE`). ``"search"``: a beam search, as wide as ``num_samples``, under the same reward; nothing is
            trained. ``"auto"``: the flow network after a fit. Without one the search, but for links, and where a
            setting of the network, of its training or of another reward is given: then a flow network for each.
        num_hops: Message-passing steps of the models to explain; counted if not given.
        certificate_limit: Connected subgraphs up to which the exact distance is computed when it is asked for.
        memory_budget: Bytes that one batch of work may take, roughly; by default 1 GiB on a CPU, and a quarter of the
            free memory on a GPU. Larger work is done in several batches, which changes nothing but the time it takes.
        node_type: Of a heterogeneous graph, the type of the nodes that the model predicts at. It is found out if not
            given, where the number of rows that the model returns tells it.
        edge_type: Of a heterogeneous graph, the relation whose links the model predicts.
        remove_link: Whether an explained link that is in the graph is left out of it, in both directions. A model that
            only reads it off has nothing to explain.
        **settings: Any field of :class:`~gflowexplainer.settings.Settings`, such as ``max_nodes`` or ``seed``.
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        num_samples: int = 64,
        weighting: str = "policy",
        inference: str = "auto",
        num_hops: int | None = None,
        certificate_limit: int = 20_000,
        memory_budget: int | None = None,
        node_type: str | None = None,
        edge_type: EdgeType | None = None,
        remove_link: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__()
        counts = {"num_samples": num_samples, "certificate_limit": certificate_limit}
        if memory_budget is not None:
            counts["memory_budget"] = memory_budget
        for name, value in counts.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"'{name}' must be a whole number of at least 1 (got {value!r}).")
        check_hops(num_hops)
        self.settings = Settings.preset(preset, **settings)
        alone = {} if preset == "paper" else ALONE
        self.settings_alone = Settings.preset(preset, **{**alone, **settings})
        self.num_samples = num_samples
        self.weighting = Weighting.of("weighting", weighting).value
        self.inference = Inference.of("inference", inference).value
        self.num_hops = num_hops
        self.certificate_limit = certificate_limit
        self.memory_budget = memory_budget
        if not isinstance(remove_link, bool):
            raise ConfigError(f"'remove_link' must be True or False (got {remove_link!r}).")
        if node_type is not None and not isinstance(node_type, str):
            raise ConfigError(f"'node_type' must be the name of a type of nodes (got {node_type!r}).")
        self.node_type, self.remove_link = node_type, remove_link
        self.edge_type = _relation(edge_type)
        self._preset, self._changes = preset, dict(settings)
        self._fitted: FittedState | None = None
        self._kept = KeptForModel()

    @property
    def is_fitted(self) -> bool:
        """Whether there is a trained flow network."""
        return self._fitted is not None

    def supports(self) -> bool:
        """Says whether the connected settings can be explained; the reason why not is logged, as PyG does."""
        name = self.__class__.__name__
        link = self.model_config.task_level == ModelTaskLevel.edge
        for kind in ("node_mask_type", "edge_mask_type"):
            mask = getattr(self.explainer_config, kind)
            if mask in (None, MaskType.object) or (kind == "node_mask_type" and not link):
                continue
            logging.error(f"'{name}' explains by whole nodes: '{kind}' must be 'object' (got '{mask.value}')")
            return False
        return True

    def forward(
        self,
        model: nn.Module,
        x: Tensor | Mapping[str, Tensor],
        edge_index: Tensor | Mapping[EdgeType, Tensor],
        *,
        target: Tensor | None = None,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> SubgraphExplanation | TypedExplanation | JointExplanation:
        """Explains one prediction, or several by one pair of masks; called by PyG's ``Explainer``.

        Args:
            model: The model.
            x: Node features, shape ``[N, F]``; of a heterogeneous graph, by node type.
            edge_index: Edges, shape ``[2, E]``; of a heterogeneous graph, by relation.
            target: Classes or values, one a row of the model's output. Only heeded where they are asked for
                (``explanation_type="phenomenon"``); otherwise the model's own prediction is explained.
            index: The node to explain, or several: a list, a tensor or a mask; all of them if not given. At graph level
                positions of graphs, where ``batch`` in ``kwargs`` says that there are several. For links columns of
                ``edge_label_index``. Of a heterogeneous graph, one node or link.
            **kwargs: Further arguments of the model.
        """
        connected = hasattr(self, "_explainer_config")
        config = self._config(None, None, index)
        if connected and self.explainer_config.explanation_type == ExplanationType.model:
            target = None
        links = kwargs.pop("edge_label_index", None)
        model, x, edge_index, kwargs = usual_call(model, x, edge_index, kwargs, self._kept.adapted)
        predictor = self._predictor(model, config)
        request = self._request(
            predictor,
            (x, edge_index),
            index=index,
            target=target,
            edge_label_index=links,
            arguments=kwargs,
            at_hand=self._samples_at_hand,
        )
        task = task_of_call(predictor, x, edge_index, request, self._kept)
        if len(task) > MOST_ALONE and index is None and self._fitted is None:
            raise InstanceError(
                f"No 'index' means all {len(task)} predictions, and each would be explained by itself. Pass the "
                "'index' of those to explain, or call 'fit' first."
            )
        found = self._explain(task, config, progress=False)
        explanation = found[0] if len(found) == 1 else JointExplanation.of(found)
        if connected:
            explanation.drop(
                name for name in ("node_mask", "edge_mask") if getattr(self.explainer_config, f"{name}_type") is None
            )
            if isinstance(explanation, SubgraphExplanation):
                explanation.show_features(self.explainer_config.node_mask_type)
        return explanation

    def fit(
        self,
        model: nn.Module,
        data: Data | HeteroData | Iterable[Data] | Iterable[HeteroData],
        index: Any = None,
        *,
        target: Any = None,
        node_type: str | None = None,
        edge_label_index: Any = None,
        edge_type: EdgeType | None = None,
        folder: str | Path | None = None,
        overwrite: bool = False,
        progress: bool = True,
        callback: Callback | None = None,
        model_config: ModelConfig | Mapping[str, Any] | None = None,
        graph_index: GraphIndex | None = None,
        fabric: Fabric | None = None,
        **kwargs: Any,
    ) -> GFlowExplainer:
        """Trains one flow network on many instances; from then on it explains any instance of the same model.

        Attributes of the data that the model's ``forward`` takes by name, such as ``edge_attr``, are passed along.

        Args:
            model: The model.
            data: One graph, or for graph tasks a list, a ``Batch`` or a dataset of graphs.
            index: Nodes, or positions of graphs or links, to train on; all if not given.
            target: Classes or values to hold instead of the model's own predictions: one for each node of the graph
                (each graph, each link), or one for each entry of ``index``.
            node_type: Of a heterogeneous graph, the type of the nodes; ``index`` then names nodes of that type.
            edge_label_index: Links to explain, ids of both ends, shape ``[2, L]``; the model is called with it by name.
            edge_type: Of a heterogeneous graph, the relation of the links: (source type, relation, target type).
            folder: Where checkpoint, curves and in the end the explainer are stored. A training that was interrupted
                is taken up again by the same call, and comes to the same weights. A folder that holds a training of
                another model, other data (any tensor that the model is given), another index or other settings is
                refused with what differs.
            overwrite: Whether to begin anew in ``folder``, whatever it holds of an earlier fit.
            progress: Whether to show a progress bar on standard error.
            callback: Called after each update with the trainer and the record of the update.
            model_config: Mode, level and return type of the model, as in PyG's ``Explainer``. If not given, those of
                the connected ``Explainer``; else those of an earlier fit; else a multiclass classifier with raw
                outputs, of nodes if ``index`` is given or the one graph has a label for each node, otherwise of graphs.
            graph_index: The index of the graph, to spare building it at every call
                (:class:`~gflowexplainer.graphs.index.GraphIndex`).
            fabric: A Fabric that was launched: its processes, which all make this call, train together.
            **kwargs: Further arguments of the model.
        """
        config, task = self._task(
            model,
            data,
            model_config,
            index=index,
            target=target,
            node_type=node_type,
            edge_label_index=edge_label_index,
            edge_type=edge_type,
            graph_index=graph_index,
            arguments=kwargs,
        )
        self.settings.check_task(task.predictor.level, shared=True)
        self._refuse_search(task)
        identity = None if folder is None else task.identity(self.settings.to_dict())
        with writing(folder, identity, overwrite=overwrite, fabric=fabric), learning():
            trainer = Trainer(FlowSampler(self.settings, task.inputs()), fabric=fabric, identity=identity)
            if self.inference != Inference.search:
                trainer.run(folder, progress=progress, callback=callback)
            if isinstance(task.predictor, TypedPredictor):
                self.node_type, self.edge_type = task.predictor.node_type, task.predictor.edge_type
            name = self._kept.fingerprint(task.model)
            self._fitted = FittedState(trainer.sampler.state(), name, config_to_dict(config), identity)
            if folder is not None and trainer.ranks.first:
                self.save(folder)
        return self

    def explain(
        self,
        model: nn.Module,
        data: Data | HeteroData | Iterable[Data] | Iterable[HeteroData],
        index: Any = None,
        *,
        target: Any = None,
        node_type: str | None = None,
        edge_label_index: Any = None,
        edge_type: EdgeType | None = None,
        progress: bool = True,
        model_config: ModelConfig | Mapping[str, Any] | None = None,
        graph_index: GraphIndex | None = None,
        **kwargs: Any,
    ) -> ExplanationList:
        """Explains many predictions at once; returns explanations in the order of ``index``.

        What is shown of an explanation (subgraphs, predictions with and without them, masks) is computed when it is
        looked at. Args as in :meth:`fit`. A progress bar is only shown where there was no fit, so that one instance is
        explained after the other.
        """
        config, task = self._task(
            model,
            data,
            model_config,
            index=index,
            target=target,
            node_type=node_type,
            edge_label_index=edge_label_index,
            edge_type=edge_type,
            graph_index=graph_index,
            arguments=kwargs,
            at_hand=self._samples_at_hand,
        )
        return self._explain(task, config, progress=progress)

    def _explain(self, task: AnyTask, config: ModelConfig, *, progress: bool) -> ExplanationList:
        self.settings.check_task(task.predictor.level)
        self._refuse_search(task)
        name = self._kept.fingerprint_of(task.predictor)
        if self._fitted is not None:
            self._fitted.refuse_others(name, config)
        explaining = Explaining(
            settings=self.settings,
            settings_alone=self.settings_alone,
            fitted=self._fitted,
            num_samples=self.num_samples,
            weighting=self.weighting,
            inference=self._way(task),
            certificate_limit=self.certificate_limit,
            budget=self._budget(task.index.device),
            model_name=name,
            config=config,
        )
        return ExplanationList(explaining.explain(task, progress=progress))

    def evidence_report(self) -> EvidenceReport:
        """Returns which evidence the fit chose, and how well each predicts the model where it was not fitted.

        A chosen evidence that explains little of what can be reproduced does not describe the model, and neither do
        explanations by it. ``print`` shows it as a table.
        """
        if self._fitted is None or self._fitted.sampler.consensus is None:
            raise ConfigError(
                "Only a fitted explainer with reward='consensus' has chosen among kinds of evidence. Call fit first."
            )
        return EvidenceReport.of(self._fitted.sampler.consensus)

    def save(self, folder: str | Path) -> None:
        """Stores the fitted explainer in ``folder``: safetensors and JSON, no pickle. The model is not stored."""
        if self._fitted is None:
            raise ConfigError("This explainer has not been fitted, so there is nothing to store. Call fit first.")
        meta = {
            "kind": KIND,
            "preset": self._preset,
            "settings": self._changes,
            **{name: getattr(self, name) for name in (*OPTIONS, *LATER)},
            "model": self._fitted.model,
            "config": self._fitted.config,
            "identity": self._fitted.identity,
        }
        write_checkpoint(Path(folder) / FILE, self._fitted.sampler.sections(), meta)

    @classmethod
    def load(cls, folder: str | Path) -> GFlowExplainer:
        """Reads an explainer that :meth:`save`, or :meth:`fit` with a folder, has stored."""
        path = Path(folder) / FILE
        if not is_file(path) and is_file(Path(folder) / CHECKPOINT):
            raise CheckpointError(
                f"'{folder}' holds a training that was not finished. Call fit with this folder to go on with it."
            )
        sections, meta = read_checkpoint(path)
        if meta.get("kind") != KIND:
            raise CheckpointError(f"'{path}' holds no explainer (but {meta.get('kind') or 'a training'}).")
        try:
            options = {name: meta[name] for name in OPTIONS} | {name: meta[name] for name in LATER if name in meta}
            explainer = cls(preset=meta["preset"], **options, **meta["settings"])
            config = config_to_dict(ModelConfig(**meta["config"]))
            explainer._fitted = FittedState(
                SamplerState.from_sections(sections), meta["model"], config, meta["identity"]
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"'{path}' holds an explainer of another version ({error}).") from error
        return explainer

    @property
    def _samples_at_hand(self) -> bool:
        """Whether few explanations are sampled as well on the CPU: nothing is trained, and the network is small."""
        return self._fitted is not None and self.settings.policy == PolicyType.additive

    def _task(
        self, model: nn.Module, data: Any, model_config: ModelConfig | Mapping[str, Any] | None, **asked: Any
    ) -> tuple[ModelConfig, AnyTask]:
        """Makes the task of what a user passes to :meth:`fit` and :meth:`explain`."""
        links = asked["edge_label_index"] is not None
        model, data = usual_form(model, data, self._kept.adapted)
        config = self._config(
            model_config, data, asked["index"], links=links, node_type=asked["node_type"], model=model
        )
        predictor = self._predictor(model, config)
        return config, task_of(predictor, data, self._request(predictor, data, **asked), self._kept)

    def _request(
        self, predictor: Predictor, data: Any, *, node_type: str | None = None, edge_type: Any = None, **asked: Any
    ) -> Request:
        """Puts together what is asked for, with what this explainer knows of types and bounds."""
        node_type = self.node_type if node_type is None else node_type
        if node_type is None:
            node_type = node_type_of(predictor, data, asked["arguments"])
        return Request(
            **asked,
            node_type=node_type,
            edge_type=self.edge_type if edge_type is None else tuple(edge_type),
            remove_link=self.remove_link,
            limit=self.settings.max_graph_nodes,
            bound=self.settings.max_nodes,
            detour=None if self.settings.measure == Measure.uniform else DETOUR,
        )

    def _config(self, given: Any, data: Any, index: Any, **hints: Any) -> ModelConfig:
        """Finds out what kind of model is explained; see :meth:`fit` for the order."""
        known = self._fitted and ModelConfig(**self._fitted.config)
        known = self.model_config if hasattr(self, "_model_config") else known
        return model_config_of(given, known, data, index, **hints)

    def _predictor(self, model: nn.Module, config: ModelConfig) -> Predictor:
        if not isinstance(model, nn.Module):
            raise ModelError(f"'model' must be a torch.nn.Module (got {type(model).__name__}).")
        names = config_to_dict(config)
        return self._kept.predictor(
            model,
            level=names["task_level"],
            mode=names["mode"],
            return_type=names["return_type"],
            num_hops=self.num_hops,
            # What a model keeps while it works is a few times the size of its batch, which is what is counted.
            memory_budget=max(1, self._budget(device_of(model, torch.device("cpu"))) // 4),
        )

    def _way(self, task: AnyTask) -> Inference:
        """Returns how the subgraphs of a task are found."""
        if self.inference != Inference.auto:
            return Inference(self.inference)
        untrained = self._fitted is None and self._preset in ("default", "gpu") and SOUGHT.issuperset(self._changes)
        return Inference.search if untrained and task.predictor.level != "edge" else Inference.flow

    def _refuse_search(self, task: AnyTask) -> None:
        if self.inference == Inference.search and task.predictor.level == "edge":
            raise ConfigError(
                "inference='search' grows from one node, but an explanation of a link joins both its ends. Use 'flow'."
            )

    def _budget(self, device: torch.device) -> int:
        """Returns the bytes that one batch of work may take on a device."""
        if self.memory_budget is not None:
            return self.memory_budget
        return torch.cuda.mem_get_info(device)[0] // 4 if device.type == "cuda" else 1 << 30

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self._changes.items())
        return f"{type(self).__name__}(preset={self._preset!r}{shown}, fitted={self.is_fitted})"


def _relation(edge_type: Any) -> EdgeType | None:
    """Reads a relation: (source type, relation, target type)."""
    if edge_type is None:
        return None
    names = tuple(edge_type) if isinstance(edge_type, list | tuple) else ()
    if len(names) != 3 or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"'edge_type' must be (source type, relation, target type) (got {edge_type!r}).")
    source, relation, target = names
    return source, relation, target
