import pytest
import torch

from gflowbench.datasets.task_truth import Combination
from gflowbench.suites.molecules import GROUPS, NAMES, crippen_label, make_molecule_task

pytest.importorskip("rdkit")


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_molecules(name: str) -> None:
    one, other, third = (make_molecule_task(name, seed, 12) for seed in (1, 1, 2))
    assert [graph.smiles for graph in one.graphs] == [graph.smiles for graph in other.graphs]
    assert [graph.smiles for graph in one.graphs] != [graph.smiles for graph in third.graphs]
    assert all(torch.equal(a.x, b.x) for a, b in zip(one.graphs, other.graphs, strict=True))


@pytest.mark.parametrize("seed", [4, 101])
@pytest.mark.parametrize("name", NAMES[:-1])
def test_substructures_decide_the_label(name: str, seed: int) -> None:
    from rdkit import Chem

    groups = GROUPS["judging" if seed >= 100 else "development"]
    task = make_molecule_task(name, seed, 60)
    for position, graph in enumerate(task.graphs):
        molecule = Chem.MolFromSmiles(graph.smiles)
        single, first, second = (
            {tuple(sorted(match)) for match in molecule.GetSubstructMatches(Chem.MolFromSmarts(group.smarts))}
            for group in groups
        )
        expected, parts = {
            "group": (bool(single), single),
            "group-and-group": (bool(first and second), first | second),
            "group-without-group": (bool(first) and not second, first),
        }[name]
        assert int(graph.y) == expected
        truth = task.truths[position]
        assert set(truth.parts) == (parts if expected else set())
        assert (truth.combination is Combination.NONE) == (not expected)
        symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
        assert graph.num_nodes == len(symbols)
        assert graph.num_edges == 2 * molecule.GetNumBonds()
    assert torch.cat([graph.y for graph in task.graphs]).float().mean() == 0.5


def test_crippen_contributions_sum_to_logp() -> None:
    from rdkit import Chem
    from rdkit.Chem import Crippen

    task = make_molecule_task("crippen", 0, 30)
    for position, graph in enumerate(task.graphs):
        molecule = Chem.MolFromSmiles(graph.smiles)
        logp = Crippen.MolLogP(molecule)
        truth, value = crippen_label(molecule)
        assert value == pytest.approx(logp, abs=1e-6)
        assert float(truth.signed.sum()) == pytest.approx(value)
        assert float(graph.y) == pytest.approx(logp, abs=1e-5)
        assert float(task.truths[position].signed.sum()) == pytest.approx(logp, abs=1e-6)
        assert 0 < int(task.truths[position].union.sum()) < graph.num_nodes
