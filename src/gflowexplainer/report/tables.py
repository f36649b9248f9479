"""Tables as Markdown, LaTeX and rich."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable

NOT_THERE = "-"
_LATEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"} | {
    c: f"\\{c}" for c in "&%$#_{}"
}


@dataclass(frozen=True)
class Table:
    """Text in rows and columns.

    Attributes:
        title: What it shows, one line.
        columns: Heads of the columns; the first names the rows.
        rows: One text for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        """Writes the table for a Markdown page; numbers stand to the right."""
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [self.columns, rule, *self.rows]
        body = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
        return f"**{self.title}**\n\n{body}\n"

    def to_latex(self) -> str:
        """Writes the table for a LaTeX document that loads the package booktabs."""
        lines = [" & ".join(map(_escape, line)) + r" \\" for line in (self.columns, *self.rows)]
        shape = "l" + "r" * (len(self.columns) - 1)
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{_escape(self.title)}}}",
                rf"\begin{{tabular}}{{{shape}}}",
                r"\toprule",
                lines[0],
                r"\midrule",
                *lines[1:],
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def to_rich(self) -> RichTable:
        """Makes the table for a terminal."""
        from rich.markup import escape
        from rich.table import Table as RichTable

        table = RichTable(title=escape(self.title), title_justify="left", min_width=len(self.title))
        for number, column in enumerate(self.columns):
            table.add_column(escape(column), justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table


def number(mean: float | None, deviation: float | None = None, digits: int = 3) -> str:
    """Writes ``0.712 ± 0.004``, without the second part where there is none, and ``-`` for no number."""
    if mean is None or isnan(mean):
        return NOT_THERE
    text = f"{mean:.{digits}f}"
    return text if deviation is None or isnan(deviation) else f"{text} ± {deviation:.{digits}f}"


def join(tables: Iterable[Table], form: str, notes: Sequence[str] = ()) -> str:
    """Puts tables below each other as ``"markdown"`` or ``"latex"``, with notes at the end."""
    if form == "latex":
        comments = [f"% {note}" for note in notes]
        return "\n".join([*(table.to_latex() for table in tables), *comments]).rstrip() + "\n"
    lines = [f"- {note}" for note in notes]
    return "\n".join([*(table.to_markdown() for table in tables), *lines]).rstrip() + "\n"


def _escape(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
