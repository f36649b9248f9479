"""The regression within instances, beside numpy's least squares with a column for each instance."""

import numpy as np
import pytest
import torch

from gflowexplainer.evidence.regression import Regression, added_up, correlation, reproducible, spread


def some_pieces(instances=12, columns=4, seed=0):
    """Pieces of instances of different numbers of pieces, with columns on different scales."""
    generator = torch.Generator().manual_seed(seed)
    instance = torch.arange(instances).repeat_interleave(torch.randint(5, 30, (instances,), generator=generator))
    scale = torch.tensor([1.0, 10.0, 0.1, 3.0])[:columns]
    x = torch.randn(len(instance), columns, generator=generator).double() * scale
    noise = torch.randn(len(instance), generator=generator).double()
    intercept = 50 * torch.randn(instances, generator=generator).double()[instance]
    return x, instance, noise, intercept


def least_squares(x, y, instance):
    """An intercept for each instance, and rows of weights by which all instances count alike."""
    dummies = np.eye(int(instance.max()) + 1)[instance.numpy()]
    root = 1 / np.sqrt(dummies.sum(axis=0))[instance.numpy()]
    design = np.concatenate([x.numpy(), dummies], axis=1) * root[:, None]
    return np.linalg.lstsq(design, y.numpy() * root, rcond=None)[0][: x.shape[1]]


def test_values_have_the_weights_that_numpy_finds():
    x, instance, noise, intercept = some_pieces()
    y = x @ torch.tensor([2.0, -0.3, 8.0, 0.0]).double() + noise + intercept
    found = Regression(x, instance, None, 0).weights(y)
    assert found.shape == (1, 4)
    np.testing.assert_allclose(found[0], least_squares(x, y, instance), rtol=0.01, atol=0.01)


def test_classes_are_described_by_themselves_where_there_are_many_and_by_all_where_there_is_one():
    x, instance, noise, intercept = some_pieces(instances=121)
    label = torch.zeros(121, dtype=torch.long)
    label[60:120], label[120] = 1, 2
    truth = torch.tensor([[1.0, 0, 0, 0], [-3.0, 0, 0, 0], [30.0, 0, 0, 0]]).double()
    y = (x * truth[label[instance]]).sum(dim=1) + 0.1 * noise + intercept
    found = Regression(x, instance, label, 4).weights(y)
    assert found.shape == (5, 4)
    pooled = least_squares(x, y, instance)
    np.testing.assert_allclose(found[-1], pooled, rtol=0.01, atol=0.02)
    assert torch.equal(found[3], found[-1])  # of this class there is nothing
    for one in (0, 1):
        mine = label[instance] == one
        own = least_squares(x[mine], y[mine], torch.unique(instance[mine], return_inverse=True)[1])
        assert abs(float(found[one, 0]) - own[0]) < 0.25 * abs(pooled[0] - own[0])
    assert abs(float(found[2, 0]) - pooled[0]) < 0.25 * abs(30 - pooled[0])


def test_what_was_not_fitted_is_explained_as_far_as_there_is_something_to_explain():
    x, instance, noise, intercept = some_pieces(instances=60)
    signal = x @ torch.tensor([2.0, -0.3, 8.0, 0.0]).double()
    regression = Regression(x, instance, None, 0)
    assert regression.held_out(signal + intercept) == pytest.approx(1, abs=1e-3)
    assert abs(regression.held_out(noise + intercept)) < 0.05
    half = regression.held_out(signal + noise * signal.std() + intercept)
    assert half == pytest.approx(0.5, abs=0.1)
    alone = instance == 3
    assert Regression(x[alone], torch.zeros(int(alone.sum()), dtype=torch.long), None, 0).held_out(
        signal[alone]
    ) == pytest.approx(1, abs=0.05)


def test_shares_of_variance_are_those_of_a_correlation():
    x, instance, noise, intercept = some_pieces(instances=200)
    one = x[:, 0]
    assert added_up(one, 3 * one + intercept, instance) == pytest.approx(1)
    assert added_up(one, -3 * one + intercept, instance) == 0  # what goes the other way adds nothing up
    assert added_up(one, one + noise + intercept, instance) == pytest.approx(0.5, abs=0.05)
    other = torch.randn(len(noise), generator=torch.Generator().manual_seed(9)).double()
    # Halves with as much noise as signal correlate by a half, and their mean with others by two thirds.
    assert reproducible(torch.stack([one + noise, one + other]), instance) == pytest.approx(2 / 3, abs=0.05)
    assert reproducible(torch.stack([one, one + intercept]), instance) == pytest.approx(1)
    assert reproducible(torch.stack([noise, torch.zeros_like(noise)]), instance) == 0


def test_correlation_and_spread_are_those_of_numpy_in_each_instance():
    x, instance, noise, intercept = some_pieces(instances=1)
    one, other = x[:, 0], x[:, 0] + noise
    assert correlation(one, other + intercept, instance) == pytest.approx(np.corrcoef(one, other)[0, 1])
    assert spread(one + intercept, instance) == pytest.approx(np.std(one.numpy()))
    nothing = torch.zeros_like(one)
    assert (spread(nothing, instance), correlation(one, nothing, instance)) == (1, 0)
