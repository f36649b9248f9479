"""All accuracy gates through the public class, one process a task: ``python -m benchmarks.gates --jobs 16``.

With ``--prepare`` first: it makes tasks and trains GNNs into the folder ``--prepared`` (only molecules and compounds
need rdkit). Without it they are explained. Each job is one JSON file in ``--out``, and finished ones are kept.
Published data come from the folder that ``GFLOWEXPLAINER_DATA`` names.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch

from benchmarks.gate_jobs import GATES, PREPARED, TASKS_OF, Job, Options, plan, run_job
from benchmarks.gate_problems import prepare
from benchmarks.gate_tables import Rows, differences, tables
from gflowexplainer.report.provenance import code_digest, command_line
from gflowexplainer.storage.files import read_json, write_json, write_text


def main(arguments: Sequence[str] = ()) -> int:
    """Does what the arguments ask for; returns the exit code."""
    given = _parser().parse_args(arguments)
    settings = dict(_setting(text) for text in given.set)
    options = Options(given.prepared, settings, given.cases, given.graphs, given.links_every)
    gates = [gate for gate in given.gates if not given.prepare or gate in PREPARED]
    jobs = plan(gates, given.seeds, given.tasks, given.gnns, given.max_nodes)
    out = given.prepared / "made" if given.prepare else given.out
    identity = {} if given.prepare else {**asdict(options), "prepared": "", "code": code_digest()}
    _compute(jobs, out, options, identity, given.jobs, time.monotonic() + given.within)
    rows = _stored(jobs, out)
    if given.prepare:
        failed = [f"{job.name}: {row['error']}" for job, row in rows.items() if "error" in row]
        print("\n".join([*failed, f"{len(rows) - len(failed)} of {len(jobs)} are prepared."]))
        return int(len(rows) < len(jobs) or bool(failed))
    text = tables(rows, len(jobs) - len(rows))
    if given.against is not None:
        text += differences(rows, _stored(jobs, given.against), given.against.name)
    write_text(out / "gates.md", f"`{command_line()}`\n\n{text}")
    print(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gates", description=__doc__)
    every = sorted({task for tasks in TASKS_OF.values() for task in tasks})
    parser.add_argument("--gates", nargs="*", default=GATES, choices=GATES, metavar="GATE", help=", ".join(GATES))
    parser.add_argument("--tasks", nargs="*", default=(), choices=every, metavar="TASK", help="only these tasks")
    parser.add_argument("--gnns", nargs="*", default=(), help="only these GNNs")
    parser.add_argument("--seeds", nargs="*", type=int, default=(0,))
    parser.add_argument("--max-nodes", nargs="*", type=int, default=(), help="bounds of 'six' and 'shown'")
    parser.add_argument("--cases", type=int, help="predictions of a task at most")
    parser.add_argument("--graphs", type=int, help="graphs of Mutagenicity at most")
    parser.add_argument("--links-every", type=int, default=1, help="explain every n-th link of UserItemAttr")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="setting of the explainer")
    parser.add_argument("--prepare", action="store_true", help="make tasks and train GNNs instead of explaining")
    parser.add_argument("--prepared", type=Path, default=Path("prepared"), help="folder of tasks and GNNs")
    parser.add_argument("--out", type=Path, default=Path("runs/gates"), help="folder of results")
    parser.add_argument("--against", type=Path, help="folder of another run, to print the difference")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--within", type=float, default=1e6, help="seconds after which what runs is ended")
    return parser


def _setting(text: str) -> tuple[str, Any]:
    """Reads ``name=value``; what is no Python literal is a string."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _stored(jobs: Sequence[Job], folder: Path) -> Rows:
    """Reads the rows of jobs that are stored."""
    return {job: read_json(job.file(folder))["row"] for job in jobs if job.file(folder).is_file()}


def _compute(
    jobs: Sequence[Job], out: Path, options: Options, identity: dict[str, Any], processes: int, until: float
) -> None:
    """Computes what is not stored, failed, or is of other code or settings: a process each, ``processes`` at a time."""
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.gate_jobs"])
    waiting = [job for job in jobs if not _is_done(job.file(out), identity)][::-1]
    for job in waiting:
        job.file(out).unlink(missing_ok=True)
    number, running = len(waiting), dict[int, tuple[Job, Any]]()
    print(f"{len(jobs)} jobs, {len(jobs) - number} of them stored", file=sys.stderr, flush=True)
    try:
        while (waiting or running) and time.monotonic() < until:
            while waiting and len(running) < processes:
                job = waiting.pop()
                process = context.Process(target=_work, args=(job, job.file(out), options, identity), daemon=True)
                process.start()
                running[process.sentinel] = job, process
            for sentinel in wait(list(running), until - time.monotonic()):
                job, process = running.pop(int(sentinel))  # type: ignore[arg-type]
                process.join()
                if not job.file(out).is_file():
                    _store(job, job.file(out), identity, {"error": f"exit code {process.exitcode}", "total_seconds": 0})
                row = read_json(job.file(out))["row"]
                told = row["error"].strip().splitlines()[-1] if "error" in row else f"{row['total_seconds']:.1f} s"
                place = number - len(waiting) - len(running)
                print(f"[{place}/{number}] {job.name}: {told}", file=sys.stderr, flush=True)
    finally:
        for _, process in running.values():
            process.terminate()


def _is_done(path: Path, identity: dict[str, Any]) -> bool:
    stored = read_json(path) if path.is_file() else {"row": {"error": ""}}
    return "error" not in stored["row"] and stored["identity"] == identity


def _work(job: Job, path: Path, options: Options, identity: dict[str, Any]) -> None:
    """Does one job in a process of its own; what goes wrong in it is its result."""
    torch.set_num_threads(1)
    began = time.perf_counter()
    try:
        row = run_job(job, options) if identity else prepare(options.prepared, job)
    except Exception:
        row = {"error": traceback.format_exc()[-2000:]}
    _store(job, path, identity, {**row, "total_seconds": time.perf_counter() - began})


def _store(job: Job, path: Path, identity: dict[str, Any], row: dict[str, Any]) -> None:
    write_json(path, {"job": asdict(job), "identity": identity, "row": row})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
