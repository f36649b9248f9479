"""How near trained flow networks come to the exact target distribution, objective by objective.

Three questions. *Single*: on one instance with node identities, so that capacity is not the limit, does every
objective with the ``dag`` rule reach the target, and do the other parent rules not? *Amortised*: one policy for all
instances of the two tree datasets: distance and AUC over training. *Samples*: are edge probabilities from 64
samples as good as exact ones? Every run is a JSON file of its own, skipped when it is there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from benchmarks.distribution_figures import summarize
from benchmarks.measuring import environment, results_folder, write_json
from gflowbench.datasets import load, reference_folder
from gflowbench.explainers.interface import Subject
from gflowbench.metrics.auc import pooled_auc
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.undirected import UndirectedEdges
from gflowbench.models import load_published, train
from gflowexplainer.flow.exact import (
    Enumeration,
    enumerate_subgraphs,
    exact_marginals,
    terminal_distribution,
    total_variation,
)
from gflowexplainer.graphs.subgraphs import edge_values
from gflowexplainer.inference.estimates import estimate_from_samples, reward_weights
from gflowexplainer.inference.exact_target import target_distribution
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.training.curves import UpdateRecord
from gflowexplainer.training.trainer import Trainer

FOLDER = "distribution"
LOG_OBJECTIVES = (
    "flow_matching",
    "detailed_balance",
    "subtrajectory_balance",
    "log_partition_variance",
    "trajectory_balance",
)
OBJECTIVES = (*LOG_OBJECTIVES, "conditional_trajectory_balance", "raw_flow_matching")
TREES = {"tree-cycles": 0.5, "tree-grid": 0.7}
"""The tree datasets, with the keep probability that PROTOCOL's exact figures are given for."""
SIZES = {60: 2000, 180: 3000, 450: 6000}
"""About how many connected subgraphs the single instances have, and how many updates each gets."""


def subject_of(dataset: str) -> tuple[Subject, GroundTruth]:
    """Returns the published instances and GNN where the reference folder is there, else generated ones."""
    if reference_folder() is not None:
        benchmark, model = load(dataset, source="published"), load_published(dataset)
    else:
        benchmark = load(dataset, source="generated")
        model = train("gcn", benchmark, seed=0).model
    subject = Subject.of(model, benchmark)
    truth = GroundTruth.of(benchmark, subject)
    assert truth is not None
    return subject, truth


def trainer_of(subject: Subject, **settings: Any) -> Trainer:
    """Makes a trainer with PROTOCOL's reward, which is the context preset's, and as many updates as are asked for."""
    chosen = Settings.preset("context", **{"batch_size": 1000, "max_updates": 0, **settings})
    return Trainer(FlowSampler(chosen, subject))


class Truth:
    """The exact target of all instances of a trainer, and how far its policy is from it."""

    def __init__(self, trainer: Trainer, truth: GroundTruth | None = None) -> None:
        instances = trainer.instances
        every = torch.arange(len(instances))
        self.enumeration: Enumeration = enumerate_subgraphs(
            instances, every, instances.center, trainer.settings.max_nodes
        )
        self.target = target_distribution(self.enumeration, trainer.reward, trainer.settings.measure)
        self.edges = UndirectedEdges.of(instances)
        self.truth = truth

    def policy(self, trainer: Trainer) -> Tensor:
        """Returns the policy's exact terminal distribution."""
        network, inputs = trainer.network, trainer.sampler.network_inputs
        encoding = network.policy.encode(inputs.instances, inputs.features)
        return terminal_distribution(self.enumeration, network.policy, encoding)

    def distance(self, log_probability: Tensor) -> float:
        """Mean total variation to the target."""
        return float(total_variation(self.enumeration, log_probability, self.target).mean())

    def auc(self, log_probability: Tensor) -> float:
        """Pooled AUC (``own``) of exact edge marginals."""
        return self.auc_of(exact_marginals(self.enumeration, log_probability)[1])

    def auc_of(self, neighbor: Tensor) -> float:
        """Pooled AUC (``own``) of given probabilities of neighbour entries."""
        assert self.truth is not None
        score = self.edges.merge(edge_values(self.enumeration.states.instances, neighbor))
        return pooled_auc(score, self.edges.merge(self.truth.own))


