"""Statistics over the seeds of a curve: what the paper shows, and what says more with few seeds.

A curve is the success rate at each evaluation. Curves of different lengths are compared over the shortest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from higl.figures.statistics import LEVEL, stratified_bootstrap

FINAL_WINDOW = 50_000
"""Steps before the end over which the final success is averaged: ten evaluations of five episodes."""
SMOOTHED_EVALUATIONS = 5
"""Evaluations over which a curve is averaged before it is asked when it first reached a level."""
_DRAWS = 2_000


@dataclass(frozen=True)
class SeedCurve:
    """One seed's success: steps [N] in ascending order and success rates [N]."""

    steps: np.ndarray
    success: np.ndarray

    @property
    def last(self) -> int:
        """The last step that was evaluated; 0 without evaluations."""
        return int(self.steps[-1]) if len(self.steps) else 0

    def until(self, step: int) -> SeedCurve:
        """Return the curve up to a step."""
        kept = self.steps <= step
        return SeedCurve(self.steps[kept], self.success[kept])


@dataclass(frozen=True)
class Spread:
    """A number over seeds: mean, standard deviation (NaN for one seed), IQM with its 95% bootstrap interval."""

    mean: float
    deviation: float
    iqm: float
    low: float
    high: float
    count: int


def final_success(curve: SeedCurve, window: float = FINAL_WINDOW) -> float:
    """Return the mean success over the last steps of a curve; NaN without evaluations."""
    if not len(curve.steps):
        return np.nan
    return float(curve.success[curve.steps > curve.last - window].mean())


def area(curve: SeedCurve) -> float:
    """Return the area under a curve from step 0 (success 0) to its end, as a share of the largest possible."""
    if not curve.last:
        return np.nan
    steps, success = np.concatenate([[0], curve.steps]), np.concatenate([[0.0], curve.success])
    return float(np.trapezoid(success, steps) / curve.last)


def steps_to(curve: SeedCurve, level: float) -> int | None:
    """Return the first step at which the mean of the last five evaluations reached a level; None: never."""
    count = min(SMOOTHED_EVALUATIONS, len(curve.steps))
    if not count:
        return None
    smooth = np.convolve(curve.success, np.full(count, 1 / count), mode="valid")
    reached = np.flatnonzero(smooth >= level - 1e-9)
    return int(curve.steps[count - 1 + reached[0]]) if len(reached) else None


def spread(values: Sequence[float]) -> Spread:
    """Return a number's spread over seeds."""
    scores = np.asarray(values, float)
    centre, low, high = stratified_bootstrap([scores[:, None]])
    deviation = float(scores.std(ddof=1)) if len(scores) > 1 else np.nan
    return Spread(float(scores.mean()), deviation, float(centre[0]), float(low[0]), float(high[0]), len(scores))


def stratified_iqm(strata: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return the IQM of a number over all seeds of all tasks, and its 95% interval; seeds are redrawn per task.

    Every seed has the same weight. Where a task has but one there is no interval (NaN).
    """
    centre, low, high = stratified_bootstrap([np.asarray(stratum, float)[:, None] for stratum in strata])
    return float(centre[0]), float(low[0]), float(high[0])


def probability_of_improvement(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], draws: int = _DRAWS, seed: int = 0
) -> tuple[float, float, float]:
    """Return how likely a seed of the first does better than one of the second, over tasks, with its 95% interval.

    Equal scores count half, and every task has the same weight. The interval is from a bootstrap that redraws seeds
    within each task and algorithm; where one of these has but one seed there is none (NaN).

    Args:
        pairs: for each task the scores of the first and of the second.
        draws: bootstrap samples.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    centres, samples = [], []
    for first, second in pairs:
        x, y = np.asarray(first, float), np.asarray(second, float)
        centres.append(float(_better(x[:, None], y[None, :]).mean()))
        redrawn_x = x[rng.integers(len(x), size=(draws, len(x)))]
        redrawn_y = y[rng.integers(len(y), size=(draws, len(y)))]
        samples.append(_better(redrawn_x[:, :, None], redrawn_y[:, None, :]).mean(axis=(1, 2)))
    if min(len(scores) for pair in pairs for scores in pair) < 2:
        return float(np.mean(centres)), np.nan, np.nan
    tail = 50 * (1 - LEVEL)
    low, high = np.percentile(np.mean(samples, axis=0), [tail, 100 - tail])
    return float(np.mean(centres)), float(low), float(high)


def _better(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x > y) + 0.5 * (x == y)
