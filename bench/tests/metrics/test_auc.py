import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from gflowbench.metrics.auc import instance_auc, mean_auc, pooled_auc


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), levels=st.integers(1, 30), instances=st.integers(1, 6))
def test_every_value_is_scikit_learns(seed, levels, instances):
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 60))
    owner = torch.from_numpy(random.integers(instances, size=count))
    score = torch.from_numpy(random.integers(levels, size=count) / 7)  # few levels give many ties
    positive = torch.from_numpy(random.random(count) < 0.4)
    found = instance_auc(score, positive, owner, instances)
    for number in range(instances):
        mine = owner == number
        if positive[mine].any() and not positive[mine].all():
            assert float(found[number]) == pytest.approx(roc_auc_score(positive[mine], score[mine]))
        else:
            assert found[number].isnan()
    if positive.any() and not positive.all():
        assert pooled_auc(score, positive) == pytest.approx(roc_auc_score(positive, score))


def test_a_value_by_hand():
    # Positives .9, .6, .4 against negatives .5, .1: of six pairs only (.4, .5) is in the wrong order.
    score = torch.tensor([0.9, 0.4, 0.6, 0.5, 0.1])
    positive = torch.tensor([True, True, True, False, False])
    assert pooled_auc(score, positive) == pytest.approx(5 / 6)
    assert float(instance_auc(score, positive, torch.zeros(5, dtype=torch.long), 1)) == pytest.approx(5 / 6)


@pytest.mark.parametrize("positive", [[True, True], [False, False], []])
def test_one_class_has_no_auc(positive):
    # torchmetrics, and PyG with it, would return 0 here.
    truth = torch.tensor(positive, dtype=torch.bool)
    score, owner = torch.rand(len(positive)), torch.zeros(len(positive), dtype=torch.long)
    assert math.isnan(pooled_auc(score, truth))
    assert math.isnan(mean_auc(score, truth, owner, 1))


def test_the_mean_leaves_out_instances_without_an_auc():
    score = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0])
    positive = torch.tensor([True, False, True, False, True])
    owner = torch.tensor([0, 0, 1, 1, 2])
    assert mean_auc(score, positive, owner, 4) == pytest.approx(0.5)
