"""A grid of goals over what can be reached, for `higl eval --goals grid`.

In a maze these are points of its free cells. Elsewhere the environment does not tell what is free, so the goals are
points that the run has visited: of each cell of a grid over them, the one nearest to its centre.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np

from higl.algo.policy import Policy
from higl.envs.maps import Maze
from higl.errors import NoSnapshotsError
from higl.run.coverage import maze_of
from higl.run.files import replace_file
from higl.run.measure import Evaluation, Outcome
from higl.run.reading import is_run, read_run

# Parts of a maze's cell along each side, the most first, and the number of goals up to which they are used.
_PARTS, _MOST = (4, 2, 1), 250
# Cells along each of the first two dimensions of the goal space, where there is no maze.
_CELLS = 12


def grid_goals(place: Path, policy: Policy, env: gymnasium.Env) -> np.ndarray:
    """Return the goals of a run folder or policy file: [N, G].

    Raises:
        NoSnapshotsError: nothing tells what has been visited.
    """
    maze = maze_of(env)
    return maze_goals(maze) if maze is not None else visited_goals(_visited(place, policy))


def maze_goals(maze: Maze) -> np.ndarray:
    """Return points of the free cells of a maze that can be reached, evenly spaced: [N, 2]."""
    cells = sorted(maze.reachable(maze.starts[0]))
    parts = next((each for each in _PARTS if each * each * len(cells) <= _MOST), _PARTS[-1])
    offsets = maze.cell * ((np.arange(parts) + 0.5) / parts - 0.5)
    centres = np.asarray([maze.centre(cell) for cell in cells])
    return np.concatenate([centres + np.array([dx, dy]) for dy in offsets for dx in offsets])


def visited_goals(points: np.ndarray) -> np.ndarray:
    """Return, of each cell of a grid over the first two dimensions, the point [N, G] nearest to its centre."""
    plane = points[:, :2]
    low, high = plane.min(axis=0), plane.max(axis=0)
    places = (plane - low) / np.where(high > low, high - low, 1.0) * _CELLS
    cells = np.minimum(places.astype(int), _CELLS - 1)
    away = np.linalg.norm(places - (cells + 0.5), axis=1)
    _, group = np.unique(cells, axis=0, return_inverse=True)
    order = np.lexsort((away, group))
    first = np.unique(group[order], return_index=True)[1]
    return points[order[first]]


def _visited(place: Path, policy: Policy) -> np.ndarray:
    """Return points that a run has visited: the landmarks of its map, else those of its last snapshot."""
    if policy.chart is not None and len(policy.chart.points):
        return policy.chart.points * policy.unit
    snapshots = read_run(place).snapshots if is_run(place) else []
    if not snapshots:
        raise NoSnapshotsError(
            f"{place} does not tell what has been visited: it has no map, and --goals grid needs a run folder with "
            "snapshots then"
        )
    return snapshots[-1].load()["visited"]


@dataclass(frozen=True)
class GoalOutcome:
    """What episodes with one goal [G] came to."""

    goal: np.ndarray
    evaluation: Evaluation


def by_goal(goals: np.ndarray, outcomes: Sequence[Outcome]) -> list[GoalOutcome]:
    """Return the outcomes of each goal [N, G]; goal after goal, each has the same number of episodes."""
    each = len(outcomes) // len(goals)
    return [
        GoalOutcome(goal, Evaluation(tuple(outcomes[place * each : (place + 1) * each])))
        for place, goal in enumerate(goals)
    ]


def write_goals(path: Path, found: Sequence[GoalOutcome]) -> None:
    """Write a table: the numbers of each goal, episodes, success, and steps to success (empty without one)."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*(f"goal_{place + 1}" for place in range(len(found[0].goal))), *_COLUMNS])
    for each in found:
        measured, steps = each.evaluation, each.evaluation.steps_to_success
        shares = (measured.episodes, measured.success, measured.success_at_end)
        table.writerow([*(f"{number:.6g}" for number in each.goal), *shares, "" if steps is None else steps])
    replace_file(path, text.getvalue().encode())


_COLUMNS = ("episodes", "success", "success_at_end", "steps_to_success")
