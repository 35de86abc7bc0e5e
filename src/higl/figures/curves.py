"""Learning curves: success against steps over seeds; losses, stage times and the low level's progress.

The numbers are computed first, as plain data (`Curve`), and drawn after: pictures and the report page share them.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from higl.figures.groups import Group, group_runs
from higl.figures.statistics import (
    LEVEL,
    Smoothing,
    Spread,
    binned,
    mean_and_spread,
    smooth,
    stratified_bootstrap,
)
from higl.figures.style import OTHER_STAGE, STAGE_COLOURS, dashes, variant_colour
from higl.run.naming import algorithm_title
from higl.run.reading import Columns, Run
from higl.text import steps_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Show = Literal["success", "return", "progress", "losses"]

_SPREAD_WORDS = {
    "std": "band: ± one standard deviation over seeds",
    "sem": "band: ± one standard error over seeds",
    "range": "band: from the lowest to the highest seed",
    "none": "no band",
}
# Evaluations that the automatic smoothing averages.
_SMOOTHED_EVALUATIONS = 5
# Letters of a curve's label that fit into its axes.
_SHORT_LABEL = 34
# Points that a curve of training is averaged into.
_BINS = 100

LOSSES = {
    "low/critic_loss": "low level: critic loss",
    "high/critic_loss": "high level: critic loss",
    "high/landmark_loss": "high level: landmark loss",
    "novelty/loss": "novelty: prediction error",
}
OTHER = "evaluation, logs, other"
"""What of the time is not measured by stage."""
SHARES = ("high/selected_coverage", "high/selected_novelty", "high/selected_goal", "low/still")
"""Measurements that lie between 0 and 1."""
PROGRESS = {
    "low/progress": "low level: progress per segment",
    "low/progress_share": "low level: share of the way covered",
    "low/still": "low level: segments that hardly move",
    "low/subgoal_distance": "distance of the subgoals",
}


@dataclass(frozen=True)
class Curve:
    """One line of a figure with its band.

    Attributes:
        label: what the legend says.
        algo: algorithm, which gives the colour.
        variant: number among the curves of the algorithm, which gives shade and dashes.
        steps: [N].
        centre: mean or IQM at each step, [N].
        low: lower end of the band, [N]; NaN where there is none.
        high: upper end of the band, [N].
        count: seeds behind each point, [N].
        seeds: seeds of the group.
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

    @property
    def colour(self) -> str:
        """Colour of the line."""
        return variant_colour(self.algo, self.variant)


@dataclass(frozen=True)
class Panel:
    """One set of axes: a title, curves, and what every curve in it went through."""

    title: str
    quantity: str
    curves: tuple[Curve, ...]
    note: str
    limits: tuple[float, float] | None = None


# --- Success --------------------------------------------------------------------------------------------------------


def automatic_smoothing(runs: Sequence[Run]) -> Smoothing:
    """Return one window for all runs: five times the usual distance of two evaluations."""
    gaps = [np.median(np.diff(run.evaluations["step"])) for run in runs if len(run.evaluations["step"]) > 1]
    return Smoothing(_SMOOTHED_EVALUATIONS * float(np.median(gaps)) if gaps else 0.0)


def evaluation_panels(
    runs: Sequence[Run],
    column: Literal["success", "return"] = "success",
    *,
    smoothing: Smoothing | None = None,
    spread: Spread = "std",
    iqm: bool = False,
) -> list[Panel]:
    """Return a panel for each task with a curve for each group of runs; with `iqm` also one over all tasks."""
    smoothing = automatic_smoothing(runs) if smoothing is None else smoothing
    groups = group_runs(runs)
    band = (
        f"IQM; band: {LEVEL:.0%} stratified bootstrap interval over seeds" if iqm else f"mean; {_SPREAD_WORDS[spread]}"
    )
    if all(len(group.runs) == 1 for group in groups):
        band = "one seed"
    note = f"evaluations: {band}; every curve: {smoothing}"
    quantity = "success rate" if column == "success" else "return"
    limits = (0.0, 1.0) if column == "success" else None
    panels = []
    for task in dict.fromkeys(group.task for group in groups):
        grouped = [group for group in groups if group.task == task]
        grid = _grid([run for group in grouped for run in group.runs])
        curves = [_curve(group, grid, column, smoothing, spread, iqm) for group in grouped]
        panels.append(Panel(task, quantity, tuple(curves), note, limits))
    if iqm and len(panels) > 1:
        panels.append(_over_all_tasks(groups, smoothing, column, quantity, note, limits))
    return panels


