"""Where a training grows its subgraphs: a GPU takes long to begin each step, so the CPU grows what is little."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.flow.cpu_rollouts import grows_on_cpu
from gflowexplainer.flow.network import FlowNetwork
from gflowexplainer.flow.sampling import Rollouts
from gflowexplainer.ops.streams import Stream
from gflowexplainer.sampler import FlowSampler

FEW = 1 << 16
"""Frontier nodes, of all states that an update's rollouts visit, up to which the CPU is done before a GPU is."""


class Growing:
    """Grows the subgraphs that a sampler is trained on.

    Args:
        sampler: What is trained.
    """

    def __init__(self, sampler: FlowSampler) -> None:
        self.sampler = sampler
        self._twin: FlowNetwork | None = None
        elsewhere = sampler.instances.device.type != "cpu"
        self._can_move = elsewhere and grows_on_cpu(sampler.settings, sampler.network.policy, sampler.instances)
        # Frontier nodes of the last update; before the first one there may be many.
        self._entries = FEW

    def grow(self, batch: Tensor, iteration: int) -> Rollouts:
        """Grows several subgraphs of each instance of ``batch`` ``[B]``, as the policy does when it explores."""
        several = batch.repeat_interleave(self.sampler.settings.rollouts)
        if self._can_move and self._entries < FEW:
            grown = self._grow_on_cpu(several, iteration)
        else:
            with torch.no_grad():
                encoding = self.sampler.encode(batch)
            grown = self.sampler.sample(several, Stream.training, iteration, explore=True, encoding=encoding)
        self._entries = grown.states.frontier.numel()
        return grown

    def _grow_on_cpu(self, several: Tensor, iteration: int) -> Rollouts:
        """Does the same by a twin of the network on the CPU, with the same random numbers."""
        sampler = self.sampler
        if self._twin is None:
            self._inputs = sampler.network_inputs.to("cpu")
            self._twin = FlowNetwork(sampler.settings, self._inputs)
        self._twin.load_state_dict(sampler.network.state_dict())
        grown = self._twin.sample(self._inputs, several.cpu(), Stream.training, iteration, explore=True)
        return grown.to(sampler.instances)
