"""Values that wait until they are asked for."""

import pickle

from gflowexplainer.ops.deferred import Deferred


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
