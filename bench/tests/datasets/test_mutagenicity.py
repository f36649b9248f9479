import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.datasets import TUDataset

from gflowbench.datasets import load
from gflowbench.datasets.mutagenicity import mark_groups
from gflowexplainer.sources.smiles import ATOMS


@pytest.fixture(scope="module")
def arrays(reference: Path) -> dict[str, np.ndarray]:
    with np.load(reference / "mutagenicity.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="module")
def text_folder(arrays: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published arrays written as TUDataset's text files."""
    root = tmp_path_factory.mktemp("tu")
    raw = root / "Mutagenicity" / "raw"
    raw.mkdir(parents=True)
    sizes = np.diff(arrays["node_ptr"])
    bonds = arrays["edge_index"] + np.repeat(arrays["node_ptr"][:-1], np.diff(arrays["edge_ptr"]))
    tables = {
        "A": bonds.T + 1,
        "graph_indicator": np.repeat(np.arange(1, len(sizes) + 1), sizes),
        "node_labels": arrays["node_label"],
        "edge_labels": arrays["edge_type"],
        "graph_labels": arrays["y"],
    }
    for name, table in tables.items():
        np.savetxt(raw / f"Mutagenicity_{name}.txt", table, fmt="%d", delimiter=", ")
    return root


def bonds(*pairs: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    once = np.array(pairs)
    return np.concatenate([once[:, 0], once[:, 1]]), np.concatenate([once[:, 1], once[:, 0]])


def elements(text: str) -> np.ndarray:
    return np.array([ATOMS.index(symbol) for symbol in text.split()])


@pytest.mark.parametrize(
    ("atoms", "pairs", "expected"),
    [
        ("C N O O", [(0, 1), (1, 2), (1, 3)], [False, True, True]),
        ("C N H H", [(0, 1), (1, 2), (1, 3)], [False, True, True]),
        ("O N O O", [(0, 1), (1, 2), (1, 3)], [False, False, False]),
        ("O N H H", [(0, 1), (1, 2), (1, 3)], [False, False, False]),
        ("H N H H", [(0, 1), (1, 2), (1, 3)], [False, False, False]),
        ("N O O", [(0, 1), (0, 2)], [False, False]),
        ("C C O O", [(0, 1), (1, 2), (1, 3)], [False, False, False]),
    ],
)
def test_groups_by_hand(atoms: str, pairs: list[tuple[int, int]], expected: list[bool]) -> None:
    assert mark_groups(*bonds(*pairs), elements(atoms)).tolist() == expected * 2


def test_rule_gives_the_published_ground_truth(arrays: dict[str, np.ndarray]) -> None:
    offset = np.repeat(arrays["node_ptr"][:-1], np.diff(arrays["edge_ptr"]))
    source, target = arrays["edge_index"] + offset
    marks = mark_groups(source, target, arrays["node_label"])
    assert marks.sum() == 7352
    assert np.array_equal(marks, arrays["edge_gt"].astype(bool))


def test_published(arrays: dict[str, np.ndarray]) -> None:
    benchmark = load("mutagenicity", "published")
    assert len(benchmark.graphs) == 4337
    assert sum(graph.num_nodes for graph in benchmark.graphs) == 131488
    assert benchmark.index.tolist() == arrays["eval_graphs"].tolist()
    for number, key in enumerate(("train", "val", "test")):
        assert benchmark.splits[key].tolist() == np.flatnonzero(arrays["split"] == number).tolist()
    graph = benchmark.graphs[10]
    assert graph.x.shape == (graph.num_nodes, 14)
    assert graph.x.sum(dim=1).eq(1).all()
    groups = graph.motif_id[graph.motif_id >= 0]
    assert groups.unique().tolist() == list(range(int(groups.max()) + 1))
    assert all((graph.motif_id == group).sum() == 3 for group in groups.unique())


def test_text_files_give_the_published_graphs(text_folder: Path) -> None:
    ours, theirs = load("mutagenicity", "downloaded", root=text_folder), load("mutagenicity", "published")
    assert ours.source == "downloaded"
    assert "our rule" in ours.provenance
    assert torch.equal(ours.index, theirs.index)
    assert all(torch.equal(ours.splits[key], theirs.splits[key]) for key in theirs.splits)
    for left, right in zip(ours.graphs, theirs.graphs, strict=True):
        assert all(torch.equal(left[key], right[key]) for key in right.keys())  # noqa: SIM118


def test_download_is_unpacked_and_read(text_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "archive" / "Mutagenicity"
    shutil.copytree(text_folder / "Mutagenicity" / "raw", source)
    shutil.make_archive(f"{tmp_path}/Mutagenicity", "zip", source.parent, "Mutagenicity")
    monkeypatch.setattr(TUDataset, "url", tmp_path.as_uri())
    assert len(load("mutagenicity", "downloaded", root=tmp_path / "root").graphs) == 4337
    assert sorted(path.name for path in (tmp_path / "root" / "Mutagenicity").iterdir()) == ["raw"]
