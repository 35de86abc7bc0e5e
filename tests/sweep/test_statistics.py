"""Statistics over seeds, checked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from higl.sweep.statistics import (
    SeedCurve,
    area,
    final_success,
    probability_of_improvement,
    spread,
    steps_to,
    stratified_iqm,
)


def curve(*success: float, every: int = 5_000) -> SeedCurve:
    return SeedCurve(every * np.arange(1, len(success) + 1), np.array(success, float))


def test_final_success_is_over_the_last_steps():
    assert final_success(curve(*[0.0] * 10, *[1.0] * 10)) == 1.0
    assert final_success(curve(*[0.0] * 15, *[1.0] * 5)) == 0.5
    assert final_success(curve(0.4)) == 0.4
    assert math.isnan(final_success(curve()))


def test_area():
    assert area(curve(1.0, 1.0)) == pytest.approx(0.75)  # a ramp from 0, then full
    assert area(curve(0.0, 0.0)) == 0.0
    assert area(curve(*[1.0] * 1000)) == pytest.approx(1.0, abs=1e-3)


def test_steps_to():
    assert steps_to(curve(*[0.0] * 5, *[1.0] * 5), 0.5) == 40_000  # three of the last five
    assert steps_to(curve(*[0.0] * 5, *[1.0] * 5), 0.9) == 50_000
    assert steps_to(curve(*[0.0] * 9, 1.0), 0.5) is None  # one lucky evaluation is not enough
    assert steps_to(curve(), 0.5) is None


def test_spread():
    found = spread([0.2, 0.4, 0.6, 0.8])
    assert found.mean == pytest.approx(0.5)
    assert found.deviation == pytest.approx(np.std([0.2, 0.4, 0.6, 0.8], ddof=1))
    assert found.iqm == pytest.approx(0.5)
    assert 0.2 <= found.low < 0.5 < found.high <= 0.8
    single = spread([0.3])
    assert single.mean == 0.3
    assert math.isnan(single.deviation)
    assert math.isnan(single.low)


def test_iqm_is_not_moved_by_an_outlier():
    assert stratified_iqm([[0.5] * 4, [0.5] * 3 + [100.0]])[0] == pytest.approx(0.5)


def test_probability_of_improvement():
    assert probability_of_improvement([([0.9, 0.8], [0.1, 0.2])]) == (1.0, 1.0, 1.0)
    assert probability_of_improvement([([0.5, 0.5], [0.5, 0.5])]) == (0.5, 0.5, 0.5)
    likely, low, high = probability_of_improvement([([0.1, 0.9], [0.5, 0.5]), ([1.0, 1.0], [0.0, 0.0])])
    assert likely == pytest.approx(0.75)  # the mean over tasks of 0.5 and 1
    assert low == pytest.approx(0.5)
    assert high == pytest.approx(1.0)


def test_one_seed_each_has_no_interval():
    likely, *interval = probability_of_improvement([([0.9], [0.1]), ([0.2], [0.8])])
    assert likely == 0.5
    assert np.isnan(interval).all()
    centre, *interval = stratified_iqm([[0.5], [0.7]])
    assert centre == pytest.approx(0.6)
    assert np.isnan(interval).all()


def test_one_seed_anywhere_leaves_no_interval():
    """It would be redrawn as itself, and the interval would be too narrow."""
    several, one = [0.1, 0.5, 0.9], [0.4]
    assert np.isnan(probability_of_improvement([(several, several), (several, one)])[1:]).all()
    assert np.isnan(stratified_iqm([several, one])[1:]).all()
    assert not np.isnan(probability_of_improvement([(several, several), (several, several)])[1:]).any()
    assert not np.isnan(stratified_iqm([several, several])[1:]).any()


def test_every_seed_has_the_same_weight():
    assert stratified_iqm([[0.0] * 6, [1.0] * 2])[0] == 0.0


scores = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(scores, scores)
def test_probability_of_improvement_of_one_is_that_of_the_other_reversed(first, second):
    forward = probability_of_improvement([(first, second)], draws=20)[0]
    backward = probability_of_improvement([(second, first)], draws=20)[0]
    assert forward + backward == pytest.approx(1.0)
