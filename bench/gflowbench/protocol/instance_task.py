"""A task in memory whose nodes or graphs are cut out: what explainers are given, and how their scores are measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gflowbench.explainers.interface import Explainer, Scores, Subject, motif_size
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import measure
from gflowbench.protocol.packing import pack
from gflowbench.protocol.problems import Loaded
from gflowexplainer.errors import ConfigError, DatasetError
from gflowexplainer.storage.identity import identity_of

if TYPE_CHECKING:
    from gflowbench.protocol.cells import ProtocolSettings


@dataclass(frozen=True)
class InstanceTask:
    """Nodes or graphs to explain.

    Attributes:
        loaded: Dataset and GNN.
        subject: The instances, as explainers are given them.
    """

    loaded: Loaded
    subject: Subject

    @classmethod
    def of(cls, loaded: Loaded, max_nodes: int | None = None) -> InstanceTask:
        """Cuts the instances out."""
        subject = Subject.of(
            loaded.model,
            loaded.benchmark,
            loaded.index,
            max_nodes=max_nodes,
        )
        return cls(loaded, subject)

    @property
    def model(self) -> nn.Module:
        """The explained model."""
        return self.loaded.model

    @property
    def num_nodes(self) -> int:
        """Nodes of all instances, with what surrounds them."""
        return (self.subject.instances.surroundings or self.subject.instances).num_nodes

    def __len__(self) -> int:
        return len(self.subject)

    def every(self, step: int) -> InstanceTask:
        """Takes each ``step``-th instance."""
        return self if step == 1 else self._select(torch.arange(0, len(self), step))

    def split(self, train_share: float | None, seed: int) -> tuple[InstanceTask, InstanceTask]:
        """Returns the instances to fit on and those to explain; the same ones unless ``train_share`` is given."""
        if train_share is None:
            return self, self
        if len(self) < 2:
            raise ConfigError("An inductive evaluation needs at least 2 instances. Leave 'train_share' out.")
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        count = min(max(round(train_share * len(self)), 1), len(self) - 1)
        return self._select(order[:count].sort().values), self._select(order[count:].sort().values)

    def identity(self) -> dict[str, str]:
        """Names the GNN, every tensor of the data and the instances."""
        graphs = [graph.to_dict() for graph in self.loaded.benchmark.graphs]
        return identity_of(self.model, graphs, index=self.loaded.index)

    def measure(
        self, explainer: Explainer, scores: Scores, seed: int, settings: ProtocolSettings
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Measures what an explainer says of the instances; returns values by name, and its hard explanations."""
        instances = self.subject.instances
        scores.check(instances, explainer.name)
        loaded = self.loaded
        truth = GroundTruth.of(loaded.benchmark, self.subject)
        metrics, selected = measure(self.subject, scores, truth, top_k=self._top_k(settings), settings=settings.metrics)
        if loaded.score is not None:
            metrics |= loaded.score(explainer, self.subject, scores)
        return metrics, pack(selected, instances.node_counts)

    def facts(self, settings: ProtocolSettings) -> dict[str, Any]:
        """Says where dataset and GNN come from, and how many instances there are."""
        benchmark, label = self.loaded.benchmark, self.subject.target.label
        return {
            "source": benchmark.source,
            "provenance": benchmark.provenance,
            "instances": len(self),
            "max_nodes": self.subject.max_nodes,
            "top_k": self._top_k(settings),
            "accuracy_on_instances": None if label is None else self._accuracy(label),
            "device": str(self.subject.instances.device),
            **self.loaded.facts,
        }

    def _top_k(self, settings: ProtocolSettings) -> int:
        return settings.metrics.top_k or motif_size(self.loaded.benchmark) or self.subject.max_nodes

    def _select(self, places: Tensor) -> InstanceTask:
        loaded = replace(self.loaded, index=self.loaded.index[places.to(self.loaded.index.device)])
        return InstanceTask(loaded, self.subject.select(places.to(self.subject.instances.device)))

    def _accuracy(self, label: Tensor) -> float | None:
        """Computes the share of instances that the GNN classifies right; ``None`` without labels."""
        graphs, index = self.loaded.benchmark.graphs, self.loaded.index
        if any("y" not in graph for graph in graphs):
            return None
        if self.loaded.benchmark.task == "node":
            true = graphs[0].y[index]
        else:
            true = torch.cat([graphs[i].y.reshape(-1) for i in index.tolist()])
        if true.numel() != label.numel():
            raise DatasetError(f"There are {true.numel()} labels 'y' for {label.numel()} instances. Give one each.")
        return float((true.to(label.device) == label).double().mean())
