"""The sampler: network, reward and inputs together. It is what the trainer trains, what is stored, what explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor

from gflowexplainer.errors import CheckpointError
from gflowexplainer.evidence.learned import Learned, learn
from gflowexplainer.flow import objectives
from gflowexplainer.flow.network import SIZES, FlowNetwork, NetworkInputs
from gflowexplainer.flow.objectives import Loss, VisitedFlows, Visits
from gflowexplainer.flow.policy import log_outflow
from gflowexplainer.flow.sampling import Rollouts
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.rewards.base import Reward
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.rewards.factory import build_reward
from gflowexplainer.settings import Settings
from gflowexplainer.storage.checkpoints import Sections


@dataclass(frozen=True)
class SamplerState:
    """All that a sampler has learned.

    Attributes:
        network: Weights of the flow network by name; empty where particles sample without one.
        learned: What kinds of nodes usually bring; ``None`` where the reward learns nothing.
    """

    network: dict[str, Tensor]
    learned: Learned | None = None

    def sections(self) -> Sections:
        """Returns the sections of a file."""
        found: Sections = {"network": self.network} if self.network else {}
        return found | ({} if self.learned is None else {"evidence": self.learned.tensors()})

    @classmethod
    def from_sections(cls, sections: Mapping[str, dict[str, Tensor]]) -> SamplerState:
        """Reads what :meth:`sections` gave."""
        if "network" not in sections and "evidence" not in sections:
            raise CheckpointError("The file holds neither evidence nor a flow network.")
        for label in ("network", "evidence"):
            for name, tensor in sections.get(label, {}).items():
                if tensor.is_floating_point() and not torch.isfinite(tensor).all():
                    raise CheckpointError(f"The tensor '{name}' of the {label} holds NaN or infinity. Fit again.")
        learned = sections.get("evidence")
        return cls(sections.get("network", {}), None if learned is None else Learned.from_tensors(learned))


def _bounded(settings: Settings, inputs: TaskInputs, state: SamplerState | None) -> Settings:
    """Lowers the bound on the size of subgraphs to what instances have, or a network has learned about.

    A network for links has room for all nodes of the graph: other links may be farther apart than those it is fitted
    to, and what does not reach the other end is no explanation.
    """
    instances = inputs.instances
    most = instances.largest
    if instances.other_end is not None and state is None:
        most = max(most, *(graph.x.size(0) for graph in inputs.graphs))
    known = None if state is None else state.network.get(SIZES)
    if known is not None:
        most = min(most, known.size(0) - 1)
    most = max(most, settings.min_nodes, 1)
    return _with_bound(settings, most) if most < settings.max_nodes else settings


@lru_cache(maxsize=64)
def _with_bound(settings: Settings, max_nodes: int) -> Settings:
    return settings.change(max_nodes=max_nodes)


class FlowSampler:
    """Samples connected subgraphs of some instances in proportion to their reward.

    Args:
        settings: All settings.
        inputs: The instances, with what the model says of them.
        state: What an earlier sampler learned, to see these instances by.
        learned: What kinds of nodes usually bring, where it was learned elsewhere.
        network: A network with the weights of ``state``, from another sampler on the same device, to use again.

    Attributes:
        reward: How well a subgraph of these instances preserves its prediction.
    """

    def __init__(
        self,
        settings: Settings,
        inputs: TaskInputs,
        state: SamplerState | None = None,
        *,
        learned: Learned | None = None,
        network: FlowNetwork | None = None,
    ) -> None:
        self.inputs = inputs
        self.settings = settings = _bounded(settings, inputs, state)
        if state is not None:
            learned = state.learned
        if settings.is_sampled_directly and learned is None and state is None:
            learned = learn(inputs, settings.seed, settings.removal)
        if learned is not None:
            learned = learned.to(self.instances.device)
        self.reward: Reward = build_reward(settings, inputs, learned)
        if network is not None and network.fits(self.network_inputs):
            self.network = network.with_settings(settings)
        elif state is not None and state.network:
            self.network = FlowNetwork(settings, self.network_inputs, state.network)

    @cached_property
    def network_inputs(self) -> NetworkInputs:
        """What the network sees of the instances."""
        return NetworkInputs.of(self.instances, self.inputs.embedding, self.settings, self.predictor.num_hops)

    @cached_property
    def network(self) -> FlowNetwork:
        """The flow network; a new one is made when it is asked for, since particles need none."""
        return FlowNetwork(self.settings, self.network_inputs)

    @property
    def instances(self) -> Instances:
        """What is sampled from."""
        return self.inputs.instances

    @property
    def predictor(self) -> Predictor:
        """The explained model."""
        return self.inputs.predictor

    def state(self) -> SamplerState:
        """Returns all that was learned, on the CPU."""
        if isinstance(self.reward, EvidenceReward):
            return SamplerState({}, self.reward.learned.to("cpu"))
        return SamplerState({name: value.detach().cpu() for name, value in self.network.state_dict().items()})

    def sample(self, instance: Tensor, *stream: int, **how: Any) -> Rollouts:
        """Grows one subgraph for each entry of ``instance`` ``[R]``; see :meth:`FlowNetwork.sample`."""
        return self.network.sample(self.network_inputs, instance, *stream, **how)

    def starts(self, instance: Tensor) -> Tensor | None:
        """Returns the start node of rollouts on ``instance`` ``[R]``, or ``None`` where they begin with nothing."""
        return self.network.starts(self.network_inputs, instance)

    def encode(self) -> Any:
        """Returns what the policy makes of the instances."""
        return self.network.policy.encode(self.instances, self.network_inputs.features)

    def log_rewards(self, rollouts: Rollouts) -> Tensor:
        """Returns the log-reward of every state that rollouts visited, shape ``[U]``; 0 where one cannot end."""
        states = rollouts.states
        ends = torch.nonzero(states.complete).flatten()
        value = self.reward.log_reward(states.subgraphs[ends], states.can_grow[ends])
        return value.new_zeros(len(states)).index_copy_(0, ends, value)

    def objective(self, rollouts: Rollouts) -> Loss:
        """Evaluates the objective on all states that rollouts visited, with gradients."""
        policy, settings, states = self.network.policy, self.settings, rollouts.states
        visits = Visits.of(rollouts, self.log_rewards(rollouts), settings.measure, settings.parents)
        encoding = self.encode()
        action, stop = policy.log_flows(encoding, states)
        at, taken = rollouts.state, rollouts.chosen.clamp(min=0)
        inflow = None
        if settings.objective.needs_inflow:
            entering = policy.log_inflows(encoding, states, states.parents(settings.parents))
            inflow = torch.logsumexp(entering, dim=1).index_select(0, at)
        flows = VisitedFlows(
            visits,
            out=log_outflow(states, action, stop).index_select(0, at),
            stop=stop.index_select(0, at),
            taken=action.index_select(0, taken) if action.numel() else stop.index_select(0, at),
            inflow=inflow,
        )
        if settings.objective.learns_partition:
            last = at[rollouts.last]
            start = states.members[last, 0] if states.rooted else None
            log_partition = self.network.log_partition(self.network_inputs, states.instance[last], start)
            return objectives.trajectory_balance(flows, log_partition)
        return getattr(objectives, settings.objective.value)(flows)
