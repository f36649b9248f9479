"""The face: GFlowExplainer, an explainer algorithm of PyG that answers with distributions over subgraphs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import ExplainerAlgorithm, ModelConfig
from torch_geometric.explain.config import ExplanationType, ModelTaskLevel
from tqdm.auto import tqdm

from gflowexplainer.choices import Weighting
from gflowexplainer.errors import CheckpointError, ConfigError, InstanceError, ModelError
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.explanation_list import ExplanationList
from gflowexplainer.graphs.index import GraphIndex
from gflowexplainer.graphs.inputs import input_graph, without_batch
from gflowexplainer.inference.explanations import SampledExplanations, explain_instances
from gflowexplainer.inference.fitted_state import FittedState
from gflowexplainer.model.config import config_to_dict, model_config_of
from gflowexplainer.model.kept import KeptForModel
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task import GraphTask, NodeTask, check_one, task_of
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.reference_nodes import ReferenceNodes
from gflowexplainer.sampler import FlowSampler, SamplerState
from gflowexplainer.settings import Settings
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint
from gflowexplainer.training.distributed import Fabric
from gflowexplainer.training.trainer import CHECKPOINT, Callback, Trainer, learning

FILE = "explainer.safetensors"
KIND = "explainer"
OPTIONS = ("num_samples", "weighting", "num_hops", "certificate_limit", "memory_budget")
"""Arguments that are no settings, and stored with them."""
ALONE: dict[str, Any] = {
    "objective": "log_partition_variance",
    "epochs": 50,
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
_ROLLOUTS_AT_ONCE = 4096


class GFlowExplainer(ExplainerAlgorithm):
    """Explains predictions by connected subgraphs, sampled in proportion to how well they preserve the prediction.

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
        memory_budget: Bytes that one batch of work may take, roughly; by default 1 GiB on a CPU, and a quarter of the
            free memory on a GPU. Larger work is done in several batches, which changes nothing but the time it takes.
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
        memory_budget: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        counts = {"num_samples": num_samples, "certificate_limit": certificate_limit}
        if memory_budget is not None:
            counts["memory_budget"] = memory_budget
        for name, value in counts.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigError(f"'{name}' must be a whole number of at least 1 (got {value!r}).")
        self.settings = Settings.preset(preset, **settings)
        alone = {} if preset == "paper" else ALONE
        self.settings_alone = Settings.preset(preset, **{**alone, **settings})
        self.num_samples = num_samples
        self.weighting = Weighting.of("weighting", weighting).value
        self.num_hops = num_hops
        self.certificate_limit = certificate_limit
        self.memory_budget = memory_budget
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
        level = self.model_config.task_level
        if level not in (ModelTaskLevel.node, ModelTaskLevel.graph):
            logging.error(f"'{name}' only supports node-level and graph-level explanations (got '{level.value}')")
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
        graph = input_graph(x, edge_index, kwargs, model)
        task: NodeTask | GraphTask
        predictor = self._predictor(model, config)
        if predictor.level == "node":
            check_one(index, "node")
            task = NodeTask(predictor, graph, index, target, limit=self.settings.max_graph_nodes, kept=self._kept)
        else:
            parts = without_batch(graph)
            if len(parts) > 1:
                check_one(index, "graph")
            task = GraphTask(predictor, parts, index, target)
        explanation = self._explain(task, config, progress=False)[0]
        if connected:
            for name in ("node_mask", "edge_mask"):
                if getattr(self.explainer_config, f"{name}_type") is None:
                    del explanation[name]
            explanation.show_features(self.explainer_config.node_mask_type)
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
        graph_index: GraphIndex | None = None,
        fabric: Fabric | None = None,
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
            graph_index: The index of the graph, to spare building it at every call
                (:class:`~gflowexplainer.graphs.index.GraphIndex`).
            fabric: A Fabric that was launched: its processes, which all make this call, train together.
            **kwargs: Further arguments of the model.
        """
        config, task = self._task(model, data, index, target, model_config, graph_index, kwargs)
        self.settings.check_task(task.predictor.level, shared=True)
        with learning():
            trainer = Trainer(FlowSampler(self.settings, task.inputs()), fabric=fabric)
            trainer.run(folder, progress=progress, callback=callback)
        self._fitted = FittedState(trainer.sampler.state(), self._kept.fingerprint(model), config_to_dict(config))
        if folder is not None and trainer.ranks.first:
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
        graph_index: GraphIndex | None = None,
        **kwargs: Any,
    ) -> ExplanationList:
        """Explains many predictions at once; returns explanations in the order of ``index``.

        What is shown of an explanation (subgraphs, predictions with and without them, masks) is computed when it is
        looked at. Args as in :meth:`fit`. A progress bar is only shown where there was no fit, so that each instance is
        trained on by itself.
        """
        config, task = self._task(model, data, index, target, model_config, graph_index, kwargs)
        return self._explain(task, config, progress=progress)

    def _explain(self, task: NodeTask | GraphTask, config: ModelConfig, *, progress: bool) -> ExplanationList:
        name, fitted = self._kept.fingerprint(task.model), self._fitted
        if fitted is not None:
            fitted.refuse_others(name, config)
        budget, at_once = self._budget(task.index.device), 1
        if fitted is not None:
            # A CPU gains nothing by larger batches; a GPU is idle in small ones.
            at_once = len(task) if task.index.is_cuda else max(1, _ROLLOUTS_AT_ONCE // self.num_samples)
        batches: list[SampledExplanations] = []
        reference = ReferenceNodes(task, self.settings)
        for begin in tqdm(
            range(0, len(task), at_once),
            disable=not progress or fitted is not None,
            desc="explain",
            leave=False,
        ):
            batch = task.inputs(slice(begin, begin + at_once))
            for inputs in batch.split(self.num_samples * self.settings.max_nodes, budget):
                with learning():
                    if fitted is None:
                        consensus = reference.consensus(inputs)
                        sampler = FlowSampler(self.settings_alone, inputs, consensus=consensus)
                        Trainer(sampler).run(progress=False)
                    else:
                        sampler = self._fitted_sampler(inputs, fitted)
                found = explain_instances(
                    sampler,
                    num_samples=self.num_samples,
                    weighting=self.weighting,
                    certificate_limit=self.certificate_limit,
                    model_name=name,
                    config=config,
                )
                batches.append(found)
        return ExplanationList(batches)

    def save(self, folder: str | Path) -> None:
        """Stores the fitted explainer in ``folder``: safetensors and JSON, no pickle. The model is not stored."""
        if self._fitted is None:
            raise ConfigError("This explainer has not been fitted, so there is nothing to store. Call fit first.")
        meta = {
            "kind": KIND,
            "preset": self._preset,
            "settings": self._changes,
            **{name: getattr(self, name) for name in OPTIONS},
            "model": self._fitted.model,
            "config": self._fitted.config,
        }
        write_checkpoint(Path(folder) / FILE, self._fitted.sampler.sections(), meta)

    @classmethod
    def load(cls, folder: str | Path) -> GFlowExplainer:
        """Reads an explainer that :meth:`save`, or :meth:`fit` with a folder, has stored."""
        path = Path(folder) / FILE
        if not path.is_file() and (Path(folder) / CHECKPOINT).is_file():
            raise CheckpointError(
                f"'{folder}' holds a training that was not finished. Call fit with this folder to go on with it."
            )
        sections, meta = read_checkpoint(path)
        if meta.get("kind") != KIND:
            raise CheckpointError(f"'{path}' holds no explainer (but {meta.get('kind') or 'a training'}).")
        try:
            explainer = cls(preset=meta["preset"], **{name: meta[name] for name in OPTIONS}, **meta["settings"])
            config = config_to_dict(ModelConfig(**meta["config"]))
            explainer._fitted = FittedState(SamplerState.from_sections(sections), meta["model"], config)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"'{path}' holds an explainer of another version ({error}).") from error
        return explainer

    def _task(
        self,
        model: nn.Module,
        data: Any,
        index: Any,
        target: Any,
        model_config: ModelConfig | Mapping[str, Any] | None,
        graph_index: GraphIndex | None,
        arguments: dict[str, Any],
    ) -> tuple[ModelConfig, NodeTask | GraphTask]:
        """Makes the task of what a user passes to :meth:`fit` and :meth:`explain`."""
        config = self._config(model_config, data, index)
        return config, task_of(
            self._predictor(model, config),
            data,
            index,
            target,
            graph_index=graph_index,
            limit=self.settings.max_graph_nodes,
            arguments=arguments,
            kept=self._kept,
        )

    def _config(self, given: Any, data: Any, index: Any) -> ModelConfig:
        """Finds out what kind of model is explained; see :meth:`fit` for the order."""
        known = self._fitted and ModelConfig(**self._fitted.config)
        return model_config_of(given, self.model_config if hasattr(self, "_model_config") else known, data, index)

    def _predictor(self, model: nn.Module, config: ModelConfig) -> Predictor:
        if not isinstance(model, nn.Module):
            raise ModelError(f"'model' must be a torch.nn.Module (got {type(model).__name__}).")
        names = config_to_dict(config)
        return Predictor(
            model,
            level=names["task_level"],
            mode=names["mode"],
            return_type=names["return_type"],
            num_hops=self.num_hops,
            # What a model keeps while it works is a few times the size of its batch, which is what is counted.
            memory_budget=max(1, self._budget(_device_of(model)) // 4),
        )

    def _budget(self, device: torch.device) -> int:
        """Returns the bytes that one batch of work may take on a device."""
        if self.memory_budget is not None:
            return self.memory_budget
        return torch.cuda.mem_get_info(device)[0] // 4 if device.type == "cuda" else 1 << 30

    def _fitted_sampler(self, inputs: TaskInputs, fitted: FittedState) -> FlowSampler:
        try:
            return FlowSampler(self.settings, inputs, fitted.sampler)
        except (ConfigError, RuntimeError) as error:
            raise InstanceError(
                f"The fitted flow network does not fit these graphs; their features must be those of the training: "
                f"{error}"
            ) from error

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self._changes.items())
        return f"{type(self).__name__}(preset={self._preset!r}{shown}, fitted={self.is_fitted})"


def _device_of(model: nn.Module) -> torch.device:
    return next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
