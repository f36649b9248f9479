"""Molecules: their structure as rdkit draws it, and SMILES of molecules that come as graphs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from gflowexplainer.errors import ConfigError

BOND = 46.0
"""Pixels of a bond."""
_BONDS = {1: "-", 2: "=", 3: "#", 1.5: ":"}


@dataclass(frozen=True, eq=False)
class Molecule:
    """A molecule of ``N`` atoms in the order of the nodes, as rdkit draws it.

    Attributes:
        elements: Element of each.
        place: Where each lies, in pixels, y downwards, shape ``[N, 2]``.
        bonds: Pairs of bound atoms, smaller one first.
        strokes: What bonds and letters look like: SVG paths, each with ``"line"``, ``"dashed"`` or ``"filled"``.
    """

    elements: list[str]
    place: np.ndarray
    bonds: set[tuple[int, int]]
    strokes: list[tuple[str, str]]


class OtherSize(str):
    """A sentence that says that a SMILES has not as many atoms as a graph has nodes."""


def read_molecule(smiles: str, num_nodes: int) -> Molecule | str:
    """Reads a SMILES whose atoms are the nodes of a graph; a sentence instead if that cannot be.

    Hydrogens count as the graph counts them: as they are written, none of them, or all of them after the other atoms.
    """
    try:
        from rdkit import Chem, rdBase
    except ImportError:
        return 'rdkit is not installed. To see the molecule: pip install "gflowexplainer[molecules]"'
    with rdBase.BlockLogs():
        written = Chem.MolFromSmiles(smiles, sanitize=False)
        if written is None:
            return f"rdkit cannot read the SMILES {smiles!r}."
        try:
            return _drawn(written, num_nodes)
        except (ValueError, RuntimeError) as error:
            return f"rdkit cannot draw the SMILES {smiles!r} ({error})."


def _drawn(written: Any, num_nodes: int) -> Molecule | str:
    """Draws an rdkit molecule that has as many atoms as the graph has nodes, or says that it has not."""
    from rdkit import Chem
    from rdkit.Chem import rdDepictor
    from rdkit.Chem.Draw.rdMolDraw2D import MolDraw2DSVG

    # Not sanitised: data of molecules is full of valences that rdkit refuses, such as N(=O)=O.
    written.UpdatePropertyCache(strict=False)
    candidates = [written]
    if written.GetNumAtoms() != num_nodes:
        candidates = [Chem.RemoveHs(written, sanitize=False), Chem.AddHs(written)]
    fitting = [molecule for molecule in candidates if molecule.GetNumAtoms() == num_nodes]
    if not fitting:
        return OtherSize(f"the SMILES has {written.GetNumAtoms()} atoms, but the graph {num_nodes} nodes.")
    molecule = Chem.Mol(fitting[0])
    Chem.FastFindRings(molecule)
    try:
        Chem.Kekulize(molecule, clearAromaticFlags=True)
    except (Chem.KekulizeException, ValueError, RuntimeError):
        molecule = Chem.Mol(fitting[0])
        Chem.FastFindRings(molecule)
    rdDepictor.Compute2DCoords(molecule)
    rdDepictor.StraightenDepiction(molecule)
    drawer = MolDraw2DSVG(-1, -1)
    options: Any = drawer.drawOptions()
    options.useBWAtomPalette()
    options.prepareMolsBeforeDrawing = False
    options.scalingFactor, options.fixedFontSize, options.bondLineWidth = BOND / 1.5, 16, 2
    drawer.DrawMolecule(molecule)
    drawer.FinishDrawing()
    points = [drawer.GetDrawCoords(atom) for atom in range(num_nodes)]
    return Molecule(
        elements=[atom.GetSymbol() for atom in molecule.GetAtoms()],
        place=np.array([[point.x, point.y] for point in points]),
        bonds={_ends(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()},
        strokes=_strokes(drawer.GetDrawingText()),
    )


def _ends(one: int, other: int) -> tuple[int, int]:
    """Returns the ends of a bond, the smaller place first."""
    return min(one, other), max(one, other)


def _strokes(picture: str) -> list[tuple[str, str]]:
    """Reads the paths of an SVG of rdkit, and whether each is a line, a dashed one or a filled shape."""
    found = []
    for path in re.findall(r"<path[^>]*>", picture):
        line = "fill:none" in path
        kind = "dashed" if "stroke-dasharray" in path else "line" if line else "filled"
        found.append((" ".join(re.search(r" d='([^']*)'", path)[1].split()), kind))  # type: ignore[index]
    return found


def smiles_of(symbols: Sequence[str], edge_index: Tensor, orders: Sequence[float] | Tensor | None = None) -> str:
    """Writes a SMILES whose atoms stand in the order of the nodes, for molecules that come as graphs.

    Every atom is a part of its own and every bond a ring closure between parts, which is the one way to keep any order.
    Hydrogens must be nodes; implicit ones are not added.

    Args:
        symbols: Element of each of the ``N`` atoms.
        edge_index: Bonds, in one or both directions, shape ``[2, E]``.
        orders: Order of each, ``[E]``: 1, 2, 3 or 1.5 for aromatic; all single if not given.

    Example:
        >>> import torch
        >>> smiles_of(["O", "C", "O"], torch.tensor([[0, 1], [1, 2]]), [2, 2])
        '[O]=1.[C]=1=2.[O]=2'
    """
    values = [1.0] * edge_index.size(1) if orders is None else [float(order) for order in orders]
    if len(values) != edge_index.size(1):
        raise ConfigError(f"There are {len(values)} 'orders' for {edge_index.size(1)} bonds. Pass one each.")
    bonds: dict[tuple[int, int], str] = {}
    for (u, v), order in zip(edge_index.t().tolist(), values, strict=True):
        if order not in _BONDS:
            raise ConfigError(f"A bond has the order {order:g}. SMILES knows {', '.join(map(str, sorted(_BONDS)))}.")
        if u != v:
            bonds[min(u, v), max(u, v)] = _BONDS[order]
    for symbol in symbols:
        if not (symbol.isascii() and symbol.isalpha()):
            raise ConfigError(f"'symbols' must hold names of elements (got {symbol!r}).")
    closures: list[list[str]] = [[] for _ in symbols]
    free: list[int] = []
    opened: dict[tuple[int, int], int] = {}
    for pair in sorted(bonds):
        for done in [p for p in opened if p[1] < pair[0]]:
            free.append(opened.pop(done))
        number = opened[pair] = free.pop() if free else len(opened) + 1
        text = bonds[pair] + (str(number) if number < 10 else f"%{number}" if number < 100 else f"%({number})")
        for atom in pair:
            closures[atom].append(text)
    return ".".join(f"[{symbol}]{''.join(texts)}" for symbol, texts in zip(symbols, closures, strict=True))
