from pathlib import Path

import pytest

from gflowbench.datasets import NAMES, load, loading
from gflowexplainer.errors import ConfigError, DatasetError

SYNTHETIC = ("ba-shapes", "ba-community", "tree-cycles", "tree-grid", "ba-2motifs")


def test_names() -> None:
    assert (*SYNTHETIC, "mutagenicity", "graph-sst2") == NAMES


@pytest.mark.parametrize("name", [*SYNTHETIC, "mutagenicity"])
def test_auto_prefers_published(name: str, reference: Path) -> None:
    assert load(name).source == "published"


@pytest.mark.parametrize("name", SYNTHETIC)
def test_auto_generates_without_reference(name: str, no_reference: None) -> None:
    assert load(name, seed=4).provenance.startswith("generated with seed 4")


def test_auto_generates_where_sizes_are_asked() -> None:
    assert load("tree-grid", num_motifs=5, num_base_nodes=31).data.num_nodes == 76


def test_published_has_no_sizes() -> None:
    with pytest.raises(ConfigError, match=r"fixed sizes \(got num_motifs\)"):
        load("tree-grid", "published", num_motifs=5)


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


def test_cache_is_where_the_user_keeps_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert loading.cache_folder() == tmp_path / "gflowexplainer"
