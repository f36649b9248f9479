"""GFlowExplainer itself, behind the interface that all explainers are compared by."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gflowbench.explainers.exact import untrained
from gflowbench.explainers.interface import Scores, Subject
from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.flow.sampling import grow_by, roll_out
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.estimates import EXPLAINING, WEIGHTINGS, read_policy, read_samples, reward_weights
from gflowexplainer.settings import Settings


class GFlow:
    """A flow network trained on some instances, which then explains any.

    Args:
        preset: Name of the settings to begin with.
        num_samples: Subgraphs sampled of each instance.
        weighting: ``"policy"`` or ``"reward"``; see :mod:`gflowexplainer.inference.estimates`.
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
        self._weights: dict[str, Tensor] | None = None

    def fit(self, subject: Subject, seed: int) -> None:
        """Trains the flow network on the instances of ``subject``."""
        self._weights = untrained(subject, self.settings.change(seed=seed)).run(progress=False).weights()

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Samples subgraphs of every instance and scores nodes and edges by their probability."""
        if self._weights is None:
            raise ConfigError("This explainer has not been fitted. Call fit first.")
        trainer = untrained(subject, self.settings.change(seed=seed), self._weights)
        every = torch.arange(len(subject), device=subject.instances.device)
        rollouts = trainer.network.sample(trainer.inputs, every.repeat_interleave(self.num_samples), EXPLAINING, seed)
        if self.weighting == "reward":
            log_weight = reward_weights(rollouts, trainer.reward, trainer.settings)
            reading = read_samples(subject.instances, rollouts.subgraphs, log_weight)
        else:
            reading = read_policy(rollouts)
        start = trainer.network.starts(trainer.inputs, every)
        order = roll_out(subject.instances, every, start, self.settings.max_nodes, grow_by(reading.node), cuts=False)
        edge = edge_values(subject.instances, reading.neighbor)
        # The nodes are named in a connected order, the most probable neighbour first.
        return Scores(reading.node, edge, order=order.subgraphs.members)
