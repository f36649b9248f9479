"""What a report shows: explained instances, training curves, settings and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gflowexplainer.drawing.case import Case
from gflowexplainer.errors import ConfigError

if TYPE_CHECKING:
    from gflowexplainer.report.tables import Table


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that a report shows.

    Attributes:
        title: What stands above it.
        cases: Explained instances, in order; there may be none where there are curves or tables.
        curves: Records of a training, as :class:`~gflowexplainer.training.trainer.Trainer` writes them to its metrics.
        settings: Shown as a table; mappings inside are unfolded.
        environment: Versions and the like, shown as a table.
        tables: Further tables, such as scores.
        command: What made the report.
    """

    title: str
    cases: Sequence[Case]
    curves: Sequence[Mapping[str, float]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    command: str = ""

    def __post_init__(self) -> None:
        if not self.cases:
            if not (self.curves or self.tables):
                raise ConfigError(
                    "There is nothing to report. Pass explained instances as 'cases', or 'tables' or 'curves'."
                )
            return
        name, count = Counter(case.name for case in self.cases).most_common(1)[0]
        if count > 1:
            raise ConfigError(f"{count} cases are called '{name}'. Give each case a name of its own.")
