"""RG-Explainer's policy: which neighbour comes next, whether to stop, and the gradient that teaches it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gflowexplainer.flow.paper_policy import PaperEncoding, PaperPolicy
from gflowexplainer.flow.sampling import STOP, Rollouts
from gflowexplainer.flow.states import States
from gflowexplainer.ops.segments import segment_logsumexp, segment_sum


class RGPolicy(PaperPolicy):
    r"""The paper's encoder with RG-Explainer's two decisions: stop, and if not, which node.

    .. math::
        \pi(\mathit{stop} \mid s) = \sigma(w_s^\top \sigma'(\textstyle\sum_u \gamma_u h_u)), \qquad
        \pi(u \mid s) = (1 - \pi(\mathit{stop} \mid s)) \, \mathrm{softmax}_{u \in \mathit{frontier}}(w^\top h_u)

    with :math:`h` from indicators, APPNP and an MLP (equations 7 to 9) and the attention :math:`\gamma` over
    members and frontier. Both last layers start at zero: at first it stops with probability 1/2 and takes any
    neighbour with equal probability. The log-flows are log-probabilities, so a state's outflow is always 1.

    Args:
        in_features: Width ``D`` of the node features.
        hidden: Width of the network.
        alpha: Teleport weight of APPNP.
        propagation: See :class:`~gflowexplainer.flow.paper_policy.PaperPolicy`.
    """

    def __init__(self, in_features: int, *, hidden: int = 64, alpha: float = 0.15, propagation: str = "graph") -> None:
        super().__init__(in_features, hidden=hidden, alpha=alpha, propagation=propagation)
        self.gate = nn.Linear(hidden, 1)
        for last in (self.head, self.gate):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def log_flows(self, encoding: PaperEncoding, states: States) -> tuple[Tensor, Tensor]:
        """Returns the log-probability of adding each frontier node ``[F]`` and of stopping ``[B]``."""
        rows, state, _ = self._signals(encoding, states)
        hidden = self.mlp(self.transform(rows))
        attention = self.attention(hidden)[:, 0]
        gamma = (attention - segment_logsumexp(attention, state, len(states))[state]).exp()
        pooled = segment_sum(gamma[:, None] * hidden, state, len(states))
        gate = self.gate(nn.functional.silu(pooled))[:, 0]
        stop = torch.where(states.can_grow, nn.functional.logsigmoid(gate), 0.0)
        score = self.head(hidden[int(states.size.sum()) :])[:, 0]
        choice = score - segment_logsumexp(score, states.frontier_state, len(states))[states.frontier_state]
        return choice + nn.functional.logsigmoid(-gate)[states.frontier_state], self._bounded(stop, states)

    def log_inflows(self, encoding: Any, states: States, parents: Tensor) -> Tensor:
        """Is not defined: probabilities of actions are no flow that could arrive anywhere."""
        raise NotImplementedError("RG-Explainer's policy is trained by rewards of actions; it has no inflows.")


def log_likelihood(policy: RGPolicy, encoding: PaperEncoding, rollouts: Rollouts, only: Tensor | None = None) -> Tensor:
    """Returns the log-probability of the action taken at each visit to a state, stopping included.

    Stopping where nothing can be added is no choice and counts 0.

    Args:
        policy: The policy.
        encoding: What it made of the instances.
        rollouts: Rollouts with ``V`` visits.
        only: Which of these visits, shape ``[T]``; all of them if not given.

    Returns:
        Log-probabilities, shape ``[T]`` or ``[V]``.
    """
    states, at, chosen = rollouts.states, rollouts.state, rollouts.chosen
    if only is not None:
        picked, which = torch.unique(at[only], return_inverse=True)
        some = states.select(picked)
        moved = chosen[only] - states.frontier_ptr[at[only]] + some.frontier_ptr[which]
        states, at, chosen = some, which, torch.where(chosen[only] == STOP, STOP, moved)
    action, stop = policy.log_flows(encoding, states)
    if action.numel() == 0:
        return stop[at]
    return torch.where(chosen == STOP, stop[at], action[chosen.clamp(min=0)])


def policy_gradient_loss(log_probability: Tensor, rollout: Tensor, advantage: Tensor) -> Tensor:
    r"""REINFORCE: minus the mean over rollouts of :math:`A \sum_t \log \pi(a_t \mid s_t)`.

    Its gradient is an unbiased estimate of minus the gradient of the expected reward, wherever ``advantage`` is
    the reward of the rollout less something that does not depend on it.

    Args:
        log_probability: Of the action taken at each visit, with gradients, shape ``[V]``.
        rollout: Rollout of each visit, shape ``[V]``.
        advantage: Of each rollout, shape ``[R]``.
    """
    return -(advantage.detach()[rollout] * log_probability).sum() / advantage.numel()
