"""GFlowExplainer itself, behind the interface that all explainers are compared by."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gflowexplainer.baselines.interface import Scores, Subject
from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.flow.sampling import grow_by, roll_out
from gflowexplainer.network import FlowNetwork, NetworkInputs
from gflowexplainer.readings import EXPLAINING, WEIGHTINGS, read_samples, reward_weights
from gflowexplainer.rewards.building import build_reward
from gflowexplainer.settings import Settings
from gflowexplainer.subgraphs import edge_values
from gflowexplainer.training import Trainer, calibrate


class GFlow:
    """A flow network trained on some instances, which then explains any.

    Args:
        preset: Name of the settings to begin with.
        num_samples: Subgraphs sampled of each instance.
        weighting: ``"policy"`` or ``"reward"``; see :mod:`gflowexplainer.readings`.
        max_nodes: Size bound; the preset's if not given.
        **changes: Changed settings.
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        num_samples: int = 64,
        weighting: str = "policy",
        max_nodes: int | None = None,
        **changes: Any,
    ) -> None:
        self.name = "gflow" if preset == "default" else f"gflow-{preset}"
        self.num_samples = num_samples
        self.weighting = one_of("weighting", weighting, WEIGHTINGS)
        bound = {} if max_nodes is None else {"max_nodes": max_nodes}
        self.settings = Settings.preset(preset, **bound, **changes)
        self._network: FlowNetwork | None = None

    def fit(self, subject: Subject, seed: int) -> None:
        """Trains the flow network on the instances of ``subject``."""
        trainer = Trainer(
            subject.predictor,
            subject.instances,
            self.settings.change(seed=seed),
            embedding=subject.embedding,
            target=subject.target,
        )
        self._network = trainer.run(progress=False).network

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Samples subgraphs of every instance and scores nodes and edges by their probability."""
        if self._network is None:
            raise ConfigError("This explainer has not been fitted. Call fit first.")
        settings = self._network.settings
        inputs = NetworkInputs.of(subject.instances, subject.embedding, settings, subject.predictor.num_hops)
        every = torch.arange(len(subject), device=subject.instances.device)
        rollouts = self._network.sample(inputs, every.repeat_interleave(self.num_samples), EXPLAINING, seed)
        log_weight = None
        if self.weighting == "reward":
            reward = build_reward(
                settings, subject.predictor, subject.instances, embedding=subject.embedding, target=subject.target
            )
            calibrate(reward, self._network, inputs)
            log_weight = reward_weights(self._network, inputs, rollouts, reward)
        reading = read_samples(subject.instances, rollouts.subgraphs, log_weight)
        order = self._order(inputs, reading.node)
        return Scores(reading.node, edge_values(subject.instances, reading.neighbor), order=order)

    def _order(self, inputs: NetworkInputs, probability: Tensor) -> Tensor:
        """Names the nodes of each instance in a connected order, the most probable neighbour first, ``[I, K]``."""
        assert self._network is not None
        instances = inputs.instances
        every = torch.arange(len(instances), device=instances.device)
        start = self._network.starts(inputs, every)
        return roll_out(instances, every, start, self.settings.max_nodes, grow_by(probability)).subgraphs.members
