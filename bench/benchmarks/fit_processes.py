"""One process of a training that the benchmark ``bulk`` times: python -m benchmarks.fit_processes FILE UPDATES.

Trains on 512 motif nodes in batches of 512, with as many processes as were started, and stores the processor time that
this process spent on an update.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch

from benchmarks.bulk import SEED, copies, make_problem
from gflowbench.datasets import Benchmark
from gflowbench.explainers.interface import Subject
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.training.distributed import launch
from gflowexplainer.training.trainer import Trainer

INSTANCES = 512


def work(path: Path, updates: int, epochs: int) -> None:
    """Trains for some updates and stores what one costs."""
    torch.set_num_threads(1)
    size = int(os.environ.get("WORLD_SIZE", 1))
    fabric = launch(devices=size) if size > 1 else None
    benchmark, model = make_problem(epochs)
    graph = copies(benchmark.graphs[0], 2)
    both = Benchmark.from_graphs(graph, name="two copies", index=[0], motif_size=benchmark.motif_size)
    nodes = both.motif_nodes()
    subject = Subject.of(model, both, nodes[torch.linspace(0, nodes.numel() - 1, INSTANCES).long()])
    settings = Settings(batch_size=INSTANCES, seed=SEED)
    trainer = Trainer(FlowSampler(settings, subject), fabric=fabric)
    trainer.step()
    began = time.thread_time()
    losses = [trainer.step()["loss"] for _ in range(updates)]
    spent = (time.thread_time() - began) / updates
    rank = 0 if fabric is None else fabric.global_rank
    path.with_name(f"{path.name}-{size}-{rank}.json").write_text(json.dumps({"seconds": spent, "losses": losses}))


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
