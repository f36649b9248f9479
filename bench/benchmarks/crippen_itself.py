"""How well the atoms of Crippen's logP are found where Crippen's rules themselves are explained, without any GNN.

Crippen's contribution of an atom depends on its neighbours and counts as that atom's alone. Removing an atom changes
what its neighbours contribute too, and that is told of the atom removed. So explainers of a model that knows the rules
by heart do not find the contributions exactly either, and what they find is the yardstick for explainers of GNNs.
"""

from __future__ import annotations

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
from gflowexplainer.inference.shapley_values import shapley_values
from gflowexplainer.storage.files import write_text

SEEDS, MOLECULES, EVALUATIONS = range(145, 150), 24, 4000
RIDGE = 1.0


def main(fast: bool = False) -> None:
    """Scores explanations of Crippen's rules for the molecules of the suite, by the node AUC of the suite."""
    folder = results_folder("crippen_itself", fast)
    seeds, number, evaluations = (SEEDS[:1], 2, 100) if fast else (SEEDS, MOLECULES, EVALUATIONS)
    found: dict[str, list[float]] = {}
    for seed in seeds:
        for name, aucs in score(seed, number, evaluations).items():
            found.setdefault(name, []).append(float(np.nanmean(aucs)))
    rows = [[name, f"{np.mean(aucs):.3f}", f"{min(aucs):.3f} to {max(aucs):.3f}"] for name, aucs in found.items()]
    title = f"Crippen's rules themselves, {number} molecules of each of the seeds {seeds[0]} to {seeds[-1]}"
    table = {"title": title, "head": ["explained by", "node AUC", "by seed"], "rows": rows}
    write_json(folder / "results.json", {"auc": found, **environment()})
    text = markdown(table) + "\n"
    write_text(folder / "summary.md", text)
    print(text)


def score(seed: int, number: int, evaluations: int) -> dict[str, list[float]]:
    """Returns the node AUC of each explanation of so many test molecules of a seed."""
    task = make_molecule_task("crippen", seed)
    by_kind = regression(task)
    found: dict[str, list[float]] = {}
    for position in task.splits["test"][:number].tolist():
        graph, truth = task.graphs[position], task.truths[position]
        molecule, atoms = rdkit().MolFromSmiles(graph.smiles), graph.num_nodes
        told = {"regression of the logP of all molecules on atoms and bonds by kind": by_kind[position]}
        for closed, bonds in ((False, "bonds left open"), (True, "bonds closed by hydrogen")):
            play = partial(logp_of, molecule, closed=closed)
            lost = play(torch.ones(1, atoms).bool()) - play(~torch.eye(atoms).bool())
            told[f"what is lost without each atom, {bonds}"] = lost
            told[f"Shapley values of atoms, {bonds}"] = shapley_values(
                atoms, play, evaluations=evaluations, seed=seed
            ).value
        for name, scores in told.items():
            found.setdefault(name, []).append(node_auc(scores.abs(), truth.union))
    return found


def logp_of(molecule: Any, coalitions: Tensor, *, closed: bool = False) -> Tensor:
    """Returns the logP, shape ``[Q]``, of some atoms of a molecule ``[Q, n]``, their hydrogens and bonds among them.

    Bonds to atoms that are gone are left open, or ``closed`` by a hydrogen each, as chemists would.
    """
    from rdkit.Chem import rdMolDescriptors

    chemistry, values = rdkit(), list[float]()
    whole = chemistry.Mol(molecule)
    for atom in whole.GetAtoms():
        atom.SetNumExplicitHs(atom.GetTotalNumHs())
        atom.SetNoImplicit(True)
    for gone in (~coalitions).tolist():
        left = chemistry.RWMol(whole)
        for number in reversed([number for number, so in enumerate(gone) if so]):
            for other in left.GetAtomWithIdx(number).GetNeighbors() if closed else ():
                other.SetNumExplicitHs(other.GetNumExplicitHs() + 1)
            left.RemoveAtom(number)
        left.UpdatePropertyCache(strict=False)
        full = chemistry.AddHs(left.GetMol())
        chemistry.FastFindRings(full)
        values.append(sum(logp for logp, _ in rdMolDescriptors._CalcCrippenContribs(full, force=True)))
    return torch.tensor(values, dtype=torch.double)


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
