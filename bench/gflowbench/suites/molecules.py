"""Molecules from a small grammar, labelled by rules about functional groups (needs rdkit).

A molecule is a chain of fragments; some of them carry a side group. Every molecule is read and sanitised by rdkit, and
its truth is found by substructure search, not remembered from the making. Both halves have groups of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.datasets.splits import cut_in_order
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.suites.halves import half_of
from gflowexplainer.errors import ConfigError, one_of

NAMES = ("group", "group-and-group", "group-without-group", "crippen")
ELEMENTS = ("C", "N", "O", "S", "F", "Cl", "Br")
_MAX_HYDROGENS = 3
_NUM_MOLECULES = 1500
_LINKS = ("C", "CC", "OC", "COC", "N(C)C", "C(C)", "C(C)(C)", "NC", "CCC", "SC", "S(=O)C", "C(=O)NC", "C(=O)OC")
"""Every one ends in a carbon, so no two of them put heteroatoms next to each other."""
_RINGS = ("c1cc({0})ccc1", "c1ccc({0})cc1", "C1CCC({0})CC1", "C1CC({0})CC1", "C1CN({1})CCC1", "c1cc({0})ncc1")
_DECOY_RINGS = ("c1nc(sc1)", "c1nc(oc1)", "c1n(C)ccc1", "c1nc(C)sc1", "c1nc(C)oc1")
_SIDES = ("C", "CC", "F", "Cl", "O", "OC", "C(C)C", "N", "Br", "CO")
_NITROGEN_SIDES = ("C", "CC", "C(C)C", "CCO", "CCC")
_ENDS = ("C", "CC", "O", "N", "Cl", "C(C)C", "CO", "F")


@dataclass(frozen=True)
class Group:
    """A functional group.

    Attributes:
        smarts: Its pattern.
        links: Ways to put it inside a chain.
        ends: Ways to put it at the end of a chain.
    """

    smarts: str
    links: tuple[str, ...]
    ends: tuple[str, ...]


THIOPHENE = Group("c1ccsc1", ("c1ccc(s1)", "c1csc(c1)"), ("c1cccs1", "c1ccsc1"))
NITRILE = Group("[CX2]#[NX1]", ("C(C#N)",), ("C#N", "CC#N"))
SULFONE = Group("[SX4](=O)=O", ("CS(=O)(=O)C",), ("CS(=O)(=O)C",))
FURAN = Group("c1ccoc1", ("c1ccc(o1)", "c1coc(c1)"), ("c1ccco1", "c1ccoc1"))
ALKYNE = Group("[CX2]#[CX2]", ("CC#CC",), ("CC#C", "C#CC"))
UREA = Group("[NX3]C(=O)[NX3]", ("CNC(=O)NC",), ("CNC(=O)N", "CNC(=O)NC"))
GROUPS = {"development": (THIOPHENE, NITRILE, SULFONE), "judging": (FURAN, UREA, ALKYNE)}
"""For each half: the group of the first rule, then A and B of the others."""


def make_molecule_task(name: str, seed: int, num_graphs: int | None = None) -> Benchmark:
    """Generates a molecule task. The same seed gives the same molecules.

    Args:
        name: ``"group"`` (class 1: has the group), ``"group-and-group"`` (A and B), ``"group-without-group"`` (A, but
            not B) or ``"crippen"`` (the value is Crippen's logP, a sum over atoms).
        seed: Seed of everything random; its half chooses the groups.
        num_graphs: Number of molecules.
    """
    chemistry = rdkit()
    one_of("task", name, NAMES)
    rng = np.random.default_rng(seed)
    groups = GROUPS[half_of(seed)]
    number = _NUM_MOLECULES if num_graphs is None else num_graphs
    if number < 10:
        raise ConfigError(f"'num_graphs' must be at least 10, so that every split has some (got {number}).")
    patterns = [chemistry.MolFromSmarts(group.smarts) for group in groups]
    graphs, truths = list[Data](), dict[int, TaskTruth]()
    while len(graphs) < number:
        label = len(graphs) % 2
        smiles = draw_smiles(rng, _wanted(rng, name, label, groups))
        molecule = chemistry.MolFromSmiles(smiles)
        matches = [molecule.GetSubstructMatches(pattern) for pattern in patterns]
        truth, value = _label(name, molecule, matches)
        if truth is None or (name != "crippen" and value != label):
            continue
        truths[len(graphs)] = truth
        graphs.append(molecule_graph(molecule, smiles, value, is_value=name == "crippen"))
    parts = cut_in_order(number)
    return Benchmark(
        name=name,
        task="graph",
        mode="regression" if name == "crippen" else "multiclass_classification",
        graphs=graphs,
        truths=truths,
        splits=parts,
        index=parts["test"],
        source="generated",
        num_layers=3,
        num_classes=1 if name == "crippen" else 2,
        provenance=f"generated molecules, seed {seed}, {number}",
    )


def draw_smiles(rng: np.random.Generator, groups: Sequence[Group] = ()) -> str:
    """Draws a molecule that holds each of ``groups``, and perhaps others, as SMILES."""
    inner = [str(rng.choice(_LINKS)) for _ in range(int(rng.integers(1, 4)))]
    for _ in range(int(rng.integers(1, 3))):
        kinds = _DECOY_RINGS if rng.random() < 0.3 else _RINGS
        ring = str(rng.choice(kinds)).format(rng.choice(_SIDES), rng.choice(_NITROGEN_SIDES))
        inner.insert(int(rng.integers(len(inner) + 1)), ring)
    end = str(rng.choice(_ENDS))
    for number in rng.permutation(len(groups)):
        group = groups[number]
        if rng.random() < 0.4:
            end = str(rng.choice(group.ends))
        else:
            inner.insert(int(rng.integers(len(inner) + 1)), str(rng.choice(group.links)))
    return "C" + "".join(inner) + end


def molecule_graph(molecule: Any, smiles: str, label: float, *, is_value: bool) -> Data:
    """Returns the heavy atoms of a molecule, in the order of its SMILES, as a graph.

    ``x`` holds the element (one-hot), whether the atom is aromatic, and its hydrogens (one-hot, 0 to 3).
    """
    width = len(ELEMENTS)
    x = torch.zeros(molecule.GetNumAtoms(), width + 1 + _MAX_HYDROGENS + 1)
    for number, atom in enumerate(molecule.GetAtoms()):
        x[number, ELEMENTS.index(atom.GetSymbol())] = 1
        x[number, width] = float(atom.GetIsAromatic())
        x[number, width + 1 + min(atom.GetTotalNumHs(), _MAX_HYDROGENS)] = 1
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    edge_index = torch.tensor(bonds, dtype=torch.long).reshape(-1, 2).t()
    y = torch.tensor([label], dtype=torch.float if is_value else torch.long)
    return Data(x=x, edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1), y=y, smiles=smiles)


def crippen_label(molecule: Any) -> tuple[TaskTruth, float]:
    """Returns what each heavy atom, with its hydrogens, contributes to Crippen's logP, and the logP, their sum."""
    from rdkit.Chem import rdMolDescriptors

    full = rdkit().AddHs(molecule)
    values = dict.fromkeys(range(molecule.GetNumAtoms()), 0.0)
    for number, (logp, _) in enumerate(rdMolDescriptors._CalcCrippenContribs(full)):
        atom = full.GetAtomWithIdx(number)
        values[number if number in values else atom.GetNeighbors()[0].GetIdx()] += logp
    return TaskTruth(len(values), Combination.CONTRIBUTIONS, (), values), sum(values.values())


def _wanted(rng: np.random.Generator, name: str, label: int, groups: Sequence[Group]) -> list[Group]:
    """Chooses the groups to put into a molecule of class ``label``."""
    single, first, second = groups
    if name == "crippen":
        return [group for group in groups if rng.random() < 0.3]
    if name == "group":
        others = [group for group in (first, second) if rng.random() < 0.3]
        return [single, *others] if label else others
    if name == "group-and-group":
        wrong: list[list[Group]] = [[first], [second], [first], [second], [], [single]]
        return [first, second] if label else wrong[rng.integers(len(wrong))]
    wrong = [[first, second], [first, second], [second], []]
    return [first] if label else wrong[rng.integers(len(wrong))]


def _label(name: str, molecule: Any, matches: Sequence[tuple[tuple[int, ...], ...]]) -> tuple[TaskTruth | None, float]:
    """Finds truth and label from the substructures; no truth where a group that decides is there more than once."""
    size = molecule.GetNumAtoms()
    single, first, second = ([tuple(sorted(match)) for match in found] for found in matches)
    nothing = TaskTruth(size, Combination.NONE)
    if name == "crippen":
        return crippen_label(molecule)
    if name == "group":
        return (TaskTruth(size, Combination.ANY, tuple(single)), 1) if single else (nothing, 0)
    if len(first) > 1 or len(second) > 1:
        return None, 0
    if name == "group-and-group":
        both = bool(first and second)
        return (TaskTruth(size, Combination.ALL, (first[0], second[0])), 1) if both else (nothing, 0)
    return (TaskTruth(size, Combination.ALL, (first[0],)), 1) if first and not second else (nothing, 0)


def rdkit() -> Any:
    """Returns rdkit's module of molecules, or says how to get it."""
    try:
        from rdkit import Chem
    except ImportError as error:
        raise ConfigError('Molecules need rdkit. Install it with: pip install "gflowexplainer[molecules]"') from error
    return Chem
