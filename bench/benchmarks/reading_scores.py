"""What one reading of the paper scores: rewards, stop and scores as they may be meant, trained or enumerated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from gflowbench.explainers.interface import Subject
from gflowbench.metrics.auc import pooled_auc
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.protocol.problems import problem
from gflowexplainer.flow.exact import enumerate_subgraphs
from gflowexplainer.flow.paper_policy import PaperPolicy
from gflowexplainer.flow.policy import log_outflow
from gflowexplainer.flow.sampling import Rollouts, follow_greedily, follow_policy, roll_out, rollout_keys
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs, kept_mask, place_keys
from gflowexplainer.model.target import TINY
from gflowexplainer.ops.segments import pointers, ranges, segment_argmax, segment_logsumexp
from gflowexplainer.ops.sorting import find_sorted
from gflowexplainer.rewards.prediction import PredictionReward
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.training.trainer import Trainer

DRAWS, SHOWN = 64, 5
"""Rollouts of each instance, and how many of them are scored one by one."""
OUTSIDE = 0.5
"""Weight of edges outside a subgraph where they stay with a soft weight."""


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open; the defaults are the printed words.

    Attributes:
        reward: ``"subgraph"``: equation 10 as the sentence below it says. ``"whole"``: target and argument exchanged.
            ``"predicted"``, ``"true"``: log-probability of one class. ``"odds"``: log-odds of the predicted one.
        sign: 1: less cross-entropy is better. -1: the sign in front of the sum in equation 10.
        view: What the model sees: the subgraph ``"alone"``, all nodes but its edges only (``"isolated"``), or all edges
            with weight one half outside (``"soft"``).
        max_nodes: The bound K.
        stop: ``"learned"``, or only at the ``"bound"``.
        loss: An objective, or ``"exact"``: what each instance alone would learn, by enumeration.
        epochs, beta: Of the training.
        flows: ``"free"``, or ``"softmax"``: flows that leave a state add up to 1, as in the public snapshots.
        alpha: Teleport weight of APPNP; the snapshots have .15.
        start: Of graphs, ``"locator"`` or ``"anywhere"``.
        reach: Steps that subgraphs may reach beyond the computation graph of a node.
    """

    reward: str = "subgraph"
    sign: int = 1
    view: str = "alone"
    max_nodes: int = 20
    stop: str = "learned"
    loss: str = "raw_flow_matching"
    epochs: int = 100
    beta: float = 1.0
    flows: str = "free"
    alpha: float = 0.85
    start: str = "locator"
    reach: int = 0


class ReadingReward(PredictionReward):
    """The reward of a reading."""

    def __init__(self, reading: Reading, subject: Subject, true: Tensor, **settings: Any) -> None:
        removal = "isolate" if reading.view == "isolated" else "induced"
        super().__init__(subject.predictor, subject.instances, target=subject.target, removal=removal, **settings)
        self.reading, self.true = reading, true

    def _log_score(self, subgraphs: Subgraphs) -> Tensor:
        seen = self._soft(subgraphs) if self.reading.view == "soft" else self.predict(subgraphs)
        seen = seen.double().clamp(min=TINY)
        whole = self.target.prediction[subgraphs.instance].double().clamp(min=TINY)
        assert self.target.label is not None
        predicted = self.target.label[subgraphs.instance]
        of_class = {"predicted": predicted, "true": self.true[subgraphs.instance], "odds": predicted}
        if self.reading.reward in of_class:
            probability = seen.gather(1, of_class[self.reading.reward][:, None])[:, 0]
            against = (1 - probability).clamp(min=TINY).log() if self.reading.reward == "odds" else 0.0
            value = probability.log() - against
        else:
            weight, answer = (whole, seen) if self.reading.reward == "whole" else (seen, whole)
            value = (weight * answer.log()).sum(dim=1)
        return self.reading.sign * value

    def _soft(self, subgraphs: Subgraphs) -> Tensor:
        """Predicts with all edges, those outside the subgraphs with weight :data:`OUTSIDE`, shape ``[B, C]``."""

        def predict(chunk: slice) -> Tensor:
            part, instances = subgraphs[chunk], self.instances
            counts = instances.node_counts[part.instance]
            owner, node = ranges(instances.ptr[part.instance], counts)
            shift = pointers(counts)[:-1] - instances.ptr[part.instance]
            row, edge = ranges(instances.edge_ptr[part.instance], instances.edge_counts[part.instance])
            ends, kept = instances.edge_index[:, edge] + shift[row], kept_mask(instances, part)
            weight = torch.where(kept[ends[0]] & kept[ends[1]], 1.0, OUTSIDE)
            more = {"batch": owner} if instances.level == "graph" else {}
            output = self.predictor.model(instances.rows(node), ends, **more, edge_weight=weight)
            return self.predictor.read(output if more else output[instances.center[part.instance] + shift])

        return self.predictor.in_chunks(self.instances, subgraphs.instance, predict)


