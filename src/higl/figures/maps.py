"""Landmark maps: visited states, landmarks and the graph over them, the walls, at several moments of training.

Goal spaces of more than two dimensions are shown in projections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from higl.errors import NoSnapshotsError
from higl.figures import style
from higl.run.reading import Columns, Run, SnapshotFile
from higl.text import steps_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Share of the outer walls' width that a map leaves out: the maze is inside.
_CROPPED = 0.6
_MARGIN = 0.08


@dataclass(frozen=True)
class Projection:
    """Two dimensions of the goal space, their names, and whether success looks at them."""

    across: int
    up: int
    names: tuple[str, str]
    decides: bool = True

    @property
    def title(self) -> str:
        """What the projection shows: 'tip, x and y'."""
        first, second = (name.split() for name in self.names)
        return f"{first[0]}, {first[1]} and {second[1]}" if len(first) > 1 else f"{first[0]} and {second[0]}"

    def of(self, points: np.ndarray) -> np.ndarray:
        """Return the two dimensions of points: [..., G] to [..., 2]."""
        return points[..., [self.across, self.up]]


def projections(task: str, goal_size: int) -> list[Projection]:
    """Return the projections in which a goal space is shown."""
    if goal_size == 2:
        return [Projection(0, 1, ("x", "y"))]
    if goal_size == 3:
        return [Projection(0, 1, ("x", "y")), Projection(0, 2, ("x", "z"))]
    if goal_size == 6 and "pusher" in task.lower():
        return [
            Projection(0, 1, ("tip x", "tip y"), decides=False),
            Projection(0, 2, ("tip x", "tip z"), decides=False),
            Projection(3, 4, ("puck x", "puck y")),
        ]
    pairs = [(first, min(first + 1, goal_size - 1)) for first in range(0, goal_size, 2)]
    return [Projection(i, j, (f"g{i + 1}", f"g{j + 1}")) for i, j in pairs[:3]]


def load_snapshots(chosen: Sequence[SnapshotFile]) -> list[Columns]:
    """Return those of the snapshots that can be read, each with its `step`."""
    loaded = [snapshot.load() | {"step": np.asarray(snapshot.step)} for snapshot in chosen]
    return [snapshot for snapshot in loaded if goal_size(snapshot) > 0]


def goal_size(snapshot: Columns) -> int:
    """Return the dimension of a snapshot's goal space; 0 if it tells nothing."""
    for name in ("visited", "eval_paths"):
        if name in snapshot and snapshot[name].ndim >= 2:
            return int(snapshot[name].shape[-1])
    return 0


def points_of(snapshot: Columns, name: str) -> np.ndarray:
    """Return some points [N, G] of a snapshot, finite ones only; an absent name has none, a single point one."""
    size = goal_size(snapshot)
    points = np.asarray(snapshot.get(name, np.zeros((0, size))), float).reshape(-1, size)
    return points[np.isfinite(points).all(axis=1)]


def choose_phases(snapshots: Sequence[SnapshotFile], count: int, steps: Sequence[int] = ()) -> list[SnapshotFile]:
    """Return the snapshots nearest to the given steps, or `count` of them evenly over the run, the last included."""
    if not snapshots:
        return []
    if not steps:
        last = snapshots[-1].step
        steps = [round(last * (place + 1) / count) for place in range(count)]
    nearest = [min(snapshots, key=lambda snapshot: abs(snapshot.step - step)) for step in steps]
    return list({snapshot.step: snapshot for snapshot in nearest}.values())


def extent(snapshots: Sequence[Columns], projection: Projection) -> tuple[float, float, float, float]:
    """Return low x, high x, low y, high y of what snapshots show, the same for all: the maze, or all points."""
    walls = [snapshot["walls"] for snapshot in snapshots if len(snapshot.get("walls", ()))]
    if walls:
        low_x, low_y = walls[0][:, :2].min(axis=0)
        high_x, high_y = walls[0][:, 2:].max(axis=0)
        crop = _CROPPED * float(walls[0][0, 2] - walls[0][0, 0])
        return float(low_x) + crop, float(high_x) - crop, float(low_y) + crop, float(high_y) - crop
    names = ("visited", "coverage", "novelty", "goal", "state", "eval_goals", "eval_paths")
    clouds = [projection.of(points_of(snapshot, name)) for snapshot in snapshots for name in names]
    points = np.concatenate([*clouds, np.zeros((0, 2))])
    if len(points) == 0:
        return -1.0, 1.0, -1.0, 1.0
    low, high = points.min(axis=0), points.max(axis=0)
    half = max(float((high - low).max()) / 2, 1e-3) * (1 + 2 * _MARGIN)
    middle = (low + high) / 2
    return middle[0] - half, middle[0] + half, middle[1] - half, middle[1] + half


