"""Crippen's rules as a game that atoms play: all of them get the logP that rdkit says."""

import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("rdkit")
sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.crippen_itself import logp_of, regression, score
from gflowbench.suites.molecules import make_molecule_task, rdkit


def test_atoms_of_a_molecule_get_its_logp():
    from rdkit.Chem import Crippen

    molecule = rdkit().MolFromSmiles("CCOc1ccccc1C(=O)N")
    every = torch.ones(1, molecule.GetNumAtoms()).bool()
    assert float(logp_of(molecule, every)) == pytest.approx(Crippen.MolLogP(molecule), abs=1e-9)
    assert float(logp_of(molecule, ~every)) == 0


def test_open_bonds_may_be_closed_by_hydrogen():
    """Ethane without one of its carbons is methane then, and has one hydrogen less where the bond stays open."""
    ethane, methane = (rdkit().MolFromSmiles(smiles) for smiles in ("CC", "C"))
    one, every = torch.tensor([[True, False]]), torch.ones(1, 1).bool()
    closed, opened = logp_of(ethane, one, closed=True), logp_of(ethane, one)
    assert float(closed) == pytest.approx(float(logp_of(methane, every)))
    assert float(opened) < float(closed) - 0.123 + 1e-9


def test_a_regression_describes_the_values_of_all_molecules():
    task = make_molecule_task("crippen", 0, 60)
    told = torch.stack([atoms.sum() for atoms in regression(task)])
    assert torch.corrcoef(torch.stack([told, torch.cat([graph.y for graph in task.graphs])]))[0, 1] > 0.9


def test_shapley_values_come_nearer_than_losses():
    found = {name: sum(aucs) / len(aucs) for name, aucs in score(0, 4, 500).items()}
    for bonds in ("bonds left open", "bonds closed by hydrogen"):
        assert found[f"Shapley values of atoms, {bonds}"] > found[f"what is lost without each atom, {bonds}"] > 0.5
