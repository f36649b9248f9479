"""What ``doctor`` looks at for research: the published data, and where downloads are kept."""

from __future__ import annotations

import os

from gflowbench.datasets.loading import cache_folder
from gflowbench.datasets.reference import CHECKSUMS, VARIABLE, reference_folder
from gflowexplainer.cli.doctor import MISSING, OK, Finding


def check_data() -> list[Finding]:
    """Looks for the published files."""
    folder = reference_folder()
    if folder is None:
        advice = f"no published data; generated data work without. Name a folder in {VARIABLE}"
        return [Finding("data", MISSING, advice)]
    there = sum((folder / file).is_file() for file in CHECKSUMS)
    return [Finding("data", OK, f"{folder}: {there} of {len(CHECKSUMS)} published files")]


def check_cache() -> list[Finding]:
    """Looks whether downloads can be kept."""
    folder = cache_folder()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if os.access(nearest, os.W_OK):
        return [Finding("cache", OK, f"{folder} can be written")]
    return [Finding("cache", MISSING, f"{folder} cannot be written, so nothing can be downloaded to it")]
