"""Landmark maps: visited states, landmarks, their graph and the walls at several moments of training.

Goal spaces of more than two dimensions are shown in projections.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from higl.errors import NoSnapshotsError
from higl.figures import style
from higl.figures.goal_space import (
    Projection,
    edge_lines,
    extent,
    goal_size,
    load_snapshots,
    path_points,
    points_of,
    projections,
    success_of,
)
from higl.run.reading import Columns, Run, SnapshotFile
from higl.text import steps_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def choose_phases(snapshots: Sequence[SnapshotFile], count: int, steps: Sequence[int] = ()) -> list[SnapshotFile]:
    """Return the snapshots nearest to the given steps, or `count` evenly spaced ones that include the last."""
    if not snapshots:
        return []
    if not steps:
        last = snapshots[-1].step
        steps = [round(last * (place + 1) / count) for place in range(count)]
    nearest = [min(snapshots, key=lambda snapshot: abs(snapshot.step - step)) for step in steps]
    return list({snapshot.step: snapshot for snapshot in nearest}.values())


def exploring_steps(run: Run, count: int) -> list[int]:
    """Return when a run had seen 1 / count, 2 / count, ... of all that it has ever visited."""
    shares = run.metrics.get("explored_share", np.zeros(0))
    seen = shares if np.isfinite(shares).any() else run.metrics.get("explored_cells", np.zeros(0))
    seen = np.nan_to_num(seen)
    wanted = [seen.max(initial=0.0) * (place + 1) / count for place in range(count)]
    return [int(run.metrics["step"][np.argmax(seen >= share)]) for share in wanted if seen.size]


def draw_landmarks(
    run: Run, phases: int = 4, steps: Sequence[int] = (), *, graph: bool = False, title: str = ""
) -> Figure:
    """Draw a run's landmark maps: a column for each phase of training, a row for each projection.

    Args:
        run: the run.
        phases: number of moments: evenly spaced over training, or without a goal over what was visited.
        steps: steps to show instead; the nearest snapshots are used.
        graph: also draw the graph and the plan.
        title: title of the figure; the run's if empty.

    Raises:
        NoSnapshotsError: there is nothing to draw.
    """
    from matplotlib.figure import Figure

    free = run.settings.get("goal") == "none"
    steps = steps or (exploring_steps(run, phases) if free else [])
    snapshots = load_snapshots(choose_phases(run.snapshots, phases, steps))
    if not snapshots:
        raise NoSnapshotsError(f"{run.path} has no snapshot yet: each evaluation saves one")
    shown = projections(run.task, goal_size(snapshots[-1]))
    title = title or run.title
    size = 3.0 if len(snapshots) > 1 else 4.5
    width = max(size * len(snapshots), 4.5) + 0.3
    legend = 0.22 * np.ceil((9 if graph else 5) / _legend_columns(width))
    height = size * len(shown) + 0.65 + 0.25 * title.count("\n") + legend
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(len(shown), len(snapshots), squeeze=False)
    for row, projection in zip(grid, shown, strict=True):
        left, right, low, high = extent(snapshots, projection)
        for axes, snapshot in zip(row, snapshots, strict=True):
            draw_map(axes, snapshot, projection, graph=graph, free=free)
            axes.set(xlim=(left, right), ylim=(low, high), aspect="equal", xlabel=projection.names[0])
            axes.tick_params(labelsize="x-small", labelleft=axes is row[0])
        row[0].set_ylabel(projection.names[1])
    for axes, snapshot in zip(grid[0], snapshots, strict=True):
        axes.set_title(_phase_title(snapshot, run if free else None), fontsize="small")
    figure.suptitle(title, fontsize="medium", fontweight="bold")
    _legend(figure)
    return figure


def _phase_title(snapshot: Columns, explored: Run | None) -> str:
    """Return step and success, and for a run that explored how much of a maze had been visited by then."""
    step, success = float(snapshot["step"]), success_of(snapshot)
    words = [f"{steps_text(step)} steps"]
    shares = explored.metrics.get("explored_share", np.zeros(0)) if explored is not None else np.zeros(0)
    if explored is not None and np.isfinite(shares).any():
        words.append(f"{np.nanmax(shares[explored.metrics['step'] <= step], initial=0.0):.0%} visited")
    return ", ".join([*words, *([] if success is None else [f"success {success:.0%}"])])


# What the landmarks are called; without a goal they are those of the map, and the least familiar of them.
_KINDS = {False: ("coverage landmarks", "novelty landmarks", "goal"), True: ("landmarks", "frontier", "test goal")}


def draw_map(axes: Axes, snapshot: Columns, projection: Projection, *, graph: bool = False, free: bool = False) -> None:
    """Draw one snapshot in one projection; `free`: of a run without a goal."""
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Rectangle

    axes.set_facecolor(style.FLOOR)
    walls = snapshot.get("walls", np.zeros((0, 4)))
    boxes = [Rectangle((w[0], w[1]), w[2] - w[0], w[3] - w[1]) for w in walls]
    axes.add_collection(PatchCollection(boxes, facecolor=style.WALL, edgecolor=style.WALL, lw=0.5))
    dots = partial(_scatter, axes, snapshot, projection)
    dots("visited", "visited states", s=3, color=style.VISITED, lw=0, alpha=0.7, rasterized=True)
    if graph:
        lines = projection.of(edge_lines(snapshot))
        axes.add_collection(LineCollection(list(lines), colors=style.EDGE, lw=0.6, alpha=0.7, zorder=2))
    coverage, novelty, goal = _KINDS[free]
    dots("coverage", coverage, s=30, color=style.COVERAGE, ec="white", lw=0.6, zorder=3)
    dots("novelty", novelty, s=34, color=style.NOVELTY, ec="white", lw=0.6, marker="^", zorder=4)
    _draw_goal(axes, snapshot, projection, goal)
    dots("state", "start", s=42, color=style.STATE, ec="white", lw=0.8, marker="s", zorder=6)
    if graph:
        _draw_plan(axes, snapshot, projection)


def _scatter(axes: Axes, snapshot: Columns, projection: Projection, name: str, label: str, **look: Any) -> None:
    """Mark the points of one kind, if there are any."""
    points = projection.of(points_of(snapshot, name))
    if len(points):
        axes.scatter(points[:, 0], points[:, 1], label=label, **look)


def _draw_goal(axes: Axes, snapshot: Columns, projection: Projection, label: str) -> None:
    from matplotlib.patches import Circle

    radius = float(snapshot.get("radius", np.nan))
    if np.isfinite(radius) and projection.decides:
        for x, y in projection.of(points_of(snapshot, "goal")):
            axes.add_patch(Circle((x, y), radius, fc=style.GOAL, alpha=0.15, lw=0, zorder=1.5))
    look: dict[str, Any] = {"color": style.GOAL, "ec": "white", "lw": 0.8, "marker": "*"}
    _scatter(axes, snapshot, projection, "goal", label, s=110, zorder=6, **look)


def _draw_plan(axes: Axes, snapshot: Columns, projection: Projection) -> None:
    """Draw the shortest path, the selected landmark, the pseudo-landmark and the subgoal."""
    path = projection.of(path_points(snapshot))
    if len(path):
        axes.plot(path[:, 0], path[:, 1], color=style.PATH, lw=1.8, zorder=5, label="shortest path", gid="path")
    dots = partial(_scatter, axes, snapshot, projection)
    dots("selected", "selected landmark", s=130, facecolors="none", ec=style.PATH, lw=1.6, zorder=7)
    dots("pseudo_landmark", "pseudo-landmark", s=55, color=style.PSEUDO, ec="white", lw=0.8, marker="D", zorder=8)
    states, subgoals = (projection.of(points_of(snapshot, name)) for name in ("state", "subgoal"))
    for state, subgoal in zip(states, subgoals, strict=False):
        axes.annotate("", subgoal, state, zorder=8, arrowprops={"arrowstyle": "-", "color": style.SUBGOAL, "lw": 1.2})
    dots("subgoal", "subgoal", s=55, color=style.SUBGOAL, marker="X", ec="white", lw=0.8, zorder=9)


def _legend(figure: Figure) -> None:
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    columns = min(len(found), _legend_columns(figure.get_figwidth()))
    figure.legend(
        found.values(), found.keys(), loc="outside lower center", ncols=columns, fontsize="small", frameon=False
    )


def _legend_columns(width: float) -> int:
    """Return how many legend entries fit side by side in a figure of a given width in inches."""
    return max(2, int(width / 1.75))
