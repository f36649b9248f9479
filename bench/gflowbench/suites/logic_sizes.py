"""The SIZE task: motifs of 2 to 12 nodes in one dataset, each graph with one of them or with a decoy of its size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gflowbench.datasets.motifs import Motif, cycle, house
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.suites.logic import Made, separate_colours
from gflowbench.suites.pieces import Assembly, Palette, coloured, holds, lattice, renamed


@lru_cache
def motifs_by_size() -> tuple[Motif, ...]:
    """Returns the motifs of 3, 5, 6, 9 and 12 nodes. The one of 2 nodes is a colour 0 next to a colour 1."""
    return (
        coloured(cycle(3), (2, 3, 4)),
        coloured(house(), (2, 3, 3, 2, 2)),
        coloured(lattice(2, 3), (4, 3, 4, 3, 4, 3)),
        coloured(lattice(3, 3), (2, 4, 2, 4, 2, 4, 2, 4, 2)),
        coloured(lattice(3, 4), (2, 3, 2, 3, 3, 2, 3, 2, 2, 3, 2, 3)),
    )


def sizes(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 1: one motif of any size. Class 0: a piece of the same shape with its colours in another order."""
    assembly = Assembly(int(rng.integers(2, 20)), rng)
    choice = int(rng.integers(len(motifs_by_size()) + 1))
    if choice == 0:
        separate_colours(assembly)
        nodes = _plant_pair(assembly) if label else ()
    else:
        piece = motifs_by_size()[choice - 1]
        nodes = assembly.attach(piece if label else _shuffled(rng, piece))
        recoloured = assembly.colours[assembly.num_base_nodes :]
        separate_colours(assembly)
        assembly.colours[assembly.num_base_nodes :] = recoloured
    graph, new = assembly.to_data(label)
    if not label:
        return graph, TaskTruth(len(new), Combination.NONE)
    return graph, TaskTruth(len(new), Combination.ALL, (renamed(nodes, new),))


def _plant_pair(assembly: Assembly) -> tuple[int, ...]:
    """Colours the two ends of a random edge 0 and 1, and nothing else next to them so."""
    rng, edges, colours = assembly.rng, np.array(assembly.edges), np.array(assembly.colours)
    pair = edges[rng.integers(len(edges))]
    around = np.unique(edges[np.isin(edges, pair).any(axis=1)])
    low = around[colours[around] < 2]
    colours[low] = rng.integers(2, 5, len(low))
    colours[pair] = (0, 1)
    assembly.colours = colours.tolist()
    return tuple(pair.tolist())


def _shuffled(rng: np.random.Generator, piece: Motif) -> Motif:
    """Returns the shape with its colours drawn anew until none of the motifs lies in it."""
    while True:
        decoy = coloured(piece, rng.integers(2, 5, piece.size).tolist())
        if not any(holds(decoy, motif) for motif in motifs_by_size() if motif.size <= decoy.size):
            return decoy
