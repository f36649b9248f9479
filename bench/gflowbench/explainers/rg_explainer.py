"""RG-Explainer (NeurIPS 2021): a policy grows one connected subgraph and learns from rewards by REINFORCE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gflowbench.explainers.interface import Scores, Subject
from gflowbench.explainers.peer import Peer
from gflowbench.explainers.rg_locator import expected_loss, neighborhoods
from gflowbench.explainers.rg_policy import RGPolicy, log_likelihood, policy_gradient_loss
from gflowbench.explainers.rg_pretraining import in_likeliest_order, in_order, sample_goals
from gflowbench.explainers.rg_reward import RGReward
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.locator import Locator
from gflowexplainer.flow.paper_policy import PaperEncoding
from gflowexplainer.flow.sampling import Chooser, follow_greedily, follow_policy, roll_out, rollout_keys
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.ops.hashed_random import uniform
from gflowexplainer.ops.sorting import find_sorted

COEFFICIENTS = {"node": (0.01, 1.0, 0.1), "graph": (0.01, 0.01, 0.01)}
"""Weights of edges, embedding distance and radius in the public code, by kind of task."""
WITHOUT_RADIUS = ("tree-grid",)
"""Benchmarks on which the public code leaves the radius out."""
WITHOUT_THE_REST = ("mutagenicity",)
"""Benchmarks on which the other nodes go. Left in place there, they give the class away, and nothing needs growing."""
UNSCORED = ("mutagenicity",)
"""Benchmarks on which the public code's pre-training imitates any subgraph, not the best of several."""
EPOCHS = {"ba-shapes": 50, "ba-community": 50, "tree-cycles": 30, "tree-grid": 30, "ba-2motifs": 10, "mutagenicity": 10}
"""Updates of policy gradient in the public code, which calls them epochs, by benchmark."""
# Names of independent random streams.
_ORDERING, _DRAWING, _ACTING, _LOCATING, _CHOOSING, _EXPLAINING = range(6)
# Subgraphs of one update of pre-training, as in the public code; and rollouts at once at most, for memory's sake.
_IMITATED, _ROWS = 32, 4096


