"""The development half and the judging half: which seeds, motifs, rules and nodes each of them holds.

The rule was fixed before anything was tuned on the suites:

- Generated tasks and molecules: development has the seeds 0 to 4, judging the seeds 100 to 104. A seed names the
  graphs, the initial weights of the GNN and the draws of explainers.
- Logic tasks: the two halves plant different motifs (:mod:`gflowbench.suites.pieces`), chosen by the seed.
- Molecules: the two halves have different functional groups (:mod:`gflowbench.suites.molecules`).
- Cora: the 1000 test nodes are shuffled once with the seed 2708; even positions are development, odd ones judging.
  The n-th seed of a half takes the n-th hundred of its nodes.

Settings may be chosen on development. Numbers of the judging half are looked at once, when a setting is final.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from gflowexplainer.errors import ConfigError, one_of

HALVES = ("development", "judging")
SEEDS = {"development": (0, 1, 2, 3, 4), "judging": (100, 101, 102, 103, 104)}
FIRST_JUDGING_SEED = 100
NODES_A_SEED = 100
_SHUFFLE = 2708


def half_of(seed: int) -> str:
    """Returns the half that ``seed`` belongs to."""
    if seed < 0:
        raise ConfigError(f"'seed' must not be negative (got {seed}).")
    return "judging" if seed >= FIRST_JUDGING_SEED else "development"


def seeds_of(half: str, count: int | None = None) -> tuple[int, ...]:
    """Returns the first ``count`` seeds of a half; all of them if not given."""
    return SEEDS[one_of("half", half, HALVES)][:count]


def nodes_of_seed(test_nodes: Tensor, seed: int) -> Tensor:
    """Returns the test nodes that ``seed`` explains.

    Args:
        test_nodes: All test nodes in the order of their ids, shape ``[T]``.
        seed: A seed of one of the halves.

    Returns:
        At most :data:`NODES_A_SEED` node ids. No two seeds share one.
    """
    half = half_of(seed)
    number = seed - SEEDS[half][0]
    order = np.random.default_rng(_SHUFFLE).permutation(len(test_nodes))
    mine = order[HALVES.index(half) :: 2]
    if number * NODES_A_SEED >= len(mine):
        raise ConfigError(f"Seed {seed} has no test nodes of its own. Use one of {SEEDS[half]}.")
    return test_nodes[mine[number * NODES_A_SEED : (number + 1) * NODES_A_SEED]]
