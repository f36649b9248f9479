"""Pages of the documents, written from result files: one an experiment, and an overview with every verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gflowbench.paper.experiment import VERDICTS, Experiment, counted
from gflowbench.paper.experiments import experiment, names
from gflowbench.paper.run_experiment import FIGURES, has_summary, read_summary, tables_of
from gflowbench.protocol.record import SUMMARY
from gflowexplainer.report.tables import Table, join

_COMMANDS = ("list", "all --fast", "all")
OVERVIEW, PAGES = "reproduction.md", "reproduction"
_MADE = "<!-- Written by docs/reproduction_pages.py from the result files; edits are lost. -->"


def all_pages(results: Path) -> dict[str, str]:
    """Writes all pages.

    Args:
        results: Folder of the experiments' folders.

    Returns:
        The text of each page by its path inside the folder of documents; experiments without results have no page.
    """
    found = {name: read_summary(results / name) for name in names() if has_summary(results / name)}
    pages = {f"{PAGES}/{name}.md": page(experiment(name), record) for name, record in found.items()}
    return {OVERVIEW: overview(found)} | pages


def page(one: Experiment, record: Mapping[str, Any]) -> str:
    """Writes the page of an experiment: its prose, and tables, figures and verdicts of its results."""
    parts = [
        _MADE,
        f"# {one.title}",
        f"```bash\n{record['command']}\n```",
        f"{size_of(record)} {origin_of(record)} Seeds, versions and code: "
        f"[{SUMMARY}](../../results/{one.name}/{SUMMARY}).",
        f"## What the paper claims\n\n{one.claims.strip()}",
        f"## How it is measured here\n\n{one.method.strip()}",
        "## Does it hold?",
        *(f"**{v['verdict'].capitalize()}:** {v['claim']} {v['evidence']}" for v in record["verdicts"]),
        "## Results",
        *(_figure(one.name, figure) for figure in record["figures"]),
        join(tables_of(record), "markdown").strip(),
        join([], "markdown", record["notes"]).strip(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def overview(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Writes the overview: every claim with its verdict, and which experiments have no results."""
    rows = [
        (f"[{name}]({PAGES}/{name}.md){' (fast run)' if record['fast'] else ''}", *_claim(verdict))
        for name, record in found.items()
        for verdict in record["verdicts"]
    ]
    counts = {v: sum(one["verdict"] == v for r in found.values() for one in r["verdicts"]) for v in VERDICTS}
    tally = ", ".join(f"*{verdict}* {count}" for verdict, count in counts.items())
    table = Table("Every claim", ("experiment", "claim of the paper", "verdict", "evidence"), tuple(rows))
    missing = [name for name in names() if name not in found]
    parts = [
        _MADE,
        "# The paper, reproduced",
        "Every table and figure of the paper from one command, with a verdict for each claim: *holds*, *holds in "
        "part*, *does not hold*, or *cannot be told*. Verdicts and evidence are computed from the result files.",
        "\n".join(["```bash", *(f"gflowexplainer reproduce {words}" for words in _COMMANDS), "```"]),
        "`--fast` runs fewer seeds, instances and epochs and writes to `runs/reproduce-fast`; without it the results "
        "in `results/` are made anew. A run that was interrupted goes on with the same command; what was computed by "
        "other code than today's is computed again. Git keeps summaries and figures, not every value and cell.",
        f"{sum(counts.values())} claims: {tally}.",
        _left(table.to_markdown()).strip(),
    ]
    if missing:
        parts.append("Without results so far: " + ", ".join(f"`{name}`" for name in missing) + ".")
    return "\n\n".join(parts) + "\n"


def size_of(record: Mapping[str, Any]) -> str:
    """Says whether a run was full or fast."""
    seeds = "" if record["seeds"] is None else f", {record['seeds']} seeds"
    if record["fast"]:
        return f"**Fast run{seeds}:** fewer seeds, instances and epochs than the paper; the notes below say how many."
    return f"Full run{seeds}."


def origin_of(record: Mapping[str, Any]) -> str:
    """Says when, with what and how long the values were computed."""
    sentences = []
    for group in record["computed"]:
        days = list(dict.fromkeys((group["first"][:10], group["last"][:10])))
        device, versions = group["device"], group["versions"]
        where = device.get("gpu") or f"CPU ({device['machine']}), {counted(device['threads'], 'thread')}"
        minutes = group["seconds"] / 60
        took = f"{minutes:.0f} minutes" if minutes >= 2 else f"{group['seconds']:.0f} s"
        sentences.append(
            f"{counted(group['steps'], 'step')} in {took} on {where}, torch {versions['torch']}, {' to '.join(days)}."
        )
    return " ".join(sentences)


def _claim(verdict: Mapping[str, str]) -> tuple[str, str, str]:
    return verdict["claim"], f"**{verdict['verdict']}**", verdict["evidence"]


def _figure(name: str, figure: Mapping[str, str]) -> str:
    path = f"../../results/{name}/{FIGURES}/{figure['name']}.png"
    alt = figure["caption"].split(".")[0].replace("[", "(").replace("]", ")")
    return f"![{alt}]({path})\n\n*{figure['caption']}*"


def _left(table: str) -> str:
    """Puts the columns of a table of words to the left."""
    return table.replace("---:", "---")
