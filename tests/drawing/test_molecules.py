import sys

import numpy as np
import pytest
import torch

from gflowexplainer.drawing.molecules import read_molecule
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ConfigError
from gflowexplainer.report import Case, smiles_of
from gflowexplainer.testing import graph_of, random_graph

from ..conftest import explain_by_hand

PHENOL = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (5, 6)]


def phenol(smiles="c1ccccc1O"):
    return Case("phenol", explain_by_hand(graph_of(PHENOL, 7), [((5, 6), 1.0)], None), smiles=smiles)


def test_written_smiles_keep_the_order_of_atoms():
    chem = pytest.importorskip("rdkit.Chem")
    for seed in range(5):
        graph = random_graph(30, 0.2, seed=seed)
        symbols = ["C", "N", "O", "Cl", "H"] * 6
        source, target = graph.edge_index
        orders = ((source + target) % 3 + 1).tolist()
        molecule = chem.MolFromSmiles(smiles_of(symbols, graph.edge_index, orders), sanitize=False)
        assert [atom.GetSymbol() for atom in molecule.GetAtoms()] == symbols
        bonds = {
            tuple(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx()))): b.GetBondTypeAsDouble()
            for b in molecule.GetBonds()
        }
        wanted = {tuple(sorted(e)): o for e, o in zip(graph.edge_index.t().tolist(), orders, strict=True)}
        assert bonds == wanted


def test_wrong_molecules_are_refused():
    edge_index = torch.tensor([[0], [1]])
    with pytest.raises(ConfigError, match="order 4"):
        smiles_of(["C", "C"], edge_index, [4])
    with pytest.raises(ConfigError, match="2 'orders' for 1 bonds"):
        smiles_of(["C", "C"], edge_index, [1, 1])
    with pytest.raises(ConfigError, match="names of elements"):
        smiles_of(["C", "C]"], edge_index)


def test_a_ring_is_a_ring_on_paper():
    pytest.importorskip("rdkit")
    scene = Scene.of(phenol())
    assert (scene.kind, scene.labels) == ("molecule", None)
    assert sum(kind == "line" for _, kind in scene.strokes) >= 10  # four single bonds, three double ones
    assert any(kind == "filled" for _, kind in scene.strokes)  # the letters of the hydroxyl group
    ring = np.array([scene.x, scene.y]).T[[scene.ids.index(i) for i in range(6)]]
    radius = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    assert np.allclose(radius, 46, rtol=0.02)
    assert set(scene.names) == {"C0", "C1", "C2", "C3", "C4", "C5", "O6"}


def test_hydrogens_count_as_the_graph_counts_them():
    pytest.importorskip("rdkit")
    assert read_molecule("CO", 2).elements == ["C", "O"]
    assert read_molecule("CO", 6).elements == ["C", "O", "H", "H", "H", "H"]
    assert read_molecule("[H]OC", 2).elements == ["O", "C"]
    assert read_molecule("C[N](=O)=O", 4).bonds == {(0, 1), (1, 2), (1, 3)}  # a valence rdkit refuses
    assert "dashed" in {kind for _, kind in read_molecule("c1cccc1", 5).strokes}  # no Kekule form


def test_what_is_no_molecule_is_drawn_as_a_graph_and_another_molecule_is_refused():
    pytest.importorskip("rdkit")
    scene = Scene.of(phenol("not a molecule"))
    assert scene.kind == "graph"
    assert "Drawn as a graph" in scene.notes[0]
    assert "cannot read" in scene.notes[0]
    with pytest.raises(ConfigError, match="another molecule: the SMILES has 6 atoms, but the graph 7 nodes"):
        phenol("c1ccccc1")


def test_edges_that_are_no_bonds_are_dotted():
    pytest.importorskip("rdkit")
    case = Case("more", explain_by_hand(graph_of([*PHENOL, (0, 3)], 7), [((5, 6), 1.0)], None), smiles="c1ccccc1O")
    scene = Scene.of(case)
    assert [sorted(scene.ids[end] for end in scene.ends[k]) for k in scene.unbound] == [[0, 3]]
    assert "no bonds" in scene.notes[0]


def test_without_rdkit_there_is_a_note(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    scene = Scene.of(phenol())
    assert scene.kind == "graph"
    assert "rdkit is not installed" in scene.notes[0]
