"""What an experiment is: a plan of what to compute, and what is made of the results.

An experiment is a file with two functions::

    def plan(scope: Scope) -> list[Step]:           # what to compute; nothing is computed here
        return [Measurement(f"seed {s}", {"seed": s}, partial(measure, s)) for s in scope.seeds(5, fast=2)]

    def present(results: Results) -> Outcome:       # tables, figures and verdicts, from the values alone
        ...

    EXPERIMENT = Experiment(name="my-figure", title=..., plan=plan, present=present)

and a line in :mod:`gflowbench.paper.experiments`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gflowexplainer.errors import ConfigError, one_of
from gflowexplainer.report.tables import NOT_THERE, Table, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gflowbench.paper.steps import Step
    from gflowbench.protocol import Problem

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be told"
VERDICTS = (HOLDS, IN_PART, FAILS, UNKNOWN)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Scope:
    """How much of an experiment is run, and where.

    Attributes:
        fast: Whether to run a small version that takes a minute or so.
        num_seeds: Number of seeds instead of the experiment's own.
        device: Where to compute, ``"cpu"`` or ``"cuda"``.
        gnns: Folder in which GNNs that are trained on the way are kept.
    """

    fast: bool = False
    num_seeds: int | None = None
    device: str = "cpu"
    gnns: Path | None = None

    def __post_init__(self) -> None:
        if self.num_seeds is not None and self.num_seeds < 1:
            raise ConfigError(f"'seeds' must be at least 1 (got {self.num_seeds}).")

    def pick(self, full: Value, fast: Value) -> Value:
        """Returns the one or the other."""
        return fast if self.fast else full

    def seeds(self, full: int, fast: int = 1) -> range:
        """Returns the seeds, counted from 0: so many of a full or a fast run, or as many as the user asked for."""
        return range(self.pick(full, fast) if self.num_seeds is None else self.num_seeds)

    @property
    def gnn(self) -> str:
        """Which GNNs are explained: the published ones where their files are there, else ones that are trained."""
        from gflowbench.datasets import reference_folder

        return "trained" if reference_folder() is None else "published"

    def problem(self, dataset: str, *, every: int = 1) -> Problem:
        """Names a dataset and its GNN; of its instances every n-th."""
        from gflowbench.protocol import problem

        return problem(dataset, self.gnn, every=every, device=self.device, weights=self.gnns)


@dataclass(frozen=True)
class Results:
    """What the steps of a plan gave.

    Attributes:
        scope: What was run.
        values: Value of each step by its name, as JSON gives it back: lists, dictionaries, numbers, ``None`` for nan.
    """

    scope: Scope
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


@dataclass(frozen=True)
class Verdict:
    """Whether a claim of the paper holds.

    Attributes:
        claim: The claim, in our words, one sentence.
        verdict: One of :data:`VERDICTS`.
        evidence: What was found, one or two sentences with numbers that are computed from the results.
    """

    claim: str
    verdict: str
    evidence: str

    def __post_init__(self) -> None:
        one_of("verdict", self.verdict, VERDICTS)

    @classmethod
    def judge(cls, claim: str, parts: Sequence[bool], evidence: str) -> Verdict:
        """Says that a claim holds if all its parts do, in part if some do, and cannot be told if there are none."""
        if not parts:
            return cls(claim, UNKNOWN, evidence)
        return cls(claim, HOLDS if all(parts) else IN_PART if any(parts) else FAILS, evidence)

    @classmethod
    def of(cls, claim: str, found: Mapping[str, tuple[bool | Sequence[bool], str]], lead: str = "") -> Verdict:
        """Judges by named parts, each of which holds or not (or several of it), and says what was found of it."""
        parts = [part for holds, _ in found.values() for part in ([holds] if isinstance(holds, bool) else holds)]
        return cls.judge(claim, parts, lead + ", ".join(f"{name} {words}" for name, (_, words) in found.items()) + ".")


@dataclass(frozen=True)
class Drawing:
    """A figure that is drawn when it is asked for.

    Attributes:
        name: Name of its files, without ending.
        caption: What it shows, in words that need no colours.
        draw: Makes it; may import matplotlib.
    """

    name: str
    caption: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Outcome:
    """What an experiment says.

    Attributes:
        tables: Tables, the most important first.
        verdicts: One for each claim of the paper.
        drawings: Figures.
        notes: What a reader has to know beside: how much was run, what was left out.
    """

    tables: Sequence[Table]
    verdicts: Sequence[Verdict]
    drawings: Sequence[Drawing] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes:
        name: What it is called on the command line.
        title: What it is, one line.
        plan: Names what has to be computed.
        present: Makes tables, figures and verdicts of what was computed; computes nothing itself.
    """

    name: str
    title: str
    plan: Callable[[Scope], Sequence[Step]]
    present: Callable[[Results], Outcome]


@dataclass(frozen=True)
class Compared:
    """A number of ours beside the paper's; ``None`` where there is none.

    Attributes:
        name: What it is.
        paper: What the paper prints.
        ours: What was found here.
        deviation: Its standard deviation over seeds.
        digits: Decimals that are written.
    """

    name: str
    paper: float | None
    ours: float | None
    deviation: float | None = None
    digits: int = 3

    def row(self) -> tuple[str, str, str, str]:
        """Writes name, paper, ours and difference."""
        both = self.paper is not None and self.ours is not None
        difference = f"{self.ours - self.paper:+.{self.digits}f}" if both else NOT_THERE  # type: ignore[operator]
        ours = number(self.ours, self.deviation, self.digits)
        return self.name, number(self.paper, digits=self.digits), ours, difference


def compare(title: str, rows: Sequence[Compared], head: str = "") -> Table:
    """Makes a table of paper, ours and difference; ``head`` stands above the names."""
    return Table(title, (head, "paper", "ours", "difference"), tuple(row.row() for row in rows))


def counted(number: int, what: str) -> str:
    """Writes ``1 seed`` or ``5 seeds``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over seeds; the latter is ``None`` for a single one."""

    mean: float
    deviation: float | None = field(default=None)

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread | None:
        """Averages the values that are there; ``None`` if none is."""
        from statistics import fmean, stdev

        known = [value for value in values if value is not None]
        if not known:
            return None
        return cls(fmean(known), stdev(known) if len(known) > 1 else None)

    def __str__(self) -> str:
        return number(self.mean, self.deviation)
