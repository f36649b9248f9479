"""Numbers that were reached, in a table and in a sorted list."""

import numpy as np
import pytest
import torch

from gflowexplainer.graphs import cpu_reach
from gflowexplainer.graphs.index import GraphIndex


@pytest.mark.parametrize("nodes", [[7], [3, 3, 0, 29]])
@pytest.mark.parametrize("limit", [None, 100, 3])
def test_a_table_and_a_list_find_the_same(monkeypatch, nodes, limit):
    edges = torch.randint(0, 30, (2, 60), generator=torch.Generator().manual_seed(1))
    index, found = GraphIndex.build(edges, 30), []
    for bound in (1 << 16, 0):
        monkeypatch.setattr(cpu_reach, "_TABLE", bound)
        found.append(cpu_reach.find_edges(index, np.array(nodes), 2, limit))
    if limit == 3:
        assert found == [None, None]
        return
    table, sorted_list = found
    for name in ("key", "ends", "edge_id"):
        assert np.array_equal(getattr(table, name), getattr(sorted_list, name)), name
    wider, other = table.wider, sorted_list.wider
    for name in ("inside", "sender", "receiver", "edge_id"):
        assert np.array_equal(getattr(wider, name), getattr(other, name)), name
    assert np.array_equal(wider.ends(), other.ends())
    assert np.array_equal(wider.reached.keys(), other.reached.keys())


@pytest.mark.parametrize("kind", [lambda: cpu_reach._Ticked(20), cpu_reach._Sorted])
def test_a_set_grows_and_tells_where_its_numbers_are(kind):
    reached = kind()
    assert reached.add(np.array([7, 3, 7])).tolist() == [3, 7]
    assert reached.add(np.array([5, 3])).tolist() == [5]
    assert reached.add(np.array([5, 7])).tolist() == []
    assert reached.keys().tolist() == [3, 5, 7]
    place, there = reached.find(np.array([7, 4, 5]))
    assert there.tolist() == [True, False, True]
    assert place[there].tolist() == [2, 1]
