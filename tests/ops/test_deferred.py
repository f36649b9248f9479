"""Items that wait until they are asked for."""

import pytest

from gflowexplainer.ops.deferred import DeferredList


def test_items_of_a_list_are_computed_whenever_they_are_asked_for():
    calls = []
    squares = DeferredList(5, lambda place: calls.append(place) or place * place)
    assert len(squares) == 5
    assert calls == []
    assert squares[3] == 9
    assert squares[-1] == 16
    assert squares[1:3] == [1, 4]
    assert calls == [3, 4, 1, 2]
    assert list(squares) == [0, 1, 4, 9, 16]
    with pytest.raises(IndexError):
        squares[5]
