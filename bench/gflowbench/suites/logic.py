"""Logic tasks on graphs: the label is a known rule about planted motifs, so the truth of every graph is known.

Each rule makes one graph of a wanted class. What a GNN could use instead of the rule is kept equal in both classes:
the number of pieces and their sizes (decoys fill up), the colours, the size of the base. Some graphs are tiny, and
some of the class without a motif are bare trees or single pieces: a GNN that has never seen the like says anything of
a small subgraph, and whether a motif alone holds its prediction could not be measured.
"""

from __future__ import annotations

import numpy as np
from torch_geometric.data import Data

from gflowbench.datasets.motifs import Motif
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.suites.pieces import COLOURS, Assembly, Palette, coloured, renamed

Made = tuple[Data, TaskTruth]
VALUES = (1.0, -0.75)
"""What a copy of A and a copy of B add to the value of a graph, spread evenly over its nodes."""
_SMALL = 0.2
"""Share of the graphs without a motif that are bare trees, or single pieces where two are wanted."""


def either(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 1: at least one copy of A or of B, one to three in all. Each copy alone is enough."""
    total = int(rng.integers(2, 4))
    copies = int(rng.integers(1, total + 1)) if label else 0
    pieces = [_one(rng, (palette.first, palette.second)) for _ in range(copies)]
    return _planted(rng, palette, label, pieces, total, Combination.ANY)


def both_far(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 1: A and B, attached to base nodes that are at least four steps apart."""
    if not label and rng.random() < _SMALL:
        return _single(rng, palette)
    anchors = np.empty((0, 2), dtype=np.int64)
    while not len(anchors):  # few trees of this size are too flat
        assembly = Assembly(int(rng.integers(10, 20)), rng)
        anchors = np.argwhere(assembly.distances() >= 4)
    pieces = _conjunction(rng, palette, label)
    ends = anchors[rng.integers(len(anchors))]
    nodes = [assembly.attach(piece, int(end)) for piece, end in zip(pieces, ends, strict=True)]
    return _finish(assembly, label, nodes, Combination.ALL if label else Combination.NONE)


def both_adjacent(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 1: A and B, joined by an edge."""
    if not label and rng.random() < _SMALL:
        return _single(rng, palette)
    assembly = Assembly(_base_size(rng), rng)
    pieces = _conjunction(rng, palette, label)
    first = assembly.attach(pieces[0])
    second = assembly.attach(pieces[1], int(rng.choice(first)))
    return _finish(assembly, label, [first, second], Combination.ALL if label else Combination.NONE)


def count(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 1: two copies of A. Class 0: one or none; some graphs hold nothing but one copy, so one is not enough."""
    copies = 2 if label else int(rng.random() < 0.75)
    total = max(copies, int(rng.integers(1, 4)))
    return _planted(
        rng, palette, label, [palette.first] * copies, total, Combination.ALL if label else Combination.NONE
    )


def absence(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 0: one copy of A. Class 1: none, so nothing is there that decides it."""
    pieces = [] if label else [palette.first]
    return _planted(rng, palette, label, pieces, int(rng.integers(1, 4)), Combination.ALL)


def opposed(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 0: one copy of A. Class 1: one copy of B."""
    piece = palette.second if label else palette.first
    return _planted(rng, palette, label, [piece], int(rng.integers(1, 4)), Combination.ALL)


def shapes(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """One of several classes: each has a shape of its own, in any colours."""
    shape = palette.shapes[label]
    piece = coloured(shape, rng.integers(0, COLOURS, shape.size).tolist())
    return _planted(rng, palette, label, [piece], 1, Combination.ALL)


def colour_pair(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 1: one node of colour 0 next to one of colour 1. Class 0: both colours, nowhere next to each other."""
    assembly = Assembly(int(rng.integers(2, 20)), rng)
    if rng.random() < 0.8:
        assembly.attach(_one(rng, palette.decoys))
    separate_colours(assembly)
    colours, edges = np.array(assembly.colours), np.array(assembly.edges)
    if label:
        pair = edges[rng.integers(len(edges))]
    else:
        apart = np.argwhere(assembly.distances() >= 2)
        if not len(apart):  # two nodes: one colour has to do
            return _finish(assembly, label, [], Combination.NONE)
        pair = apart[rng.integers(len(apart))]
    pair = rng.permutation(pair)
    for end, colour in zip(pair, (0, 1), strict=True):
        around = np.concatenate([edges[edges[:, 0] == end, 1], edges[edges[:, 1] == end, 0]])
        clash = around[colours[around] == 1 - colour]
        colours[clash] = rng.integers(2, 5, len(clash))
        colours[end] = colour
    colours[pair] = (0, 1)
    assembly.colours = colours.tolist()
    return _finish(assembly, label, [tuple(pair.tolist())] if label else [], Combination.ALL)


def colour_ring(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """Class 1: one of three rings has colour 0. Class 0: three rings of other colours, colour 0 only in the base.

    As many base nodes of class 0 are given colour 0 as the ring would have, so counting it does not help.
    """
    assembly = Assembly(int(rng.integers(8, 16)), rng)
    sizes = rng.integers(4, 7, 3)
    others = rng.permutation(np.arange(1, 5))[:3].tolist()
    colours = [0, *others[:2]] if label else others
    nodes = [assembly.attach(_ring(int(size), colour)) for size, colour in zip(sizes, colours, strict=True)]
    if not label:
        for node in rng.permutation(assembly.num_base_nodes)[: sizes[0]]:
            assembly.colours[node] = 0
    return _finish(assembly, label, nodes[:1] if label else [], Combination.ALL)


def weighted_sum(rng: np.random.Generator, palette: Palette, label: int) -> Made:
    """A value: every copy of A adds, every copy of B takes away (:data:`VALUES`); decoys add nothing."""
    assembly = Assembly(_base_size(rng), rng)
    numbers = rng.integers(0, 3, 2)
    nodes, worth = [], []
    for piece, number, value in zip((palette.first, palette.second), numbers, VALUES, strict=True):
        nodes += [assembly.attach(piece) for _ in range(number)]
        worth += [value] * int(number)
    for _ in range(int(rng.integers(0, 3))):
        assembly.attach(_one(rng, palette.decoys))
    graph, new = assembly.to_data(sum(worth), value=True)
    parts = tuple(renamed(part, new) for part in nodes)
    contributions = {node: value / len(part) for part, value in zip(parts, worth, strict=True) for node in part}
    return graph, TaskTruth(len(new), Combination.CONTRIBUTIONS, parts, contributions)


def separate_colours(assembly: Assembly) -> None:
    """Recolours base nodes until no node of colour 0 is next to one of colour 1, in place."""
    pieces = np.arange(len(assembly.colours)) >= assembly.num_base_nodes
    colours = np.array(assembly.colours)
    colours[pieces & (colours < 2)] += 2
    for a, b in assembly.edges:
        if {int(colours[a]), int(colours[b])} == {0, 1}:
            colours[b] = assembly.rng.integers(2, 5)
    assembly.colours = colours.tolist()


def _conjunction(rng: np.random.Generator, palette: Palette, label: int) -> list[Motif]:
    """Draws two pieces: A and B, or for class 0 at most one of the two motifs, or one of them twice."""
    first, second = palette.first, palette.second
    if label:
        pieces = [first, second]
    else:
        kept = _one(rng, (first, second))
        other = kept if rng.random() < 0.2 else _one(rng, palette.decoys)
        pieces = [kept, other] if rng.random() < 0.8 else [_one(rng, palette.decoys), _one(rng, palette.decoys)]
    return [pieces[i] for i in rng.permutation(2)]


def _single(rng: np.random.Generator, palette: Palette) -> Made:
    """Makes a small graph of class 0 with one piece."""
    assembly = Assembly(int(rng.integers(1, 7)), rng)
    assembly.attach(_one(rng, (palette.first, palette.second, *palette.decoys[:2])))
    return _finish(assembly, 0, [], Combination.NONE)


def _base_size(rng: np.random.Generator) -> int:
    """Draws the nodes of a base; small ones are as frequent as large ones."""
    return int(rng.integers(1, 18))


def _planted(
    rng: np.random.Generator, palette: Palette, label: int, pieces: list[Motif], total: int, how: Combination
) -> Made:
    """Attaches ``pieces`` and decoys, ``total`` in all, to a random base; without motifs it may stay bare."""
    assembly = Assembly(_base_size(rng), rng)
    if not pieces and rng.random() < _SMALL:
        total = 0
    nodes = [assembly.attach(piece) for piece in pieces]
    for _ in range(total - len(pieces)):
        assembly.attach(_one(rng, palette.decoys))
    return _finish(assembly, label, nodes, how)


def _finish(assembly: Assembly, label: int, nodes: list[tuple[int, ...]], how: Combination) -> Made:
    """Shuffles the nodes; a class that nothing decides has no parts."""
    graph, new = assembly.to_data(label)
    if how is Combination.NONE or not nodes:
        return graph, TaskTruth(len(new), Combination.NONE)
    return graph, TaskTruth(len(new), how, tuple(renamed(part, new) for part in nodes))


def _one(rng: np.random.Generator, choices: tuple[Motif, ...]) -> Motif:
    return choices[int(rng.integers(len(choices)))]


def _ring(size: int, colour: int) -> Motif:
    ends = np.arange(size)
    edges = np.sort(np.stack([ends, (ends + 1) % size], axis=1), axis=1)
    return Motif(edges, np.full(size, colour, dtype=np.int64))
