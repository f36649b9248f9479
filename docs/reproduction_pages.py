"""Writes docs/reproduction.md and docs/reproduction/*.md from the results of the experiments.

``python docs/reproduction_pages.py`` rewrites the pages; with ``--check`` it only says which ones are out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gflowbench.paper.pages import PAGES, all_pages

ROOT = Path(__file__).resolve().parent.parent


def stale(root: Path = ROOT) -> dict[Path, str | None]:
    """Finds the pages that differ from what the results say, with their right text; ``None`` for one too many."""
    right = {root / "docs" / name: text for name, text in all_pages(root / "results").items()}
    wrong: dict[Path, str | None] = {
        path: text for path, text in right.items() if not path.is_file() or path.read_text() != text
    }
    return wrong | {path: None for path in (root / "docs" / PAGES).glob("*.md") if path not in right}


def main() -> None:
    """Writes the pages, or checks them."""
    found = stale()
    if "--check" in sys.argv[1:]:
        for path in found:
            print(f"{path.relative_to(ROOT)} is out of date: run python docs/reproduction_pages.py")
        raise SystemExit(bool(found))
    for path, text in found.items():
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
