"""Statistics over the seeds of a task: mean and deviation as in the paper.

And statistics that are more informative with few seeds: interquartile means, bootstrap intervals, steps to a level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from higl.figures.statistics import (
    BOOTSTRAP_DRAWS,
    SMOOTHED_EVALUATIONS,
    percentile_interval,
    rolling_mean,
    stratified_bootstrap,
)

FINAL_WINDOW = 50_000
"""Steps at the end of a run over which the final success is averaged: ten evaluations of five episodes."""


@dataclass(frozen=True)
class SeedCurve:
    """The success of one seed: steps [N] in ascending order and success rates [N]."""

    steps: np.ndarray
    success: np.ndarray

    @property
    def last(self) -> int:
        """The last evaluated step; 0 without evaluations."""
        return int(self.steps[-1]) if len(self.steps) else 0

    def until(self, step: int) -> SeedCurve:
        """Return the curve up to a step."""
        kept = self.steps <= step
        return SeedCurve(self.steps[kept], self.success[kept])


@dataclass(frozen=True)
class Statistic:
    """A statistic with its 95% bootstrap interval, which is NaN if a task has only one seed."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Aggregate:
    """A number aggregated over seeds: mean, standard deviation (NaN for one seed) and interquartile mean."""

    mean: float
    deviation: float
    iqm: Statistic


def final_success(curve: SeedCurve, window: float = FINAL_WINDOW) -> float:
    """Return the mean success over the last steps of a curve; NaN without evaluations."""
    if not len(curve.steps):
        return np.nan
    return float(curve.success[curve.steps > curve.last - window].mean())


def area(curve: SeedCurve) -> float:
    """Return the area under a curve that starts at step 0 with success 0, as a share of the largest possible."""
    if not curve.last:
        return np.nan
    steps, success = np.concatenate([[0], curve.steps]), np.concatenate([[0.0], curve.success])
    return float(np.trapezoid(success, steps) / curve.last)


def steps_to(curve: SeedCurve, level: float) -> int | None:
    """Return the first step at which the mean of the last five evaluations reached a level; None if it never did."""
    smooth = rolling_mean(curve.success, SMOOTHED_EVALUATIONS)
    reached = np.flatnonzero(smooth >= level - 1e-9)
    return int(curve.steps[len(curve.steps) - len(smooth) + reached[0]]) if len(reached) else None


def aggregate(scores: Sequence[float]) -> Aggregate:
    """Return the aggregate of the scores of several seeds."""
    deviation = float(np.std(scores, ddof=1)) if len(scores) > 1 else np.nan
    return Aggregate(float(np.mean(scores)), deviation, stratified_iqm([scores]))


def mean_success(scores: Sequence[float], draws: int = BOOTSTRAP_DRAWS, seed: int = 0) -> Statistic:
    """Return the mean over seeds with its bootstrap interval, which is too narrow if there are only a few seeds."""
    found = np.asarray(scores, float)
    if len(found) < 2:  # resampling a single seed always returns it
        return Statistic(float(found.mean()), np.nan, np.nan)
    rng = np.random.default_rng(seed)
    low, high = percentile_interval(found[rng.integers(len(found), size=(draws, len(found)))].mean(axis=1))
    return Statistic(float(found.mean()), float(low), float(high))


def stratified_iqm(strata: Sequence[Sequence[float]]) -> Statistic:
    """Return the interquartile mean over all seeds of all tasks; the bootstrap resamples seeds within their task.

    Every seed has the same weight.
    """
    centre, low, high = stratified_bootstrap([np.asarray(stratum, float)[:, None] for stratum in strata])
    return Statistic(float(centre[0]), float(low[0]), float(high[0]))


def probability_of_improvement(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], draws: int = BOOTSTRAP_DRAWS, seed: int = 0
) -> Statistic:
    """Return the probability that a seed of the first algorithm scores higher than a seed of the second.

    A tie counts half, and every task has the same weight. The bootstrap resamples seeds within task and algorithm.

    Args:
        pairs: for each task, the scores of the first and of the second algorithm.
        draws: number of bootstrap samples.
        seed: seed of the samples.
    """
    rng = np.random.default_rng(seed)
    centres, samples = [], []
    for first, second in pairs:
        x, y = np.asarray(first, float), np.asarray(second, float)
        centres.append(float(_wins(x[:, None], y[None, :]).mean()))
        resampled_x = x[rng.integers(len(x), size=(draws, len(x)))]
        resampled_y = y[rng.integers(len(y), size=(draws, len(y)))]
        samples.append(_wins(resampled_x[:, :, None], resampled_y[:, None, :]).mean(axis=(1, 2)))
    if min(len(scores) for pair in pairs for scores in pair) < 2:  # resampling a single seed always returns it
        return Statistic(float(np.mean(centres)), np.nan, np.nan)
    low, high = percentile_interval(np.mean(samples, axis=0))
    return Statistic(float(np.mean(centres)), float(low), float(high))


def _wins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x > y) + 0.5 * (x == y)
