from pathlib import Path

import numpy as np
import pytest

from gflowbench.datasets import reference_folder
from gflowbench.datasets.reference import CHECKSUMS, VARIABLE, read_reference
from gflowexplainer.errors import DatasetError


def test_every_file_reads(reference: Path) -> None:
    for file in CHECKSUMS:
        assert read_reference(file, "no other way", reference)


def test_named_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert reference_folder() == tmp_path
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match="nowhere', which is not a folder"):
        reference_folder()


def test_missing_file_names_both_ways(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"'tree_grid\.npz' was not found .*GFLOWEXPLAINER_DATA.*, or: bake it"):
        read_reference("tree_grid.npz", "bake it", tmp_path)


def test_damaged_file_names_both_ways(tmp_path: Path) -> None:
    np.savez(tmp_path / "tree_grid.npz", x=np.ones(3))
    with pytest.raises(DatasetError, match=r"tree_grid\.npz' is damaged .*SHA-256.*Replace it.*, or: bake it"):
        read_reference("tree_grid.npz", "bake it", tmp_path)
