"""Cells side by side: processes with one thread each, which share nothing but the list of what is to be done.

A process that dies takes its own cell with it and no other: another one takes its place.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from gflowbench.protocol.cells import Bench, PendingCell, ProtocolSettings, failed
from gflowbench.protocol.record import Cell
from gflowexplainer.errors import ConfigError, GFlowExplainerError
from gflowexplainer.storage.files import write_json

PATIENCE = 5.0
"""Seconds that a process has to end after it was told to."""


def compute_side_by_side(bench: Bench, tasks: Sequence[PendingCell], jobs: int) -> Iterator[tuple[int, Cell]]:
    """Computes ``tasks`` in ``jobs`` processes; gives their places and cells as they end.

    When the caller stops, or an exception is raised (Ctrl-C is one), all processes are ended; cells that were finished
    are stored.

    Args:
        bench: Where cells are stored, and what they have in common.
        tasks: What is to be done. They travel to other processes, which must be able to import what makes problems
            and explainers.
        jobs: Number of processes.
    """
    waiting = list(range(len(tasks)))[::-1]
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_Worker(bench))
                workers[-1].give(waiting.pop(), tasks)
            for ready in wait([worker.connection for worker in workers]):
                worker = next(one for one in workers if one.connection is ready)
                place, cell = worker.place, worker.take()
                if cell is None:
                    cell = _lost(bench, tasks[place], worker.end())
                    workers.remove(worker)
                elif waiting:
                    worker.give(waiting.pop(), tasks)
                else:
                    worker.end()
                    workers.remove(worker)
                yield place, cell
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()


class _Worker:
    """A process that computes one task after the other."""

    def __init__(self, bench: Bench) -> None:
        # Not forked: threads of torch and a GPU do not survive that.
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_work, args=(theirs, bench.folder, bench.settings), daemon=True
        )
        self.process.start()
        theirs.close()
        self.place = -1

    def give(self, place: int, tasks: Sequence[PendingCell]) -> None:
        """Hands it the task at ``place``."""
        self.place = place
        try:
            # Whole, as bytes: tensors that a problem may hold would otherwise stay behind and be asked for later.
            self.connection.send_bytes(pickle.dumps(tasks[place]))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise _foreign(error) from error
        except OSError:  # it died between two tasks: its end is noticed when it is waited for
            pass

    def take(self) -> Cell | None:
        """Takes the result; ``None`` if the process died. What the user must know of is raised."""
        try:
            result = self.connection.recv()
        except (EOFError, OSError):
            return None
        if isinstance(result, Exception):
            raise result
        return result

    def end(self) -> int | None:
        """Ends the process and gives its exit code."""
        self.connection.close()
        self.process.join(PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        return self.process.exitcode


def _work(connection: Connection, folder: Path, settings: ProtocolSettings) -> None:
    """What a process does: computes what it is given until the other end is closed."""
    # Ctrl-C reaches every process of a terminal; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    bench = Bench(folder, settings)
    while True:
        try:
            task = pickle.loads(connection.recv_bytes())
            result: Cell | Exception = bench.compute(task)
        except EOFError:
            return
        except Exception as error:  # a task that cannot be imported here, or a cell that cannot be stored
            result = error if isinstance(error, GFlowExplainerError) else _foreign(error)
        try:
            connection.send(result)
        except OSError:  # nobody is there any more
            return


def _foreign(error: Exception) -> ConfigError:
    return ConfigError(
        "With 'jobs' above 1, problems and explainers travel to other processes, and one of them cannot "
        f"({type(error).__name__}: {error}). Make them by problem() and Contestant.named(), or use jobs=1."
    )


def _lost(bench: Bench, task: PendingCell, code: int | None) -> Cell:
    """Records a cell whose process died."""
    reason = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    cell = failed(
        task.blank(bench.settings),
        f"Its process ended ({reason}), often for lack of memory. Run it again with fewer jobs.",
    )
    write_json(bench.path(task), cell.to_dict(whole=True))
    return cell
