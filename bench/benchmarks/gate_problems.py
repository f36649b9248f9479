"""Tasks of the suites and their GNNs as files: what is explained is kept, so that it runs without rdkit elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save
from torch import Tensor
from torch_geometric.data import Data

from gflowbench.datasets import Benchmark
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowbench.models.weights import read_safetensors
from gflowbench.suites import citation, compounds, logic_suite, molecules, null_cases, published
from gflowbench.suites.cases import make_cases
from gflowbench.suites.gnn_fitting import LEARNED, fit_gnn
from gflowbench.suites.gnns import load_gnn, save_gnn
from gflowbench.suites.halves import SEEDS, half_of
from gflowbench.suites.run import PreparedTask
from gflowexplainer.storage.files import slug, write_bytes

if TYPE_CHECKING:
    from benchmarks.gate_jobs import Job

KEPT = 100
"""Instances of a task that are kept; those that its GNN gets wrong are among them."""
_MAKERS: dict[str, Callable[[str, int], Benchmark]] = {
    "logic": logic_suite.make_logic_task,
    "molecules": molecules.make_molecule_task,
    "compounds": compounds.make_compound_task,
}
_ANY_LABEL = ("random-weights", "noise-labels")


def prepare(folder: Path, job: Job) -> dict[str, float]:
    """Makes the task of a job and trains its GNN, unless both are in ``folder``; returns the GNN's score."""
    to_task, to_gnn = _paths(folder, job)
    if to_gnn.is_file() and (job.gate == "real" or to_task.is_file()):
        return {"gnn_score": load_gnn(to_gnn)[1]}
    if job.gate == "real":
        task, instances = _cora(job.seed), []
        model, score = citation.fit_cora_gnn(job.gnn, task, job.seed)
    elif job.gate == "null":
        task = null_cases.make_null_task(job.task, job.seed)
        instances = task.index.tolist()
        model, score = null_cases.fit_null_gnn(job.gnn, task, job.seed)
    else:
        task = _MAKERS[job.gate](job.task, job.seed)
        instances = task.instances()
        model, score = fit_gnn(job.gnn, task, job.seed)
    if job.gate != "real":
        write_task(to_task, task, instances[:KEPT])
    save_gnn(to_gnn, model, score)
    return {"gnn_score": score}


def read(folder: Path, job: Job, most: int) -> PreparedTask:
    """Reads task and GNN of a job and makes at most ``most`` cases."""
    if job.gate == "shown":
        task = published.make_published_task(job.task, job.seed)
        model, score = published.load_published_gnn(task)
    else:
        to_task, to_gnn = _paths(folder, job)
        task = _cora(job.seed) if job.gate == "real" else read_task(to_task)
        model, score = load_gnn(to_gnn)
    # As the suites do: only what the GNN gets right has the task's truth, and a GCN hears one step more.
    correct = job.gate not in ("shown", "real") and job.task not in _ANY_LABEL
    wide = job.gate == "shown" or job.gnn == "gcn"
    instances = task.index[:most] if job.gate == "shown" else task.index
    cases = make_cases(model, task, instances.tolist(), correct=correct, num_hops=(task.num_layers or 0) + wide)[:most]
    learned = job.gate in ("shown", "real", "null") or score >= LEARNED
    return PreparedTask(task, model, score, cases, learned)


def write_task(path: Path, task: Benchmark, instances: list[int]) -> None:
    """Writes some instances of a task, which are numbered anew at graph level; edges and features as small numbers."""
    chosen = [0] if task.task == "node" else instances
    graphs = [task.graphs[i] for i in chosen]
    test = instances if task.task == "node" else list(range(len(instances)))
    tensors = {
        "x": _small(torch.cat([graph.x for graph in graphs])),
        "edge_index": _small(torch.cat([graph.edge_index for graph in graphs], dim=1)),
        "y": torch.cat([graph.y.view(-1) for graph in graphs]),
        "num_nodes": torch.tensor([graph.num_nodes for graph in graphs]),
        "num_edges": torch.tensor([graph.edge_index.size(1) for graph in graphs]),
        "test": torch.tensor(test),
    }
    truths = []
    for instance in instances:
        truth = task.truths[instance]
        values = truth.contributions and list(truth.contributions.items())
        truths.append((truth.num_nodes, truth.combination.value, truth.parts, values))
    names = ("name", "mode", "num_classes", "num_layers", "hidden_channels", "provenance")
    facts = {"level": task.task, **{name: getattr(task, name) for name in names}}
    content = {name: tensor.contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(content, {"task": json.dumps(facts), "truths": json.dumps(truths)}))


def read_task(path: Path) -> Benchmark:
    """Reads what :func:`write_task` wrote."""
    tensors, metadata = read_safetensors(path)
    facts, truths = json.loads(metadata["task"]), json.loads(metadata["truths"])
    num_nodes, num_edges = tensors["num_nodes"].tolist(), tensors["num_edges"].tolist()
    level, test = facts.pop("level"), tensors["test"]
    labels = [tensors["y"]] if level == "node" else tensors["y"].split(1)
    xs = tensors["x"].float().split(num_nodes)
    edges = tensors["edge_index"].long().split(num_edges, dim=1)
    return Benchmark(
        task=level,
        graphs=[Data(x=x, edge_index=edge, y=y) for x, edge, y in zip(xs, edges, labels, strict=True)],
        truths=dict(zip(test.tolist(), map(_truth, truths), strict=True)),
        index=test,
        splits={"test": test},
        source="generated",
        **facts,
    )


def _truth(written: tuple[Any, ...]) -> TaskTruth:
    num_nodes, combination, parts, values = written
    return TaskTruth(num_nodes, Combination(combination), tuple(map(tuple, parts)), values and dict(values))


def _small(numbers: Tensor) -> Tensor:
    """Stores numbers as bytes or short integers where that changes nothing."""
    for kind in (torch.uint8, torch.int16, torch.int32):
        if bool((numbers.to(kind).to(numbers.dtype) == numbers).all()):
            return numbers.to(kind)
    return numbers


def _cora(seed: int) -> Benchmark:
    """Cora; its nodes are cut into five parts of each half, so seeds that are five apart explain the same nodes."""
    return citation.make_cora_task(SEEDS[half_of(seed)][seed % 5])


def _paths(folder: Path, job: Job) -> tuple[Path, Path]:
    """The files of task and GNN."""
    name = f"{slug(job.task)}-{job.seed}.safetensors"
    return folder / job.gate / name, folder / job.gate / name.replace(f"-{job.seed}.", f"-{job.gnn}-{job.seed}.gnn.")
