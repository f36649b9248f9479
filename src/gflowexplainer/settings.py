"""All settings of an explainer as one plain dataclass, and the named presets."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from gflowexplainer.choices import (
    Choice,
    Direction,
    Expectation,
    Measure,
    Objective,
    ParentRule,
    PolicyType,
    Propagation,
    Removal,
    RewardType,
    StartRule,
)
from gflowexplainer.errors import ConfigError, did_you_mean, one_of
from gflowexplainer.steering import BETA

CHOICES: dict[str, type[Choice]] = {
    "reward": RewardType,
    "expectation": Expectation,
    "removal": Removal,
    "direction": Direction,
    "start": StartRule,
    "policy": PolicyType,
    "propagation": Propagation,
    "objective": Objective,
    "measure": Measure,
    "parents": ParentRule,
}
"""Settings that are choices."""
HINTS = {
    **{"lr": "learning_rate", "k": "max_nodes", "size": "max_nodes", "num_nodes": "max_nodes"},
    **{"alpha": "keep_probability", "m": "num_contexts", "samples": "num_samples", "hops": "num_hops"},
    **{"layers": "num_hops", "random_state": "seed", "iterations": "max_updates", "steps": "max_updates"},
}
"""What other libraries and the paper call a setting or an argument of the explainer."""


@dataclass(frozen=True)
class Settings:
    """How subgraphs are rewarded, how the flow network looks, and how it is trained.

    The first six are for everybody. The others are for research: those of the network and of its training matter only
    to rewards that evaluate the model on every subgraph, as the presets ``"context"`` and ``"paper"`` do.

    Attributes:
        max_nodes: Largest explanation (K).
        min_nodes: Smallest explanation.
        reward: ``"evidence"``, ``"context"``, ``"prediction"`` (the paper's) or ``"regularized"`` (RG-Explainer's). The
            first is a closed form of what was learned; the others evaluate the model on every subgraph, and a flow
            network is trained to sample by them.
        direction: Of a value, what is explained: ``"any"`` contribution, those that raise it (``"up"``) or that lower
            it (``"down"``).
        max_graph_nodes: Largest computation graph of a node; of a larger one the nodes most relevant to the explained
            one are kept (:mod:`~gflowexplainer.graphs.neighborhoods`).
        seed: Fixes everything.
        beta: Reward exponent; of the evidence reward in units of its spread within an instance.
        num_contexts: Contexts in which the context reward evaluates each subgraph (M).
        keep_probability: Probability that such a context keeps a node (alpha).
        expectation: Of the paper's reward (equation 10): ``"whole"``, ``"subgraph"`` or ``"label"``; see
            :class:`~gflowexplainer.rewards.prediction.PredictionReward`.
        removal: What it means that a node is gone: ``"induced"`` (it goes) or ``"isolate"`` (its edges go, as is right
            where a model averages over all nodes of a graph).
        start: Where graph-level explanations begin: ``"anywhere"`` or at the node of a ``"locator"``.
        measure: What subgraphs count before the reward: ``"growth"`` or ``"uniform"``; see
            :mod:`~gflowexplainer.flow.measure`.
        parents: ``"dag"``, ``"sequence"`` or ``"graph"``; of the uniform measure.
        policy: ``"additive"`` or ``"paper"``.
        propagation: Of the paper's policy: ``"graph"`` or ``"frontier"``.
        hidden: Width of the policy.
        model_embeddings: Whether the policy sees the explained model's node embeddings.
        node_identities: Whether the policy knows every training node by name.
        objective: See :mod:`~gflowexplainer.flow.objectives`.
        epochs: Passes over all instances.
        max_updates: Updates after which the training ends even so; 0 for no such bound.
        batch_size: Instances of one update.
        rollouts: Subgraphs grown for each of them.
        descents: Steps of gradient descent that an update makes on what was grown.
        epsilon: Share of uniform choices while training.
        temperature: Of the policy's choices while training.
        learning_rate: Of Adam; falls to ``final_rate`` times itself along a half cosine.
        final_rate: See ``learning_rate``; 1 keeps it constant.
        weight_decay: Decoupled weight decay.
        clip_norm: Largest norm of a gradient; 0 for no limit.
        locator_share: Share of the graphs that the locator is trained on in an epoch.
    """

    max_nodes: int = 20
    min_nodes: int = 1
    reward: RewardType = RewardType.evidence
    direction: Direction = Direction.any
    max_graph_nodes: int = 1000
    seed: int = 0
    beta: float = BETA
    num_contexts: int = 16
    keep_probability: float = 0.5
    expectation: Expectation = Expectation.whole
    removal: Removal = Removal.induced
    start: StartRule = StartRule.anywhere
    measure: Measure = Measure.growth
    parents: ParentRule = ParentRule.dag
    policy: PolicyType = PolicyType.additive
    propagation: Propagation = Propagation.graph
    hidden: int = 64
    model_embeddings: bool = True
    node_identities: bool = False
    objective: Objective = Objective.log_partition_variance
    epochs: int = 200
    max_updates: int = 50
    batch_size: int = 64
    rollouts: int = 8
    descents: int = 4
    epsilon: float = 0.05
    temperature: float = 1.0
    learning_rate: float = 1e-2
    final_rate: float = 0.05
    weight_decay: float = 0.0
    clip_norm: float = 10.0
    locator_share: float = 0.2

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            object.__setattr__(self, name, choices.of(name, getattr(self, name)))
        self._right_types()
        counts = ("max_nodes", "min_nodes", "num_contexts", "max_graph_nodes", "hidden", "epochs", "batch_size")
        for name in (*counts, "rollouts", "descents"):
            self._at_least(name, 1)
        for name in ("epsilon", "weight_decay", "clip_norm", "max_updates"):
            self._at_least(name, 0)
        for name in ("beta", "temperature", "learning_rate"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"'{name}' must be a positive number (got {getattr(self, name)!r}).")
        for name in ("final_rate", "locator_share"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(f"'{name}' must lie in (0, 1] (got {getattr(self, name)!r}).")
        if not 0 < self.keep_probability <= 1:
            raise ConfigError(f"'keep_probability' must lie in (0, 1] (got {self.keep_probability!r}).")
        if self.epsilon > 1:
            raise ConfigError(f"'epsilon' must lie in [0, 1] (got {self.epsilon!r}).")
        if not -(2**63) <= self.seed < 2**63:
            raise ConfigError(f"'seed' must fit into 64 bits (got {self.seed!r}).")
        if self.min_nodes > self.max_nodes:
            raise ConfigError(f"'min_nodes' ({self.min_nodes}) must not exceed 'max_nodes' ({self.max_nodes}).")
        self._check_measure()

    @property
    def is_sampled_directly(self) -> bool:
        """Whether particles sample in proportion to the reward, so that no flow network is trained."""
        return self.reward == RewardType.evidence

    def check_task(self, level: str, *, shared: bool = False) -> None:
        """Refuses combinations that make no sense for a task; those that never do are refused when they are set.

        Args:
            level: ``"node"``, ``"graph"`` or ``"edge"``.
            shared: Whether one network is fitted that explains other instances too.
        """
        if shared and self.node_identities:
            raise ConfigError(
                "With node_identities=True the policy only knows the nodes it is trained on and explains no others. "
                "Leave it out, or explain without fit."
            )
        if level == "edge":
            self._check_links()
            return
        if level == "node" or self.start == StartRule.locator:
            return
        if self.reward == RewardType.regularized:
            raise ConfigError(
                "The regularised reward measures distances from the start node, so explanations cannot start anywhere. "
                "Use start='locator'."
            )
        if self.objective in (Objective.detailed_balance, Objective.subtrajectory_balance):
            raise ConfigError(
                f"'{self.objective}' compares states that may stop, and where explanations may start anywhere the "
                "first state may not. Use 'log_partition_variance' or 'flow_matching', or start='locator'."
            )

    def _check_links(self) -> None:
        """Refuses what compares states that may stop: before both ends of a link are joined, none may."""
        if self.objective in (Objective.detailed_balance, Objective.subtrajectory_balance):
            raise ConfigError(
                f"'{self.objective}' does not work for links, whose explanations may not stop before both ends are "
                "joined. Use 'log_partition_variance'."
            )

    def _check_measure(self) -> None:
        """Refuses the growth measure where parents decide: the number of ways into a state is not what it counts."""
        if self.measure == Measure.growth and self.objective.needs_inflow:
            raise ConfigError(
                f"'{self.objective}' counts every subgraph alike. Set measure='uniform' too, or use another objective."
            )
        if self.measure == Measure.growth and self.parents != ParentRule.dag:
            raise ConfigError(f"parents='{self.parents}' is a rule of the uniform measure. Set measure='uniform' too.")

    def _right_types(self) -> None:
        """Refuses values of another type than the default's; whole numbers may stand for real ones."""
        for field in fields(self):
            value, default = getattr(self, field.name), field.default
            if isinstance(default, bool):
                fits, wanted = isinstance(value, bool), "True or False"
            elif isinstance(default, int):
                fits, wanted = isinstance(value, int) and not isinstance(value, bool), "a whole number"
            elif isinstance(default, float):
                number = isinstance(value, int | float) and not isinstance(value, bool)
                fits, wanted = number and math.isfinite(value), "a finite number"
            else:
                continue
            if not fits:
                raise ConfigError(f"'{field.name}' must be {wanted} (got {value!r}).")

    def _at_least(self, name: str, bound: int) -> None:
        if getattr(self, name) < bound:
            raise ConfigError(f"'{name}' must be at least {bound} (got {getattr(self, name)!r}).")

    @classmethod
    def preset(cls, name: str = "default", **changes: Any) -> Settings:
        """Returns a named set of settings, with ``changes``.

        ``"default"``: the evidence reward, sampled by particles. ``"context"``: the context reward, which is each
        instance's own, and a flow network trained for it. ``"paper"``: the paper's table of hyper-parameters, its
        network, its reward and its loss in raw form. ``"sequence"`` and ``"graph"``: the context reward with the
        paper's two ablations of the parents.
        """
        one_of("preset", name, tuple(PRESETS))
        return cls.from_dict({**PRESETS[name], **changes})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Reads settings back; an unknown name is answered with the nearest right one."""
        names = tuple(field.name for field in fields(cls))
        for name in values:
            if name not in names:
                hint = did_you_mean(HINTS.get(name.lower(), name), (*names, *HINTS.values()))
                raise ConfigError(f"There is no setting '{name}'.{hint} The settings are: {', '.join(names)}.")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values that JSON can hold."""
        return {name: value.value if isinstance(value, Choice) else value for name, value in vars(self).items()}

    def change(self, **changes: Any) -> Settings:
        """Returns a copy with some values changed."""
        return self.from_dict({**vars(self), **changes})


