import os
import signal
import threading

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import NodeModel, random_graph
from gflowexplainer.training.interrupts import ENDS, Terminated, endings_interrupt, handlers_return, interrupts_wait

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")


@pytest.fixture(autouse=True)
def usual_handlers():
    """The handlers of a fresh process, whatever libraries or the shell (``nohup``) set before."""
    with handlers_return():
        for number in ENDS:
            signal.signal(number, signal.SIG_DFL)
        yield


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    before, done = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interrupts_wait():
            ctrl_c()
            done.append("the rest")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the rest"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_does_not_wait() -> None:
    before, done = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interrupts_wait():
            ctrl_c()
            done.append("first")
            ctrl_c()
            done.append("second")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["first"]
    assert signal.getsignal(signal.SIGINT) is before


def test_blocks_inside_one_another_wait_for_the_outer_one() -> None:
    done = []

    def work() -> None:
        with interrupts_wait():
            with interrupts_wait():
                ctrl_c()
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]


def test_a_handler_of_the_users_own_is_called_once_and_stays() -> None:
    before, calls = signal.getsignal(signal.SIGINT), []

    def own(number: int, _frame: object) -> None:
        calls.append(number)

    signal.signal(signal.SIGINT, own)
    try:
        with interrupts_wait():
            ctrl_c()
            assert calls == []
        assert calls == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is own
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with interrupts_wait():
            ctrl_c()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_inside_is_not_swallowed_and_the_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="inside"), interrupts_wait():
        raise ValueError("inside")
    assert signal.getsignal(signal.SIGINT) is before


def test_another_thread_leaves_the_handler_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with interrupts_wait():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_endings_interrupt_and_wait_too(number) -> None:
    before, done = signal.getsignal(number), []

    def work() -> None:
        with endings_interrupt(), interrupts_wait():
            os.kill(os.getpid(), number)
            done.append("the rest")

    with pytest.raises(Terminated) as caught:
        work()
    assert caught.value.number == number
    assert done == ["the rest"]
    assert signal.getsignal(number) is before


def test_an_ending_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with endings_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_fit_that_is_asked_to_end_stores_what_it_did_and_goes_on(tmp_path, number) -> None:
    graph, model = random_graph(12), NodeModel()
    settings = {"preset": "context", "max_nodes": 3, "epochs": 6, "num_contexts": 2, "batch_size": 2}

    def ask(trainer, record) -> None:
        if record["iteration"] == 3:
            os.kill(os.getpid(), number)

    with pytest.raises(Terminated):
        GFlowExplainer(**settings).fit(model, graph, [0, 1, 2], folder=tmp_path, progress=False, callback=ask)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 4
    resumed = GFlowExplainer(**settings).fit(model, graph, [0, 1, 2], folder=tmp_path, progress=False)
    straight = GFlowExplainer(**settings).fit(model, graph, [0, 1, 2], progress=False)
    for name, value in straight._fitted.sampler.network.items():
        assert torch.equal(value, resumed._fitted.sampler.network[name])


def test_handlers_that_a_library_set_are_taken_back() -> None:
    def work() -> None:
        with handlers_return():
            signal.signal(signal.SIGTERM, lambda number, frame: None)
            raise ValueError("in the block")

    with pytest.raises(ValueError, match="in the block"):
        work()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
