"""Rules about functional groups on real molecules: those of Mutagenicity, with labels of our own (needs rdkit).

The grammar of :mod:`~gflowbench.suites.molecules` makes molecules in which each group that decides is there once. Real
ones have several rings, halogens or ethers, of which each would do, and users describe their atoms in other ways. So
every rule comes with three kinds of features: few indicators, many, and the whole numbers of PyG's ``from_smiles``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_smiles

from gflowbench.datasets import Benchmark, load
from gflowbench.datasets.splits import cut_in_order
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.suites import molecules
from gflowbench.suites.halves import half_of
from gflowbench.suites.molecules import ELEMENTS, crippen_label, molecule_graph, rdkit
from gflowexplainer.errors import one_of
from gflowexplainer.sources.smiles import ATOMS

FEATURES = ("", "-wide", "-numbers")
NAMES = tuple(rule + features for rule in molecules.NAMES for features in FEATURES)
GROUPS = {
    "development": ("c1ccccc1", "[CX3]=[OX1]", "[F,Cl,Br]"),
    "judging": ("c[OX2H]", "[OX2H]", "[#6][OX2][#6]"),
}
"""For each half: the group of the first rule (benzene, phenol), then A and B of the others (carbonyl and halogen,
hydroxyl and ether)."""
_SMALLEST, _LARGEST = 6, 45
_UNEVEN = 2
"""Molecules of one class are at most so many times those of the other."""
_SYMBOLS = ("C", "N", "O", "S", "F", "Cl", "Br", "P", "I", "B", "Si", "Se", "Na", "K", "Li", "Ca", "Zn", "?")
"""Elements of a usual list of indicators, most of which never occur."""


def make_compound_task(
    name: str, seed: int, folder: Path | str | None = None, num_molecules: int | None = None
) -> Benchmark:
    """Labels the molecules of Mutagenicity by a rule about their groups, or values them by Crippen's logP.

    Args:
        name: One of :data:`NAMES`: a rule, as in :func:`~gflowbench.suites.molecules.make_molecule_task`, and how atoms
            are described.
        seed: Orders the molecules, and draws them where one class has too many; its half chooses the groups.
        folder: Folder of the published files; by default the reference folder.
        num_molecules: Take only the first so many that make sense; by default all.

    Returns:
        The task. Of several matches of a group each decides by itself. Of A and B all matches are the truth, together.
    """
    one_of("task", name, NAMES)
    rule = max((rule for rule in molecules.NAMES if name.startswith(rule)), key=len)
    rng = np.random.default_rng(seed)
    is_value = rule == "crippen"
    patterns = [rdkit().MolFromSmarts(smarts) for smarts in GROUPS[half_of(seed)]]
    known = _molecules(None if folder is None else str(folder), num_molecules)
    found = [(smiles, molecule, *_label(rule, molecule, patterns)) for smiles, molecule in known]
    if not is_value:
        sides = [[one for one in found if one[3] == label] for label in (0, 1)]
        most = _UNEVEN * min(map(len, sides))
        found = [side[place] for side in sides for place in rng.permutation(len(side))[:most]]
    graphs, truths = list[Data](), dict[int, TaskTruth]()
    for place in rng.permutation(len(found)):
        smiles, molecule, truth, value = found[place]
        truths[len(graphs)] = truth
        graph = molecule_graph(molecule, smiles, value, is_value=is_value)
        graph.x = _features(name.removeprefix(rule), molecule, smiles, graph.x)
        graphs.append(graph)
    parts = cut_in_order(len(graphs))
    return Benchmark(
        name=name,
        task="graph",
        mode="regression" if is_value else "multiclass_classification",
        graphs=graphs,
        truths=truths,
        splits=parts,
        index=parts["test"],
        source="published",
        num_layers=3,
        num_classes=1 if is_value else 2,
        provenance=f"molecules of Mutagenicity, labelled by a rule, seed {seed}, {len(graphs)}",
    )


def _label(rule: str, molecule: Any, patterns: Sequence[Any]) -> tuple[TaskTruth, float]:
    """Finds truth and label of a molecule by substructure search."""
    if rule == "crippen":
        return crippen_label(molecule)
    size = molecule.GetNumAtoms()
    single, first, second = map(molecule.GetSubstructMatches, patterns)
    nothing = TaskTruth(size, Combination.NONE), 0.0
    if rule == "group-and-group":
        places = [tuple(sorted({atom for match in found for atom in match})) for found in (first, second)]
        return (TaskTruth(size, Combination.ALL, tuple(places)), 1.0) if all(places) else nothing
    deciding = single if rule == "group" else () if second else first
    matches = tuple(dict.fromkeys(tuple(sorted(match)) for match in deciding))
    return (TaskTruth(size, Combination.ANY, matches), 1.0) if matches else nothing


def _features(kind: str, molecule: Any, smiles: str, few: Tensor) -> Tensor:
    """Describes the atoms of a molecule: ``few`` indicators as they are, many of them, or numbers."""
    if not kind:
        return few
    if kind == "-numbers":
        return from_smiles(smiles).x.float()
    rows = []
    for atom in molecule.GetAtoms():
        indicators = (
            [atom.GetSymbol() == symbol for symbol in _SYMBOLS]
            + [atom.GetIsAromatic(), atom.IsInRing()]
            + [atom.GetTotalNumHs() == number for number in range(5)]
            + [atom.GetDegree() == number for number in range(6)]
            + [atom.GetFormalCharge() == number for number in (-1, 0, 1)]
            + [str(atom.GetHybridization()) == name for name in ("SP", "SP2", "SP3")]
        )
        rows.append([*map(float, indicators), atom.GetMass() / 100])
    return torch.tensor(rows)


@cache
def _molecules(folder: str | None, most: int | None) -> list[tuple[str, Any]]:
    """Reads the different molecules that are neither tiny nor huge, of the usual elements, as SMILES and by rdkit."""
    chemistry, found = rdkit(), dict[str, Any]()
    for molecule in _sanitised(folder):
        smiles = chemistry.MolToSmiles(molecule)
        again = chemistry.MolFromSmiles(smiles)
        usual = again is not None and all(
            atom.GetSymbol() in ELEMENTS and not atom.GetNumRadicalElectrons() for atom in again.GetAtoms()
        )
        if usual and "." not in smiles and _SMALLEST <= again.GetNumAtoms() <= _LARGEST:
            found[smiles] = again
        if len(found) == most:
            break
    return list(found.items())


def _sanitised(folder: str | None) -> Iterator[Any]:
    """Makes molecules of the graphs of Mutagenicity, without hydrogens; those that make no sense are left out."""
    chemistry = rdkit()
    from rdkit import rdBase

    bonds = (chemistry.BondType.SINGLE, chemistry.BondType.DOUBLE, chemistry.BondType.TRIPLE)
    with rdBase.BlockLogs():
        for graph in load("mutagenicity", "published", root=folder).graphs:
            molecule = chemistry.RWMol()
            for element in graph.x.argmax(dim=1).tolist():
                molecule.AddAtom(chemistry.Atom(ATOMS[element]))
            for (one, other), kind in zip(graph.edge_index.t().tolist(), graph.edge_type.tolist(), strict=True):
                if one < other:
                    molecule.AddBond(one, other, bonds[kind])
            for atom in molecule.GetAtoms():
                atom.SetNoImplicit(True)
                if atom.GetSymbol() == "N":
                    _charge(chemistry, atom)
            try:
                chemistry.SanitizeMol(molecule)
                yield chemistry.RemoveHs(molecule)
            except ValueError:  # of which rdkit's own errors are
                continue


def _charge(chemistry: Any, nitrogen: Any) -> None:
    """Sets the charge of a nitrogen of four or five bonds, and an oxygen beside it the other: nitro groups, oxides."""
    bonds = sum(bond.GetBondTypeAsDouble() for bond in nitrogen.GetBonds())
    if bonds not in (4, 5):
        return
    nitrogen.SetFormalCharge(1)
    kind = chemistry.BondType.DOUBLE if bonds == 5 else chemistry.BondType.SINGLE
    for bond in nitrogen.GetBonds():
        other = bond.GetOtherAtom(nitrogen)
        if other.GetSymbol() == "O" and other.GetDegree() == 1 and bond.GetBondType() == kind:
            bond.SetBondType(chemistry.BondType.SINGLE)
            other.SetFormalCharge(-1)
            return
