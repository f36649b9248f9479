"""What all peers share: settings that are checked, a bound on what they pick, and nothing to fit unless they learn."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from gflowbench.explainers.interface import Scores, Subject
from gflowexplainer.errors import ConfigError


@dataclass(kw_only=True, eq=False)
class Peer(ABC):
    """An explainer that is a set of settings.

    Args:
        max_nodes: Number of nodes that it picks at most; the subject's if not given. Without meaning for an explainer
            that scores everything.
    """

    max_nodes: int | None = None

    name: ClassVar[str]
    deterministic: ClassVar[bool] = False
    positive: ClassVar[tuple[str, ...]] = ()
    """Settings that must be positive numbers where they are given."""

    def __post_init__(self) -> None:
        check_positive(**{name: getattr(self, name) for name in ("max_nodes", *self.positive)})

    def fit(self, subject: Subject, seed: int) -> None:  # noqa: B027 - most learn nothing
        """Does nothing: every instance is explained by itself."""

    @abstractmethod
    def explain(self, subject: Subject, seed: int) -> Scores:
        """Scores the nodes and edges of the instances of ``subject``."""

    def bound(self, subject: Subject) -> int:
        """Returns the number of nodes that are picked at most."""
        return subject.max_nodes if self.max_nodes is None else self.max_nodes


def check_positive(**values: float | None) -> None:
    """Refuses settings that are given and are no positive numbers."""
    for name, value in values.items():
        if value is not None and not 0 < value < math.inf:
            raise ConfigError(f"'{name}' must be positive (got {value!r}).")
