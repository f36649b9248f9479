from pathlib import Path

import pytest

from gflowbench.datasets import load
from gflowexplainer.errors import ConfigError, DatasetError

SYNTHETIC = ("ba-shapes", "ba-community", "tree-cycles", "tree-grid", "ba-2motifs")


@pytest.mark.parametrize("name", [*SYNTHETIC, "mutagenicity"])
def test_auto_prefers_published(name: str, reference: Path) -> None:
    assert load(name).source == "published"


@pytest.mark.parametrize("name", SYNTHETIC)
def test_auto_generates_without_reference(name: str, no_reference: None) -> None:
    assert load(name, seed=4).provenance.startswith("generated with seed 4")


def test_missing_published_file_names_both_ways(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"'tree_grid\.npz' was not found.*GFLOWEXPLAINER_DATA.*generated"):
        load("tree-grid", "published", root=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tree-cycle",), "Did you mean 'tree-cycles'"),
        (("mutagenicity", "generated"), "'published', 'downloaded'"),
        (("tree-grid", "publish"), "Did you mean 'published'"),
    ],
)
def test_unknown_names(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(*arguments)


def test_unknown_size() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'num_motifs'"):
        load("tree-grid", "generated", num_motif=5)
