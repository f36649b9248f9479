"""What nodes are told apart by, beside the principal components of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from gflowexplainer.evidence.kinds import directions
from gflowexplainer.steering import MAX_KINDS


def test_few_columns_are_kept_and_those_that_are_all_alike_are_dropped() -> None:
    x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)).double()
    x[:, 2] = 7
    assert torch.equal(directions(x), torch.eye(4, dtype=torch.double)[:, [0, 1, 3]])
    assert directions(torch.ones(20, 4, dtype=torch.double)).shape == (4, 0)


@pytest.mark.parametrize("columns", [MAX_KINDS + 1, 60])
def test_of_many_columns_the_components_of_scikit_learn_are_taken(columns: int) -> None:
    generator = torch.Generator().manual_seed(columns)
    x = torch.randn(200, columns, generator=generator).double() * torch.linspace(0.1, 3, columns)
    found = directions(x)
    assert found.shape == (columns, MAX_KINDS)
    wanted = PCA(MAX_KINDS, svd_solver="full").fit(x.numpy()).components_
    np.testing.assert_allclose(np.abs((wanted * found.t().numpy()).sum(axis=1)), 1, atol=1e-6)


def test_directions_have_a_sign_of_their_own() -> None:
    x = torch.randn(100, 30, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(directions(x), directions(-x))
