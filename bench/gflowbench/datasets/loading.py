"""One call for every dataset: by name, generated, published or downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gflowbench.datasets import generators
from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.graph_sst2 import built_sst2
from gflowbench.datasets.mutagenicity import downloaded_mutagenicity, published_mutagenicity
from gflowbench.datasets.processed_sst2 import find_processed, processed_sst2
from gflowbench.datasets.published_graphs import published
from gflowbench.datasets.reference import reference_folder
from gflowexplainer.errors import ConfigError, one_of

GENERATORS: dict[str, Callable[..., Benchmark]] = {
    "ba-shapes": generators.ba_shapes,
    "ba-community": generators.ba_community,
    "tree-cycles": generators.tree_cycles,
    "tree-grid": generators.tree_grid,
    "ba-2motifs": generators.ba_2motifs,
}
SOURCES = {
    **dict.fromkeys(GENERATORS, ("generated", "published")),
    "mutagenicity": ("published", "downloaded"),
    "graph-sst2": ("generated", "downloaded"),
}
NAMES = tuple(SOURCES)


def load(name: str, source: str = "auto", seed: int = 0, root: Path | str | None = None, **sizes: Any) -> Benchmark:
    """Loads a benchmark by name.

    Args:
        name: One of :data:`NAMES`.
        source: ``"generated"``: made here, from a definition and ``seed`` or from sentences.
            ``"published"``: the published instance, from the reference folder. ``"downloaded"``: TUDataset
            for Mutagenicity, DIG's processed files for Graph-SST2. ``"auto"``: published where the reference
            folder has it and no sizes are given, otherwise generated or downloaded; for Graph-SST2, DIG's
            files where ``root`` holds them, otherwise built from sentences.
        seed: Seed of generated graphs; nothing else depends on it.
        root: Folder to read published or processed files from, or to download to. By default the reference
            folder and a folder in the user's cache.
        **sizes: Settings of the generator, such as ``num_motifs`` and ``num_base_nodes``, or of
            :func:`built_sst2`, such as ``limit`` and ``sentences``.

    Example:
        >>> load("tree-cycles", "generated", seed=1, num_motifs=10, num_base_nodes=63).data.num_nodes
        123
    """
    one_of("name", name, NAMES)
    one_of("source", source, ("auto", *SOURCES[name]))
    if source == "auto":
        source = _choose(name, root, sizes)
    if name == "graph-sst2":
        if source == "generated":
            return _call(built_sst2, root, **sizes)
        return _call(processed_sst2, cache_folder() if root is None else root, **sizes)
    if source == "generated":
        return _call(GENERATORS[name], seed, **sizes)
    if sizes:
        raise ConfigError(
            f"'{name}' from source '{source}' has fixed sizes (got {', '.join(sizes)}). "
            "Leave them out, or pass source='generated' where the dataset can be generated."
        )
    if name == "mutagenicity":
        if source == "published":
            return published_mutagenicity(root)
        return downloaded_mutagenicity(cache_folder() if root is None else root)
    return published(name, root)


def _choose(name: str, root: Path | str | None, sizes: dict[str, Any]) -> str:
    """The source that ``"auto"`` stands for."""
    if name == "graph-sst2":
        return "downloaded" if root is not None and find_processed(root) is not None else "generated"
    folder = reference_folder() if root is None else Path(root)
    there = folder is not None and (folder / f"{name.replace('-', '_')}.npz").is_file()
    if name == "mutagenicity":
        return "published" if there else "downloaded"
    return "published" if there and not sizes else "generated"


def _call(make: Callable[..., Benchmark], *arguments: Any, **sizes: Any) -> Benchmark:
    """Calls a maker after checking that it knows every setting."""
    known = make.__kwdefaults__ or {}
    for setting in sizes:
        one_of(f"setting of {make.__name__}", setting, tuple(known))
    return make(*arguments, **sizes)


def cache_folder() -> Path:
    """Folder for downloads: ``gflowexplainer`` in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gflowexplainer"
