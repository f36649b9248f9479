"""What a machine does to a process: full disks, folders that cannot be written, second writers, signals, threads."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import torch

from faults.counting import Count, forked
from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import CheckpointError, GFlowExplainerError
from gflowexplainer.testing import GraphModel, NodeModel, cycle, house, random_graph
from gflowexplainer.training.interrupts import Terminated

QUICK: dict[str, Any] = {"preset": "context", "max_nodes": 4, "epochs": 3, "batch_size": 2, "num_samples": 16}
"""Of a reward for which a network is trained, so that there is something to interrupt."""


def full_disks(number: int) -> Count:
    """Lets no file become larger than some bytes, as on a disk that is full; an older explainer stays whole."""
    count = Count("full disk")
    data, model = random_graph(12), NodeModel()
    for turn in range(number):
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "fit"
            old = GFlowExplainer(**QUICK).fit(model, data, [0, 1], folder=folder, progress=False)
            before = (folder / "explainer.safetensors").read_bytes()

            def work(turn: int = turn, folder: Path = folder, old: GFlowExplainer = old) -> object:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000 * turn, 1000 * turn))
                if turn % 2:
                    return old.save(folder)
                other = folder.with_name("other")
                return GFlowExplainer(**QUICK).fit(model, data, [2, 3], folder=other, progress=False)

            code = forked(work)
            whole = (folder / "explainer.safetensors").read_bytes() == before
            GFlowExplainer.load(folder)
            end = {0: "survived", 3: "typed"}.get(code, "unclear") if whole else "wrong"
            count.add(end, f"files of at most {1000 * turn} bytes: exit code {code}")
    return count


def unwritable_folders() -> Count:
    """Writes to places that nobody can write to."""
    count = Count("folders that cannot be written")
    data, model = random_graph(12), NodeModel()
    fitted = GFlowExplainer(**QUICK).fit(model, data, [0, 1], progress=False)
    explanation = fitted.explain(model, data, [3])[0]
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "file").write_text("")
        places = ["/proc/nowhere", "/dev/null", "/dev/full/x", f"{home}/file", f"{home}/file/x", f"{home}/{'n' * 300}"]
        places += ["/sys/nowhere", f"{home}/a\0b", f"{home}/" + "d/" * 3000]
        for place in places:
            shown = repr(place[:40])
            count.judge(f"save to {shown}", lambda place=place: fitted.save(place))
            count.judge(f"save an explanation to {shown}", lambda place=place: explanation.save(f"{place}/e"))
            count.judge(
                f"fit in {shown}",
                lambda place=place: GFlowExplainer(**QUICK).fit(model, data, [0], folder=place, progress=False),
            )
            count.judge(f"load from {shown}", lambda place=place: GFlowExplainer.load(place))
    return count


def two_writers(number: int) -> Count:
    """Starts a second fit in the folder of one that runs."""
    count = Count("two writers")
    data, model = random_graph(12), NodeModel()
    truth = GFlowExplainer(**QUICK).fit(model, data, [0, 1, 2], progress=False)._fitted.sampler.network  # type: ignore[union-attr]
    for _ in range(number):
        with tempfile.TemporaryDirectory() as home:
            first = os.fork()
            if first == 0:
                slow = lambda *_: time.sleep(0.1)  # noqa: E731
                GFlowExplainer(**QUICK).fit(model, data, [0, 1, 2], folder=home, progress=False, callback=slow)
                os._exit(0)
            while not (Path(home) / ".lock").is_file() or not (Path(home) / ".lock").read_bytes():
                time.sleep(0.01)
            try:
                GFlowExplainer(**QUICK).fit(model, data, [0, 1, 2], folder=home, progress=False)
                end = "wrong"
            except CheckpointError:
                end = "typed"
            os.waitpid(first, 0)
            found: Any = GFlowExplainer.load(home)
            same = all(torch.equal(value, found._fitted.sampler.network[name]) for name, value in truth.items())
            lines = (Path(home) / "metrics.jsonl").read_text().splitlines()
            count.add(end if same and len(lines) == 6 else "wrong", f"{end}, same weights: {same}, {len(lines)} lines")
    return count


def endings(number: int) -> Count:
    """Asks fits to end by SIGTERM and SIGHUP; what they did is stored, and they go on to the same weights."""
    count = Count("SIGTERM and SIGHUP")
    data, model = random_graph(12), NodeModel()
    truth: Any = GFlowExplainer(**QUICK).fit(model, data, [0, 1, 2], progress=False)
    for turn in range(number):
        with tempfile.TemporaryDirectory() as home:
            kind = (signal.SIGTERM, signal.SIGHUP)[turn % 2]

            def ask(trainer: Any, record: Any, kind: int = kind, turn: int = turn) -> None:
                if record["iteration"] == turn % 5:
                    os.kill(os.getpid(), kind)

            try:
                GFlowExplainer(**QUICK).fit(model, data, [0, 1, 2], folder=home, progress=False, callback=ask)
                count.add("wrong", "the signal was not noticed")
                continue
            except Terminated:
                stored = len((Path(home) / "metrics.jsonl").read_text().splitlines())
            found: Any = GFlowExplainer(**QUICK).fit(model, data, [0, 1, 2], folder=home, progress=False)
            weights = truth._fitted.sampler.network
            same = all(torch.equal(v, found._fitted.sampler.network[name]) for name, v in weights.items())
            count.add("survived" if same and stored == turn % 5 + 1 else "wrong", f"{stored} updates stored")
    return count


def threads(rounds: int) -> Count:
    """Explains from four threads with one explainer and one model, and compares with one thread."""
    count = Count("four threads")
    model, data, graphs = NodeModel().train(), random_graph(20, 0.1), [house(), cycle(6), random_graph(9)]
    other = GraphModel()
    fitted = GFlowExplainer(**QUICK).fit(model, data, [0, 1, 2], progress=False)
    alone = GFlowExplainer(**QUICK)

    def content(found: Any) -> list[Any]:
        return [[(s.nodes, round(s.probability, 9), s.prediction_only) for s in e.subgraphs] for e in found]

    def work(number: int) -> list[Any]:
        return [
            *content(fitted.explain(model, data, [number, number + 4])),
            *content(alone.explain(other, graphs, [number % 3], progress=False)),
        ]

    truth = [work(number) for number in range(4)]
    for _ in range(rounds):
        found: dict[int, Any] = {}

        def run(number: int, found: dict[int, Any] = found) -> None:
            try:
                found[number] = work(number)
            except GFlowExplainerError as error:
                found[number] = error
            except BaseException as error:
                found[number] = ("unclear", error)

        running = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        for number in range(4):
            result = found[number]
            if isinstance(result, GFlowExplainerError):
                count.add("typed")
            elif isinstance(result, tuple):
                count.add("unclear", repr(result[1]))
            else:
                count.add("survived" if result == truth[number] and model.training else "wrong", "another explanation")
    return count


def growth(calls: int) -> Count:
    """Explains so many times and looks how much the memory of the process has grown after the first tenth."""
    count = Count(f"memory after {calls} calls")
    model, data = NodeModel(), random_graph(30, 0.05)
    fitted = GFlowExplainer(**QUICK).fit(model, data, [0, 1, 2], progress=False)
    before = 0
    for call in range(calls):
        explanation = fitted.explain(model, data if call % 2 else data.clone(), [call % 30])[0]
        _ = explanation.subgraphs[0].prediction_only, explanation.certificate
        if call == calls // 10:
            before = _resident()
    grown = _resident() - before
    count.add("survived" if grown < 20e6 else "wrong", f"{grown / 1e6:.1f} MB more")
    return count


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
