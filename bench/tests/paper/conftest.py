"""A toy experiment whose steps count how often they are computed and fail on demand."""

import sys
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from gflowbench.paper import Drawing, Experiment, Measurement, Outcome, Verdict
from gflowbench.paper import experiments as registered
from gflowexplainer.report.tables import Table


@dataclass
class Toy:
    """Computes the squares of 0 to ``length - 1``; ``fails`` says with which exception a step fails."""

    length: int = 4
    fails: dict = field(default_factory=dict)
    computed: list = field(default_factory=list)

    def compute(self, number):
        if number in self.fails:
            raise self.fails[number]
        self.computed.append(number)
        return {"square": number**2, "pair": (number, float("nan"))}

    def plan(self, scope):
        count = scope.pick(self.length, 2)
        return [Measurement(f"step {n}/x", {"number": n}, partial(self.compute, n)) for n in range(count)]

    def present(self, results):
        squares = [results[f"step {n}/x"]["square"] for n in range(len(results.values))]
        table = Table("Squares | of_all", ("n", "square"), tuple((str(n), str(s)) for n, s in enumerate(squares)))
        verdict = Verdict.judge("Squares grow.", [True, sum(squares) > 1], f"They add up to {sum(squares)}.")
        return Outcome([table], [verdict], [Drawing("plot", "A line. It rises.", draw)], ["A note."])

    def experiment(self, name="toy"):
        return Experiment(name, f"The toy {name}", self.plan, self.present)


def draw():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 2))
    figure.add_subplot().plot([0, 1], [0, 1])
    return figure


@pytest.fixture
def toy():
    return Toy()


@pytest.fixture
def toys(monkeypatch):
    """Puts three toy experiments in the place of the real ones."""
    found = {name: Toy() for name in ("first", "second", "third")}
    for name, one in found.items():
        monkeypatch.setitem(
            sys.modules, f"gflowbench.paper.toy_{name}", SimpleNamespace(EXPERIMENT=one.experiment(name))
        )
    monkeypatch.setattr(registered, "EXPERIMENTS", {name: f"toy_{name}:EXPERIMENT" for name in found})
    return found


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
