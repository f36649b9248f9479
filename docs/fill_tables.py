"""Copies tables from result files into the documents, between markers, so that no number is typed by hand.

A marker names the file and which of its tables is meant, counted from 1, or from the end by negative numbers::

    <!-- table 1 of results/bench/exact_rewards/summary.md -->
    <!-- end of table -->

``python docs/fill_tables.py`` rewrites the documents; with ``--check`` it only says which ones are out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKED = re.compile(r"(<!-- table (-?\d+) of (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def documents() -> list[Path]:
    """Lists the documents that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def tables_of(text: str) -> list[str]:
    """Finds the Markdown tables of a text."""
    return [match.group().strip() for match in re.finditer(r"(?:^\|.*\n?)+", text, re.MULTILINE)]


def filled(text: str) -> str:
    """Puts every table that ``text`` asks for into its place."""

    def table(match: re.Match[str]) -> str:
        found = tables_of((ROOT / match.group(3)).read_text())
        return f"{match.group(1)}{found[int(match.group(2)) - (int(match.group(2)) > 0)]}\n{match.group(4)}"

    return MARKED.sub(table, text)


def main() -> None:
    """Fills the documents, or checks them."""
    stale = [path for path in documents() if filled(path.read_text()) != path.read_text()]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run python docs/fill_tables.py")
        raise SystemExit(bool(stale))
    for path in stale:
        path.write_text(filled(path.read_text()))


if __name__ == "__main__":
    main()
