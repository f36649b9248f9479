import math
import re

import numpy as np
import pytest

from gflowexplainer.report.training_curves import MOST_POINTS, read_curves


def test_each_quantity_is_a_curve():
    records = [{"iteration": i, "loss": 1 / (i + 1), "size": 3, "seconds": 0.1} for i in range(10)]
    records[4]["locator_loss"] = 0.5
    loss, size = read_curves(records)
    assert (loss.name, size.name) == ("loss", "mean size of samples")
    assert loss.x.tolist() == list(range(10))
    assert loss.bounds == ("0", "9", "0.1", "1")


def test_paths_fill_their_box():
    (curve,) = read_curves([{"loss": 2.0}, {"loss": 4.0}, {"loss": 3.0}])
    points = [tuple(map(float, p)) for p in re.findall(r"([\d.]+),([\d.]+)", curve.path(100, 50))]
    assert points == [(0, 50), (50, 0), (100, 25)]


def test_long_trainings_are_averaged():
    values = np.random.default_rng(0).normal(size=3000)
    (curve,) = read_curves([{"iteration": i, "loss": v} for i, v in enumerate(values)])
    assert len(curve.x) == MOST_POINTS
    assert curve.y == pytest.approx(values.reshape(MOST_POINTS, 10).mean(axis=1))
    assert curve.x[0] == pytest.approx(4.5)


def test_what_spans_orders_of_magnitude_is_logarithmic():
    (curve,) = read_curves([{"loss": 10.0**-i} for i in range(5)])
    assert curve.logarithmic
    heights = [float(y) for _, y in re.findall(r"([\d.]+),([\d.]+)", curve.path(100, 100))]
    assert heights == [0, 25, 50, 75, 100]


def test_odd_records_are_left_out():
    odd = [{"loss": math.nan}, {"loss": None}, {"loss": "x"}, {"loss": True}, {}, {"loss": math.inf}]
    assert read_curves(odd) == []
    (curve,) = read_curves([*odd, {"loss": 1.0}, {"loss": 1.0}])
    assert np.isfinite([float(v) for v in re.findall(r"[\d.]+", curve.path(10, 10))]).all()
