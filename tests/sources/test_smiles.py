import pytest
import torch

from gflowexplainer.errors import ConfigError, DatasetError
from gflowexplainer.sources import read_molecules
from gflowexplainer.sources.smiles import ATOMS

pytest.importorskip("rdkit")


def table(tmp_path, text):
    path = tmp_path / "molecules.csv"
    path.write_text(text)
    return path


def test_ethanol_by_hand(tmp_path):
    """CH3-CH2-OH: 3 heavy atoms and 6 hydrogens, which come after them; 8 bonds, all single."""
    (graph,) = read_molecules(table(tmp_path, "name,SMILES\nethanol,CCO\n"))
    assert graph.node_names == ["C", "C", "O", *"HHHHHH"]
    assert graph.x.shape == (9, 14)
    assert graph.x.argmax(dim=1).tolist() == [ATOMS.index(name) for name in graph.node_names]
    assert graph.edge_index.size(1) == 16
    degree = torch.bincount(graph.edge_index[0])
    assert degree.tolist() == [4, 4, 2, 1, 1, 1, 1, 1, 1]
    assert graph.edge_attr.sum(dim=0).tolist() == [16, 0, 0, 0]


def test_without_hydrogen_and_with_kinds_of_bonds(tmp_path):
    """Benzonitrile: a ring of six aromatic bonds, one single bond, one triple bond."""
    (graph,) = read_molecules(table(tmp_path, "mol\nN#Cc1ccccc1\n"), column="mol", atoms=("C", "N"))
    assert graph.x.sum(dim=0).tolist() == [7, 1]
    assert graph.edge_attr.sum(dim=0).tolist() == [2, 0, 2, 12]
    assert torch.equal(graph.edge_index[:, 8:], graph.edge_index[:, :8].flip(0))


def test_empty_rows_are_left_out(tmp_path):
    assert len(read_molecules(table(tmp_path, "smiles\nC\n\nO\n"))) == 2


@pytest.mark.parametrize(
    ("text", "settings", "kind", "said"),
    [
        ("smiles\nC\nC1CC\n", {}, DatasetError, "line 3: 'C1CC' is no SMILES"),
        ("smiles\n[Xe]\n", {}, DatasetError, "line 2: the molecule holds Xe"),
        ("smile\nC\n", {}, DatasetError, "Did you mean 'smile'"),
        ("smiles\n", {}, DatasetError, "no molecule"),
        ("", {}, DatasetError, "names nothing"),
        ("smiles\nC\n", {"atoms": ("C", "C")}, ConfigError, "each element once"),
    ],
)
def test_mistakes(tmp_path, text, settings, kind, said):
    with pytest.raises(kind, match=said):
        read_molecules(table(tmp_path, text), **settings)


def test_a_missing_file_and_no_text(tmp_path):
    with pytest.raises(DatasetError, match="no file"):
        read_molecules(tmp_path / "none.csv")
    (tmp_path / "b.csv").write_bytes(b"smiles\n\xff\xfe\n")
    with pytest.raises(DatasetError, match="cannot be read as CSV"):
        read_molecules(tmp_path / "b.csv")


def test_without_rdkit(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ConfigError, match=r'pip install "gflowexplainer\[molecules\]"'):
        read_molecules(table(tmp_path, "smiles\nC\n"))
