"""The map of success: which goals of a grid a policy reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from higl.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Share of the distance between two goals that the mark of one takes, and the largest mark in points.
_FILLED, _LARGEST = 0.92, 60.0
_SIZE = 4.6


def draw_goals(goals: np.ndarray, success: Sequence[float], walls: np.ndarray, title: str) -> Figure:
    """Draw the share of episodes that reached each goal, in the first two dimensions of the goal space.

    Args:
        goals: the goals, [N, G].
        success: the share of each.
        walls: low x, low y, high x, high y of each wall, [W, 4].
        title: title of the figure.
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    plane = np.pad(goals[:, :2], ((0, 0), (0, max(0, 2 - goals.shape[1]))))
    figure = Figure(figsize=(_SIZE + 1.2, _SIZE + 0.6), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor(style.FLOOR)
    boxes = [Rectangle((w[0], w[1]), w[2] - w[0], w[3] - w[1]) for w in walls]
    axes.add_collection(PatchCollection(boxes, facecolor=style.WALL, edgecolor=style.WALL, lw=0.5))
    low, high = _bounds(plane)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="goal, 1st number", ylabel="goal, 2nd number")
    if len(walls):
        axes.set(aspect="equal", xlabel="x", ylabel="y")
    points = _FILLED * _spacing(plane) * 72 * _SIZE * 0.85
    marks = axes.scatter(
        *plane.T, c=np.asarray(success), cmap="viridis", vmin=0.0, vmax=1.0, marker="s",
        s=min(points, _LARGEST) ** 2, lw=0, zorder=3,
    )  # fmt: skip
    figure.colorbar(marks, ax=axes, label="share of episodes that reached the goal", shrink=0.8)
    axes.set_title(title, fontsize="medium", fontweight="bold")
    return figure


def _bounds(plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of what is shown: the goals and a margin."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    margin = 0.1 * np.where(high > low, high - low, 1.0)
    return low - margin, high + margin


def _spacing(plane: np.ndarray) -> float:
    """Return the median distance of a goal to the next one, as a share of the width of all."""
    if len(plane) < 2:
        return 1.0
    width = np.where(np.ptp(plane, axis=0) > 0, np.ptp(plane, axis=0), 1.0) * 1.2
    scaled = plane / width
    away = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
    np.fill_diagonal(away, np.inf)
    return float(np.median(away.min(axis=1)))
