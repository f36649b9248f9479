"""Rules on real molecules: their truth against rdkit."""

import pytest
import torch

from gflowbench.datasets.reference import reference_folder
from gflowbench.datasets.task_truth import Combination
from gflowbench.suites.compounds import FEATURES, GROUPS, NAMES, make_compound_task
from gflowbench.suites.halves import half_of
from gflowexplainer.errors import ConfigError

Chem = pytest.importorskip("rdkit.Chem")
FEW = 400
pytestmark = pytest.mark.skipif(reference_folder() is None, reason="the published molecules are not at hand")


@pytest.mark.parametrize("seed", [0, 100])
@pytest.mark.parametrize("rule", ["group", "group-and-group", "group-without-group"])
def test_labels_and_truths_are_what_rdkit_finds(rule: str, seed: int) -> None:
    task = make_compound_task(rule, seed, num_molecules=FEW)
    labels = torch.cat([graph.y for graph in task.graphs])
    assert 1 / 3 - 0.01 <= labels.double().mean() <= 2 / 3 + 0.01
    patterns = [Chem.MolFromSmarts(smarts) for smarts in GROUPS[half_of(seed)]]
    for number in range(0, len(task.graphs), 7):
        graph, truth = task.graphs[number], task.truths[number]
        molecule = Chem.MolFromSmiles(graph.smiles)
        assert graph.num_nodes == molecule.GetNumAtoms()
        assert graph.num_edges == 2 * molecule.GetNumBonds()
        single, first, second = ({a for m in molecule.GetSubstructMatches(p) for a in m} for p in patterns)
        wanted = {
            "group": single,
            "group-and-group": first | second if first and second else set(),
            "group-without-group": first if not second else set(),
        }[rule]
        assert set(truth.union.nonzero().flatten().tolist()) == wanted
        assert bool(graph.y) == bool(wanted)
        if rule == "group-and-group" or not wanted:
            assert truth.combination is (Combination.ALL if wanted else Combination.NONE)
        else:
            pattern = patterns[rule != "group"]
            assert truth.combination is Combination.ANY
            assert set(map(frozenset, truth.parts)) == set(map(frozenset, molecule.GetSubstructMatches(pattern)))


def test_atoms_are_described_in_three_ways() -> None:
    tasks = [make_compound_task("group" + features, 3, num_molecules=FEW) for features in FEATURES]
    few, wide, numbers = (torch.cat([graph.x for graph in task.graphs[:50]]) for task in tasks)
    assert [x.size(1) for x in (few, wide, numbers)] == [12, 38, 9]
    smiles = [[graph.smiles for graph in task.graphs] for task in tasks]
    assert smiles[0] == smiles[1] == smiles[2]
    # Carbon, aromatic: the same atoms, whoever says it.
    assert torch.equal(few[:, 0], wide[:, 0])
    assert torch.equal(few[:, 0] == 1, numbers[:, 0] == 6)
    assert torch.equal(few[:, 7], numbers[:, 7])


def test_values_are_sums_of_contributions_and_seeds_order_the_molecules() -> None:
    one, again, other = (make_compound_task("crippen", seed, num_molecules=FEW) for seed in (1, 1, 2))
    assert [g.smiles for g in one.graphs] == [g.smiles for g in again.graphs] != [g.smiles for g in other.graphs]
    assert {g.smiles for g in one.graphs} == {g.smiles for g in other.graphs}
    for number in range(0, 200, 20):
        assert float(one.truths[number].signed.sum()) == pytest.approx(float(one.graphs[number].y), abs=1e-5)


def test_groups_of_the_halves_differ_and_names_are_checked() -> None:
    assert not set(GROUPS["development"]) & set(GROUPS["judging"])
    assert len(NAMES) == 12
    with pytest.raises(ConfigError, match="task"):
        make_compound_task("rings", 0)
