"""Molecules: where the atoms lie on paper and how they are bound, by rdkit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from gflowexplainer.errors import ConfigError

_BONDS = {1: "-", 2: "=", 3: "#", 1.5: ":"}
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, eq=False)
class Molecule:
    """A molecule of ``N`` atoms in the order of the nodes.

    Attributes:
        elements: Element of each.
        symbols: What is written at each atom; empty for carbons, as chemists draw them.
        place: Where each lies, y upwards, shape ``[N, 2]``.
        bonds: Order of each bond by its two atoms, smaller one first; 1.5 is aromatic.
    """

    elements: list[str]
    symbols: list[str]
    place: np.ndarray
    bonds: dict[tuple[int, int], float]

    def orders(self, pairs: np.ndarray) -> np.ndarray:
        """Reads the bond orders of ``pairs`` ``[e, 2]``, shape ``[e]``; 0 where there is no bond."""
        return np.array([self.bonds.get((min(i, j), max(i, j)), 0.0) for i, j in pairs.tolist()], dtype=float)


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
    """Lays out an rdkit molecule that has as many atoms as the graph has nodes, or says that it has not."""
    from rdkit import Chem
    from rdkit.Chem import rdDepictor

    # Not sanitised: data of molecules is full of valences that rdkit refuses, such as N(=O)=O.
    written.UpdatePropertyCache(strict=False)
    candidates = [written]
    if written.GetNumAtoms() != num_nodes:
        candidates = [Chem.RemoveHs(written, sanitize=False), Chem.AddHs(written)]
    fitting = [molecule for molecule in candidates if molecule.GetNumAtoms() == num_nodes]
    if not fitting:
        return f"the SMILES has {written.GetNumAtoms()} atoms, but the graph {num_nodes} nodes."
    molecule = Chem.Mol(fitting[0])
    Chem.FastFindRings(molecule)
    try:
        Chem.Kekulize(molecule, clearAromaticFlags=True)
    except (Chem.KekulizeException, ValueError, RuntimeError):
        molecule = Chem.Mol(fitting[0])
        Chem.FastFindRings(molecule)
    rdDepictor.Compute2DCoords(molecule)
    rdDepictor.StraightenDepiction(molecule)
    bonds = {}
    for bond in molecule.GetBonds():
        i, j = sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
        bonds[i, j] = float(bond.GetBondTypeAsDouble())
    return Molecule(
        elements=[atom.GetSymbol() for atom in molecule.GetAtoms()],
        symbols=[_symbol(atom) for atom in molecule.GetAtoms()],
        place=np.asarray(molecule.GetConformer().GetPositions()[:, :2], dtype=float),
        bonds=bonds,
    )


def _symbol(atom: Any) -> str:
    """Writes an atom as chemists do: nothing for carbon in a chain, else element, hydrogens and charge."""
    charge = atom.GetFormalCharge()
    if atom.GetSymbol() == "C" and not charge and atom.GetDegree() > 0:
        return ""
    count = atom.GetTotalNumHs()
    hydrogens = ("" if count == 0 else "H") + (str(count).translate(_SUBSCRIPTS) if count > 1 else "")
    sign = {0: "", 1: "⁺", -1: "⁻"}.get(charge, f"{abs(charge)}{'+' if charge > 0 else '-'}")
    return atom.GetSymbol() + hydrogens + sign


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
    largest = 0
    for pair in sorted(bonds, key=lambda p: (p[0], p[1])):
        for done in [p for p in opened if p[1] < pair[0]]:
            free.append(opened.pop(done))
        if free:
            number = free.pop()
        else:
            largest += 1
            number = largest
        opened[pair] = number
        text = bonds[pair] + (str(number) if number < 10 else f"%{number}" if number < 100 else f"%({number})")
        for atom in pair:
            closures[atom].append(text)
    return ".".join(f"[{symbol}]{''.join(texts)}" for symbol, texts in zip(symbols, closures, strict=True))