class SoftmaxPolicy(PaperPolicy):
    """The paper's policy with flows that add up to 1 at each state, as the public snapshots compute them."""

    def log_flows(self, encoding: Any, states: States) -> tuple[Tensor, Tensor]:
        """See :class:`~gflowexplainer.flow.policy.Policy`."""
        action, stop = super().log_flows(encoding, states)
        out = log_outflow(states, action, stop)
        return action - out[states.frontier_state], stop - out

    def log_inflows(self, encoding: Any, states: States, parents: Tensor) -> Tensor:
        """See :class:`~gflowexplainer.flow.policy.Policy`."""
        state, slot = torch.nonzero(parents, as_tuple=True)
        built = states.without(state, slot)
        action, _ = self.log_flows(encoding, built)
        hit = torch.nonzero(built.frontier == states.members[state, slot][built.frontier_state]).flatten()
        flows = action.new_full(parents.shape, -torch.inf)
        row = built.frontier_state[hit]
        return flows.index_put((state[row], slot[row]), action[hit])


class ExactPolicy:
    """The flows that solve flow matching with a uniform choice among parents, by enumeration."""

    def __init__(self, reward: ReadingReward, max_nodes: int, stop: str) -> None:
        instances = reward.instances
        every = torch.arange(len(instances))
        start = instances.center if instances.level == "node" else None
        found = enumerate_subgraphs(instances, every, start, max_nodes, limit=1_500_000)
        states, ptr = found.states, found.level_ptr
        ends = states.complete if stop == "learned" else states.complete & ~states.can_grow
        some = torch.nonzero(ends).flatten()
        self.stop = torch.full((len(states),), -torch.inf, dtype=torch.double)
        self.stop[some] = reward.temper(reward.log_score(states.subgraphs[some]), states.instance[some]).double()
        self.into = -states.parents().sum(dim=1).clamp(min=1).double().log()
        self.flow, state = self.stop.clone(), states.frontier_state
        for low, high in reversed(list(pairwise(ptr))):
            entry = slice(int(states.frontier_ptr[low]), int(states.frontier_ptr[high]))
            if entry.stop > entry.start:
                child = found.child[entry]
                leaving = segment_logsumexp(self.flow[child] + self.into[child], state[entry] - low, high - low)
                self.flow[low:high] = torch.logaddexp(self.flow[low:high], leaving)
        self.largest = states.subgraphs[segment_argmax(self.stop, states.instance, len(instances))]
        keys = place_keys(instances, states.subgraphs)
        self.order = torch.argsort(keys)
        self.keys = keys[self.order]

    def log_flows(self, encoding: Any, states: States) -> tuple[Tensor, Tensor]:
        """See :class:`~gflowexplainer.flow.policy.Policy`."""
        keys = place_keys(states.instances, states.subgraphs)
        child = self.order[
            find_sorted(self.keys, keys[states.frontier_state] + states.instances.key[states.frontier])[0]
        ]
        return self.flow[child] + self.into[child], self.stop[self.order[find_sorted(self.keys, keys)[0]]]


