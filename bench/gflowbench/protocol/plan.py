"""How much of an evaluation each explainer gets, so that the whole of it fits its time.

A plan says of an explainer and a dataset how many seeds at most, every n-th instance, with which settings, or why
not at all. :func:`suite` fits the paper's six datasets with ten seeds into three hours on 2 cores: what is quick is run
whole, what is slow on fewer seeds, then on fewer instances, and only then with a smaller search. :func:`fast` is a
first look in ten minutes. Tables mark what was thinned and say how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Part:
    """The part of a dataset that an explainer is run on.

    Attributes:
        seeds: Seeds at most; ``None`` for all.
        every: Every n-th instance is taken.
        settings: Settings of the explainer.
        left_out: Why it is not run at all; empty if it is.
    """

    seeds: int | None = None
    every: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    left_out: str = ""

    def words(self, seeds: int | None, settings: Mapping[str, Any]) -> str:
        """Says how it is thinned; empty if it is not.

        Args:
            seeds: Number of seeds, if it was lowered.
            settings: The settings that were used in place of :attr:`settings`.
        """
        parts = [f"every {_ordinal(self.every)} instance"] if self.every > 1 else []
        if seeds is not None:
            parts.append(f"{seeds} seed{'s' * (seeds != 1)}")
        return ", ".join([*parts, *(f"{name}={value}" for name, value in settings.items())])


Plan = Callable[[str, str], Part]
"""Returns the part of a dataset (the second name) that an explainer (the first one) is run on."""

ELSEWHERE = ""
"""Stands for all datasets that are not named."""

_SHORT = {"num_rollouts": 3, "num_samples": 20}
_MEDIUM = {"num_rollouts": 10, "num_samples": 30}
"""Searches of SubgraphX where its own (20 and 100) take minutes an instance."""
_TWO, _THREE, _FIVE = ({ELSEWHERE: Part(seeds=count)} for count in (2, 3, 5))

_SUITE: dict[str, dict[str, Part]] = {
    "gflow-context": _TWO,
    "gflow-sequence": _TWO,
    "gflow-graph": _TWO,
    "gflow-tb": _TWO,
    "gflow-ctb": _TWO,
    "gflow-paper": {
        **{name: Part(seeds=2, every=5) for name in ("ba-shapes", "ba-community", "ba-2motifs")},
        "mutagenicity": Part(seeds=2, every=10),
        ELSEWHERE: Part(seeds=2),
    },
    "graphmask": {"mutagenicity": Part(seeds=3, every=10), ELSEWHERE: Part(seeds=3, every=5)},
    "subgraphx": {
        "ba-shapes": Part(seeds=2, every=12, settings=_SHORT),
        "ba-community": Part(seeds=2, every=12, settings=_SHORT),
        "ba-2motifs": Part(seeds=2, every=4),
        "mutagenicity": Part(seeds=2, every=10, settings=_MEDIUM),
        ELSEWHERE: Part(seeds=3),
    },
    "proxy-explainer": _THREE,
    "kernelshap": _THREE,
    "gnnshap": {"mutagenicity": Part(seeds=2, every=10), ELSEWHERE: Part(seeds=2, every=5)},
    "gstarx": {"mutagenicity": Part(seeds=2, every=10), ELSEWHERE: Part(seeds=2, every=5)},
    "rg-explainer": _FIVE,
    "rg-explainer-no-pretraining": _THREE,
}

_LINKS: dict[str, dict[str, Part]] = {
    "user-item-attr": {
        "gnnexplainer": Part(seeds=1, every=4),
        "occlusion": Part(seeds=1),
        "gnnshap": Part(seeds=1),
        ELSEWHERE: Part(),
    },
    # The GNNs differ, so one seed of an explainer each will do.
    "motif-links": {ELSEWHERE: Part(seeds=1)},
}
"""Tasks of links, by explainer."""
_FEW_LINKS = {"user-item-attr": 16, "motif-links": 5}
"""In a first look, every n-th link: eight or nine of them."""
_QUICK_LINKS: dict[str, Mapping[str, Any]] = {
    "gnnexplainer": {"epochs": 30},
    "integrated-gradients": {"steps": 5},
    "gnnshap": {"num_samples": 128},
}

_FEW = {"ba-shapes": 12, "ba-community": 12, "tree-cycles": 5, "tree-grid": 24, "ba-2motifs": 16, "mutagenicity": 80}
"""In a first look, every n-th instance of a dataset: five to thirteen of them."""
_FEW_COALITIONS = {"num_samples": 128}
_FEW_STARTS = {"num_starts": 20, "sample_size": 5}
_FAST: dict[str, dict[str, Part]] = {
    "gnnshap": {name: Part(every=every, settings=_FEW_COALITIONS) for name, every in _FEW.items()},
    "gstarx": {name: Part(every=every, settings=_FEW_STARTS) for name, every in _FEW.items()},
    "subgraphx": {
        "ba-shapes": Part(every=20, settings=_SHORT),
        "ba-community": Part(every=30, settings=_SHORT),
        "ba-2motifs": Part(every=16, settings=_MEDIUM),
    },
}

_QUICK: dict[str, Mapping[str, Any]] = {"gnnshap": _FEW_COALITIONS, "gstarx": _FEW_STARTS, "subgraphx": _SHORT}


def whole(explainer: str, dataset: str) -> Part:
    """Runs everything: all instances with all seeds."""
    return Part()


def suite(explainer: str, dataset: str) -> Part:
    """Thins what is slow, so that the six datasets of the paper with ten seeds take three hours on 2 cores."""
    if dataset in _LINKS:
        return _find(_LINKS[dataset], explainer, Part())
    return _find(_SUITE.get(explainer, {}), dataset, Part())


def fast(explainer: str, dataset: str) -> Part:
    """Returns a first look: one seed, few instances, short searches; six datasets in ten minutes on 2 cores."""
    if dataset in _LINKS:
        return Part(seeds=1, every=_FEW_LINKS[dataset], settings=_QUICK_LINKS.get(explainer, {}))
    slow = suite(explainer, dataset)
    if slow.left_out:
        return slow
    found = _find(_FAST.get(explainer, {}), dataset, Part(every=_FEW.get(dataset, 10), settings=slow.settings))
    return replace(found, seeds=1)


def quick(explainer: str, dataset: str) -> Part:
    """Returns a first look at tasks that are small already: one seed, short searches, all instances."""
    slow = suite(explainer, dataset)
    return slow if slow.left_out else Part(seeds=1, settings=_QUICK.get(explainer, {}))


def _find(parts: Mapping[str, Part], dataset: str, otherwise: Part) -> Part:
    return parts.get(dataset, parts.get(ELSEWHERE, otherwise))


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
