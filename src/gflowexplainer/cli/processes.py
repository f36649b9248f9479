"""The processes of a training: started here, or by ``torchrun`` on every machine; only the first one speaks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from gflowexplainer.cli.console import PROBLEM
from gflowexplainer.errors import ClusterError, ConfigError

_PATIENCE = 60.0
"""Seconds that the others are given to notice that the first process has ended."""
_RANKS = ("RANK", "LOCAL_RANK")
"""Variables that tell processes of one machine apart."""


@contextmanager
def together(*, device: str, devices: int | None, nodes: int) -> Iterator[Any]:
    """Joins this process with the others that take part, and gives their Fabric; ``None`` if it is alone.

    Args:
        device: ``"cpu"`` or ``"cuda"``.
        devices: Processes on each machine; as many as were started if not given.
        nodes: Machines; each needs a ``torchrun`` of its own if there are several.
    """
    started = _started()
    number = devices or (int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if started else 1)
    if number * nodes == 1:
        yield None
        return
    if ":" in device:
        raise ConfigError(f"'--device' names one device ({device!r}), but there are several. Use {device[:4]!r}.")
    if nodes > 1 and not started:
        raise ConfigError(
            f"'--nodes {nodes}' needs this command on every machine, started by torchrun: torchrun --nnodes {nodes} "
            f"--nproc-per-node {number} --rdzv-backend c10d --rdzv-endpoint HOST:29500 -m gflowexplainer fit ..."
        )
    from gflowexplainer.training.distributed import launch

    others = [] if started else _start_others(number)
    try:
        with _silent_followers():
            yield launch(device=device, devices=number, nodes=nodes)
    finally:
        _leave(others)


def is_first() -> bool:
    """Returns whether this process speaks for all; true of one that is alone."""
    return int(os.environ.get("RANK", 0)) == 0


def _started() -> bool:
    """Returns whether something has started this process as one of several."""
    return "LOCAL_RANK" in os.environ and "WORLD_SIZE" in os.environ


def _start_others(number: int) -> list[subprocess.Popen[bytes]]:
    """Makes this process the first of ``number``, and starts the same command for the others."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // number)))
    os.environ |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(number)) | dict.fromkeys(_RANKS, "0")
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NODE_RANK": "0"}
    command = [sys.executable, "-m", "gflowexplainer", *sys.argv[1:]]
    return [subprocess.Popen(command, env=os.environ | dict.fromkeys(_RANKS, str(rank))) for rank in range(1, number)]


@contextmanager
def _silent_followers() -> Iterator[None]:
    """Lets only the first process say what all of them say, or what only follows from another's end."""
    try:
        yield
    except (ConfigError, ClusterError, KeyboardInterrupt) as error:
        if is_first():
            raise
        raise typer.Exit(PROBLEM) from error


def _leave(others: list[subprocess.Popen[bytes]]) -> None:
    """Closes the connections, which ends the others if they have not ended yet, and waits for them."""
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()
    for process in others:
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
    if others:
        for name in (*_RANKS, "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NODE_RANK"):
            os.environ.pop(name, None)
