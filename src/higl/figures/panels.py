"""The numbers behind learning curves, as plain data that pictures and the report page draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from higl.figures.groups import Group, group_runs
from higl.figures.statistics import (
    LEVEL,
    SMOOTHED_EVALUATIONS,
    Smoothing,
    Spread,
    binned,
    mean_and_spread,
    smooth,
    stratified_bootstrap,
)
from higl.figures.style import mark_shape, variant_colour, variant_hue
from higl.run.naming import algorithm_title
from higl.run.reading import Columns, Run
from higl.text import counted, steps_text

Column = Literal["success", "return"]
"""Columns of `eval.csv` that have curves."""

LOSSES = {
    "low/critic_loss": "low level: critic loss",
    "high/critic_loss": "high level: critic loss",
    "high/landmark_loss": "high level: landmark loss",
    "novelty/loss": "novelty: prediction error",
}
PROGRESS = {
    "low/progress": "low level: progress per segment",
    "low/progress_share": "low level: share of the way covered",
    "low/still": "low level: share of segments without movement",
    "low/subgoal_distance": "distance to the subgoals",
}
EXPLORED = {"explored_share": "share of the maze visited", "explored_cells": "cells of the goal space visited"}
SHARES = ("explored_share", "high/selected_coverage", "high/selected_novelty", "high/selected_goal", "low/still")
"""Metrics that lie between 0 and 1."""
UNMEASURED = "evaluation, logging, other"
"""Name of the time that belongs to no measured stage."""

_SPREADS = {
    "std": "mean over seeds; band: ± one standard deviation",
    "sem": "mean over seeds; band: ± one standard error",
    "range": "mean over seeds; band: lowest to highest seed",
    "none": "mean over seeds",
}
# Points of a training curve.
_BINS = 100
# Variants of one algorithm for which a comparison uses different hues.
_MANY_VARIANTS = 3
# Marks on a curve as long as its panel.
_MARKS = 5


@dataclass(frozen=True)
class Curve:
    """One line of a figure with its band.

    Attributes:
        label: text of the legend.
        algo: algorithm, which determines the colour.
        variant: number among the curves of the algorithm, which determines lightness and dashes.
        steps: environment steps, [N].
        centre: mean or IQM at each step, [N].
        low: lower end of the band, [N]; NaN where there is none.
        high: upper end of the band, [N].
        count: seeds behind each point, [N].
        seeds: seeds of the group.
        hue: colour of the line, if not the algorithm's.
    """

    label: str
    algo: str
    variant: int
    steps: np.ndarray
    centre: np.ndarray
    low: np.ndarray
    high: np.ndarray
    count: np.ndarray
    seeds: int
    hue: str | None = None

    @property
    def colour(self) -> str:
        """Colour of the line."""
        return self.hue or variant_colour(self.algo, self.variant)

    @property
    def mark(self) -> tuple[tuple[float, float], ...]:
        """Corners of its marks, in a circle of radius 1."""
        return mark_shape(self.algo, self.variant)


@dataclass(frozen=True)
class Reference:
    """A published result: a horizontal line in the colour of its algorithm, with a text."""

    text: str
    algo: str
    value: float

    @property
    def colour(self) -> str:
        """Colour of line and text."""
        return variant_colour(self.algo, 0)


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes:
        title: the task.
        quantity: what the y axis shows.
        curves: one for each group of runs.
        statistic: what line and band are.
        smoothing: how every curve was averaged over steps.
        limits: range of the y axis; None to fit the curves.
        references: published results.
        missing: names of curves that have no runs yet.
    """

    title: str
    quantity: str
    curves: tuple[Curve, ...]
    statistic: str
    smoothing: str
    limits: tuple[float, float] | None = None
    references: tuple[Reference, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """How to read the curves, in one line."""
        return f"{self.statistic}; {self.smoothing}"

    @property
    def is_empty(self) -> bool:
        """Whether no curve has a point yet."""
        return not any(len(curve.steps) for curve in self.curves)

    def marks(self) -> list[np.ndarray]:
        """Return the points at which each curve has a mark: steps and values, [M, 2].

        The curves have them in turn, so that several on top of each other all show. A curve alone has none, unless it
        is a single point.
        """
        last = max((curve.steps[-1] for curve in self.curves if len(curve.steps)), default=0.0)
        return [self._marks_of(place, last) for place in range(len(self.curves))]

    def _marks_of(self, place: int, last: float) -> np.ndarray:
        curve, count = self.curves[place], len(self.curves)
        known = np.isfinite(curve.centre)
        steps, values = curve.steps[known], curve.centre[known]
        if len(steps) == 0 or (count == 1 and len(steps) > 1):
            return np.zeros((0, 2))
        wanted = last * (np.arange(_MARKS) + (place + 0.5) / count) / _MARKS
        wanted = wanted[(wanted >= steps[0]) & (wanted <= steps[-1])]
        wanted = wanted if len(wanted) else steps[-1:]
        return np.stack([wanted, np.interp(wanted, steps, values)], axis=1)


# --- Evaluations ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Method:
    """How the evaluations of a group's seeds become a curve."""

    column: Column
    smoothing: Smoothing
    spread: Spread
    iqm: bool

    def panel(self, title: str, curves: Iterable[Curve], *, one_seed: bool, zero_shot: bool = False) -> Panel:
        """Return a panel whose words fit the method. Without goals in training, its evaluations are zero-shot."""
        statistic = f"IQM over seeds; band: {LEVEL:.0%} stratified bootstrap interval" if self.iqm else None
        statistic = "one seed per curve" if one_seed else statistic or _SPREADS[self.spread]
        quantity, limits = ("success rate", (0.0, 1.0)) if self.column == "success" else ("return", None)
        quantity += " (zero-shot)" if zero_shot else ""
        return Panel(title, quantity, tuple(curves), statistic, str(self.smoothing), limits)


def evaluation_panels(
    runs: Sequence[Run],
    column: Column = "success",
    *,
    smoothing: Smoothing | None = None,
    spread: Spread = "std",
    iqm: bool = False,
) -> list[Panel]:
    """Return a panel for each task with a curve for each group of runs; with `iqm` also one over all tasks."""
    method = _Method(column, automatic_smoothing(runs) if smoothing is None else smoothing, spread, iqm)
    groups = group_runs(runs)
    one_seed = all(len(group.by_seed) == 1 for group in groups)
    panels = []
    for task, members in _by_task(groups).items():
        grid = _grid(members)
        curves = [_curve(group, grid, method) for group in members]
        zero_shot = all(run.settings.get("goal") == "none" for group in members for run in group.runs)
        panels.append(method.panel(task, curves, one_seed=one_seed, zero_shot=zero_shot))
    if iqm and len(panels) > 1:
        panels.append(method.panel(f"All {len(panels)} tasks", _curves_over_tasks(groups, method), one_seed=one_seed))
    return panels


def comparison_panel(
    title: str, runs: Mapping[str, Sequence[Run]], smoothing: Smoothing, references: Sequence[Reference] = ()
) -> Panel:
    """Return a panel of success with one curve for each name that has runs, in this order: mean and deviation.

    The names decide what belongs together, whatever else differs in the settings of the runs.
    """
    groups: list[Group] = []
    for name, members in runs.items():
        if members:
            algo = members[0].algo
            number = sum(group.algo == algo for group in groups)
            groups.append(Group(title, algo, name, number, tuple(members)))
    method, grid = _Method("success", smoothing, "std", iqm=False), _grid(groups)
    curves = [replace(_curve(group, grid, method), label=group.label) for group in groups]
    if max((curve.variant for curve in curves), default=0) >= _MANY_VARIANTS - 1:  # shades would look alike
        curves = [replace(curve, hue=variant_hue(curve.variant)) if curve.algo == "higl" else curve for curve in curves]
    panel = method.panel(title, curves, one_seed=all(curve.seeds == 1 for curve in curves))
    missing = tuple(name for name, members in runs.items() if not members)
    return replace(panel, references=tuple(references), missing=missing)


def automatic_smoothing(runs: Sequence[Run]) -> Smoothing:
    """Return one window for all runs: five times the median distance between two evaluations."""
    gaps = [np.median(np.diff(run.evaluations["step"])) for run in runs if len(run.evaluations["step"]) > 1]
    return Smoothing(SMOOTHED_EVALUATIONS * float(np.median(gaps)) if gaps else 0.0)


def _by_task(groups: Sequence[Group]) -> dict[str, list[Group]]:
    tasks: dict[str, list[Group]] = {}
    for group in groups:
        tasks.setdefault(group.task, []).append(group)
    return tasks


def _grid(groups: Sequence[Group]) -> np.ndarray:
    """Return the steps at which any run of the groups was evaluated, [N]."""
    steps = [run.evaluations["step"] for group in groups for run in group.runs]
    return np.unique(np.concatenate([*steps, np.zeros(0)]))


def _scores(runs: Sequence[Run], grid: np.ndarray, method: _Method) -> np.ndarray:
    """Return each run's smoothed evaluations on a grid: [R, N]."""
    rows = [
        smooth(run.evaluations["step"], _column(run.evaluations, method.column), grid, method.smoothing) for run in runs
    ]
    return np.stack(rows) if rows else np.zeros((0, len(grid)))


def _column(columns: Columns, name: str) -> np.ndarray:
    return columns.get(name, np.full(len(columns["step"]), np.nan))


def _curve(group: Group, grid: np.ndarray, method: _Method) -> Curve:
    scores = _per_seed(group, _scores(group.runs, grid, method))
    label = f"{group.label} ({group.seeds_text})"
    curve = _curve_of_scores(group, label, grid, scores, method.spread)
    if not method.iqm:
        return curve
    complete = curve.count == curve.seeds
    centre, low, high = (np.full(len(curve.steps), np.nan) for _ in range(3))
    centre[complete], low[complete], high[complete] = stratified_bootstrap([scores[:, _all_finite(scores)]])
    return replace(curve, centre=centre, low=low, high=high)


def _curve_of_scores(group: Group, label: str, steps: np.ndarray, scores: np.ndarray, spread: Spread) -> Curve:
    """Return mean and spread of scores [S, N] at the steps that any seed has reached."""
    count = np.isfinite(scores).sum(axis=0)
    kept = count > 0
    band = mean_and_spread(scores[:, kept], spread)
    return Curve(label, group.algo, group.variant, steps[kept], *band, count[kept], len(scores))


def _per_seed(group: Group, scores: np.ndarray) -> np.ndarray:
    """Average the runs of each seed, where there are several: [R, N] to [S, N]."""
    return np.stack([mean_and_spread(scores[places], "none")[0] for places in group.by_seed])


def _all_finite(scores: np.ndarray) -> np.ndarray:
    """Return at which steps all runs have a score: [R, N] to [N]."""
    return np.asarray(np.isfinite(scores).all(axis=0))


def _curves_over_tasks(groups: Sequence[Group], method: _Method) -> list[Curve]:
    """Return the IQM over all tasks for each algorithm that has runs of every task, where all its runs have scores."""
    grid = _grid(groups)
    tasks = _by_task(groups)
    curves = []
    for algo in dict.fromkeys(group.algo for group in groups):
        strata = [[group for group in members if group.algo == algo] for members in tasks.values()]
        if not all(strata):
            continue
        scores = [
            np.concatenate([_per_seed(group, _scores(group.runs, grid, method)) for group in some]) for some in strata
        ]
        kept = _all_finite(np.concatenate(scores))
        band = stratified_bootstrap([stratum[:, kept] for stratum in scores])
        total = sum(map(len, scores))
        label = f"{algorithm_title(algo)} ({counted(total, 'run')})"
        curves.append(Curve(label, algo, 0, grid[kept], *band, np.full(kept.sum(), total), total))
    return curves


# --- Training -------------------------------------------------------------------------------------------------------


def metric_panels(runs: Sequence[Run], names: dict[str, str], spread: Spread = "std") -> list[Panel]:
    """Return a panel for each task and metric that any run has, averaged into bins of equal numbers of steps.

    Args:
        runs: runs to compare.
        names: metrics of `metrics.jsonl` and what they are called in the figure.
        spread: what the bands show.
    """
    panels = []
    for task, members in _by_task(group_runs(runs)).items():
        last = max(run.last_step for group in members for run in group.runs)
        edges = np.linspace(0, max(last, 1), _BINS + 1)
        smoothing = f"averaged over {steps_text(edges[1])} steps per point"
        for name, quantity in names.items():
            curves = [_metric_curve(group, name, edges, spread) for group in members]
            limits = (0.0, 1.0) if name in SHARES else None
            panel = Panel(task, quantity, tuple(c for c in curves if len(c.steps)), _SPREADS[spread], smoothing, limits)
            panels += [] if panel.is_empty else [panel]
    return panels


def _metric_curve(group: Group, name: str, edges: np.ndarray, spread: Spread) -> Curve:
    scores = np.stack([binned(run.metrics["step"], _column(run.metrics, name), edges) for run in group.runs])
    return _curve_of_scores(group, group.label, (edges[1:] + edges[:-1]) / 2, _per_seed(group, scores), spread)


@dataclass(frozen=True)
class StageTimes:
    """Where the time of a run went.

    Attributes:
        label: title of the run.
        stages: milliseconds per environment step by stage, longest first; the unmeasured rest is last.
        steps: environment steps that were measured.
        seconds: time that these steps took.
    """

    label: str
    stages: dict[str, float]
    steps: int
    seconds: float

    @property
    def total(self) -> float:
        """Milliseconds per environment step."""
        return sum(self.stages.values())


def stage_times(run: Run) -> StageTimes | None:
    """Return a run's times, or None if it has none.

    The first episode, which compiles the programs, is left out if there are more.
    """
    metrics = run.metrics
    names = [name for name in metrics if name.startswith("seconds/")]
    if not names or len(metrics["step"]) == 0:
        return None
    first = 1 if len(metrics["step"]) > 1 else 0
    begin = metrics["step"][0] if first else 0.0
    steps = metrics["step"][-1] - begin
    totals = {name.removeprefix("seconds/"): float(np.nansum(metrics[name][first:])) for name in names}
    measured = sum(totals.values())
    clock = _column(metrics, "time")
    seconds = float(clock[-1] - (clock[0] if first else 0.0))
    seconds = seconds if math.isfinite(seconds) and seconds > 0 else measured
    if steps <= 0 or seconds <= 0:
        return None
    ordered = dict(sorted(totals.items(), key=lambda item: -item[1])) | {UNMEASURED: max(seconds - measured, 0.0)}
    stages = {name: 1e3 * total / steps for name, total in ordered.items()}
    return StageTimes(run.title, stages, int(steps), seconds)
