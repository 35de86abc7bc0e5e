"""Points of the goal space: reading them from snapshots, projecting them, and placing them in a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from higl.run.reading import Columns, SnapshotFile

# Share of the outer walls' width that a map does not show.
_CROPPED = 0.6
_MARGIN = 0.08


@dataclass(frozen=True)
class Projection:
    """Two dimensions of the goal space, their names, and whether success depends on them."""

    across: int
    up: int
    names: tuple[str, str]
    decides: bool = True

    @property
    def title(self) -> str:
        """The names in one phrase: 'tip, x and y'."""
        first, second = (name.split() for name in self.names)
        return f"{first[0]}, {first[1]} and {second[1]}" if len(first) > 1 else f"{first[0]} and {second[0]}"

    def of(self, points: np.ndarray) -> np.ndarray:
        """Return the two dimensions of points: [..., G] to [..., 2]."""
        return points[..., [self.across, self.up]]


def projections(task: str, goal_size: int) -> list[Projection]:
    """Return the projections that show a goal space."""
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
    """Return the snapshots that can be read, each with its `step`."""
    loaded = [snapshot.load() | {"step": np.asarray(snapshot.step)} for snapshot in chosen]
    return [snapshot for snapshot in loaded if goal_size(snapshot) > 0]


def goal_size(snapshot: Columns) -> int:
    """Return the dimension of a snapshot's goal space; 0 if that is unknown."""
    for name in ("visited", "eval_paths"):
        if name in snapshot and snapshot[name].ndim >= 2:
            return int(snapshot[name].shape[-1])
    return 0


def points_of(snapshot: Columns, name: str) -> np.ndarray:
    """Return the finite points [N, G] of one kind: none if the snapshot lacks them, one if it holds a single point."""
    size = goal_size(snapshot)
    points = np.asarray(snapshot.get(name, np.zeros((0, size))), float).reshape(-1, size)
    return points[np.isfinite(points).all(axis=1)]


def extent(snapshots: Sequence[Columns], projection: Projection) -> tuple[float, float, float, float]:
    """Return low x, high x, low y, high y of the maze, or of all points of all snapshots."""
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
    """Return the success rate of the evaluation episodes; None if there were none."""
    success = snapshot.get("eval_success", np.zeros(0))
    return float(np.mean(success)) if len(success) else None


def edge_lines(snapshot: Columns) -> np.ndarray:
    """Return the edges of the graph as lines [E, 2, G], each pair of nodes once."""
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
