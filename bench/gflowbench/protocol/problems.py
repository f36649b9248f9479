"""What is explained in an evaluation: a dataset together with a GNN, loaded when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from gflowexplainer.errors import one_of

if TYPE_CHECKING:
    from gflowbench.datasets import Benchmark
    from gflowbench.explainers.interface import Explainer, Scores, Subject

    _Parts = tuple[nn.Module, Benchmark, dict[str, Any]]

PUBLISHED, TRAINED = "published", "trained"
GNNS = (PUBLISHED, TRAINED)
CHOICES = ("protocol", "all-roles")
GENERATED = ("ba-shapes", "ba-community", "tree-cycles", "tree-grid", "ba-2motifs")


@dataclass(frozen=True)
class Loaded:
    """A dataset and a GNN in memory.

    Attributes:
        model: The GNN.
        benchmark: The dataset.
        index: What is explained, shape ``[I]``.
        facts: Where both come from, for the record.
        score: Measures more of what an explainer said, where there is more to measure than the metrics of all.
    """

    model: nn.Module
    benchmark: Benchmark
    index: Tensor
    facts: dict[str, Any] = field(default_factory=dict)
    score: Callable[[Explainer, Subject, Scores], dict[str, float]] | None = None


@dataclass(frozen=True)
class Problem:
    """A dataset and a GNN by name.

    Attributes:
        dataset: Name of the dataset.
        gnn: Name of the kind of GNN.
        load: Brings both into memory.
        settings: What decides which data and GNN these are.
        architecture: What the GNN is made of, one of :data:`gflowbench.models.MODELS`; ``None`` if not known.
        own_gnn: Whether the GNN may be one of :mod:`gflowbench.models`.
        links: Whether links are explained; then what is loaded is a :class:`~gflowbench.typed.link_task.LinkTask`.
    """

    dataset: str
    gnn: str
    load: Callable[[], Any]
    settings: dict[str, Any] = field(default_factory=dict)
    architecture: str | None = None
    own_gnn: bool = True
    links: bool = False


def problem(
    dataset: str,
    gnn: str = "published",
    *,
    instances: str = "protocol",
    every: int = 1,
    seed: int = 0,
    architecture: str = "gcn",
    device: str = "cpu",
    weights: Path | None = None,
    progress: bool = False,
    **sizes: Any,
) -> Problem:
    """Names a dataset and a GNN of this package.

    Args:
        dataset: One of :data:`gflowbench.datasets.NAMES`.
        gnn: ``"published"``: the published weights on the published data. ``"trained"``: a GNN that is
            trained here, on data generated here where the dataset can be generated.
        instances: ``"protocol"``: the evaluated ids of the protocol, all of one role on node tasks.
            ``"all-roles"``: every motif node.
        every: Takes only every n-th instance, for a quick look.
        seed: Seed of generated data and of training.
        architecture: What to train, one of :data:`gflowbench.models.MODELS`.
        device: Where the GNN runs.
        weights: Folder in which trained GNNs are kept, so that they are trained once.
        progress: Whether training shows a progress bar.
        **sizes: Sizes of generated data, such as ``num_graphs``, for a GNN that is trained here.
    """
    from gflowbench.datasets import NAMES
    from gflowbench.models import MODELS

    one_of("dataset", dataset, NAMES)
    one_of("gnn", gnn, GNNS)
    one_of("instances", instances, CHOICES)
    one_of("architecture", architecture, tuple(MODELS))
    settings: dict[str, Any] = {"instances": instances, "every": every}
    if gnn == PUBLISHED:
        source, architecture = partial(_published, dataset), "gcn"
    else:
        settings |= {"gnn_seed": seed, "architecture": architecture, **sizes}
        source = partial(_trained, dataset, seed, architecture, weights, progress, **sizes)
    return Problem(dataset, gnn, partial(_load, source, instances, every, device), settings, architecture)


def _load(source: Callable[[], _Parts], instances: str, every: int, device: str) -> Loaded:
    model, benchmark, facts = source()
    index = benchmark.index
    if instances == "all-roles" and benchmark.task == "node":
        index = benchmark.motif_nodes()
    return Loaded(model.to(device), benchmark, index[::every], facts)


def _published(dataset: str) -> _Parts:
    from gflowbench.datasets import load
    from gflowbench.models import load_published

    return load_published(dataset), load(dataset, "published"), {"gnn": "published weights"}


def _trained(dataset: str, seed: int, architecture: str, folder: Path | None, progress: bool, **sizes: Any) -> _Parts:
    from gflowbench.datasets import load
    from gflowbench.models import load_weights, read_metadata, train

    benchmark = load(dataset, "generated" if dataset in GENERATED else "auto", seed=seed, **sizes)
    facts: dict[str, Any] = {"gnn": f"{architecture} trained here, seed {seed}"}
    name = "-".join(map(str, (dataset, *sizes.values(), architecture, seed)))
    path = None if folder is None else folder / f"{name}.safetensors"
    if path is not None and path.is_file():
        model, accuracies = load_weights(path), read_metadata(path)["accuracies"]
    else:
        trained = train(architecture, benchmark, seed=seed, progress=progress)
        model, accuracies = trained.model, trained.accuracies
        if path is not None:
            trained.save(path)
    facts["gnn_accuracies"] = {name: accuracy.share for name, accuracy in accuracies.items()}
    return model, benchmark, facts
