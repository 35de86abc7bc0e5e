"""How much of a maze has been visited: the share of its free squares, for environments whose layout is known."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from higl.algo.policy import Spaces, goal_unit
from higl.envs.maps import Maze
from higl.settings.config import Config

# The size of goals that are places: x and y.
_PLACE = 2


def maze_of(env: gymnasium.Env) -> Maze | None:
    """Return the maze of an environment whose goals are places in one; None for any other."""
    inner: Any = env.unwrapped
    maze, space = getattr(inner, "maze", None), getattr(inner, "observation_space", None)
    is_place = isinstance(space, gymnasium.spaces.Dict) and space["achieved_goal"].shape == (_PLACE,)
    return maze if isinstance(maze, Maze) and is_place else None


class Coverage:
    """The free squares of a maze, as large as the cells that the learner counts (`adjacency.cell`)."""

    def __init__(self, free: list[tuple[int, int]]):
        self._free = frozenset(free)

    @classmethod
    def of(cls, config: Config, env: gymnasium.Env) -> Coverage | None:
        """Return the free squares of an environment; None if its layout is unknown, or no square is free."""
        maze, unit = maze_of(env), goal_unit(config, Spaces.of(env))
        if maze is None or unit[0] != unit[-1]:
            return None
        free = maze.free_squares(float(config.adjacency.cell * unit[0]))
        return cls(free) if free else None

    def share(self, cells: np.ndarray) -> float:
        """Return the share of the free squares among the visited cells [N, 2] (`CellMatrix.cells`)."""
        return len(self._free & {(int(x), int(y)) for x, y in cells}) / len(self._free)
