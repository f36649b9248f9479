"""The flow network as a whole: policy, locator and partition function, ready to sample from any instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gflowexplainer.choices import Measure, Objective, ParentRule, PolicyType, StartRule
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.additive_policy import AdditivePolicy
from gflowexplainer.flow.locator import Locator
from gflowexplainer.flow.paper_policy import PaperPolicy
from gflowexplainer.flow.policy import Policy
from gflowexplainer.flow.sampling import Rollouts, follow_policy, roll_out, rollout_keys
from gflowexplainer.graphs.flat_graphs import WIDE
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.global_state import GLOBAL_STATE
from gflowexplainer.settings import Settings

SIZES = "policy.by_size.weight"
"""Weights that have a row for every size of a subgraph, from 0 to the largest."""


@dataclass(frozen=True)
class NetworkInputs:
    """What the network sees of some instances.

    Attributes:
        instances: The instances.
        embedding: The explained model's embeddings at their nodes, shape ``[n, H]``, if it may see them.
        features: The policy's input at their nodes, shape ``[n, D]``.
    """

    instances: Instances
    embedding: Tensor | None
    features: Tensor

    @classmethod
    def of(cls, instances: Instances, embedding: Tensor | None, settings: Settings, num_hops: int) -> NetworkInputs:
        """Puts the inputs together that ``settings`` ask for.

        Args:
            instances: The instances.
            embedding: The explained model's embeddings at their nodes, shape ``[n, H]``.
            settings: All settings.
            num_hops: The explained model's depth.
        """
        if settings.model_embeddings and embedding is None:
            raise ConfigError(
                "The policy is to see the explained model's embeddings. Pass 'embedding' or set model_embeddings=False."
            )
        # The network learns in single precision, whatever the explained model computes in.
        embedding = None if embedding is None else embedding.float()
        if settings.policy == PolicyType.paper and not settings.model_embeddings:
            return cls(instances, embedding, instances.rows().float())
        visible = embedding if settings.model_embeddings else None
        return cls(instances, embedding, node_features(instances, visible, num_hops))


class FlowNetwork(nn.Module):
    """Everything that is learned.

    Args:
        settings: All settings; ``settings.seed`` fixes the initial weights.
        inputs: The training instances, which fix widths and the scale of the features.
        weights: What an earlier network learned, to begin with instead.
    """

    def __init__(self, settings: Settings, inputs: NetworkInputs, weights: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        self.settings = settings
        instances = inputs.instances
        settings.check_task(instances.level)
        with GLOBAL_STATE, torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            sizes = None if weights is None else weights.get(SIZES)
            bound = settings.max_nodes if sizes is None else sizes.size(0) - 1
            self.policy = _build_policy(settings, inputs.features.size(1), instances.num_nodes, bound)
            self.locator = _build_locator(settings, inputs)
            self.partition = _build_partition(settings, inputs.features.size(1))
        self.to(instances.device)
        if weights is None:
            self.policy.fit_scale(inputs.features)
            grows = settings.measure == Measure.growth
            if grows and isinstance(self.policy, AdditivePolicy) and instances.within is not None:
                # What joins the ends of a link is not much larger than a path, whatever the bound.
                nodes = float(instances.within.double().mean())
                self.policy.begin_stopping(nodes * float(instances.degree.double().mean()))
        else:
            self.load_state_dict(weights)

    def fits(self, inputs: NetworkInputs) -> bool:
        """Whether the network can look at these inputs: they are as wide as those that it was made for."""
        return self.policy.feature_mean.numel() == inputs.features.size(1)

    def with_settings(self, settings: Settings) -> FlowNetwork:
        """Returns this network, sharing all weights, under other settings."""
        if settings is self.settings:
            return self
        other = FlowNetwork.__new__(FlowNetwork)
        vars(other).update(vars(self), settings=settings)
        return other

    def starts(self, inputs: NetworkInputs, instance: Tensor) -> Tensor | None:
        """Returns the start node of rollouts on ``instance`` ``[R]``, or ``None`` where they begin with nothing."""
        if inputs.instances.level != "graph":
            return inputs.instances.center.index_select(0, instance)
        if self.locator is None or inputs.embedding is None:
            return None
        return self.locator.start(inputs.instances, inputs.embedding)[instance]

    @torch.no_grad()
    def sample(
        self,
        inputs: NetworkInputs,
        instance: Tensor,
        *stream: int,
        start: Tensor | None = None,
        explore: bool = False,
        evenly: bool = False,
    ) -> Rollouts:
        """Grows subgraphs by the policy, one for each entry of ``instance``.

        Args:
            inputs: What the network sees of the instances.
            instance: Instance of each rollout, shape ``[R]``.
            *stream: Integers that, with the seed, name the random draw.
            start: Start nodes ``[R]`` to use instead of :meth:`starts`.
            explore: Whether to use the exploration settings.
            evenly: Whether rollouts at the same state share its actions out
                (:func:`~gflowexplainer.flow.sampling.even_draws`).
        """
        settings = self.settings
        encoding = self.policy.encode(inputs.instances, inputs.features)
        keys = rollout_keys(inputs.instances, instance, settings.seed, *stream)
        start = self.starts(inputs, instance) if start is None else start
        how = {"temperature": settings.temperature, "epsilon": settings.epsilon} if explore else {}
        choose = follow_policy(self.policy, encoding, evenly=evenly, **how)
        return roll_out(
            inputs.instances,
            instance,
            start,
            settings.max_nodes,
            choose,
            keys,
            cuts=settings.measure == Measure.uniform,
            ordered=settings.parents == ParentRule.sequence,
        )

    def log_partition(self, inputs: NetworkInputs, instance: Tensor, start: Tensor | None) -> Tensor:
        """Returns the learned log Z of rollouts, shape ``[R, 1]`` or ``[1, 1]``."""
        assert self.partition is not None
        if self.settings.objective == Objective.trajectory_balance:
            return self.partition(inputs.features.new_zeros(1, 1))
        # Without a start node, the first node of the graph stands for it.
        node = inputs.instances.ptr[instance] if start is None else start
        return self.partition(self.policy.standardize(inputs.features)[node])


def node_features(instances: Instances, embedding: Tensor | None, max_hops: int) -> Tensor:
    """Puts together input features, position and, where given, the explained model's embeddings.

    Args:
        instances: Instances with ``n`` nodes.
        embedding: The model's node embeddings, shape ``[n, H]``, or ``None``.
        max_hops: Distances to the explained node are told apart up to this one.

    Returns:
        Features of shape ``[n, D]``: ``x`` (unless it is wide and embeddings are given), log-degree, distance to the
        explained node as an indicator for each distance (all 0 at graph level), the same of the distance to the other
        end of a link, and embeddings.
    """
    hops = instances.hops_to_center(max_hops + 1)
    steps = torch.arange(max_hops + 1, device=hops.device)
    parts = [torch.log1p(instances.degree)[:, None].float(), (hops[:, None] == steps).float()]
    if embedding is None or instances.x.size(1) <= WIDE:
        parts.insert(0, instances.rows().float())
    if instances.other_end is not None:
        parts.append((instances.hops_to_other_end[:, None] == steps).float())
    if embedding is not None:
        parts.append(embedding.float())
    return torch.cat(parts, dim=1)


def _build_policy(settings: Settings, in_features: int, num_nodes: int, max_nodes: int) -> Policy:
    if settings.policy == PolicyType.paper:
        return PaperPolicy(
            in_features,
            hidden=settings.hidden,
            propagation=settings.propagation,
            min_nodes=settings.min_nodes,
        )
    return AdditivePolicy(
        in_features,
        max_nodes,
        settings.hidden,
        identities=num_nodes if settings.node_identities else 0,
        min_nodes=settings.min_nodes,
    ).begin_level()


def _build_locator(settings: Settings, inputs: NetworkInputs) -> Locator | None:
    if inputs.instances.level != "graph" or settings.start != StartRule.locator:
        return None
    if inputs.embedding is None:
        raise ConfigError("A locator needs the explained model's embeddings. Pass 'embedding'.")
    return Locator(inputs.embedding.size(1))


def _build_partition(settings: Settings, in_features: int) -> nn.Module | None:
    """Makes what learns log Z: one number, or the paper's three-layer MLP of the start node (hidden width 128)."""
    if settings.objective == Objective.trajectory_balance:
        return nn.Linear(1, 1)
    if settings.objective == Objective.conditional_trajectory_balance:
        return nn.Sequential(nn.Linear(in_features, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    return None
