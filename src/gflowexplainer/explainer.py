"""The face: GFlowExplainer, an explainer algorithm of PyG that answers with distributions over subgraphs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain import ExplainerAlgorithm, ModelConfig
from torch_geometric.explain.config import ExplanationType, MaskType, ModelTaskLevel

from gflowexplainer.choices import Measure
from gflowexplainer.errors import ConfigError, InstanceError, check_counts
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.explanation_list import ExplanationList, JointExplanation
from gflowexplainer.explanation.typed_explanation import TypedExplanation
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.links import DETOUR
from gflowexplainer.graphs.typed import EdgeType
from gflowexplainer.inference.explaining import explain_task
from gflowexplainer.inference.fitted_state import FittedState, read_explainer
from gflowexplainer.inference.options import (
    OPTIONS,
    ExplainOptions,
    check_node_type,
    check_relation,
    check_remove_link,
    refuse_settings,
)
from gflowexplainer.model.cache import ModelCache
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.model.structure import check_hops
from gflowexplainer.model.task import Task
from gflowexplainer.model.tasks import task_of_call, task_of_data
from gflowexplainer.model.typed import TypedPredictor
from gflowexplainer.ops.memory import batch_budget
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings, shows_settings
from gflowexplainer.training.checkpoint import writing
from gflowexplainer.training.distributed import Fabric, Ranks
from gflowexplainer.training.trainer import Callback, Trainer, learning

_MOST_ALONE = 100
"""Predictions that one call of PyG's ``Explainer`` explains without ``index`` and without a fit."""


