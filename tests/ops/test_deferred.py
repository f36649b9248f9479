"""Values that wait until they are asked for."""

import pickle

import pytest

from gflowexplainer.ops.deferred import Deferred, DeferredList


def test_a_value_is_computed_once_and_only_if_it_is_asked_for():
    calls = []
    first = Deferred(lambda: calls.append("first") or 2)
    second = first.then(lambda value: calls.append("second") or value + 1)
    assert calls == []
    assert second.value == second.value == 3
    assert first.value == 2
    assert calls == ["first", "second"]


def test_nothing_is_a_value_too_and_values_travel():
    assert Deferred.of(None).value is None
    assert pickle.loads(pickle.dumps(Deferred(lambda: [1, 2]))).value == [1, 2]


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