def success_of(snapshot: Columns) -> float | None:
    """Return the share of the evaluation's episodes that succeeded; None if there was none."""
    success = snapshot.get("eval_success", np.zeros(0))
    return float(np.mean(success)) if len(success) else None


def edge_lines(snapshot: Columns) -> np.ndarray:
    """Return the graph's edges as lines [E, 2, G], each pair of nodes once."""
    nodes, edges = points_of(snapshot, "nodes"), np.asarray(snapshot.get("edges", np.zeros((0, 2), int)))
    if len(nodes) == 0 or len(edges) == 0 or edges.max() >= len(nodes):
        return np.zeros((0, 2, goal_size(snapshot)))
    pairs: np.ndarray = np.unique(np.sort(edges, axis=1), axis=0)
    return nodes[pairs.astype(int)]


def path_points(snapshot: Columns) -> np.ndarray:
    """Return the points of the shortest path, from the state to the goal: [L, G]."""
    nodes, path = points_of(snapshot, "nodes"), np.asarray(snapshot.get("path", np.zeros(0, int)))
    if len(path) == 0 or path.max() >= len(nodes):
        return np.zeros((0, goal_size(snapshot)))
    return nodes[path]


@dataclass(frozen=True)
class Frame:
    """The mapping from points of the goal space to pixels of a picture; y points down, as in SVG and images.

    Attributes:
        projection: the two dimensions that are shown.
        bounds: low x, high x, low y, high y of what is shown.
        size: pixels of the longer side.
    """

    projection: Projection
    bounds: tuple[float, float, float, float]
    size: float

    @property
    def scale(self) -> float:
        """Pixels per unit of length."""
        left, right, low, high = self.bounds
        return self.size / max(right - left, high - low)

    @property
    def shape(self) -> tuple[int, int]:
        """Width and height in pixels."""
        left, right, low, high = self.bounds
        return round((right - left) * self.scale), round((high - low) * self.scale)

    def places(self, points: np.ndarray) -> np.ndarray:
        """Return the pixels of points: [..., G] to [..., 2]."""
        return self._pixels(self.projection.of(np.asarray(points, float)))

    def boxes(self, walls: np.ndarray) -> np.ndarray:
        """Return walls (low x, low y, high x, high y) in pixels (left, top, right, bottom): [N, 4] to [N, 4]."""
        left, bottom, right, top = np.asarray(walls, float).reshape(-1, 4).T
        corners = np.stack([np.stack([left, top], axis=-1), np.stack([right, bottom], axis=-1)], axis=1)
        return self._pixels(corners).reshape(-1, 4)

    def _pixels(self, points: np.ndarray) -> np.ndarray:
        left, _, _, high = self.bounds
        return np.stack([(points[..., 0] - left) * self.scale, (high - points[..., 1]) * self.scale], axis=-1)


# --- Drawing --------------------------------------------------------------------------------------------------------


def draw_landmarks(
    run: Run, phases: int = 4, steps: Sequence[int] = (), *, graph: bool = False, title: str = ""
) -> Figure:
    """Draw a run's landmark maps: a column for each phase of training, a row for each projection.

    The title is the run's if not given.

    Raises:
        NoSnapshotsError: there is nothing to draw.
    """
    from matplotlib.figure import Figure

    snapshots = load_snapshots(choose_phases(run.snapshots, phases, steps))
    if not snapshots:
        raise NoSnapshotsError(f"{run.path} has no snapshot yet: they are taken at evaluations")
    shown = projections(run.task, goal_size(snapshots[-1]))
    size = 3.0 if len(snapshots) > 1 else 4.5
    width = max(size * len(snapshots), 4.5) + 0.3
    title = title or run.title
    legend = 0.22 * np.ceil((9 if graph else 5) / _legend_columns(width))
    height = size * len(shown) + 0.65 + 0.25 * title.count("\n") + legend
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(len(shown), len(snapshots), squeeze=False)
    for row, projection in zip(grid, shown, strict=True):
        frame = extent(snapshots, projection)
        for column, (axes, snapshot) in enumerate(zip(row, snapshots, strict=True)):
            draw_map(axes, snapshot, projection, graph=graph)
            left, right, low, high = frame
            axes.set(xlim=(left, right), ylim=(low, high), aspect="equal", xlabel=projection.names[0])
            axes.set_ylabel(projection.names[1] if column == 0 else "")
            axes.tick_params(labelsize="x-small", labelleft=column == 0)
    for axes, snapshot in zip(grid[0], snapshots, strict=True):
        axes.set_title(_phase_title(snapshot), fontsize="small")
    figure.suptitle(title, fontsize="medium", fontweight="bold")
    _legend(figure)
    return figure


