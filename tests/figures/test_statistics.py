"""Statistics of curves, checked by hand."""

import numpy as np
import pytest

from higl.figures.statistics import (
    Smoothing,
    binned,
    interquartile_mean,
    mean_and_spread,
    rolling_mean,
    smooth,
    stratified_bootstrap,
)


def test_smoothing_averages_the_window_before_each_step():
    steps, values = np.array([10.0, 20, 30, 40]), np.array([0.0, 1, 0, 1])
    at = np.array([5.0, 10, 20, 30, 40, 50])
    found = smooth(steps, values, at, Smoothing(20))
    np.testing.assert_allclose(found, [np.nan, 0, 0.5, 0.5, 0.5, np.nan])
    np.testing.assert_allclose(smooth(steps, values, steps, Smoothing(0)), values)
    np.testing.assert_allclose(smooth(steps, values, np.array([15.0]), Smoothing(0)), [0.0])
    assert np.isnan(smooth(np.zeros(0), np.zeros(0), at, Smoothing(20))).all()


def test_the_interquartile_mean_leaves_out_the_outer_quarters():
    assert interquartile_mean(np.array([0.0, 1, 2, 100])) == pytest.approx(1.5)
    assert interquartile_mean(np.array([3.0])) == pytest.approx(3.0)


def test_the_bootstrap_resamples_within_tasks_and_is_reproducible():
    # Runs of one task are alike: only drawing across tasks could make the interval wide.
    alike = [np.full((4, 3), 0.2), np.full((4, 3), 0.8)]
    centre, low, high = stratified_bootstrap(alike, draws=200)
    np.testing.assert_allclose(centre, 0.5)
    np.testing.assert_allclose(low, high)
    rng = np.random.default_rng(0)
    scores = [rng.random((8, 5))]
    first, second = stratified_bootstrap(scores), stratified_bootstrap(scores)
    np.testing.assert_array_equal(first, second)
    assert (first[1] < first[0]).all()
    assert (first[0] < first[2]).all()
    assert np.isnan(stratified_bootstrap([np.ones((1, 2))])[1]).all()


def test_mean_and_spread_by_hand():
    scores = np.array([[0.0, 1.0, np.nan], [1.0, 1.0, 0.5]])
    mean, low, high = mean_and_spread(scores, "std")
    np.testing.assert_allclose(mean, [0.5, 1.0, 0.5])
    np.testing.assert_allclose(high - mean, [np.sqrt(0.5), 0.0, np.nan])
    np.testing.assert_allclose(mean_and_spread(scores, "sem")[2] - mean, [0.5, 0.0, np.nan])
    np.testing.assert_allclose(mean_and_spread(scores, "range")[1], [0.0, 1.0, np.nan])
    assert np.isnan(low[2])
    assert np.isnan(mean_and_spread(scores, "none")[1]).all()


def test_bins_average_their_values():
    edges = np.array([0.0, 10, 20, 30])
    found = binned(np.array([5.0, 10, 11, 20, 25]), np.array([1.0, 3, 5, 7, np.nan]), edges)
    np.testing.assert_allclose(found, [2, 6, np.nan])


def test_the_rolling_mean_of_a_short_series_is_the_mean_of_all():
    values = np.array([0.0, 1, 2, 3])
    np.testing.assert_allclose(rolling_mean(values, 2), [0.5, 1.5, 2.5])
    np.testing.assert_allclose(rolling_mean(values, 9), [1.5])
    assert len(rolling_mean(np.zeros(0), 5)) == 0