class Case:
    """A dataset with the published GNN, cut out as a reading wants it, and its truth."""

    def __init__(self, dataset: str, every: int, reach: int) -> None:
        loaded = problem(dataset).load()
        subject = Subject.of(loaded.model, loaded.benchmark, loaded.index[::every])
        truth, graphs = GroundTruth.of(loaded.benchmark, subject), loaded.benchmark.graphs
        assert truth is not None
        node = subject.instances.level == "node"
        labels = [graphs[0].y[subject.index]] if node else [graphs[i].y.reshape(-1) for i in subject.index.tolist()]
        self.true = torch.cat(labels)
        edges = UndirectedEdges.of(subject.instances)
        self.positive = edges.merge(truth.own)
        self.subject = subject.wider(reach)
        self.ends = _places(subject.instances, self.subject.instances)[edges.ends]

    def scores(self, reading: Reading, seed: int) -> dict[str, float]:
        """Trains or enumerates, and returns the AUC of every score by name."""
        subject, instances = self.subject, self.subject.instances
        reward = ReadingReward(reading, subject, self.true, beta=reading.beta)
        policy, encoding, start = _solved(reading, subject, reward, seed)
        several = torch.arange(len(instances)).repeat(DRAWS)
        draws = {}
        for name, choose, which in (
            ("sampled", follow_policy(policy, encoding), several),
            ("greedy", follow_greedily(policy, encoding), several[: len(instances)]),
        ):
            keys = rollout_keys(instances, which, seed, 1)
            begin = None if start is None else start[which]
            draws[name] = roll_out(
                instances, which, begin, reading.max_nodes, choose, keys, cuts=False, ordered=True
            )  # fmt: skip
        found = self._of_draws(draws["sampled"], reward, reading.max_nodes)
        if isinstance(policy, ExactPolicy):
            found |= self.of_largest(policy)
        order, *_ = _by_node(draws["greedy"], reward, reading.max_nodes)
        return found | {"greedy, order": pooled_auc(order[:, self.ends].amin(dim=1)[0], self.positive)}

    def of_largest(self, policy: ExactPolicy) -> dict[str, float]:
        """Scores the subgraph that has the largest reward of all in each instance."""
        inside = torch.zeros(self.subject.instances.num_nodes, dtype=torch.double)
        inside[policy.largest.members[policy.largest.filled]] = 1
        return {"best of all, inside": pooled_auc(inside[self.ends].prod(dim=0), self.positive)}

    def _of_draws(self, rollouts: Rollouts, reward: ReadingReward, bound: int) -> dict[str, float]:
        order, chance, prefix, value = _by_node(rollouts, reward, bound)
        (u, v), inside = self.ends, (order[:, self.ends] > 0).all(dim=1).double()
        later = torch.where(order[:, u] <= order[:, v], chance[:, u], chance[:, v])
        by_edge = {
            "order": order[:, self.ends].amin(dim=1),
            "probability": later * inside,
            "prefix": prefix[:, self.ends].amin(dim=1),
            "inside": inside,
        }
        auc = {f"one, {name}": fmean(pooled_auc(s, self.positive) for s in e[:SHOWN]) for name, e in by_edge.items()}
        auc |= {f"mean, {name}": pooled_auc(e.mean(dim=0), self.positive) for name, e in by_edge.items()}
        # The sample with the largest reward of each instance.
        owner = self.subject.instances.owner[u]
        best = value.view(order.size(0), -1).argmax(dim=0)[owner]
        every = torch.arange(u.numel())
        return auc | {
            f"best, {name}": pooled_auc(by_edge[name][best, every], self.positive) for name in ("order", "inside")
        }


