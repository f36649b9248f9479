import shutil

import pytest

from gflowbench.models import load_published, published_accuracies
from gflowexplainer.errors import DatasetError

# Right answers on train, val and test: the column "recomputed" of the reference folder's README.
COUNTS = {
    ("gnn", "ba-shapes"): [(543, 560), (70, 70), (70, 70)],
    ("gnn", "ba-community"): [(1010, 1120), (106, 140), (101, 140)],
    ("gnn", "tree-cycles"): [(656, 696), (85, 87), (83, 88)],
    ("gnn", "tree-grid"): [(948, 984), (122, 123), (123, 124)],
    ("gnn", "ba-2motifs"): [(795, 800), (100, 100), (99, 100)],
    ("gnn", "mutagenicity"): [(2863, 3469), (358, 434), (353, 434)],
    ("pg", "ba-shapes"): [(551, 560), (69, 70), (70, 70)],
    ("pg", "ba-community"): [(1049, 1120), (104, 140), (100, 140)],
    ("pg", "tree-cycles"): [(668, 696), (86, 87), (85, 88)],
    ("pg", "tree-grid"): [(941, 984), (121, 123), (123, 124)],
    ("pg", "ba-2motifs"): [(795, 800), (100, 100), (99, 100)],
    ("pg", "mutagenicity"): [(2863, 3469), (358, 434), (353, 434)],
}


@pytest.mark.parametrize(("variant", "name"), COUNTS)
def test_accuracies_are_the_published_ones(reference, variant, name):
    row = published_accuracies(name, reference, variant=variant)
    assert [tuple(counts) for counts in row.recomputed.values()] == COUNTS[variant, name]
    differs = {"ba-2motifs", "mutagenicity"}  # on train only; the reference folder's README says so too
    for split, counts in row.recomputed.items():
        if not (split == "train" and name in differs):
            assert counts.share == pytest.approx(row.stored[split], abs=5e-7)


def test_a_missing_file_is_named_with_both_ways_to_get_it(tmp_path, no_reference):
    with pytest.raises(DatasetError, match=r"gnn_tree_grid\.safetensors.*GFLOWEXPLAINER_DATA.*models train"):
        load_published("tree-grid", tmp_path)
    with pytest.raises(DatasetError, match=r"no reference folder.*gnn_tree_grid\.safetensors.*train --dataset"):
        load_published("tree-grid")


def test_a_damaged_file_is_refused(tmp_path, reference):
    (tmp_path / "weights").mkdir()
    copy = tmp_path / "weights" / "gnn_tree_grid.safetensors"
    shutil.copyfile(reference / "weights" / copy.name, copy)
    assert load_published("tree-grid", tmp_path).architecture.num_classes == 2
    content = bytearray(copy.read_bytes())
    content[-1] ^= 1
    copy.write_bytes(content)
    with pytest.raises(DatasetError, match=r"gnn_tree_grid\.safetensors' is damaged.*SHA-256"):
        load_published("tree-grid", tmp_path)
