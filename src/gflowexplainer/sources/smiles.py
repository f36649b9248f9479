"""Molecules: a table of SMILES as graphs of atoms and bonds (needs rdkit)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from gflowexplainer.errors import ConfigError, DatasetError, did_you_mean

ATOMS = ("C", "O", "Cl", "H", "N", "F", "Br", "S", "P", "I", "Na", "K", "Li", "Ca")
"""Elements of Mutagenicity, in the order in which the published GNN was given them."""
BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")


def read_molecules(path: str | Path, *, column: str = "smiles", atoms: Sequence[str] = ATOMS) -> list[Data]:
    """Reads a CSV file with one molecule a row.

    Atoms are nodes, in the order of the SMILES; ``x`` is the one-hot position of the element in ``atoms``. Where
    ``atoms`` names hydrogen, all hydrogens are nodes too, after the other atoms (as in Mutagenicity); otherwise none.
    Bonds are edges in both directions; ``edge_attr`` is the one-hot kind of bond: single, double, triple, aromatic.

    Args:
        path: The file; its first line names the columns.
        column: Name of the column with the SMILES.
        atoms: Elements that the model knows, in the order of its features; by default the 14 of Mutagenicity, in the
            order in which the published GNN was given them.

    Returns:
        Graphs with ``x`` ``[N, len(atoms)]``, ``edge_index`` ``[2, E]``, ``edge_attr`` ``[E, 4]``, ``smiles`` and the
        elements as ``names``.
    """
    if len(set(atoms)) < len(atoms) or not atoms:
        raise ConfigError(f"'--atoms' must name each element once (got {','.join(atoms)}).")
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise ConfigError('Molecules need rdkit. Install it with: pip install "gflowexplainer[molecules]"') from error
    graphs = []
    for line, smiles in _column(Path(path), column):
        with rdBase.BlockLogs():  # what cannot be read is said by us, with the line
            molecule = Chem.MolFromSmiles(smiles)
        if molecule is None or molecule.GetNumAtoms() == 0:
            raise DatasetError(f"'{path}', line {line}: {smiles!r} is no SMILES that rdkit can read.")
        if "H" in atoms:
            molecule = Chem.AddHs(molecule)
        graphs.append(_graph(molecule, smiles, atoms, f"'{path}', line {line}"))
    if not graphs:
        raise DatasetError(f"'{path}' holds no molecule below its first line.")
    return graphs


def _graph(molecule: Any, smiles: str, atoms: Sequence[str], where: str) -> Data:
    names = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    unknown = sorted(set(names) - set(atoms))
    if unknown:
        raise DatasetError(
            f"{where}: the molecule holds {', '.join(unknown)}, which is not among the atoms {','.join(atoms)}. "
            "Name the elements that the model knows with --atoms, or leave the row out."
        )
    place = {atom: number for number, atom in enumerate(atoms)}
    kinds = {name: number for number, name in enumerate(BONDS)}
    bonds = [
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), kinds.get(str(bond.GetBondType()), 0))
        for bond in molecule.GetBonds()
    ]
    rows = torch.tensor(bonds, dtype=torch.long).reshape(-1, 3)
    both = torch.cat([rows, rows[:, [1, 0, 2]]])
    one_hot = torch.nn.functional.one_hot
    return Data(
        x=one_hot(torch.tensor([place[name] for name in names]), len(atoms)).float(),
        edge_index=both[:, :2].t().contiguous(),
        edge_attr=one_hot(both[:, 2], len(BONDS)).float(),
        smiles=smiles,
        node_names=names,
    )


def _column(path: Path, column: str) -> list[tuple[int, str]]:
    """Reads one column, each entry with the number of its line; empty entries are left out."""
    if not path.is_file():
        raise DatasetError(f"There is no file '{path}' with molecules.")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            heads = [head.strip() for head in reader.fieldnames or []]
            found = next((head for head in heads if head.lower() == column.lower()), None)
            if found is None:
                raise DatasetError(
                    f"'{path}' has no column '{column}' (its first line names {', '.join(heads) or 'nothing'})."
                    f"{did_you_mean(column.lower(), heads)} Name the column with --smiles-column."
                )
            reader.fieldnames = heads
            rows = [(reader.line_num, (row[found] or "").strip()) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"'{path}' cannot be read as CSV: {error}.") from error
    return [(line, smiles) for line, smiles in rows if smiles]
