"""One training in several processes: who takes which instances, and how their sums come together.

Every process holds all instances and the same weights. An update's instances are dealt out, so that each process grows
and scores the subgraphs of its own; then gradients are added up and all take the same step. Random numbers belong to
instances and not to processes, so the result is that of one process with the whole batch, up to rounding.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, distributed, nn

from gflowexplainer.errors import ClusterError, ConfigError
from gflowexplainer.flow.objectives import Loss
from gflowexplainer.storage.files import write_bytes

WAIT = timedelta(minutes=10)
"""How long a process waits for the others before it gives up. One that ends is noticed at once."""


class Fabric(Protocol):
    """What is needed of a ``lightning_fabric.Fabric`` that was launched."""

    @property
    def global_rank(self) -> int:
        """Number of this process among all."""

    @property
    def world_size(self) -> int:
        """Number of processes."""

    @property
    def device(self) -> torch.device:
        """Where this process computes."""

    def all_reduce(self, data: Tensor, *, reduce_op: str) -> Any:
        """Adds a tensor of all processes up."""

    def all_gather(self, data: Tensor) -> Any:
        """Stacks a tensor of all processes."""


class Ranks:
    """The processes of a training, seen from one of them.

    Args:
        fabric: A Fabric that was launched; ``None`` for one process alone.
    """

    def __init__(self, fabric: Fabric | None = None) -> None:
        self.rank = 0 if fabric is None else fabric.global_rank
        self.size = 1 if fabric is None else fabric.world_size
        self._device = torch.device("cpu") if fabric is None else fabric.device
        self._collectives = fabric

    def _fabric(self) -> Fabric:
        assert self._collectives is not None
        return self._collectives

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks for all."""
        return self.rank == 0

    def mine(self, batch: Tensor) -> Tensor:
        """Picks this process's share of a batch ``[B]``; together the shares are the batch."""
        return batch[self.rank :: self.size]

    def add(self, values: Tensor) -> Tensor:
        """Adds a tensor of the same shape in all processes up; each gets the sum."""
        if self.size > 1:
            with self._others():
                values = self._fabric().all_reduce(values.clone(), reduce_op="sum")
        return values

    def mean(self, *losses: Loss) -> tuple[list[Tensor], Tensor]:
        """Divides each loss by the number of its terms in all processes.

        Returns:
            This process's parts of the means, through which gradients flow, and the means over everything, ``[L]``.
        """
        if self.size == 1:
            parts = [loss.mean for loss in losses]
            return parts, torch.stack([part.detach().double() for part in parts])
        terms = torch.tensor([float(loss.terms) for loss in losses], dtype=torch.double, device=losses[0].total.device)
        own = torch.stack([torch.stack([loss.total.detach().double() for loss in losses]), terms])
        total, terms = self.add(own)
        terms = terms.clamp(min=1)
        parts = [loss.total / number.to(loss.total.dtype) for loss, number in zip(losses, terms, strict=True)]
        return parts, total / terms

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Adds gradients up; a parameter that no process has a gradient of stays without."""
        known = list(parameters)
        if self.size == 1 or not known:
            return
        flat = [torch.zeros_like(p) if p.grad is None else p.grad for p in known]
        has = torch.tensor([p.grad is not None for p in known], dtype=flat[0].dtype, device=flat[0].device)
        total = self.add(torch.cat([has, *(grad.flatten() for grad in flat)]))
        parts = total[len(known) :].split([grad.numel() for grad in flat])
        for parameter, part, count in zip(known, parts, total.tolist(), strict=False):
            parameter.grad = part.view_as(parameter).clone() if count else None

    def rows(self, *columns: Tensor) -> tuple[Tensor, ...]:
        """Puts columns of equal length ``[N, ...]`` from all processes below one another; lengths may differ."""
        if self.size == 1:
            return columns
        columns = tuple(column.to(self._device) for column in columns)
        own = torch.zeros(self.size, dtype=torch.long, device=self._device)
        own[self.rank] = columns[0].size(0)
        lengths = self.add(own).tolist()
        return tuple(self._below(column, lengths) for column in columns) if max(lengths) else columns

    def _below(self, column: Tensor, lengths: list[int]) -> Tensor:
        padded = column.new_zeros((max(lengths), *column.shape[1:]))
        padded[: column.size(0)] = column
        with self._others():
            every = self._fabric().all_gather(padded)
        return torch.cat([part[:count] for part, count in zip(every, lengths, strict=True)])

    def copy(self, module: nn.Module) -> None:
        """Copies the first process's weights to all, bit by bit, should machines round differently."""
        if self.size > 1:
            with self._others():
                for value in module.state_dict().values():
                    distributed.broadcast(value, 0)

    @contextmanager
    def file(self, path: Path) -> Iterator[Path | None]:
        """Hands all processes a file that the first one sees, also without a common disk; ``None`` if there is none."""
        if self.size == 1:
            yield path if path.exists() else None
            return
        content = path.read_bytes() if self.first and path.exists() else b""
        own = torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())
        (every,) = self.rows(own.to(self._device))
        if every.numel() == 0:
            yield None
        elif self.first:
            yield path
        else:
            with tempfile.TemporaryDirectory(prefix="gflowexplainer-") as folder:
                copy = Path(folder) / path.name
                write_bytes(copy, every.cpu().numpy().tobytes())
                yield copy

    @contextmanager
    def _others(self) -> Iterator[None]:
        """Turns the loss of another process into an error that says what to do."""
        try:
            yield
        except RuntimeError as error:
            raise ClusterError(
                f"Process {self.rank} of {self.size} waits in vain for the others: one of them has ended or cannot be "
                f"reached ({str(error).strip().splitlines()[0][:200]}). What it said is above; the last checkpoint is "
                "whole, and the same call goes on from it."
            ) from error


def launch(*, device: str = "cpu", devices: int = 1, nodes: int = 1) -> Any:
    """Joins the processes of this training that were started, by ``torchrun`` say, and gives their Fabric.

    Args:
        device: ``"cpu"`` or ``"cuda"``.
        devices: Processes on each machine.
        nodes: Machines.
    """
    try:
        from lightning_fabric import Fabric
        from lightning_fabric.strategies import DDPStrategy
    except ImportError as error:
        raise ConfigError(
            "Several processes need lightning-fabric. Install it with: pip install 'gflowexplainer[distributed]'"
        ) from error
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != devices * nodes:
        raise ConfigError(
            f"{devices * nodes} processes are to train ({devices} on each of {nodes} machines), but {started} were "
            f"started. Use torchrun --nnodes {nodes} --nproc-per-node {devices}."
        )
    fabric = Fabric(accelerator=device, devices=devices, num_nodes=nodes, strategy=DDPStrategy(timeout=WAIT))
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    fabric.launch()
    return fabric
