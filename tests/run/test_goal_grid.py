"""Grids of goals: in mazes and over visited points, and their table."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from support.toy import random_policy, tiny_config

from higl.algo.walked import WalkedMap
from higl.envs.make import make_env
from higl.errors import NoSnapshotsError
from higl.run.goal_grid import by_goal, grid_goals, maze_goals, visited_goals, write_goals
from higl.run.measure import Outcome


@pytest.mark.parametrize(
    ("task", "count", "spacing"), [("point-maze", 112, 1.0), ("ant-maze-u-large", 112, 2.0), ("ant-maze-w", 208, 1.0)]
)
def test_goals_of_a_maze_are_free_and_evenly_spaced(task, count, spacing):
    maze = make_env(task).unwrapped.maze
    goals = maze_goals(maze)
    assert len(goals) == len(np.unique(goals, axis=0)) == count
    assert not any(maze.in_wall(x, y) for x, y in goals)
    away = np.linalg.norm(goals[:, None] - goals[None], axis=2) + 1e9 * np.eye(count)
    np.testing.assert_allclose(away.min(axis=1), spacing)


def test_visited_goals_are_the_points_nearest_to_the_centres_of_their_cells():
    """Against a plain search; the other dimensions belong to the point."""
    points = np.random.default_rng(0).uniform((0, 0, 5), (12, 24, 6), (300, 3))
    points[:2, :2] = [[0, 0], [12, 24]]  # cells of 1 x 2
    best: dict[tuple[int, int], np.ndarray] = {}
    for point in points:
        cell = min(int(point[0]), 11), min(int(point[1] / 2), 11)
        centre = np.array([cell[0] + 0.5, cell[1] + 0.5])
        scaled = point[:2] / (1, 2)
        known = best.get(cell)
        if known is None or np.linalg.norm(scaled - centre) < np.linalg.norm(known[:2] / (1, 2) - centre):
            best[cell] = point
    found = visited_goals(points)
    assert {tuple(point) for point in found} == {tuple(point) for point in best.values()}
    np.testing.assert_array_equal(visited_goals(np.ones((3, 1))), np.ones((1, 1)))


def test_a_grid_over_a_map_is_in_the_environments_units(tmp_path):
    config = tiny_config(goal_unit=(0.5,))
    grown = WalkedMap(50, 2, 5)
    walk = np.stack([np.linspace(0, 8, 80), np.zeros(80)], axis=1).astype(np.float32)
    grown.add_episode(walk, walk[5::5], np.arange(0, len(walk), 5))
    policy = random_policy(config)
    policy.chart = grown.chart()
    goals = grid_goals(tmp_path / "policy.safetensors", policy, make_env("reacher"))
    assert 3.0 < goals[:, 0].max() <= 4.0
    policy.chart = None
    with pytest.raises(NoSnapshotsError, match="does not tell what has been visited"):
        grid_goals(tmp_path / "policy.safetensors", policy, make_env("reacher"))


def test_the_table_of_goals(tmp_path):
    reached, missed = Outcome(True, False, -3.0, 9, 4, 1.0), Outcome(False, False, -9.0, 9, None, 1.0)
    found = by_goal(np.array([[1.0, 2.0], [3.0, 4.25]]), [reached, missed, missed, missed])
    write_goals(tmp_path / "goals.csv", found)
    rows = list(csv.DictReader((tmp_path / "goals.csv").read_text().splitlines()))
    assert [(row["goal_1"], row["goal_2"], row["episodes"], row["success"]) for row in rows] == [
        ("1", "2", "2", "0.5"),
        ("3", "4.25", "2", "0.0"),
    ]
    assert [row["steps_to_success"] for row in rows] == ["4.0", ""]
