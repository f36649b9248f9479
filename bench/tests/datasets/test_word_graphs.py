import sys
from collections.abc import Iterable
from types import SimpleNamespace

import networkx as nx
import pytest
from torch_geometric.utils import is_undirected

from gflowbench.datasets.word_graphs import heads_to_edges, installed_parser, window_edges, word_graphs


def test_window_by_hand() -> None:
    assert window_edges(3, 1).t().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert window_edges(1, 2).shape == (2, 0)
    for length in (2, 5, 9):
        graph = nx.Graph(window_edges(length, 2).t().tolist())
        assert nx.utils.graphs_equal(graph, nx.power(nx.path_graph(length), 2))


def test_heads_by_hand() -> None:
    # "it 's bad . avoid": the roots "bad" (2) and "avoid" (4) are chained.
    edges = heads_to_edges([2, 2, 2, 2, 4])
    assert is_undirected(edges)
    graph = nx.Graph(edges.t().tolist())
    assert {frozenset(edge) for edge in graph.edges} == {frozenset(e) for e in [(0, 2), (1, 2), (2, 3), (2, 4)]}
    assert nx.is_tree(graph)
    assert heads_to_edges([0]).shape == (2, 0)


def test_parser_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for spaCy, in which every word hangs on the first."""

    def pipe(texts: Iterable[list[str]]) -> Iterable[list[SimpleNamespace]]:
        for words in texts:
            yield [SimpleNamespace(head=SimpleNamespace(i=0)) for _ in words]

    spacy = SimpleNamespace(
        __spec__=SimpleNamespace(name="spacy"),
        util=SimpleNamespace(get_installed_models=lambda: ["de_core_news_sm", "en_core_web_lg", "en_core_web_sm"]),
        tokens=SimpleNamespace(Doc=lambda vocab, words: words),
        load=lambda name, exclude: SimpleNamespace(vocab=None, pipe=pipe),
    )
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    assert installed_parser() == "en_core_web_sm"
    edges, note = word_graphs([["a", "b", "c"]])
    assert note == "dependency edges by spaCy model en_core_web_sm"
    assert edges[0].t().tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]
    assert "at most 1 apart" in word_graphs([["a"]], edges="window", window=1)[1]
