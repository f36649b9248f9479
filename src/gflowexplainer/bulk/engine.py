"""The engine of bulk explaining: instances in parts, parts to workers of Ray Data, each part one file.

A part has a name of its own that follows from the options and its instances. Whoever explains it, however often,
writes the same file, whole or not at all. A worker that is killed loses its part only until another has done it, and
what the interrupted call had recorded in the manifest of the run is not done again.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import HeteroData
from tqdm.auto import tqdm

from gflowexplainer import GFlowExplainer, errors
from gflowexplainer.bulk.rows import FOLDER, import_ray, read_rows
from gflowexplainer.bulk.worker import ATTEMPTS, Source, Worker, part_of
from gflowexplainer.errors import CheckpointError, ClusterError, ConfigError, check_counts
from gflowexplainer.report.run_folder import FITTED, Run
from gflowexplainer.storage.files import is_file
from gflowexplainer.storage.identity import content_digest, identity_of, settings_fingerprint
from gflowexplainer.storage.lock import folder_lock
from gflowexplainer.training.interrupts import handlers_return

_BLOCKS = 4096
"""Blocks of parts that Ray keeps account of at most."""


@dataclass(frozen=True)
class BulkResult:
    """What came of bulk explaining.

    Attributes:
        folder: The folder of the run; :func:`~gflowexplainer.bulk.read_rows` reads it.
        instances: Explanations that lie there.
        explained: How many of them were made by this call.
        seconds: From the first of these to the last, without starting workers.
        busy_seconds: How long workers were at them, all together; less than ``seconds`` times workers where they waited
            for work.
        processor_seconds: Processor time that they took, all workers together; less than ``busy_seconds`` where workers
            waited for a processor or a disk.
        processes: Processes that made them.
    """

    folder: Path
    instances: int
    explained: int
    seconds: float
    busy_seconds: float
    processor_seconds: float
    processes: int


def explain_in_bulk(
    explainer: str | Path,
    source: Source | Callable[[], Source],
    index: Any = None,
    *,
    out: str | Path,
    workers: int = 2,
    gpus: float = 0.0,
    part_size: int = 256,
    num_samples: int | None = None,
    top: int = 10,
    smallest: float = 1e-3,
    address: str | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> BulkResult:
    """Explains every instance exactly once, by several processes, into Parquet files.

    The same call in the same folder goes on where it stopped. The rows are what
    :meth:`~gflowexplainer.GFlowExplainer.explain` answers, whichever process makes them.

    Args:
        explainer: Folder of a fitted explainer, which all machines see.
        source: Model and graphs, or a function without arguments that loads them, which each worker calls for itself.
        index: Nodes, or positions of graphs; all if not given.
        out: Folder of the run, which all machines see.
        workers: Processes that explain.
        gpus: GPUs of each, which may be a share of one.
        part_size: Instances of a file. A worker that is killed loses at most one file's work.
        num_samples: Subgraphs sampled for each; the explainer's own number if not given.
        top: Subgraphs that are stored of each explanation, best first.
        smallest: Smallest probability of a node or an edge that is stored.
        address: Of a Ray cluster that runs already, as ``"auto"``; otherwise one is started on this machine.
        overwrite: Whether to begin anew in ``out``, where what another run wrote is deleted.
        progress: Whether to show progress on standard error: a bar on a terminal, a line now and then in a file.
    """
    ray = import_ray()
    check_counts(workers=workers, part_size=part_size, top=top, num_samples=num_samples or 1)
    if not 0 <= smallest <= 1 or gpus < 0:
        raise ConfigError(f"'smallest' must lie in [0, 1] and 'gpus' not below 0 (got {smallest!r} and {gpus!r}).")
    if not is_file(Path(explainer) / FITTED[0]):
        raise CheckpointError(f"'{explainer}' holds no fitted explainer. Make one: gflowexplainer fit --out ...")
    algorithm, here = GFlowExplainer.load(explainer), source if isinstance(source, Source) else source()
    graphs: list[Any] = list(here.data) if isinstance(here.data, Sequence) else [here.data]
    if any(isinstance(graph, HeteroData) for graph in graphs):
        raise ConfigError(
            "Bulk explaining does not take heterogeneous graphs. Call GFlowExplainer.load(...).explain on one part of "
            "them after the other, in as many processes as you like, and save what it returns."
        )
    ids = here.instances(index)
    # A mistake is told here, before workers are started.
    algorithm.explain(here.model, here.data, ids[:1].tolist(), target=here.target, progress=False)
    given = [{str(name): value for name, value in graph.to_dict().items()} for graph in graphs]
    fitted = content_digest((Path(explainer) / FITTED[0]).read_bytes())
    settings = algorithm.settings.to_dict()
    identity = identity_of(here.model, given, index=ids, target=here.target, settings=settings, explainer=fitted)
    options: dict[str, Any] = {
        "num_samples": num_samples or algorithm.num_samples,
        "part_size": part_size,
        "top": top,
        "smallest": smallest,
    }
    with folder_lock(out):
        run = Run.begin(out, "bulk", options, identity=identity, overwrite=overwrite, settings=settings)
        options["identity"] = settings_fingerprint(identity)
        folder = (run.folder / FOLDER).resolve()
        names = [part_of(ids, number, options)[0] for number in range(-(-len(ids) // part_size))]
        run.files.claim(*(f"{FOLDER}/{name}" for name in names))
        missing = [number for number, name in enumerate(names) if not run.files.is_whole(f"{FOLDER}/{name}")]
        done: list[dict[str, Any]] = []
        if missing:
            for number in missing:
                (folder / names[number]).unlink(missing_ok=True)
            shutil.rmtree(folder.with_name(ATTEMPTS), ignore_errors=True)
            left = sum(min(part_size, len(ids) - number * part_size) for number in missing)
            with (
                handlers_return(),
                _cluster(ray, workers, gpus, address),
                _bar(len(ids), len(ids) - left, progress) as bar,
            ):
                load = partial(ray.get, ray.put(source)) if isinstance(source, Source) else source
                job = (str(Path(explainer).resolve()), load, partial(ray.get, ray.put(ids)), str(folder), options)
                for row in _rows_of_work(ray, job, missing, min(workers, len(missing)), gpus):
                    if row["failure"]:
                        raise getattr(errors, row["failure"])(row["message"])
                    run.files.record(f"{FOLDER}/{names[row['part']]}")
                    done.append(row)
                    bar.update(int(row["instances"]))
            shutil.rmtree(folder.with_name(ATTEMPTS), ignore_errors=True)
        _refuse_gaps(run.folder, ids)
    return BulkResult(
        folder=run.folder,
        instances=len(ids),
        explained=sum(int(row["instances"]) for row in done),
        seconds=max((row["ended"] for row in done), default=0.0) - min((row["began"] for row in done), default=0.0),
        busy_seconds=float(sum(row["ended"] - row["began"] for row in done)),
        processor_seconds=float(sum(row["spent"] for row in done)),
        processes=len({int(row["process"]) for row in done}),
    )


def _bar(total: int, done: int, progress: bool) -> tqdm[Any]:
    """Makes what tells of progress: a bar where a person looks on, otherwise a line now and then."""
    watched = sys.stderr.isatty()
    form = {} if watched else {"bar_format": "explained {n_fmt} of {total_fmt} ({elapsed}, {remaining} left)\n"}
    rare = {} if watched else {"mininterval": 10.0, "miniters": max(1, total // 20)}
    return tqdm(total=total, initial=done, disable=not progress, desc="explain", leave=not watched, **form, **rare)


@contextmanager
def _cluster(ray: Any, workers: int, gpus: float, address: str | None) -> Iterator[None]:
    """Joins a cluster, or starts one on this machine; one that the user has joined already is used and left alone."""
    if ray.is_initialized():
        yield
        return
    for name, value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_BACKEND_LOG_LEVEL", "fatal")):
        os.environ.setdefault(name, value)
    own = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ClusterError(
            f"There is no Ray cluster at '{address}' ({error}). Start one with: ray start --head"
        ) from error
    try:
        found = ray.cluster_resources().get("GPU", 0)
        if gpus > found:
            raise ConfigError(f"Each worker is to have {gpus:g} GPUs, but Ray finds {found:g}. Use fewer.")
        yield
    finally:
        ray.shutdown()


def _rows_of_work(
    ray: Any, job: tuple[Any, ...], parts: Sequence[int], workers: int, gpus: float
) -> Iterator[dict[str, Any]]:
    """Lets workers do ``parts`` and tells of each, as it is done."""
    context = ray.data.DataContext.get_current()
    before, context.enable_progress_bars = context.enable_progress_bars, False
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    numbers = ray.data.from_items([{"part": number} for number in parts], override_num_blocks=min(len(parts), _BLOCKS))
    try:
        yield from numbers.map_batches(
            Worker,
            fn_constructor_args=job,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=1,
            num_gpus=gpus or None,
        ).iter_rows()
    except ray.exceptions.RayError as error:
        lines = str(error).strip().splitlines()
        said = lines[-1 if isinstance(error, ray.exceptions.RayTaskError) else 0].rstrip(".")
        raise ClusterError(
            f"Workers were lost: {said[:300]}. What was explained is kept, and the same call goes on."
        ) from error
    finally:
        context.enable_progress_bars = before
        logger.setLevel(level)


def _refuse_gaps(out: Path, ids: np.ndarray) -> None:
    """Makes sure that each instance is there, and once."""
    there = np.sort(read_rows(out, ["instance"])["instance"].to_numpy())
    if not np.array_equal(there, np.sort(ids)):
        raise ClusterError(
            f"'{out / FOLDER}' holds {there.size} explanations, but not one of each of the {ids.size} instances. "
            "Delete files there that are not of this run, and run the same call again."
        )
