"""Graph-SST2 as DIG hands it out: text files with the graphs, and the word vectors as a plain array.

DIG's folder ``Graph-SST2/raw`` holds ``Graph-SST2_edge_index.txt`` (two node ids a line, over all graphs,
from 0), ``_node_indicator.txt`` (graph of each node, from 1), ``_graph_labels.txt``, ``_split_indices.txt``
(0, 1, 2), ``_sentence_tokens.json`` and ``_node_features.pkl``. The last is a pickle, and loading a pickle
can run any code, so it is never loaded here; the same array as ``.npy`` or ``.npz`` is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.graph_sst2 import LIMIT, MIN_WORDS, choose_sentences, text_benchmark
from gflowexplainer.errors import DatasetError

PREFIX = "Graph-SST2"
OTHER_WAY = 'or build graphs from sentences with load("graph-sst2", source="generated")'


def processed_sst2(
    root: Path | str,
    *,
    sentences: Sequence[int] | None = None,
    limit: int | None = LIMIT,
    min_words: int = MIN_WORDS,
) -> Benchmark:
    """Reads DIG's processed Graph-SST2.

    Args:
        root: The folder with the files, or one that holds them as ``Graph-SST2/raw`` or ``raw``.
        sentences: Ids of the graphs to read; if ``None``, see ``limit``.
        limit: At most so many graphs of each split, evenly spaced; ``None`` reads all.
        min_words: Evaluated are the test graphs with at least so many nodes, unless ``sentences`` is given.

    Returns:
        A graph task without ground truth, edges in both directions as DIG's loader makes them.
    """
    folder = find_processed(root)
    if folder is None:
        raise DatasetError(
            f"'{PREFIX}_node_indicator.txt' was not found in '{root}'. Either download DIG's Graph-SST2 "
            f"(linked from DIG's documentation of SentiGraphDataset) and unpack it there, {OTHER_WAY}."
        )
    graph_of_node = _read_integers(folder, "node_indicator").reshape(-1) - 1
    edges = _read_integers(folder, "edge_index").reshape(-1, 2)
    label = _read_integers(folder, "graph_labels").reshape(-1)
    split = _read_integers(folder, "split_indices").reshape(-1)
    features = _read_features(folder)
    _check(folder, graph_of_node, edges, label, split, features)
    tokens = _read_tokens(folder)
    node_ptr = np.searchsorted(graph_of_node, np.arange(len(label) + 1))
    graph_of_edge = graph_of_node[edges[:, 0]]
    edges = edges[np.argsort(graph_of_edge, kind="stable")]
    edge_ptr = np.concatenate([[0], np.cumsum(np.bincount(graph_of_edge, minlength=len(label)))])
    chosen = choose_sentences(split, sentences, limit)
    graphs = []
    for i in chosen.tolist():
        first, last = int(node_ptr[i]), int(node_ptr[i + 1])
        local = torch.from_numpy(edges[edge_ptr[i] : edge_ptr[i + 1]].T - first).contiguous()
        graph = Data(
            x=torch.from_numpy(np.array(features[first:last], dtype=np.float32)),
            edge_index=to_undirected(local, num_nodes=last - first),
            y=torch.tensor([int(label[i])]),
            sentence=i,
        )
        if tokens is not None:
            graph.tokens = list(tokens.get(str(i), ()))
        graphs.append(graph)
    note = f"{len(graphs)} of {len(label)} graphs of DIG's processed {PREFIX}: "
    note += f"its own edges and vectors of size {features.shape[1]}"
    return text_benchmark(graphs, split[chosen], "downloaded", note, min_words if sentences is None else None)


def find_processed(root: Path | str) -> Path | None:
    """The folder below ``root`` that holds DIG's text files, or ``None``."""
    root = Path(root)
    for folder in (root, root / "raw", root / PREFIX / "raw", root / PREFIX):
        if (folder / f"{PREFIX}_node_indicator.txt").is_file():
            return folder
    return None


def _read_integers(folder: Path, part: str) -> np.ndarray:
    """Reads a text file of integers, separated by blanks or commas."""
    path = folder / f"{PREFIX}_{part}.txt"
    try:
        with path.open() as file:
            delimiter = "," if "," in file.readline() else None
        return np.loadtxt(path, dtype=np.int64, delimiter=delimiter)
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"'{path}' is missing or damaged ({error}). Either get DIG's Graph-SST2 again, {OTHER_WAY}."
        ) from error


def _read_features(folder: Path) -> np.ndarray:
    """Opens the word vectors, shape ``[N, D]``, without reading all of them; refuses a pickle."""
    stem = folder / f"{PREFIX}_node_features"
    plain, packed, pickled = (stem.with_suffix(end) for end in (".npy", ".npz", ".pkl"))
    try:
        if plain.is_file():
            return np.load(plain, mmap_mode="r", allow_pickle=False)
        if packed.is_file():
            with np.load(packed, allow_pickle=False) as arrays:
                return arrays[arrays.files[0]]
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"The word vectors in '{folder}' are damaged ({error}). Either write them again, {OTHER_WAY}."
        ) from error
    if pickled.is_file():
        raise DatasetError(
            f"'{pickled}' is a pickle, and loading a pickle can run any code, so it is not loaded. Either, "
            'if you trust where it comes from, convert it once yourself with "numpy.save('
            f"'{plain.name}', pickle.load(open('{pickled.name}', 'rb')))\", {OTHER_WAY}."
        )
    raise DatasetError(f"'{plain}' was not found. Either put the word vectors there, {OTHER_WAY}.")


def _read_tokens(folder: Path) -> dict[str, list[str]] | None:
    """Words of each graph by its id as text, or ``None`` without the file."""
    path = folder / f"{PREFIX}_sentence_tokens.json"
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DatasetError(f"'{path}' is damaged ({error}). Either delete it, {OTHER_WAY}.") from error


def _check(
    folder: Path,
    graph_of_node: np.ndarray,
    edges: np.ndarray,
    label: np.ndarray,
    split: np.ndarray,
    features: np.ndarray,
) -> None:
    """Refuses files that do not fit together."""
    nodes = len(graph_of_node)
    problem = None
    if features.ndim != 2 or len(features) != nodes:
        problem = f"{nodes} nodes but word vectors of shape {list(features.shape)}"
    elif nodes == 0 or np.any(np.diff(graph_of_node) < 0) or graph_of_node[0] < 0 or graph_of_node[-1] >= len(label):
        problem = f"node_indicator does not count up through {len(label)} graphs"
    elif len(split) != len(label):
        problem = f"{len(label)} labels but {len(split)} split indices"
    elif edges.size and (edges.min() < 0 or edges.max() >= nodes):
        problem = f"edges name nodes {edges.min()} to {edges.max()} of {nodes}"
    elif np.any(graph_of_node[edges[:, 0]] != graph_of_node[edges[:, 1]]):
        problem = "an edge connects two graphs"
    if problem is not None:
        raise DatasetError(
            f"The files in '{folder}' do not fit together: {problem}. Either get DIG's Graph-SST2 again, {OTHER_WAY}."
        )
