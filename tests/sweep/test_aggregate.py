"""Statistics over seeds, with values computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from higl.sweep.aggregate import (
    SeedCurve,
    Statistic,
    aggregate,
    area,
    final_success,
    probability_of_improvement,
    steps_to,
    stratified_iqm,
)


def curve(*success: float, every: int = 5_000) -> SeedCurve:
    return SeedCurve(every * np.arange(1, len(success) + 1), np.array(success, float))


def test_final_success_averages_the_last_steps():
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


def test_aggregate():
    found = aggregate([0.2, 0.4, 0.6, 0.8])
    assert found.mean == pytest.approx(0.5)
    assert found.deviation == pytest.approx(np.std([0.2, 0.4, 0.6, 0.8], ddof=1))
    assert found.iqm.value == pytest.approx(0.5)
    assert 0.2 <= found.iqm.low < 0.5 < found.iqm.high <= 0.8
    single = aggregate([0.3])
    assert single.mean == 0.3
    assert math.isnan(single.deviation)
    assert math.isnan(single.iqm.low)


def test_iqm_ignores_an_outlier():
    assert stratified_iqm([[0.5] * 4, [0.5] * 3 + [100.0]]).value == pytest.approx(0.5)


def test_probability_of_improvement():
    assert probability_of_improvement([([0.9, 0.8], [0.1, 0.2])]) == Statistic(1.0, 1.0, 1.0)
    assert probability_of_improvement([([0.5, 0.5], [0.5, 0.5])]) == Statistic(0.5, 0.5, 0.5)
    found = probability_of_improvement([([0.1, 0.9], [0.5, 0.5]), ([1.0, 1.0], [0.0, 0.0])])
    assert found.value == pytest.approx(0.75)  # the mean over tasks of 0.5 and 1
    assert (found.low, found.high) == pytest.approx((0.5, 1.0))


def has_interval(statistic: Statistic) -> bool:
    return not math.isnan(statistic.low) and not math.isnan(statistic.high)


def test_a_single_seed_anywhere_leaves_no_interval():
    """Resampling a single seed always returns it, which would make the interval too narrow."""
    several, one = [0.1, 0.5, 0.9], [0.4]
    assert has_interval(probability_of_improvement([(several, several), (several, several)]))
    assert has_interval(stratified_iqm([several, several]))
    for strata in ([several, one], [one, one]):
        assert not has_interval(stratified_iqm(strata))
    for pairs in ([(several, several), (several, one)], [(one, one)]):
        assert not has_interval(probability_of_improvement(pairs))
    assert probability_of_improvement([([0.9], [0.1]), ([0.2], [0.8])]).value == 0.5
    assert stratified_iqm([[0.5], [0.7]]).value == pytest.approx(0.6)


def test_every_seed_has_the_same_weight():
    assert stratified_iqm([[0.0] * 6, [1.0] * 2]).value == 0.0


scores = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(scores, scores)
def test_probabilities_of_improvement_in_both_directions_add_up_to_one(first, second):
    forward = probability_of_improvement([(first, second)], draws=20).value
    backward = probability_of_improvement([(second, first)], draws=20).value
    assert forward + backward == pytest.approx(1.0)