class GFlowExplainer(ExplainerAlgorithm):
    """Explains predictions by connected subgraphs, sampled in proportion to how well they preserve the prediction.

    .. code-block:: python

        algorithm = GFlowExplainer(seed=0)
        explainer = Explainer(model, algorithm, explanation_type="model", node_mask_type="object",
                              edge_mask_type="object", model_config=dict(mode="multiclass_classification",
                                                                         task_level="node", return_type="raw"))
        explanation = explainer(data.x, data.edge_index, index=42)

    Without :meth:`fit`, what preserves a class is learned from reference nodes of the same graph, once for a model and
    a graph. :meth:`fit` learns it from the instances that it is given, and better from many; what was learned explains
    any instance of the same model, also unseen ones.

    The same seed gives the same answer on every run, and an instance is explained the same alone and among others.

    Args:
        preset: Name of the settings to begin with; see :meth:`Settings.preset`.
        num_samples: Particles of each size that an explanation is sampled with, and as many again where the
            distribution is not exact and two runs are compared; more are taken where these do not agree. Of rewards
            that ask the model, the subgraphs that a trained flow network samples.
        num_hops: Message-passing steps of the models to explain; counted if not given.
        certificate_limit: Connected subgraphs up to which the exact distance is computed when it is asked for.
        memory_budget: Bytes that one batch of work may take, roughly; by default 1 GiB on a CPU, and a quarter of the
            free memory on a GPU. Larger work is done in several batches, which changes nothing but the time it takes.
        node_type: Of a heterogeneous graph, the type of the nodes that the model predicts at. It is found out if not
            given, where the number of rows that the model returns tells it.
        edge_type: Of a heterogeneous graph, the relation whose links the model predicts.
        remove_link: Whether an explained link that is in the graph is left out of it, in both directions. A model that
            only reads it off has nothing to explain.
        **settings: Any field of :class:`~gflowexplainer.settings.Settings`: ``max_nodes``, ``min_nodes``, ``reward``,
            ``direction``, ``max_graph_nodes``, ``seed``, and what research turns.
    """

    @shows_settings
    def __init__(
        self,
        *,
        preset: str = "default",
        num_samples: int = 64,
        num_hops: int | None = None,
        certificate_limit: int = 20_000,
        memory_budget: int | None = None,
        node_type: str | None = None,
        edge_type: EdgeType | None = None,
        remove_link: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__()
        check_counts(num_samples=num_samples, certificate_limit=certificate_limit)
        if memory_budget is not None:
            check_counts(memory_budget=memory_budget)
        check_hops(num_hops)
        self.settings = Settings.preset(preset, **settings)
        if self.settings.is_sampled_directly and self.settings.measure != Measure.growth:
            raise ConfigError(
                "The evidence reward is sampled under the growth measure. Leave 'measure' out, or use a reward that "
                "asks the model, such as preset='context'."
            )
        self.num_samples = num_samples
        self.num_hops = num_hops
        self.certificate_limit = certificate_limit
        self.memory_budget = memory_budget
        self.remove_link = check_remove_link(remove_link)
        self.node_type = check_node_type(node_type)
        self.edge_type = check_relation(edge_type)
        self._preset, self._changes = preset, dict(settings)
        self._fitted: FittedState | None = None
        self._cache = ModelCache()

    @property
    def is_fitted(self) -> bool:
        """Whether :meth:`fit` has learned something."""
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
        if connected and self.explainer_config.explanation_type == ExplanationType.model:
            target = None
        refuse_settings(model, kwargs)
        wanted = self._wanted(index=index, target=target)
        config, task = task_of_call(model, x, edge_index, kwargs, self._cache, **wanted)
        if index is None and self._fitted is None:
            _refuse_very_many(len(task))
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
        """Learns from many instances; from then on it explains any instance of the same model.

        What is learned is what nodes of a kind usually bring to a prediction. For a reward that asks the model, one
        flow network is trained instead.

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
        refuse_settings(model, kwargs)
        wanted = self._wanted(
            index=index,
            target=target,
            node_type=node_type,
            edge_label_index=edge_label_index,
            edge_type=edge_type,
            graph_index=graph_index,
            arguments=kwargs,
        )
        config, task = task_of_data(model, data, self._cache, model_config=model_config, **wanted)
        self.settings.check_task(task.predictor.level, shared=True)
        identity = None if folder is None else task.identity(self.settings.to_dict())
        with writing(folder, identity, overwrite=overwrite, fabric=fabric), learning():
            sampler = FlowSampler(self.settings, task.inputs())
            if not self.settings.is_sampled_directly:
                trainer = Trainer(sampler, fabric=fabric, identity=identity)
                trainer.run(folder, progress=progress, callback=callback)
            if isinstance(task.predictor, TypedPredictor):
                self.node_type, self.edge_type = task.predictor.node_type, task.predictor.edge_type
            name = task.predictor.known.fingerprint
            self._fitted = FittedState(sampler.state(), name, config_to_dict(config), identity, task.witness())
            if folder is not None and Ranks(fabric).first:
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
        refuse_settings(model, kwargs)
        wanted = self._wanted(
            index=index,
            target=target,
            node_type=node_type,
            edge_label_index=edge_label_index,
            edge_type=edge_type,
            graph_index=graph_index,
            arguments=kwargs,
        )
        config, task = task_of_data(model, data, self._cache, model_config=model_config, **wanted)
        return self._explain(task, config, progress=progress, data=data)

    def _explain(self, task: Task, config: ModelConfig, *, progress: bool, data: Any = None) -> ExplanationList:
        self.settings.check_task(task.predictor.level)
        name = task.predictor.known.fingerprint
        if self._fitted is not None:
            self._fitted.refuse_others(task.predictor, config)
        options = ExplainOptions(
            settings=self.settings,
            fitted=self._fitted,
            num_samples=self.num_samples,
            certificate_limit=self.certificate_limit,
            budget=batch_budget(self.memory_budget, task.index.device),
            model_name=name,
            config=config,
        )
        return ExplanationList(explain_task(task, options, progress=progress), data=data)

    def save(self, folder: str | Path) -> None:
        """Stores the fitted explainer in ``folder``: safetensors and JSON, no pickle. The model is not stored."""
        if self._fitted is None:
            raise ConfigError("This explainer has not been fitted, so there is nothing to store. Call fit first.")
        options = {name: getattr(self, name) for name in OPTIONS}
        self._fitted.write(folder, {"preset": self._preset, **options, **self._changes})

    @classmethod
    def load(cls, folder: str | Path) -> GFlowExplainer:
        """Reads an explainer that :meth:`save`, or :meth:`fit` with a folder, has stored."""
        explainer, fitted = read_explainer(folder, cls)
        explainer._fitted = fitted
        return explainer

    def _wanted(self, *, node_type: str | None = None, edge_type: Any = None, **wanted: Any) -> dict[str, Any]:
        """Adds to what a call wants what this explainer knows of models, types and bounds."""
        fitted = None if self._fitted is None else ModelConfig(**self._fitted.config)
        return wanted | {
            "known": self.model_config if hasattr(self, "_model_config") else fitted,
            "num_hops": self.num_hops,
            "memory_budget": self.memory_budget,
            "node_type": self.node_type if node_type is None else node_type,
            "edge_type": self.edge_type if edge_type is None else tuple(edge_type),
            "remove_link": self.remove_link,
            "limit": self.settings.max_graph_nodes,
            "bound": self.settings.max_nodes,
            "detour": None if self.settings.measure == Measure.uniform else DETOUR,
            # Few explanations are sampled as well on the CPU where nothing is trained.
            "at_hand": self._fitted is not None and self.settings.is_sampled_directly,
        }

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self._changes.items())
        return f"{type(self).__name__}(preset={self._preset!r}{shown}, fitted={self.is_fitted})"


def _refuse_very_many(count: int) -> None:
    """Refuses to explain very many predictions one after the other that nobody has named."""
    if count > _MOST_ALONE:
        raise InstanceError(
            f"No 'index' means all {count} predictions, and each would be explained by itself. Pass the 'index' of "
            "those to explain, or call 'fit' first."
        )
