"""Graph-SST2: sentences as graphs of words, built here from the text, only as many as are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.published_graphs import file_provenance, named_splits
from gflowbench.datasets.reference import read_reference
from gflowbench.datasets.word_graphs import word_graphs
from gflowbench.datasets.word_vectors import word_vectors
from gflowexplainer.errors import DatasetError

TEST = 2
LIMIT = 1000
MIN_WORDS = 10


def built_sst2(
    folder: Path | str | None = None,
    *,
    sentences: Sequence[int] | None = None,
    limit: int | None = LIMIT,
    edges: str = "auto",
    vectors: str = "auto",
    window: int = 2,
    min_words: int = MIN_WORDS,
) -> Benchmark:
    """Builds word graphs from the sentences in the reference folder.

    Args:
        folder: Folder with ``sst2_text.npz``; if ``None``, the reference folder.
        sentences: Ids of the sentences to build, out of 70,042; if ``None``, see ``limit``.
        limit: At most so many sentences of each split, evenly spaced; ``None`` builds all.
        edges: ``"auto"``, ``"dependency"`` or ``"window"``, see :func:`word_graphs`.
        vectors: ``"auto"``, ``"minilm"`` or ``"hashed"``, see :func:`word_vectors`.
        window: Reach of window edges.
        min_words: Evaluated are the test sentences with at least so many words; with ``sentences``, all.

    Returns:
        A graph task without ground truth: class 0 is negative, 1 positive. Each graph has its words in
        ``tokens`` and its sentence id in ``sentence``.
    """
    file = "sst2_text.npz"
    other_way = 'load("graph-sst2", source="downloaded", root=...) reads DIG\'s Graph-SST2 from a folder you name.'
    arrays = read_reference(file, other_way, folder)
    split = arrays["split"]
    chosen = choose_sentences(split, sentences, limit)
    text, offset = arrays["text_utf8"].tobytes(), arrays["offset"]
    words = [text[offset[i] : offset[i + 1]].decode().split() for i in chosen.tolist()]
    graphs, edge_note, vector_note = sentence_graphs(
        words, arrays["y"][chosen].tolist(), edges=edges, vectors=vectors, window=window
    )
    for graph, sentence in zip(graphs, chosen.tolist(), strict=True):
        graph.sentence = sentence
    return text_benchmark(
        graphs,
        split[chosen],
        "generated",
        f"{len(graphs)} of {len(split)} sentences of {file_provenance(file)}; {edge_note}; {vector_note}",
        min_words if sentences is None else None,
    )


def sentence_graphs(
    sentences: Sequence[str] | Sequence[Sequence[str]],
    labels: Sequence[int],
    *,
    edges: str = "auto",
    vectors: str = "auto",
    window: int = 2,
) -> tuple[list[Data], str, str]:
    """Turns any sentences into graphs, one node a word.

    Args:
        sentences: Texts, cut at blanks, or lists of words.
        labels: Class of each sentence.
        edges: ``"auto"``, ``"dependency"`` or ``"window"``.
        vectors: ``"auto"``, ``"minilm"`` or ``"hashed"``.
        window: Reach of window edges.

    Returns:
        The graphs, a phrase that says which edges, and one that says which vectors were used.
    """
    cut = [text.split() if isinstance(text, str) else list(text) for text in sentences]
    if len(cut) != len(labels):
        raise DatasetError(f"There are {len(cut)} sentences but {len(labels)} labels. Give each its label.")
    empty = [place for place, words in enumerate(cut) if not words]
    if empty:
        raise DatasetError(f"Sentence {empty[0]} has no words. Leave empty sentences out.")
    vocabulary = {word: row for row, word in enumerate(dict.fromkeys(word for words in cut for word in words))}
    table, vector_note = word_vectors(list(vocabulary), vectors)
    edge_indices, edge_note = word_graphs(cut, edges, window)
    features = torch.from_numpy(table)
    graphs = [
        Data(
            x=features[[vocabulary[word] for word in words]],
            edge_index=edge_index,
            y=torch.tensor([int(label)]),
            tokens=words,
        )
        for words, edge_index, label in zip(cut, edge_indices, labels, strict=True)
    ]
    return graphs, edge_note, vector_note


def choose_sentences(split: np.ndarray, sentences: Sequence[int] | None, limit: int | None) -> np.ndarray:
    """Ids of the given sentences, or of ``limit`` evenly spaced ones of each split, in ascending order."""
    if sentences is not None:
        chosen = np.asarray(sentences, dtype=np.int64).reshape(-1)
        if len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= len(split):
            raise DatasetError(
                f"'sentences' must hold ids in [0, {len(split)}) (got {len(chosen)} ids"
                + (f" from {chosen.min()} to {chosen.max()})." if len(chosen) else ").")
            )
        return chosen
    if limit is None:
        return np.arange(len(split))
    if limit < 1:
        raise DatasetError(f"'limit' must be at least 1, or None for all sentences (got {limit}).")
    parts = []
    for number in range(3):
        ids = np.flatnonzero(split == number)
        parts.append(ids[np.linspace(0, len(ids) - 1, min(limit, len(ids))).astype(np.int64)])
    return np.sort(np.concatenate(parts))


def text_benchmark(
    graphs: list[Data], split: np.ndarray, source: str, provenance: str, min_words: int | None
) -> Benchmark:
    """Wraps sentence graphs; evaluated are the longer test sentences, or all if ``min_words`` is ``None``."""
    if min_words is None:
        index: Tensor = torch.arange(len(graphs))
    else:
        long = np.array([int(graph.num_nodes or 0) >= min_words for graph in graphs])
        index = torch.from_numpy(np.flatnonzero(long & (split == TEST)))
    return Benchmark(
        name="graph-sst2",
        task="graph",
        graphs=graphs,
        index=index,
        num_classes=2,
        source=source,
        provenance=provenance,
        splits=named_splits(split),
    )