def single_jobs(fast: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names the runs on single instances."""
    rules = [(objective, "dag") for objective in LOG_OBJECTIVES]
    if fast:
        rules = rules[2:3]
    rules += [
        (o, r)
        for o in ("flow_matching", "log_partition_variance")[: 1 if fast else None]
        for r in ("sequence", "graph")
    ]
    for size, epochs in list(SIZES.items())[: 1 if fast else None]:
        for objective, parents in rules:
            # The other rules end elsewhere however long they are trained.
            length = 150 if fast else epochs if parents == "dag" else 2000
            job = {"size": size, "objective": objective, "parents": parents, "epochs": length}
            yield f"single-{size}-{objective}-{parents}", job


def run_single(job: dict[str, Any], fast: bool) -> dict[str, Any]:
    """Trains on the instance of Tree-Cycles with about ``size`` connected subgraphs."""
    subject, _ = subject_of("tree-cycles")
    counts = enumerate_subgraphs(subject.instances, torch.arange(len(subject)), subject.instances.center, 7).counts
    chosen = int((counts - job["size"]).abs().argmin())
    trainer = trainer_of(
        subject.select(torch.tensor([chosen])),
        objective=job["objective"],
        parents=job["parents"],
        node_identities=True,
        hidden=256,
        epochs=job["epochs"],
        rollouts=64,
        epsilon=0.2,
        learning_rate=3e-3,
        final_rate=0.001,
    )
    truth = Truth(trainer)
    curve: list[dict[str, float]] = []
    began = time.perf_counter()

    def watch(_trainer: Trainer, record: UpdateRecord) -> None:
        if (record["iteration"] + 1) % (50 if fast else 100) == 0:
            distance = truth.distance(truth.policy(trainer))
            seconds = time.perf_counter() - began
            curve.append({"iteration": record["iteration"] + 1, "total_variation": distance, "seconds": seconds})

    trainer.run(progress=False, callback=watch)
    return {"num_subgraphs": int(counts[chosen]), "curve": curve, "settings": trainer.settings.to_dict()}


def amortised_jobs(fast: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names the runs over all instances of a dataset."""
    for dataset in list(TREES)[: 1 if fast else None]:
        for objective in OBJECTIVES[3:4] if fast else OBJECTIVES:
            for seed in range(1 if fast else 3):
                yield (
                    f"amortised-{dataset}-{objective}-{seed}",
                    {
                        "dataset": dataset,
                        "objective": objective,
                        "seed": seed,
                    },
                )


def run_amortised(job: dict[str, Any], fast: bool) -> dict[str, Any]:
    """Trains one policy on all instances of a dataset."""
    subject, ground = subject_of(job["dataset"])
    trainer = trainer_of(
        subject,
        objective=job["objective"],
        keep_probability=TREES[job["dataset"]],
        epochs=40 if fast else 400,
        seed=job["seed"],
    )
    truth = Truth(trainer, ground)
    curve: list[dict[str, float]] = []
    spent = [0.0]

    def watch(_trainer: Trainer, record: UpdateRecord) -> None:
        spent[0] += record["seconds"]
        if (record["iteration"] + 1) % 20 == 0:
            policy = truth.policy(trainer)
            curve.append(
                {
                    "iteration": record["iteration"] + 1,
                    "total_variation": truth.distance(policy),
                    "auc": truth.auc(policy),
                    "seconds": spent[0],
                }
            )

    trainer.run(progress=False, callback=watch)
    return {
        "exact_auc": truth.auc(truth.target),
        "curve": curve,
        "samples": sample_aucs(trainer, truth),
        "settings": trainer.settings.to_dict(),
    }


def sample_aucs(trainer: Trainer, truth: Truth, num_samples: int = 64, draws: int = 5) -> dict[str, Any]:
    """Compares edge probabilities from samples with the exact ones of the same distribution, by AUC."""
    instances = trainer.instances
    several = torch.arange(len(instances)).repeat_interleave(num_samples)
    found: dict[str, list[float]] = {"policy": [], "reward": []}
    for draw in range(draws):
        rollouts = trainer.sampler.sample(several, 1000, draw)
        reward = reward_weights(rollouts, trainer.reward, trainer.settings)
        weights = {"policy": None, "reward": reward}
        for weighting, values in found.items():
            values.append(
                truth.auc_of(estimate_from_samples(instances, rollouts.subgraphs, weights[weighting]).neighbor)
            )
    exact = {"policy": truth.auc(truth.policy(trainer)), "reward": truth.auc(truth.target)}
    return {name: {"exact": exact[name], "samples": values} for name, values in found.items()}


def main(fast: bool = False, only: str = "") -> None:
    """Runs what is missing, then writes the summary and the figures."""
    folder = results_folder(FOLDER, fast)
    jobs = [(name, job, run_single) for name, job in single_jobs(fast)]
    jobs += [(name, job, run_amortised) for name, job in amortised_jobs(fast)]
    for name, job, run in jobs:
        path = folder / "runs" / f"{name}.json"
        if only not in name or path.exists():
            continue
        began = time.perf_counter()
        result = run(job, fast)
        write_json(path, {"job": job, **result, "seconds": time.perf_counter() - began, **environment()})
        last = result["curve"][-1]
        print(f"{name}: total variation {last['total_variation']:.3f}, {time.perf_counter() - began:.0f} s", flush=True)
    summarize(folder)
