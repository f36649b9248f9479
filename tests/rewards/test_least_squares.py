"""Least squares within instances, beside numpy and scikit-learn."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, Ridge
from torch import Tensor

from gflowexplainer.rewards.least_squares import LeastSquares, Regularization, held_out

COUNTS = [40, 15, 25, 30]
LABEL = torch.tensor([0, 1, 0, 1])


def measurements(noise: float = 0.3) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four instances of two classes, with weights of each class and a level of each instance."""
    generator = torch.Generator().manual_seed(0)
    instance = torch.arange(4).repeat_interleave(torch.tensor(COUNTS))
    description = torch.randn(110, 3, generator=generator).double() * torch.tensor([1.0, 5.0, 0.1])
    weight = torch.tensor([[1.0, -2.0, 30.0], [0.5, 1.0, -8.0]]).double()
    level = torch.tensor([3.0, -50.0, 7.0, 0.0]).double()
    measured = (description * weight[LABEL[instance]]).sum(dim=1) + level[instance]
    return description, measured + noise * torch.randn(110, generator=generator).double(), instance, weight


def with_dummies(description: Tensor, instance: Tensor) -> np.ndarray:
    return np.concatenate([description.numpy(), np.eye(4)[instance.numpy()]], axis=1)


def shares(instance: Tensor) -> np.ndarray:
    return 1 / np.array(COUNTS)[instance.numpy()]


