"""Statistics of curves: smoothing, mean and spread, interquartile mean (IQM) with stratified bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from higl.text import steps_text

Spread = Literal["std", "sem", "range", "none"]
"""What the band around a mean shows."""

LEVEL = 0.95
"""Confidence level of bootstrap intervals."""
SMOOTHED_EVALUATIONS = 5
"""Consecutive evaluations that are averaged, so that a single lucky one does not count."""
BOOTSTRAP_DRAWS = 2_000


@dataclass(frozen=True)
class Smoothing:
    """The same smoothing for every curve: the mean over the last `window` steps; 0 turns it off."""

    window: float

    def __str__(self) -> str:
        return f"smoothed over the last {steps_text(self.window)} steps" if self.window > 0 else "not smoothed"


def smooth(steps: np.ndarray, values: np.ndarray, at: np.ndarray, smoothing: Smoothing) -> np.ndarray:
    """Return the mean of the values within (s - window, s] for each step s of `at`; NaN outside the run's own range.

    Without smoothing, and where the window contains no value, the result is the last value before s.
    """
    kept = np.isfinite(values)
    steps, values = steps[kept], values[kept]
    if len(steps) == 0:
        return np.full(len(at), np.nan)
    ends = np.searchsorted(steps, at, side="right")
    begins = np.searchsorted(steps, at - smoothing.window, side="right")
    begins = np.maximum(np.minimum(begins, ends - 1), 0)
    total = np.concatenate([[0.0], np.cumsum(values)])
    mean = (total[ends] - total[begins]) / np.maximum(ends - begins, 1)
    return np.where((at >= steps[0]) & (at <= steps[-1]), mean, np.nan)


def interquartile_mean(scores: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return the mean of the middle half of the scores, which single outliers do not affect.

    Equal to `scipy.stats.trim_mean(scores, 0.25)`, but importing that takes a second.
    """
    count = scores.shape[axis]
    middle = np.arange(count // 4, count - count // 4)
    return np.sort(scores, axis=axis).take(middle, axis=axis).mean(axis=axis)


def stratified_bootstrap(
    strata: Sequence[np.ndarray], draws: int = BOOTSTRAP_DRAWS, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the IQM over all runs of all tasks and its bootstrap interval, at each step.

    Args:
        strata: for each task the scores of its runs, [R, N]; runs are resampled within their task.
        draws: number of bootstrap samples.
        seed: seed of the samples, so that the same runs give the same figure.

    Returns:
        IQM over all runs with equal weights; lower and upper end of the percentile interval, NaN if a task has only
        one run. Each [N].
    """
    rng = np.random.default_rng(seed)
    everything = np.concatenate(strata)
    centre = interquartile_mean(everything)
    if min(map(len, strata)) < 2:  # resampling a single run always returns it, as if the result were certain
        return centre, np.full_like(centre, np.nan), np.full_like(centre, np.nan)
    resampled = [stratum[rng.integers(len(stratum), size=(draws, len(stratum)))] for stratum in strata]
    samples = interquartile_mean(np.concatenate(resampled, axis=1), axis=1)
    return centre, *percentile_interval(samples)


def percentile_interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper end of the interval that holds a share `LEVEL` of the samples [S, ...]: [...] each."""
    tail = 50 * (1 - LEVEL)
    low, high = np.percentile(samples, [tail, 100 - tail], axis=0)
    return low, high


def rolling_mean(values: np.ndarray, count: int) -> np.ndarray:
    """Return the mean of every `count` consecutive values: [N] to [N - count + 1]; of all values if there are fewer."""
    count = min(count, len(values))
    return np.convolve(values, np.full(count, 1 / count), mode="valid") if count else np.zeros(0)


def mean_and_spread(scores: np.ndarray, spread: Spread) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean over runs [R, N], ignoring NaN, and the band around it, each [N]."""
    count = np.isfinite(scores).sum(axis=0)
    some = count > 0
    filled = np.where(np.isfinite(scores), scores, 0.0)
    mean = np.where(some, filled.sum(axis=0) / np.maximum(count, 1), np.nan)
    nothing = np.full_like(mean, np.nan)
    if spread == "none":
        return mean, nothing, nothing
    if spread == "range":
        low = np.where(np.isfinite(scores), scores, np.inf).min(axis=0, initial=np.inf)
        high = np.where(np.isfinite(scores), scores, -np.inf).max(axis=0, initial=-np.inf)
    else:
        square = np.where(np.isfinite(scores), (scores - mean) ** 2, 0.0).sum(axis=0)
        width = np.sqrt(square / np.maximum(count - 1, 1))
        width = width / np.sqrt(np.maximum(count, 1)) if spread == "sem" else width
        low, high = mean - width, mean + width
    return mean, np.where(count > 1, low, np.nan), np.where(count > 1, high, np.nan)


def binned(steps: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the mean of the values in each bin of steps (low, high]; NaN in empty bins."""
    kept = np.isfinite(values)
    place = np.clip(np.searchsorted(edges, steps[kept], side="left") - 1, 0, len(edges) - 2)
    count = np.bincount(place, minlength=len(edges) - 1)
    total = np.bincount(place, values[kept], minlength=len(edges) - 1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