def _grid(runs: Sequence[Run]) -> np.ndarray:
    """Return the steps at which curves of some runs are compared: all at which any of them was evaluated."""
    steps = [run.evaluations["step"] for run in runs]
    return np.unique(np.concatenate([*steps, np.zeros(0)]))


def _scores(runs: Sequence[Run], grid: np.ndarray, column: str, smoothing: Smoothing) -> np.ndarray:
    """Return each run's smoothed evaluations on a grid: [R, N]."""
    rows = [smooth(r.evaluations["step"], _column(r.evaluations, column), grid, smoothing) for r in runs]
    return np.stack(rows) if rows else np.zeros((0, len(grid)))


def _column(columns: Columns, name: str) -> np.ndarray:
    return columns.get(name, np.full(len(columns["step"]), np.nan))


def _curve(group: Group, grid: np.ndarray, column: str, smoothing: Smoothing, spread: Spread, iqm: bool) -> Curve:
    scores = _scores(group.runs, grid, column, smoothing)
    count = np.isfinite(scores).sum(axis=0)
    kept = count > 0
    scores, count, grid = scores[:, kept], count[kept], grid[kept]
    if iqm:
        centre, low, high = _iqm_where_complete([scores], count, len(group.runs))
    else:
        centre, low, high = mean_and_spread(scores, spread)
    seeds = len(group.runs)
    label = f"{group.label} ({seeds} seed{'s' if seeds > 1 else ''})"
    return Curve(label, group.algo, group.variant, grid, centre, low, high, count, seeds)


