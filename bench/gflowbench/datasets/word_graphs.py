"""Edges between the words of a sentence: dependencies by an installed parser, or neighbouring words."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import to_undirected

from gflowexplainer.errors import DatasetError, one_of

EDGES = ("auto", "dependency", "window")


def word_graphs(sentences: Sequence[Sequence[str]], edges: str = "auto", window: int = 2) -> tuple[list[Tensor], str]:
    """Builds the edges of every sentence.

    Args:
        sentences: The words of each sentence.
        edges: ``"dependency"``: each word and its head, by spaCy. ``"window"``: words at most ``window``
            places apart. ``"auto"``: dependencies if spaCy and an English model are installed.
        window: Reach of the simpler graph; 2, so that a subgraph may step over a filler word.

    Returns:
        ``edge_index`` of each sentence (both directions, no self loops), and a phrase that says which edges
        they are.
    """
    one_of("edges", edges, EDGES)
    model = None if edges == "window" else installed_parser()
    if edges == "dependency" and model is None:
        raise DatasetError(
            "Dependency edges need spaCy and an English model with a parser. Either install them "
            "('pip install spacy', then 'python -m spacy download en_core_web_sm'), or pass edges='window' "
            "for edges between neighbouring words."
        )
    if model is not None:
        return _dependency_edges(sentences, model), f"dependency edges by spaCy model {model}"
    if window < 1:
        raise DatasetError(f"'window' must be at least 1 (got {window}).")
    return [window_edges(len(words), window) for words in sentences], f"edges between words at most {window} apart"


def window_edges(length: int, window: int) -> Tensor:
    """Connects the words ``i`` and ``j`` with ``0 < |i - j| <= window``. Shape ``[2, E]``, row-major."""
    place = torch.arange(length)
    gap = (place[:, None] - place[None, :]).abs()
    return ((gap > 0) & (gap <= window)).nonzero().t().contiguous()


def installed_parser() -> str | None:
    """Name of an installed English spaCy model, the smallest by name order; ``None`` where there is none."""
    if find_spec("spacy") is None:
        return None
    import spacy

    models = sorted(name for name in spacy.util.get_installed_models() if name.startswith("en_"))
    preferred = [name for name in models if name.endswith("_sm")]
    return (preferred + models)[0] if models else None


def _dependency_edges(sentences: Sequence[Sequence[str]], model: str) -> list[Tensor]:
    """Connects each word with its head; roots of one text are chained, so that it stays in one piece."""
    import spacy

    parser: Any = spacy.load(model, exclude=["ner", "lemmatizer", "attribute_ruler"])
    texts = (spacy.tokens.Doc(parser.vocab, words=list(words)) for words in sentences)
    return [heads_to_edges([word.head.i for word in text]) for text in parser.pipe(texts)]


def heads_to_edges(heads: Sequence[int]) -> Tensor:
    """Turns the head of each word into edges; a root is its own head, and follows the root before it.

    Args:
        heads: Position of the head of each word, shape ``[N]``.

    Returns:
        ``edge_index``, both directions, shape ``[2, 2 * (N - 1)]`` for a proper parse.
    """
    roots = [place for place, head in enumerate(heads) if place == head]
    pairs = [(place, head) for place, head in enumerate(heads) if place != head]
    pairs += list(zip(roots[1:], roots[:-1], strict=True))
    return to_undirected(torch.tensor(pairs, dtype=torch.long).view(-1, 2).t(), num_nodes=len(heads))
