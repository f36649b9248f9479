"""All accuracy gates through the public class, one process a task: ``python -m benchmarks.gates --jobs 16``.

First ``--prepare`` makes tasks and trains GNNs into the folder ``--prepared`` (only molecules and compounds need rdkit),
then the same command without it explains them, stores one JSON file a job in ``--out``, and prints the tables.
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks.gate_jobs import GATES, PREPARED, TASKS_OF, Job, Options, plan, prepare_job, run_job
from benchmarks.gate_tables import differences, tables
from gflowexplainer.storage.files import read_json, write_json, write_text
from gflowexplainer.storage.provenance import code_digest, command_line

Work = Callable[[Job, Options], dict[str, Any]]
_ATTEMPTS = 3


def main(arguments: Sequence[str] = ()) -> int:
    """Does what the arguments ask for; returns the exit code."""
    options = _parser().parse_args(arguments)
    settings = dict(_setting(text) for text in options.set)
    common = Options(str(options.prepared), settings, options.cases, options.graphs, options.links_every)
    jobs = plan(options.gates, options.seeds, options.tasks, options.gnns, options.max_nodes)
    until = time.monotonic() + options.within
    os.environ["OMP_NUM_THREADS"] = "1"
    if options.prepare:
        wanted = [job for job in jobs if job.gate in PREPARED]
        results = dict(_computed(wanted, prepare_job, common, options.jobs, until))
        failed = [f"{job.name}: {row['error']}" for job, row in results.items() if "error" in row]
        print("\n".join([*failed, f"{len(wanted) - len(failed)} of {len(wanted)} prepared, in {options.prepared}."]))
        return int(len(results) < len(wanted) or bool(failed))
    identity = {**common.measure_identity(), "code": code_digest()}
    rows: dict[Job, dict[str, Any]] = {}
    for job in jobs:
        stored = _stored(options.out / f"{job.name}.json", identity)
        if stored is not None:
            rows[job] = stored
    missing = [job for job in jobs if job not in rows]
    print(f"{len(jobs)} jobs, {len(rows)} stored", file=sys.stderr, flush=True)
    for job, row in _computed(missing, run_job, common, options.jobs, until):
        rows[job] = row
        write_json(options.out / f"{job.name}.json", {"job": asdict(job), "identity": identity, "row": row})
    text = tables({job: rows[job] for job in jobs if job in rows}, len(jobs) - len(rows))
    if options.against is not None:
        before = {job: _stored(options.against / f"{job.name}.json", None) for job in rows}
        text += differences(rows, {job: row for job, row in before.items() if row is not None}, options.against.name)
    write_text(options.out / "gates.md", f"`{command_line()}`\n\n{text}")
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
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds after which what runs is ended")
    return parser


def _setting(text: str) -> tuple[str, Any]:
    """Reads ``name=value``; what is no Python literal is a string."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _stored(path: Path, identity: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns a stored row that did not fail and is of this code and these settings."""
    if not path.is_file():
        return None
    stored = read_json(path)
    same = identity is None or stored["identity"] == identity
    return stored["row"] if same and "error" not in stored["row"] else None


def _computed(
    jobs: Sequence[Job], work: Work, options: Options, processes: int, until: float
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Computes jobs side by side and yields each as it ends; a process that dies costs the jobs that were running."""
    waiting, done = list(jobs), 0
    for _ in range(_ATTEMPTS):
        if not waiting:
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(processes, len(waiting)), context, torch.set_num_threads, (1,)) as pool:
            futures: dict[Future[dict[str, Any]], Job] = {pool.submit(_safely, work, j, options): j for j in waiting}
            while futures:
                ended, _rest = wait(futures, max(until - time.monotonic(), 0) if until < 1e9 else None, FIRST_COMPLETED)
                if not ended:
                    pool.shutdown(wait=False, cancel_futures=True)
                    for process in multiprocessing.active_children():
                        process.terminate()
                    return
                for future in ended:
                    job = futures.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        continue
                    row = future.result()
                    waiting.remove(job)
                    done += 1
                    told = row["error"].splitlines()[-1] if "error" in row else f"{row['total_seconds']:.1f} s"
                    print(f"[{done}/{len(jobs)}] {job.name}: {told}", file=sys.stderr, flush=True)
                    yield job, row
    for job in waiting:
        yield job, {"error": "Its process died, often for lack of memory. Run it again with fewer jobs."}


def _safely(work: Work, job: Job, options: Options) -> dict[str, Any]:
    """Does one job; what goes wrong in it is its result."""
    began = time.perf_counter()
    try:
        row = work(job, options)
    except Exception:
        row = {"error": traceback.format_exc()[-2000:]}
    return {**row, "total_seconds": time.perf_counter() - began}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