@dataclass(kw_only=True, eq=False)
class RGExplainer(Peer):
    """RG-Explainer behind the interface that all explainers are compared by.

    Written from the paper and from facts of the public code. It differs from that code where it helps: whole rollouts
    are rewarded, several of an instance, where the code continues every prefix several times (the
    same expected gradient for a fifth of the rollouts); the gradient is a mean over rollouts, not over steps; and the
    explanation is the likeliest one, not a sample. Indicators travel over the graph that a subgraph may grow in.

    Where the bound is larger than what the model looks at (the trees), subgraphs may grow as many steps beyond it as it
    looks; the public code grows over the whole graph. "Alone" means that other nodes keep their places without edges,
    but for the benchmarks in :data:`WITHOUT_THE_REST`.

    Args:
        max_nodes: Size bound ``K``.
        pretraining: Whether the policy first imitates sampled subgraphs.
        epochs: Updates of policy gradient; the public code's for the benchmark if not given, 30 on others.
        batch_size: Instances of one policy gradient, drawn anew for each; all, where there are no more.
        rollouts: Rollouts of each instance of a batch.
        learning_rate: Step size of Adam, everywhere.
        list_epochs, set_epochs: Passes of pre-training on sampled orders, and on the policy's own orders.
        candidates: Subgraphs of which pre-training imitates the best; the public code's number if not given, 10 but for
            the benchmarks in :data:`UNSCORED`.
        locator_updates: Updates of the locator in pre-training; graph tasks only.
        alpha, propagation, hidden: See :class:`~gflowbench.explainers.rg_policy.RGPolicy`.
    """

    name = "rg-explainer"
    positive = ("batch_size", "rollouts", "candidates", "learning_rate")

    max_nodes: int = 20
    pretraining: bool = True
    epochs: int | None = None
    batch_size: int = 128
    rollouts: int = 5
    learning_rate: float = 0.01
    list_epochs: int = 10
    set_epochs: int = 25
    candidates: int | None = None
    locator_updates: int = 200
    alpha: float = 0.15
    propagation: str = "graph"
    hidden: int = 64
    _policy: RGPolicy | None = field(default=None, init=False, repr=False)
    _locator: Locator | None = field(default=None, init=False, repr=False)
    _steps: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epochs", "list_epochs", "set_epochs", "locator_updates"):
            if (getattr(self, name) or 0) < 0:
                raise ConfigError(f"'{name}' must not be negative (got {getattr(self, name)}).")
        with torch.random.fork_rng(devices=[]):
            RGPolicy(1, **self.network)  # refuses wrong settings now, not after minutes of other work

    @property
    def network(self) -> dict[str, Any]:
        """Settings of the policy."""
        return {"alpha": self.alpha, "propagation": self.propagation, "hidden": self.hidden}

    def fit(self, subject: Subject, seed: int) -> None:
        """Trains the policy, and at graph level the locator, on the instances of ``subject``."""
        looked_at = float(subject.instances.node_counts.double().mean())
        self._steps = subject.predictor.num_hops if looked_at < self.max_nodes else 0
        training = _Training(self, subject.wider(self._steps), seed, subject.predictor.num_hops)
        self._policy, self._locator = training.policy, training.locator
        if self.pretraining:
            training.imitate()
        training.reinforce(range(EPOCHS.get(subject.name, 30) if self.epochs is None else self.epochs))

    def explain(self, subject: Subject, seed: int) -> Scores:
        """Grows one subgraph an instance and scores nodes and edges by the order it grew in.

        Nodes beyond what the model looks at take their places in that order, and are then left out.
        """
        wide, order = self.grow(subject, seed)
        if wide is not subject:
            order = places_in(subject.instances, wide.instances, order)
        scores = Scores.of_order(subject.instances, order, self.max_nodes)
        behind = torch.argsort((order < 0).long(), dim=1, stable=True)
        return replace(scores, order=order.gather(1, behind))

    def grow(self, subject: Subject, seed: int) -> tuple[Subject, Tensor]:
        """Returns the inputs that subgraphs grow in, and the nodes of each in the order they were added, ``[I, K]``."""
        if self._policy is None:
            raise ConfigError("This explainer has not been fitted. Call fit first.")
        wide = subject.wider(self._steps)
        instances = wide.instances
        every = torch.arange(len(instances), device=instances.device)
        encoding = self._policy.encode(instances, instances.rows().float())
        start = starts(wide, self._locator)
        key = rollout_keys(instances, every, seed, _EXPLAINING)
        grown = roll_out(instances, every, start, self.max_nodes, follow_greedily(self._policy, encoding), key)
        return wide, grown.subgraphs.members

    def reward(self, subject: Subject) -> RGReward:
        """Makes the reward that the policy learns from."""
        return RGReward(
            subject.predictor,
            subject.instances,
            target=subject.target,
            removal="induced" if subject.name in WITHOUT_THE_REST else "isolate",
            **coefficients(subject),
        )


def coefficients(subject: Subject) -> dict[str, float]:
    """Returns the weights of the reward in the public code."""
    edge, distance, radius = COEFFICIENTS[subject.instances.level]
    radius = 0.0 if subject.name in WITHOUT_RADIUS else radius
    return {"edge_weight": edge, "distance_weight": distance, "radius_weight": radius}


def starts(subject: Subject, locator: Locator | None) -> Tensor:
    """Returns where explanations begin: at the explained node, or where the locator says, shape ``[I]``."""
    if locator is None:
        return subject.instances.center
    return locator.start(subject.instances, subject.require_embedding().float())


def places_in(instances: Instances, wide: Instances, order: Tensor) -> Tensor:
    """Finds nodes of wider instances ``[I, K]`` in the instances themselves; ``-1`` where they are not."""
    number = 1 + int(wide.node_id.max())
    known, at = torch.sort(instances.owner * number + instances.node_id)
    row = torch.arange(order.size(0), device=order.device)[:, None]
    place, found = find_sorted(known, (row * number + wide.node_id[order.clamp(min=0)]).flatten())
    return torch.where(found.view_as(order) & (order >= 0), at[place].view_as(order), -1)