def _iqm_where_complete(
    strata: Sequence[np.ndarray], count: np.ndarray, wanted: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return IQM and interval at the steps that all runs have reached; NaN elsewhere."""
    complete = count == wanted
    result = tuple(np.full(len(count), np.nan) for _ in range(3))
    if complete.any():
        for place, found in zip(result, stratified_bootstrap([s[:, complete] for s in strata]), strict=True):
            place[complete] = found
    return result[0], result[1], result[2]


def _over_all_tasks(
    groups: Sequence[Group],
    smoothing: Smoothing,
    column: str,
    quantity: str,
    note: str,
    limits: tuple[float, float] | None,
) -> Panel:
    """Return a panel with the IQM over all tasks, of the algorithms that have runs of every task."""
    tasks = list(dict.fromkeys(group.task for group in groups))
    grid = _grid([run for group in groups for run in group.runs])
    curves = []
    for algo in dict.fromkeys(group.algo for group in groups):
        strata = [[run for g in groups if (g.task, g.algo) == (task, algo) for run in g.runs] for task in tasks]
        if not all(strata):
            continue
        scores = [_scores(runs, grid, column, smoothing) for runs in strata]
        count = sum(np.isfinite(stratum).sum(axis=0) for stratum in scores)
        total = sum(map(len, strata))
        kept = count == total
        centre, low, high = _iqm_where_complete([s[:, kept] for s in scores], count[kept], total)
        label = f"{algorithm_title(algo)} ({total} runs)"
        curves.append(Curve(label, algo, 0, grid[kept], centre, low, high, count[kept], total))
    return Panel(f"All {len(tasks)} tasks", quantity, tuple(curves), note, limits)


# --- Training -------------------------------------------------------------------------------------------------------


def metric_panels(runs: Sequence[Run], names: dict[str, str], spread: Spread = "std") -> list[Panel]:
    """Return a panel for each task and measurement that any run has, averaged into equal bins of steps."""
    groups = group_runs(runs)
    panels = []
    for task in dict.fromkeys(group.task for group in groups):
        grouped = [group for group in groups if group.task == task]
        last = max(run.last_step for group in grouped for run in group.runs)
        edges = np.linspace(0, max(last, 1), _BINS + 1)
        note = f"training: mean; {_SPREAD_WORDS[spread]}; every curve: mean over bins of {steps_text(edges[1])} steps"
        for name, quantity in names.items():
            curves = [_metric_curve(group, name, edges, spread) for group in grouped]
            curves = [curve for curve in curves if len(curve.steps)]
            if curves:
                limits = (0.0, 1.0) if name in SHARES else None
                panels.append(Panel(task, quantity, tuple(curves), note, limits))
    return panels


def _metric_curve(group: Group, name: str, edges: np.ndarray, spread: Spread) -> Curve:
    rows = [binned(run.metrics["step"], _column(run.metrics, name), edges) for run in group.runs]
    scores = np.stack(rows)
    count = np.isfinite(scores).sum(axis=0)
    kept = count > 0
    centre, low, high = mean_and_spread(scores[:, kept], spread)
    middle = (edges[1:] + edges[:-1]) / 2
    return Curve(group.label, group.algo, group.variant, middle[kept], centre, low, high, count[kept], len(group.runs))


@dataclass(frozen=True)
class StageTimes:
    """Where the time of a run went: milliseconds per environment step, by stage; and what was not measured."""

    label: str
    milliseconds: dict[str, float]
    other: float
    steps: int
    seconds: float


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
    if steps <= 0:
        return None
    totals = {name.removeprefix("seconds/"): float(np.nansum(metrics[name][first:])) for name in names}
    clock = _column(metrics, "time")
    seconds = float(clock[-1] - (clock[0] if first else 0.0))
    seconds = seconds if math.isfinite(seconds) and seconds > 0 else sum(totals.values())
    other = max(seconds - sum(totals.values()), 0.0)
    ordered = sorted(totals.items(), key=lambda item: -item[1])
    per_step = 1e3 / steps
    return StageTimes(
        run.title, {name: total * per_step for name, total in ordered}, other * per_step, int(steps), seconds
    )


# --- Drawing --------------------------------------------------------------------------------------------------------


def draw_curves(panels: Sequence[Panel], title: str | None = None) -> Figure:
    """Draw panels beside and below each other, at most three in a row."""
    from matplotlib.figure import Figure

    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(max(4.6 * columns, 6.4), 3.5 * rows + 0.5), layout="constrained")
    for axes, panel in zip(figure.subplots(rows, columns, squeeze=False).ravel(), panels, strict=False):
        draw_panel(axes, panel)
    for axes in figure.axes[len(panels) :]:
        axes.remove()
    _add_legends(figure)
    if title:
        figure.suptitle(title, fontsize="medium", fontweight="bold")
    notes = list(dict.fromkeys(panel.note for panel in panels))
    if any((curve.count < curve.seeds).any() for panel in panels for curve in panel.curves):
        notes.append("thin lines: not every seed has come so far")
    figure.supxlabel("\n".join(notes), fontsize="x-small", color="#555555")
    return figure


def _add_legends(figure: Figure) -> None:
    """Put short legends inside the axes, and long ones, once for all axes, below them."""
    for axes in figure.axes:
        _, labels = axes.get_legend_handles_labels()
        if labels and max(map(len, labels)) <= _SHORT_LABEL:
            axes.legend(fontsize="small", frameon=False)
    found = {}
    for axes in figure.axes:
        if axes.get_legend() is None:
            found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if found:
        width = int(13 * figure.get_figwidth())
        labels = [textwrap.fill(label, width) for label in found]
        figure.legend(found.values(), labels, loc="outside upper left", fontsize="small", frameon=False)


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw a panel's curves: solid where every seed of a group has a value, thin where only some have."""
    for curve in panel.curves:
        dash = dashes(curve.variant)
        style: Any = (0, dash) if dash else "-"
        whole = np.where(curve.count == curve.seeds, curve.centre, np.nan)
        axes.plot(curve.steps, curve.centre, color=curve.colour, lw=0.8, ls=style, alpha=0.7)
        axes.plot(curve.steps, whole, color=curve.colour, lw=1.9, ls=style, label=curve.label, gid=curve.label)
        low, high = (edge if panel.limits is None else np.clip(edge, *panel.limits) for edge in (curve.low, curve.high))
        axes.fill_between(curve.steps, low, high, color=curve.colour, alpha=0.18, lw=0)
    axes.set(xlabel="environment steps", ylabel=panel.quantity)
    axes.set_title(panel.title, fontsize="medium")
    axes.xaxis.set_major_formatter(lambda value, _: steps_text(value))
    axes.grid(alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(left=0)
    if panel.limits is not None:
        low, high = panel.limits
        axes.set_ylim(low - 0.02 * (high - low), high + 0.04 * (high - low))
    if not any(len(curve.steps) for curve in panel.curves):
        axes.text(0.5, 0.5, "nothing yet", transform=axes.transAxes, ha="center", color="#777777")


def draw_times(runs: Sequence[Run]) -> Figure | None:
    """Draw where the time went, a bar for each run; None if no run has measured it."""
    from matplotlib.figure import Figure

    rows = [times for times in map(stage_times, runs) if times is not None]
    if not rows:
        return None
    figure = Figure(figsize=(7.5, 0.55 * len(rows) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    stages = list(dict.fromkeys(stage for times in rows for stage in times.milliseconds))
    lefts = np.zeros(len(rows))
    for stage in [*stages, OTHER]:
        widths = np.array([t.other if stage == OTHER else t.milliseconds.get(stage, 0.0) for t in rows])
        colour = STAGE_COLOURS.get(stage, OTHER_STAGE)
        axes.barh(range(len(rows)), widths, left=lefts, color=colour, label=stage, height=0.6)
        lefts += widths
    for place, total in enumerate(lefts):
        axes.text(total, place, f"  {total:.1f} ms", va="center", fontsize="small")
    axes.set_yticks(range(len(rows)), [times.label for times in rows], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * lefts.max())
    axes.set_xlabel("milliseconds per environment step")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(stages) + 1, fontsize="small", frameon=False)
    return figure


def panels_of(show: Show, runs: Sequence[Run], **options: Any) -> list[Panel]:
    """Return the panels of one kind of figure; the options are those of `evaluation_panels`."""
    if show in ("success", "return"):
        return evaluation_panels(runs, show, **options)
    return metric_panels(runs, {"progress": PROGRESS, "losses": LOSSES}[show], options.get("spread", "std"))


def make_curves(
    runs: Sequence[Run], show: Sequence[Show], metrics: Sequence[str] = (), title: str = "", **options: Any
) -> Figure | None:
    """Draw the curves of some kinds, and of other measurements by name; None if there is nothing to draw."""
    panels = [panel for kind in show for panel in panels_of(kind, runs, **options)]
    panels += metric_panels(runs, {name: name for name in metrics}, options.get("spread", "std"))
    return draw_curves(panels, title) if panels else None


def save(figure: Figure, path: Path) -> None:
    """Write a figure as png, svg or pdf; the same data give the same file."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    no_date = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(path.suffix[1:].lower())
    with matplotlib.rc_context({"svg.hashsalt": "higl", "svg.fonttype": "none"}):
        figure.savefig(path, dpi=160, metadata=no_date)
