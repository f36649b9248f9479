"""Mutagenicity: molecules with their NO2 and NH2 groups as ground truth, published or from TUDataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import download_url, extract_zip
from torch_geometric.datasets import TUDataset

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.motif_truth import motifs_of_edges
from gflowbench.datasets.published_graphs import file_provenance, unpack_graphs
from gflowbench.datasets.reference import read_reference
from gflowbench.datasets.splits import published_permutation, split_positions
from gflowexplainer.errors import DatasetError
from gflowexplainer.sources.smiles import ATOMS

Integers = NDArray[np.int64]

OXYGEN, HYDROGEN, NITROGEN = ATOMS.index("O"), ATOMS.index("H"), ATOMS.index("N")
MUTAGEN = 0
TEXT_FILES = ("A", "graph_indicator", "node_labels", "edge_labels", "graph_labels")


def published_mutagenicity(folder: Path | str | None = None) -> Benchmark:
    """Reads the published file from the reference folder (or ``folder``)."""
    file = "mutagenicity.npz"
    other_way = 'load("mutagenicity", source="downloaded") downloads it with TUDataset.'
    arrays = read_reference(file, other_way, folder)
    source, target = (arrays["edge_index"] + _offsets(arrays["node_ptr"], arrays["edge_ptr"])).astype(np.int64)
    return _benchmark(
        source,
        target,
        arrays["node_ptr"],
        arrays["node_label"].astype(np.int64),
        arrays["edge_type"].astype(np.int64),
        arrays["y"].astype(np.int64),
        arrays["edge_gt"].astype(bool),
        "published",
        file_provenance(file),
    )


def downloaded_mutagenicity(root: Path | str) -> Benchmark:
    """Reads the text files of TUDataset under ``root``, after downloading them if they are not there.

    The ground truth follows from :func:`mark_groups`; splits and evaluated graphs are those of the published
    file. Only text is read: no pickle, and none of the files that PyTorch Geometric would cache.
    """
    folder = Path(root) / "Mutagenicity" / "raw"
    if not all((folder / f"Mutagenicity_{name}.txt").is_file() for name in TEXT_FILES):
        _download(folder)
    arrays = {name: _read_text(folder / f"Mutagenicity_{name}.txt") for name in TEXT_FILES}
    atom, graph_of_node = arrays["node_labels"], arrays["graph_indicator"] - 1
    _check_text(folder, arrays)
    source, target = arrays["A"].reshape(-1, 2).T - 1
    node_ptr = np.searchsorted(graph_of_node, np.arange(len(arrays["graph_labels"]) + 1))
    return _benchmark(
        source,
        target,
        node_ptr,
        atom,
        arrays["edge_labels"],
        arrays["graph_labels"],
        mark_groups(source, target, atom),
        "downloaded",
        f"TUDataset Mutagenicity from {TUDataset.url}; NO2 and NH2 marked by our rule",
    )


def mark_groups(source: Integers, target: Integers, atom: Integers) -> NDArray[np.bool_]:
    """Marks the N-O bonds of NO2 groups and the N-H bonds of NH2 groups.

    A group is a nitrogen with three bonds, of which exactly two go to oxygen (or exactly two to hydrogen),
    while the third goes to any other element. So nitrates (three oxygens), ammonia, hydroxylamines and
    nitrogens with only two bonds are none. The bond that holds the group is not marked.

    Args:
        source: First atom of each directed bond, ids over all molecules, shape ``[E]``.
        target: Second atom, shape ``[E]``.
        atom: Element of each atom as a position in ``ATOMS``, shape ``[N]``.

    Returns:
        Marks in both directions, shape ``[E]``.
    """
    count = len(atom)
    bonds = np.bincount(source, minlength=count)
    oxygens = np.bincount(source[atom[target] == OXYGEN], minlength=count)
    hydrogens = np.bincount(source[atom[target] == HYDROGEN], minlength=count)
    centre = (atom == NITROGEN) & (bonds == 3)
    nitro, amino = centre & (oxygens == 2) & (hydrogens == 0), centre & (hydrogens == 2) & (oxygens == 0)
    outward = (nitro[source] & (atom[target] == OXYGEN)) | (amino[source] & (atom[target] == HYDROGEN))
    inward = (nitro[target] & (atom[source] == OXYGEN)) | (amino[target] & (atom[source] == HYDROGEN))
    return outward | inward


def _benchmark(
    source: Integers,
    target: Integers,
    node_ptr: Integers,
    atom: Integers,
    bond: Integers,
    label: Integers,
    marked: NDArray[np.bool_],
    origin: str,
    provenance: str,
) -> Benchmark:
    """Builds the benchmark from flat arrays with node ids over all molecules, grouped by molecule."""
    graph_of_edge = np.searchsorted(node_ptr, source, side="right") - 1
    if np.any(np.diff(graph_of_edge) < 0):
        raise DatasetError("The bonds of Mutagenicity are not grouped by molecule: the files are damaged.")
    edge_ptr = np.concatenate([[0], np.cumsum(np.bincount(graph_of_edge, minlength=len(label)))])
    local = np.stack([source, target]) - node_ptr[graph_of_edge]
    graphs = unpack_graphs(
        node_ptr,
        edge_ptr,
        local,
        torch.nn.functional.one_hot(torch.from_numpy(atom), len(ATOMS)).float(),
        torch.from_numpy(label),
        edge_motif=torch.from_numpy(marked),
        edge_type=torch.from_numpy(bond),
        motif_id=torch.from_numpy(_number_groups(source, target, marked, node_ptr)),
    )
    some = np.bincount(graph_of_edge[marked], minlength=len(label)) > 0
    return Benchmark(
        name="mutagenicity",
        task="graph",
        graphs=graphs,
        index=torch.from_numpy(np.flatnonzero((label == MUTAGEN) & some)),
        num_classes=2,
        source=origin,
        provenance=provenance,
        splits=split_positions(published_permutation(len(label))),
    )


def _number_groups(source: Integers, target: Integers, marked: NDArray[np.bool_], node_ptr: Integers) -> Integers:
    """Numbers the groups of each molecule from 0, shape ``[N]``; -1 outside all groups."""
    edges = torch.from_numpy(np.stack([source, target]))
    groups = motifs_of_edges(edges, torch.from_numpy(marked), int(node_ptr[-1])).numpy()
    nodes = np.flatnonzero(groups >= 0)
    molecule = np.searchsorted(node_ptr, nodes, side="right") - 1
    # Groups are numbered in the order of their atoms, so each molecule has a run of numbers.
    lowest = np.full(len(node_ptr), len(nodes))
    np.minimum.at(lowest, molecule, groups[nodes])
    groups[nodes] -= lowest[molecule]
    return groups


def _offsets(node_ptr: Integers, edge_ptr: Integers) -> Integers:
    """First node id of the molecule of each bond, shape ``[E]``."""
    return np.repeat(node_ptr[:-1], np.diff(edge_ptr))


def _download(folder: Path) -> None:
    """Fetches and unpacks the archive of TUDataset into ``folder``."""
    url = f"{TUDataset.url}/Mutagenicity.zip"
    try:
        archive = download_url(url, str(folder.parent), log=False)
        extract_zip(archive, str(folder.parent), log=False)
        Path(archive).unlink()
        folder.mkdir(exist_ok=True)
        for file in (folder.parent / "Mutagenicity").iterdir():
            file.replace(folder / file.name)
        (folder.parent / "Mutagenicity").rmdir()
    except Exception as error:
        raise DatasetError(
            f"'Mutagenicity.zip' could not be downloaded from {url} ({type(error).__name__}: {error}). "
            f"Either unpack it yourself so that '{folder / 'Mutagenicity_A.txt'}' exists, or put the "
            "published 'mutagenicity.npz' into a folder and name that folder in GFLOWEXPLAINER_DATA."
        ) from error


def _read_text(path: Path) -> Integers:
    """Reads a text file of integers, separated by commas and line ends."""
    try:
        return np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=1)
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"'{path}' is missing or damaged ({error}). Delete its folder to download it again, or put the "
            "published 'mutagenicity.npz' into a folder and name that folder in GFLOWEXPLAINER_DATA."
        ) from error


def _check_text(folder: Path, arrays: dict[str, Integers]) -> None:
    """Refuses text files that do not fit together."""
    atoms, molecules = len(arrays["node_labels"]), len(arrays["graph_labels"])
    bonds, molecule = arrays["A"], arrays["graph_indicator"]
    problem = None
    if len(molecule) != atoms or bonds.size != 2 * len(arrays["edge_labels"]):
        problem = (
            f"{atoms} elements for {len(molecule)} atoms, "
            f"{len(arrays['edge_labels'])} types for {bonds.size / 2:g} bonds"
        )
    elif bonds.min() < 1 or bonds.max() > atoms:
        problem = f"bonds name atoms {bonds.min()} to {bonds.max()} of {atoms}"
    elif np.any(np.diff(molecule) < 0) or molecule[0] < 1 or molecule[-1] > molecules:
        problem = f"graph_indicator does not count up through {molecules} molecules"
    elif arrays["node_labels"].min() < 0 or arrays["node_labels"].max() >= len(ATOMS):
        problem = f"elements must be 0 to {len(ATOMS) - 1}"
    if problem is not None:
        raise DatasetError(
            f"The files in '{folder}' do not fit together: {problem}. Delete the folder to download it "
            "again, or put the published 'mutagenicity.npz' into a folder and name that folder in "
            "GFLOWEXPLAINER_DATA."
        )