class _Training:
    """One training: everything that is only needed until the policy is there."""

    def __init__(self, explainer: RGExplainer, subject: Subject, seed: int, reach: int | None = None) -> None:
        self.explainer, self.subject, self.seed = explainer, subject, seed
        self.reach = reach or subject.predictor.num_hops
        instances = subject.instances
        self.features = instances.rows().float()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.policy = RGPolicy(self.features.size(1), **explainer.network)
            self.locator = Locator(subject.require_embedding().size(1)) if instances.level == "graph" else None
        self.policy.to(instances.device).fit_scale(self.features)
        self.reward = explainer.reward(subject)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=explainer.learning_rate)
        if self.locator is not None:
            self.locator.to(instances.device)
            self.locator_optimizer = torch.optim.Adam(self.locator.parameters(), lr=explainer.learning_rate)

    @property
    def instances(self) -> Instances:
        """What is trained on."""
        return self.subject.instances

    def _encode(self) -> PaperEncoding:
        return self.policy.encode(self.instances, self.features)

    def imitate(self) -> None:
        """Raises the likelihood of good sampled subgraphs: first in the order they grew, then in the policy's own."""
        explainer = self.explainer
        if self.locator is not None:
            self._locate(explainer.locator_updates, 1.0, 0, imitating=True)
        start = starts(self.subject, self.locator)
        every = torch.arange(len(self.instances), device=self.instances.device)
        bound = explainer.max_nodes
        candidates = explainer.candidates or (1 if self.subject.name in UNSCORED else 10)
        for epoch in range(explainer.list_epochs + explainer.set_epochs):
            stream = (self.seed, _DRAWING, epoch)
            goal = sample_goals(self.reward, start, *stream, max_nodes=bound, candidates=candidates, reach=self.reach)
            choose: Chooser = in_order(goal)
            if epoch >= explainer.list_epochs:
                choose = in_likeliest_order(goal, self.policy, self._encode())
            rollouts = roll_out(self.instances, every, start, bound, choose)
            for batch in self._batches(_IMITATED, epoch):
                only = torch.nonzero(torch.isin(rollouts.rollout, batch)).flatten()
                _descend(self.optimizer, -log_likelihood(self.policy, self._encode(), rollouts, only).mean())

    def reinforce(self, epochs: range) -> None:
        """Follows the policy gradient, one update an epoch; at graph level the locator is taught every fifth epoch."""
        explainer = self.explainer
        for epoch in epochs:
            if self.locator is not None and epoch % 5 == 0:
                self._locate(10, 0.2, epoch)
            start = starts(self.subject, self.locator)
            encoding = self._encode()
            several = next(self._batches(explainer.batch_size, 1000 + epoch)).repeat_interleave(explainer.rollouts)
            key = rollout_keys(self.instances, several, self.seed, _ACTING, epoch)
            choose = follow_policy(self.policy, encoding)
            rollouts = roll_out(self.instances, several, start[several], explainer.max_nodes, choose, key)
            score = self.reward.log_score(rollouts.subgraphs)
            likelihood = log_likelihood(self.policy, encoding, rollouts)
            loss = policy_gradient_loss(likelihood, rollouts.rollout, score.to(likelihood))
            _descend(self.optimizer, loss)

    def _locate(self, updates: int, share: float, epoch: int, *, imitating: bool = False) -> None:
        """Grows from every node of some graphs and teaches the locator at which ones it paid."""
        assert self.locator is not None
        instances, embedding = self.instances, self.subject.require_embedding().float()
        every = torch.arange(len(instances), device=instances.device)
        count = max(1, round(share * len(instances)))
        chosen = torch.argsort(uniform(self.seed, _CHOOSING, epoch, every))[:count]
        node = torch.nonzero(torch.isin(instances.owner, chosen)).flatten()
        score = torch.cat([self._outcome(part, epoch, imitating) for part in node.split(_ROWS)])
        graph = instances.owner[node]
        for _ in range(updates):
            rating = self.locator(instances, embedding)[node]
            _descend(self.locator_optimizer, expected_loss(rating, score.to(rating), graph, len(instances)))

    def _outcome(self, node: Tensor, epoch: int, imitating: bool) -> Tensor:
        """Returns the reward of what is near each node, or of what the policy grows from it, shape as ``node``."""
        instances, graph = self.instances, self.instances.owner[node]
        if imitating:
            return self.reward.log_score(neighborhoods(instances, node, self.subject.predictor.num_hops))
        key = rollout_keys(instances, graph, self.seed, _LOCATING, epoch)
        choose = follow_policy(self.policy, self._encode())
        grown = roll_out(instances, graph, node, self.explainer.max_nodes, choose, key)
        return self.reward.log_score(grown.subgraphs)

    def _batches(self, size: int, epoch: int) -> Iterator[Tensor]:
        """Takes all instances once, in an order of the epoch's own."""
        every = torch.arange(len(self.instances), device=self.instances.device)
        for part in torch.argsort(uniform(self.seed, _ORDERING, epoch, every)).split(size):
            yield part.sort().values


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


@dataclass(kw_only=True, eq=False)
class WithoutPretraining(RGExplainer):
    """RG-Explainer as its ablation without pre-training has it."""

    name = "rg-explainer-no-pretraining"
    pretraining: bool = False
