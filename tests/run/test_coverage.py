"""The share of a maze that has been visited, against points drawn in it."""

from __future__ import annotations

import numpy as np
import pytest
from support import tiny

from higl.algo.adjacency import CellMatrix
from higl.envs.make import make_env
from higl.envs.maps import Maze
from higl.run.coverage import Coverage
from higl.settings.layers import apply
from higl.settings.presets import preset


@pytest.mark.parametrize(("task", "squares"), [("point-maze", 81), ("ant-maze-u-large", 385), ("ant-maze-w", 153)])
def test_the_free_squares_of_a_maze(task, squares):
    """Every point of a free square is in no wall; squares outside the cells of the maze are not free."""
    maze = make_env(task).unwrapped.maze
    free = maze.free_squares(1.0)
    assert len(free) == len(set(free)) == squares
    offsets = np.random.default_rng(0).uniform(-0.499, 0.499, (20, 2))
    assert not any(maze.in_wall(x + dx, y + dy) for x, y in free for dx, dy in offsets)
    inside = {(i, j) for i in range(-3, 30) for j in range(-3, 30) if not maze.in_wall(i, j)}
    assert set(free) <= inside


def test_a_room_that_cannot_be_reached_does_not_count():
    assert Maze(["#####", "#S#.#", "#####"], 2.0).free_squares(1.0) == [(0, 0)]


def test_the_share_of_visited_squares():
    config, env = preset("point-maze", goal="none"), make_env("point-maze", mode="test")
    coverage = Coverage.of(config, env)
    assert coverage is not None
    matrix = CellMatrix(config.adjacency.cell, 5, 2)
    assert coverage.share(matrix.cells) == 0.0
    matrix.add_trajectory(np.array([(x, 0.0) for x in np.arange(-1.4, 9.4, 0.2)]))
    assert coverage.share(matrix.cells) == pytest.approx(11 / 81)
    half = apply(config, {"goal_unit": (0.5,)})
    assert Coverage.of(half, env).share(matrix.cells) < 0.03, "cells of half the size"


def test_only_mazes_have_one():
    assert Coverage.of(apply(preset("reacher"), {}), make_env("reacher")) is None
    assert Coverage.of(preset("other"), tiny.TinyEnv()) is None