GROUPS: dict[str, tuple[str, ...]] = {
    "What to explain": ("max_nodes", "min_nodes", "reward", "direction", "max_graph_nodes", "seed"),
    "For research, the reward": ("beta", "num_contexts", "keep_probability", "expectation", "removal"),
    "the sampling": ("start", "measure", "parents"),
    "the network": ("policy", "propagation", "hidden", "model_embeddings", "node_identities"),
}
"""Settings by who turns them: users the first six, researchers the rest."""
_named = {name for names in GROUPS.values() for name in names}
GROUPS["its training"] = tuple(field.name for field in fields(Settings) if field.name not in _named)

Function = TypeVar("Function", bound=Callable[..., Any])


def shows_settings(function: Function) -> Function:
    """Lets help and completion see the settings that a function takes among its keywords."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    more = [inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default) for f in fields(Settings)]
    function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    return function


PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "context": {
        "max_nodes": 7,
        "min_nodes": 1,
        "reward": "context",
        "beta": 20.0,
        "num_contexts": 32,
        "keep_probability": 0.7,
        "measure": "uniform",
        "max_updates": 200,
        "descents": 1,
    },
    "paper": {
        "max_nodes": 20,
        "min_nodes": 1,
        "reward": "prediction",
        "beta": 1.0,
        "policy": "paper",
        "propagation": "frontier",
        "start": "locator",
        "model_embeddings": False,
        "objective": "raw_flow_matching",
        "measure": "uniform",
        "epochs": 100,
        "max_updates": 0,
        "batch_size": 64,
        "rollouts": 1,
        "descents": 1,
        "epsilon": 0.0,
        "learning_rate": 1e-2,
        "final_rate": 1.0,
        "clip_norm": 0.0,
        "locator_share": 0.2,
    },
}
for _parents in ("sequence", "graph"):
    PRESETS[_parents] = {**PRESETS["context"], "parents": _parents}
