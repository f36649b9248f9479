"""The settings that are choices, as enums that equal their names."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from gflowexplainer.errors import one_of

ChoiceType = TypeVar("ChoiceType", bound="Choice")


class Choice(str, Enum):
    """A setting with a few named values. Each equals its name as a string, and a string is accepted everywhere."""

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return repr(self.value)

    @classmethod
    def of(cls: type[ChoiceType], name: str, value: object) -> ChoiceType:
        """Returns the choice that ``value`` names, or says which ones the setting ``name`` has."""
        return value if isinstance(value, cls) else cls(one_of(name, value, cls.names()))

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Returns the names of all values."""
        return tuple(choice.value for choice in cls)


class RewardType(Choice):
    """How well a subgraph preserves the prediction, by which measurement."""

    evidence = "evidence"
    context = "context"
    prediction = "prediction"
    regularized = "regularized"


class Removal(Choice):
    """What "without a node" means: it goes with its edges, or it stays without them."""

    induced = "induced"
    isolate = "isolate"


class Expectation(Choice):
    """Which prediction is the target of the paper's reward: on the whole, on the subgraph, or the class alone."""

    whole = "whole"
    subgraph = "subgraph"
    label = "label"


class Direction(Choice):
    """Which contributions to a value are explained: all, those that raise it, or those that lower it."""

    any = "any"
    up = "up"
    down = "down"


class StartRule(Choice):
    """Where explanations of graphs begin."""

    anywhere = "anywhere"
    locator = "locator"


class PolicyType(Choice):
    """The network that chooses the next node."""

    additive = "additive"
    paper = "paper"


class Propagation(Choice):
    """Over what the paper's policy propagates: the whole graph, or members and frontier."""

    graph = "graph"
    frontier = "frontier"


class Objective(Choice):
    """What training minimises (:mod:`~gflowexplainer.flow.objectives`)."""

    flow_matching = "flow_matching"
    raw_flow_matching = "raw_flow_matching"
    detailed_balance = "detailed_balance"
    subtrajectory_balance = "subtrajectory_balance"
    log_partition_variance = "log_partition_variance"
    trajectory_balance = "trajectory_balance"
    conditional_trajectory_balance = "conditional_trajectory_balance"

    @property
    def needs_inflow(self) -> bool:
        """Whether it compares what enters a state with what leaves it."""
        return self in (Objective.flow_matching, Objective.raw_flow_matching)

    @property
    def learns_partition(self) -> bool:
        """Whether log Z is learned beside the policy."""
        return self in (Objective.trajectory_balance, Objective.conditional_trajectory_balance)


class Measure(Choice):
    """What subgraphs count before the reward (:mod:`~gflowexplainer.flow.measure`)."""

    growth = "growth"
    uniform = "uniform"


class ParentRule(Choice):
    """Which states lead to a state (:meth:`~gflowexplainer.flow.states.States.parents`)."""

    dag = "dag"
    sequence = "sequence"
    graph = "graph"
