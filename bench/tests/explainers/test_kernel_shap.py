"""KernelSHAP against the Shapley formula, with every coalition enumerated, and against shapiq."""

import itertools
import math

import numpy as np
import pytest
import torch

from gflowbench.explainers import create
from gflowbench.explainers.coalition_games import EdgeGame, Game, NodeGame
from gflowbench.explainers.kernel_shap import shapley_values
from gflowexplainer.ops.segments import pointers


def worth_of(game: Game, instance: int) -> dict[frozenset[int], float]:
    """Worth of all coalitions of one instance, by the number of the player in it."""
    begin, end = pointers(game.counts)[instance : instance + 2].tolist()
    sets = [s for size in range(end - begin + 1) for s in itertools.combinations(range(end - begin), size)]
    present = torch.zeros(len(sets), game.owner.numel(), dtype=torch.bool)
    for row, players in enumerate(sets):
        present[row, [begin + player for player in players]] = True
    return dict(zip(map(frozenset, sets), game.worth(present)[:, instance].tolist(), strict=True))


def exact(worth: dict[frozenset[int], float]) -> list[float]:
    count = max(map(len, worth))
    values = []
    for player in range(count):
        total = 0.0
        for others in worth:
            if player not in others:
                size = len(others)
                weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
                total += weight * (worth[others | {player}] - worth[others])
        values.append(total)
    return values


def small(game: Game) -> int:
    """An instance with few, but several players."""
    counts = game.counts.tolist()
    return min((i for i, count in enumerate(counts) if count > 2), key=lambda i: counts[i])


@pytest.mark.parametrize("kind", [NodeGame, EdgeGame])
def test_all_coalitions_give_shapley_values(either_subject, kind):
    number = small(kind(either_subject))
    game = kind(either_subject.select(torch.tensor([number])))
    assert 2 ** int(game.counts[0]) <= 4096
    wanted = exact(worth_of(game, 0))
    assert max(map(abs, wanted)) > 0.01
    assert shapley_values(game, 4096, seed=0).tolist() == pytest.approx(wanted, abs=1e-5)


def test_shapiq_agrees(graph_subject):
    shapiq = pytest.importorskip("shapiq")
    game = NodeGame(graph_subject.select(torch.tensor([0])))
    count = int(game.counts[0])

    def value(coalition: np.ndarray) -> np.ndarray:
        return game.worth(torch.from_numpy(np.asarray(coalition, dtype=bool)))[:, 0].numpy()

    found = shapiq.ExactComputer(n_players=count, game=value)(index="SV")
    wanted = [float(found[(player,)]) for player in range(count)]
    assert shapley_values(game, 2**count, seed=0).tolist() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("name", ["kernelshap", "gnnshap"])
def test_a_batch_gives_what_its_members_give(either_subject, name):
    whole = create(name, num_samples=40).explain(either_subject, 0)
    last = len(either_subject) - 1
    alone = create(name, num_samples=40).explain(either_subject.select(torch.tensor([last])), 0)
    tail = alone.node.numel()
    assert whole.node[-tail:].tolist() == pytest.approx(alone.node.tolist(), abs=1e-5)