def _solved(reading: Reading, subject: Subject, reward: ReadingReward, seed: int) -> tuple[Any, Any, Tensor | None]:
    """Returns a policy, what it makes of the instances, and where each begins."""
    instances = subject.instances
    if reading.loss == "exact":
        policy = ExactPolicy(reward, reading.max_nodes, reading.stop)
        return policy, None, instances.center if instances.level == "node" else None
    settings = Settings.preset(
        "paper",
        max_nodes=reading.max_nodes,
        min_nodes=1 if reading.stop == "learned" else reading.max_nodes,
        objective=reading.loss,
        epochs=reading.epochs,
        beta=reading.beta,
        start=reading.start,
        seed=seed,
    )
    sampler = FlowSampler(settings, subject)
    sampler.reward = reward
    if reading.flows == "softmax":
        before = sampler.network.policy
        sampler.network.policy = SoftmaxPolicy(before.feature_mean.numel(), propagation="frontier")
        sampler.network.policy.load_state_dict(before.state_dict())
        sampler.network.policy.min_nodes = settings.min_nodes
    assert isinstance(sampler.network.policy, PaperPolicy)
    sampler.network.policy.alpha = reading.alpha
    reward.min_nodes = settings.min_nodes
    Trainer(sampler).run(progress=False)
    with torch.no_grad():
        return sampler.network.policy, sampler.encode(), sampler.starts(torch.arange(len(instances)))


def _by_node(rollouts: Rollouts, reward: ReadingReward, bound: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns for each draw and node what is left of the bound when it joined, by which chance it did, and what is left
    up to the prefix with the largest reward, all ``[D, n]``; and the reward at the end of each rollout ``[R]``.
    """
    states, instances = rollouts.states, rollouts.states.instances
    members, count = rollouts.subgraphs.members, len(instances)
    draw = torch.arange(members.size(0)) // count
    some = torch.nonzero(states.complete).flatten()
    value = torch.full((len(states),), -torch.inf, dtype=torch.double)
    value[some] = reward.log_score(states.subgraphs[some]).double()
    by_size = torch.full((members.size(0), members.size(1) + 1), -torch.inf, dtype=torch.double)
    size = states.size[rollouts.state]
    by_size[rollouts.rollout, size] = value[rollouts.state]
    best = by_size.argmax(dim=1)
    assert rollouts.flows is not None
    action, stop = (flow.double() for flow in rollouts.flows)
    out = log_outflow(states, action, stop)
    goes = torch.nonzero(rollouts.successor >= 0).flatten()
    step = torch.ones(members.shape, dtype=torch.double)
    chosen = rollouts.chosen[goes]
    step[rollouts.rollout[goes], size[goes]] = (action[chosen] - out[states.frontier_state[chosen]]).exp()
    row, slot = torch.nonzero(members >= 0, as_tuple=True)
    node = members[row, slot]
    order, chance, prefix = (torch.zeros(int(draw[-1]) + 1, instances.num_nodes, dtype=torch.double) for _ in range(3))
    order[draw[row], node] = (bound - slot).double()
    chance[draw[row], node] = step[row, slot]
    prefix[draw[row], node] = torch.where(slot < best[row], bound - slot, 0).double()
    return order, chance, prefix, value[rollouts.state[rollouts.last]]


def _places(inner: Instances, outer: Instances) -> Tensor:
    """Returns where each node of some instances stands in wider ones of the same list, shape ``[n]``."""
    largest = int(outer.node_id.max()) + 1
    keys = outer.owner * largest + outer.node_id
    order = torch.argsort(keys)
    return order[find_sorted(keys[order], inner.owner * largest + inner.node_id)[0]]


def score(dataset: str, reading: Reading, seed: int = 0, every: int = 1) -> dict[str, float]:
    """Returns the AUC of every score of a reading by name."""
    torch.set_num_threads(1)
    return Case(dataset, every, reading.reach).scores(reading, seed)


def optima(dataset: str, readings: list[Reading], every: int) -> list[dict[str, float]]:
    """Returns what the exact optimum of each reading scores."""
    torch.set_num_threads(1)
    cases = {reach: Case(dataset, every, reach) for reach in {reading.reach for reading in readings}}
    return [cases[reading.reach].scores(replace(reading, loss="exact"), 0) for reading in readings]