def _phase_title(snapshot: Columns) -> str:
    success = success_of(snapshot)
    words = f"{steps_text(float(snapshot['step']))} steps"
    return words if success is None else f"{words}, success {success:.0%}"


def draw_map(axes: Axes, snapshot: Columns, projection: Projection, *, graph: bool = False) -> None:
    """Draw one snapshot in one projection."""
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Rectangle

    axes.set_facecolor(style.FLOOR)
    walls = snapshot.get("walls", np.zeros((0, 4)))
    boxes = [Rectangle((w[0], w[1]), w[2] - w[0], w[3] - w[1]) for w in walls]
    axes.add_collection(PatchCollection(boxes, facecolor=style.WALL, edgecolor=style.WALL, lw=0.5))

    def dots(name: str, label: str, **look: Any) -> None:
        points = projection.of(points_of(snapshot, name))
        if len(points):
            axes.scatter(points[:, 0], points[:, 1], label=label, **look)

    dots("visited", "visited states", s=3, color=style.VISITED, lw=0, alpha=0.7, rasterized=True)
    if graph:
        lines = projection.of(edge_lines(snapshot))
        axes.add_collection(LineCollection(list(lines), colors=style.EDGE, lw=0.6, alpha=0.7, zorder=2))
    dots("coverage", "landmarks by coverage", s=30, color=style.COVERAGE, ec="white", lw=0.6, zorder=3)
    dots("novelty", "landmarks by novelty", s=34, color=style.NOVELTY, ec="white", lw=0.6, marker="^", zorder=4)
    _draw_goal(axes, snapshot, projection)
    dots("state", "start", s=42, color=style.STATE, ec="white", lw=0.8, marker="s", zorder=6)
    if graph:
        _draw_plan(axes, snapshot, projection)


def _draw_goal(axes: Axes, snapshot: Columns, projection: Projection) -> None:
    from matplotlib.patches import Circle

    goals = projection.of(points_of(snapshot, "goal"))
    radius = float(snapshot.get("radius", np.nan))
    for goal in goals:
        if np.isfinite(radius) and projection.decides:
            axes.add_patch(Circle((goal[0], goal[1]), radius, fc=style.GOAL, alpha=0.15, lw=0, zorder=1.5))
        axes.scatter(*goal, s=110, color=style.GOAL, ec="white", lw=0.8, marker="*", zorder=6, label="goal")


def _draw_plan(axes: Axes, snapshot: Columns, projection: Projection) -> None:
    """Draw the shortest path, the selected landmark, the pseudo-landmark and the subgoal."""
    path = projection.of(path_points(snapshot))
    if len(path):
        axes.plot(path[:, 0], path[:, 1], color=style.PATH, lw=1.8, zorder=5, label="shortest path", gid="path")
    selected = projection.of(points_of(snapshot, "selected"))
    axes.scatter(
        selected[:, 0], selected[:, 1], s=130, facecolors="none", ec=style.PATH, lw=1.6, zorder=7, label="selected"
    )
    pseudo = projection.of(points_of(snapshot, "pseudo_landmark"))
    axes.scatter(
        pseudo[:, 0], pseudo[:, 1], s=55, color=style.PSEUDO, ec="white", lw=0.8, marker="D", zorder=8,
        label="pseudo-landmark",
    )  # fmt: skip
    for state, subgoal in zip(
        projection.of(points_of(snapshot, "state")), projection.of(points_of(snapshot, "subgoal")), strict=False
    ):
        axes.annotate("", subgoal, state, zorder=8, arrowprops={"arrowstyle": "-", "color": style.SUBGOAL, "lw": 1.2})
        axes.scatter(*subgoal, s=55, color=style.SUBGOAL, marker="X", ec="white", lw=0.8, zorder=9, label="subgoal")


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
    """Return how many entries of a legend fit beside each other on a figure so many inches wide."""
    return max(2, int(width / 1.75))
