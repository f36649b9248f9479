"""How well the atoms of Crippen's logP are found where Crippen's rules themselves are explained, without any GNN.

Crippen's contribution of an atom depends on its neighbours and counts as that atom's alone. Removing an atom changes
what its neighbours contribute too, and that is told of the atom removed. So explainers of a model that knows the rules
by heart do not find the contributions exactly either, and what they find is the yardstick for explainers of GNNs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.distribution_figures import markdown
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.suites.molecules import make_molecule_task, rdkit
from gflowbench.suites.scoring import node_auc
from gflowbench.suites.task import SuiteTask
from gflowexplainer.storage.files import write_bytes

SEEDS, MOLECULES, PERMUTATIONS = range(145, 150), 24, 200
RIDGE = 1.0

Value = Callable[[frozenset[int]], float]


def main(fast: bool = False) -> None:
    """Scores explanations of Crippen's rules for the molecules of the suite, by the node AUC of the suite."""
    folder = results_folder("crippen_itself", fast)
    number, permutations = (2, 5) if fast else (MOLECULES, PERMUTATIONS)
    found: dict[str, list[float]] = {}
    for seed in SEEDS[:1] if fast else SEEDS:
        for name, aucs in _score(seed, number, permutations).items():
            found.setdefault(name, []).append(float(np.nanmean(aucs)))
    rows = [[name, f"{np.mean(aucs):.3f}", f"{min(aucs):.3f} to {max(aucs):.3f}"] for name, aucs in found.items()]
    title = f"Crippen's rules themselves, {number} molecules of each of {len(next(iter(found.values())))} seeds"
    table = {"title": title, "head": ["explained by", "node AUC", "by seed"], "rows": rows}
    write_json(folder / "results.json", {"auc": found, **environment()})
    text = markdown(table) + "\n"
    write_bytes(folder / "summary.md", text.encode())
    print(text)


def _score(seed: int, number: int, permutations: int) -> dict[str, list[float]]:
    task = make_molecule_task("crippen", seed)
    rng = np.random.default_rng(seed)
    by_kind = regression(task)
    found: dict[str, list[float]] = {}
    for position in task.splits["test"][:number].tolist():
        graph, truth = task.graphs[position], task.truths[position]
        value = partial(crippen, rdkit().MolFromSmiles(graph.smiles))
        told = {
            "what is lost without each atom": losses(value, graph.num_nodes),
            f"Shapley values of atoms ({permutations} permutations)": shapley(
                value, graph.num_nodes, permutations, rng
            ),
            "regression of all molecules' logP on their atoms and bonds, by kind": by_kind[position],
        }
        for name, scores in told.items():
            found.setdefault(name, []).append(node_auc(scores.abs(), truth.union))
    return found


def crippen(molecule: Any, kept: frozenset[int]) -> float:
    """Returns the logP of some atoms of a molecule, with their hydrogens and the bonds among them."""
    from rdkit.Chem import rdMolDescriptors

    chemistry = rdkit()
    left = chemistry.RWMol(molecule)
    for atom in left.GetAtoms():
        atom.SetNumExplicitHs(atom.GetTotalNumHs())
        atom.SetNoImplicit(True)
    for number in reversed(range(molecule.GetNumAtoms())):
        if number not in kept:
            left.RemoveAtom(number)
    left.UpdatePropertyCache(strict=False)
    full = chemistry.AddHs(left.GetMol())
    chemistry.FastFindRings(full)
    return sum(logp for logp, _ in rdMolDescriptors._CalcCrippenContribs(full, force=True))


def losses(value: Value, number: int) -> Tensor:
    """Returns how much a value falls without each of so many players, shape ``[n]``."""
    every = frozenset(range(number))
    return torch.tensor([value(every) - value(every - {player}) for player in range(number)])


def shapley(value: Value, number: int, permutations: int, rng: np.random.Generator) -> Tensor:
    """Returns sampled Shapley values of so many players, shape ``[n]``."""
    total = torch.zeros(number, dtype=torch.double)
    for _ in range(permutations):
        there, before = frozenset[int](), value(frozenset())
        for player in rng.permutation(number).tolist():
            there |= {player}
            after = value(there)
            total[player] += after - before
            before = after
    return total / permutations


def regression(task: SuiteTask) -> list[Tensor]:
    """Returns what kinds of atoms, and of their neighbours, add to the true values of all graphs, ``[n]`` for each."""
    described = []
    for graph in task.graphs:
        x, (source, target) = graph.x.double(), graph.edge_index
        around = torch.zeros_like(x).index_add_(0, source, x[target])
        pairs = (x[:, :, None] * around[:, None, :]).flatten(1)
        described.append(torch.cat([x, x.new_ones(x.size(0), 1), pairs], dim=1))
    rows = torch.stack([atoms.sum(dim=0) for atoms in described])
    values = torch.cat([graph.y for graph in task.graphs]).double()
    penalty = RIDGE * torch.eye(rows.size(1), dtype=torch.double)
    weight = torch.linalg.solve(rows.t() @ rows + penalty, rows.t() @ values)
    return [atoms @ weight for atoms in described]
