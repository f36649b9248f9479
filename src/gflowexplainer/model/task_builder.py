"""Tasks of what users pass, made with what an explainer knows beforehand: the kind of model, types and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch_geometric.explain import ModelConfig

from gflowexplainer.choices import Measure
from gflowexplainer.errors import ModelError
from gflowexplainer.graphs.links import DETOUR
from gflowexplainer.graphs.typed import EdgeType
from gflowexplainer.model.config import config_to_dict, model_config_of
from gflowexplainer.model.input_forms import usual_call, usual_form
from gflowexplainer.model.kept import ModelCache
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.requests import AnyTask, Request, node_type_of, task_of, task_of_call
from gflowexplainer.ops.memory import model_budget
from gflowexplainer.settings import Settings


@dataclass(frozen=True)
class TaskBuilder:
    """Makes the tasks of an explainer.

    Attributes:
        settings: Settings of the explainer, which bound instances and explanations.
        kept: What is known from earlier calls about model and graph.
        known: Mode, level and return type of the model, where they were said or fitted before.
        num_hops: Message-passing steps of the model; counted if ``None``.
        memory_budget: Bytes that one batch of work may take; found out if ``None``.
        node_type: In a heterogeneous graph, the type of the explained nodes, where a call does not say it.
        edge_type: In a heterogeneous graph, the relation that is predicted, where a call does not say it.
        remove_link: Whether an explained link is left out of the graph.
    """

    settings: Settings
    kept: ModelCache
    known: ModelConfig | None = None
    num_hops: int | None = None
    memory_budget: int | None = None
    node_type: str | None = None
    edge_type: EdgeType | None = None
    remove_link: bool = True

    def of_data(
        self, model: nn.Module, data: Any, model_config: ModelConfig | Mapping[str, Any] | None, **asked: Any
    ) -> tuple[ModelConfig, AnyTask]:
        """Makes the task of what a user passes to :meth:`~gflowexplainer.GFlowExplainer.explain`.

        Args:
            model: The model.
            data: One graph, or several.
            model_config: Mode, level and return type of the model, where the call says them.
            **asked: Fields of a :class:`~gflowexplainer.model.requests.Request`.

        Returns:
            What kind of model it is, and the task.
        """
        links = asked["edge_label_index"] is not None
        model, data = usual_form(model, data, self.kept.adapted)
        config = model_config_of(
            model_config, self.known, data, asked["index"], links=links, node_type=asked["node_type"], model=model
        )
        predictor = self._predictor(model, config)
        return config, task_of(predictor, data, self._request(predictor, data, **asked), self.kept)

    def of_call(
        self, model: nn.Module, x: Any, edge_index: Any, arguments: Mapping[str, Any], **asked: Any
    ) -> tuple[ModelConfig, AnyTask]:
        """Makes the task of one call of PyG's ``Explainer``.

        Args:
            model: The model.
            x: Features, or features by node type.
            edge_index: Edges, or edges by relation.
            arguments: Further arguments of the model; ``edge_label_index`` among them names links.
            **asked: See :meth:`of_data`.
        """
        config = model_config_of(None, self.known, None, asked["index"])
        links = arguments.get("edge_label_index")
        more = {name: value for name, value in arguments.items() if name != "edge_label_index"}
        model, x, edge_index, more = usual_call(model, x, edge_index, more, self.kept.adapted)
        predictor = self._predictor(model, config)
        request = self._request(predictor, (x, edge_index), edge_label_index=links, arguments=more, **asked)
        return config, task_of_call(predictor, x, edge_index, request, self.kept)

    def _request(
        self, predictor: Predictor, data: Any, *, node_type: str | None = None, edge_type: Any = None, **asked: Any
    ) -> Request:
        """Puts together what is asked for, with what is known of types and bounds."""
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

    def _predictor(self, model: nn.Module, config: ModelConfig) -> Predictor:
        if not isinstance(model, nn.Module):
            raise ModelError(f"'model' must be a torch.nn.Module (got {type(model).__name__}).")
        names = config_to_dict(config)
        return self.kept.predictor(
            model,
            level=names["task_level"],
            mode=names["mode"],
            return_type=names["return_type"],
            num_hops=self.num_hops,
            memory_budget=None if self.memory_budget is None else model_budget(self.memory_budget),
        )