def standardised(description: Tensor, measured: Tensor, instance: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres both within instances, brings columns to spread 1, and returns what their spread was."""
    columns, wanted = description.numpy().copy(), measured.numpy().copy()
    for number in range(4):
        rows = instance.numpy() == number
        columns[rows] -= columns[rows].mean(axis=0)
        wanted[rows] -= wanted[rows].mean()
    scale = np.sqrt((shares(instance)[:, None] * columns**2).sum(axis=0) / 4)
    return columns / scale, wanted, scale


def test_without_penalty_it_is_least_squares_with_an_intercept_of_each_instance() -> None:
    description, measured, instance, _ = measurements()
    found = LeastSquares(description, measured, instance, LABEL, torch.zeros(3)).weights(2, Regularization(5.0))
    design = with_dummies(description, instance)
    model = LinearRegression(fit_intercept=False)
    model.fit(design, measured.numpy(), sample_weight=shares(instance))
    np.testing.assert_allclose(found[-1].numpy(), model.coef_[:3], rtol=1e-9)


def test_the_penalty_is_that_of_standardised_columns() -> None:
    description, measured, instance, _ = measurements()
    ridge = torch.full((3,), 0.3, dtype=torch.double)
    found = LeastSquares(description, measured, instance, None, ridge).weights(0, Regularization(5.0))
    columns, wanted, scale = standardised(description, measured, instance)
    share = shares(instance)
    model = Ridge(alpha=4 * 0.3, fit_intercept=False).fit(columns, wanted, sample_weight=share)
    np.testing.assert_allclose(found[0].numpy(), model.coef_ / scale, rtol=1e-9)
    assert found.shape == (1, 3)


def test_a_class_is_penalised_in_proportion_to_its_instances() -> None:
    """Without pooling, the weights of a class are those of a fit to its instances alone, penalty and all."""
    description, measured, instance, _ = measurements()
    ridge = torch.full((3,), 0.3, dtype=torch.double)
    found = LeastSquares(description, measured, instance, LABEL, ridge).weights(2, Regularization(0.0))
    columns, wanted, scale = standardised(description, measured, instance)  # over all classes
    share = shares(instance)
    for label in range(2):
        own = (LABEL[instance] == label).numpy()
        # Two instances, each of which counts as one.
        model = Ridge(alpha=2 * 0.3, fit_intercept=False).fit(columns[own], wanted[own], share[own])
        np.testing.assert_allclose(found[label].numpy(), model.coef_ / scale, rtol=1e-9)


def test_planted_weights_are_found_exactly() -> None:
    description, _, instance, weight = measurements()
    level = torch.tensor([3.0, -50.0, 7.0, 0.0]).double()
    measured = description @ weight[0] + level[instance]
    found = LeastSquares(description, measured, instance, LABEL, torch.zeros(3)).weights(2, Regularization(30.0))
    torch.testing.assert_close(found, weight[:1].expand(3, -1))


def test_classes_are_told_apart_by_how_little_they_are_pooled() -> None:
    description, measured, instance, weight = measurements(noise=0.0)

    def fit(pooling: float) -> Tensor:
        return LeastSquares(description, measured, instance, LABEL, torch.zeros(3)).weights(2, Regularization(pooling))

    apart, together, all_but = fit(0.0), fit(math.inf), fit(1e9)
    torch.testing.assert_close(apart[:2], weight)  # each class by itself
    assert torch.equal(together, together[-1:].expand(3, -1))
    torch.testing.assert_close(all_but, together, rtol=1e-5, atol=0)
    torch.testing.assert_close(apart[-1], together[-1])
    # Between the two, ever nearer to the common weights.
    distance = [float((fit(p)[0] - together[0]).norm()) for p in (0.0, 0.5, 2.0, 30.0, 1e9)]
    assert distance == sorted(distance, reverse=True)


def test_at_as_many_instances_as_the_pooling_class_and_all_classes_count_alike() -> None:
    # One column: the solution is then the mean of both, where the class is as spread as all are.
    description = torch.tensor([-1.0, 1.0] * 4).double()[:, None]
    instance = torch.arange(4).repeat_interleave(2)
    measured = description[:, 0] * torch.tensor([1.0, 1.0, 9.0, 9.0]).double()[instance]
    label = torch.tensor([0, 0, 1, 1])
    found = LeastSquares(description, measured, instance, label, torch.zeros(1)).weights(2, Regularization(2.0))
    assert found.flatten().tolist() == pytest.approx([3, 7, 5])  # 1 and 5, 9 and 5, all


@pytest.mark.parametrize("pooling", [0.0, 3.0, math.inf])
def test_a_class_without_instances_is_described_by_all_others(pooling: float) -> None:
    description, measured, instance, _ = measurements()
    found = LeastSquares(description, measured, instance, LABEL, torch.full((3,), 1e-3)).weights(
        3, Regularization(pooling)
    )
    assert found.shape == (4, 3)
    torch.testing.assert_close(found[2], found[3])


def test_instances_count_alike_however_many_subgraphs_were_measured() -> None:
    description, measured, instance, _ = measurements()
    first = instance == 0
    again = [torch.cat([t, t[first], t[first]]) for t in (description, measured, instance)]
    one = LeastSquares(description, measured, instance, LABEL, torch.full((3,), 0.1)).weights(2, Regularization(2.0))
    two = LeastSquares(*again, LABEL, torch.full((3,), 0.1)).weights(2, Regularization(2.0))
    torch.testing.assert_close(one, two)


def test_a_column_that_is_constant_within_instances_says_nothing() -> None:
    description, measured, instance, _ = measurements()
    description[:, 2] = instance.double()
    found = LeastSquares(description, measured, instance, LABEL, torch.full((3,), 1e-3)).weights(2, Regularization(2.0))
    assert (found[:, 2].abs() < 1e-12).all()
    assert torch.isfinite(found).all()
    flat = LeastSquares(description, torch.ones(110), instance, LABEL, torch.full((3,), 1e-3)).weights(
        2, Regularization(2.0)
    )
    assert (flat.abs() < 1e-12).all()


@pytest.mark.parametrize("pooling", [2.0, math.inf])
def test_caution_multiplies_penalties(pooling) -> None:
    description, measured, instance, _ = measurements()
    ridge = torch.tensor([0.1, 0.2, 0.3], dtype=torch.double)
    cautious = LeastSquares(description, measured, instance, LABEL, ridge).weights(2, Regularization(pooling, 10.0))
    plain = LeastSquares(description, measured, instance, LABEL, 10 * ridge).weights(2, Regularization(pooling))
    torch.testing.assert_close(cautious, plain)


@pytest.mark.parametrize("folds", [2, 3, 6])
def test_held_out_is_the_share_that_the_other_folds_predict(folds) -> None:
    generator = torch.Generator().manual_seed(0)
    instance = torch.arange(6).repeat_interleave(20)
    description = torch.randn(120, 3, generator=generator).double()
    measured = description @ torch.tensor([1.0, -2.0, 0.5]).double() + torch.randn(120, generator=generator).double()
    fold = (instance % folds).long()
    found = held_out(
        description,
        measured,
        instance,
        None,
        0,
        torch.zeros(3),
        [Regularization(1.0), Regularization(caution=100.0)],
        fold,
    )
    left = total = 0.0
    centred = [
        np.concatenate([v[instance == i].numpy() - v[instance == i].numpy().mean(axis=0) for i in range(6)])
        for v in (description, measured)
    ]
    for part in range(folds):
        here = fold.numpy() == part
        model = LinearRegression(fit_intercept=False).fit(centred[0][~here], centred[1][~here])
        left += ((centred[1][here] - model.predict(centred[0][here])) ** 2).sum()
        total += (centred[1][here] ** 2).sum()
    assert found == pytest.approx([1 - left / total] * 2)
