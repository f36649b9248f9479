from pathlib import Path

import pytest

from gflowbench.datasets import reference_folder


@pytest.fixture(scope="session")
def reference() -> Path:
    folder = reference_folder()
    if folder is None:
        pytest.skip("needs the reference folder: GFLOWEXPLAINER_DATA or ../shared/data")
    return folder
