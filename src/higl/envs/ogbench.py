"""OGBench's mazes as goal environments: `ogbench:pointmaze-medium`, `ogbench:antmaze-large` and so on.

OGBench (Park et al., ICLR 2025) is made for offline learning. It returns the goal in `info`, its goals depend on
options of `reset`, and it draws from NumPy's global generator. The adapter gives its mazes the usual dictionary, keeps
goals, tolerance and time limit as OGBench defines them, and makes an episode a function of its seed.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from higl.envs.maps import FREE, START, WALL, Maze
from higl.errors import TaskError
from higl.text import OGBENCH, did_you_mean

PREFIX = OGBENCH
"""Begins the names of these tasks."""

_MAZES = re.compile(r"(?:point|ant|humanoid)maze-[a-z]+-v0")

Cell = tuple[int, int]


def make_ogbench(task: str, mode: str = "train", **options: Any) -> gymnasium.Env:
    """Make one of OGBench's mazes by its name, `ogbench:antmaze-medium`; `-v0` at the end may be given.

    Args:
        task: the name.
        mode: "train" draws start and goal as OGBench's data collection does, "test" draws one of its tasks 1 to 5.
        options: passed on to `gymnasium.make`.

    Raises:
        TaskError: OGBench is not installed, or has no such maze.
    """
    if importlib.util.find_spec("ogbench") is None:
        raise TaskError(f"task {task!r} needs OGBench, which is not installed: pip install 'higl[ogbench]'")
    importlib.import_module("ogbench")  # registers its ids
    id = f"{task.removeprefix(PREFIX).removesuffix('-v0')}-v0"
    known = sorted(id.removesuffix("-v0") for id in gymnasium.registry if _MAZES.fullmatch(id))
    if not _MAZES.fullmatch(id) or id not in gymnasium.registry:
        listed = f"; of OGBench, higl can learn in: {', '.join(known)}"
        # A name that OGBench knows is no typing mistake.
        meant = "" if id in gymnasium.registry else did_you_mean(task, [PREFIX + name for name in known])
        raise TaskError(f"unknown task {task!r}{meant or listed}")
    # Gymnasium's checker would report what OGBench does differently on purpose.
    return OGBenchMaze(gymnasium.make(id, disable_env_checker=True, **options), mode)


@dataclass(frozen=True)
class _Tolerance:
    """Distance within which a goal counts as reached; figures read it as `env.task.radius`."""

    radius: float


class OGBenchMaze(gymnasium.Env[Any, np.ndarray]):
    """One of OGBench's mazes with a `Dict` observation. The goal is a place, x and y.

    The reward is 0 within OGBench's tolerance of the goal, where the episode ends, and -1 elsewhere.

    Args:
        env: OGBench's environment, with its time limit.
        mode: see `make_ogbench`.
    """

    def __init__(self, env: gymnasium.Env, mode: str = "train") -> None:
        self._env, self.mode = env, mode
        self._inner: Any = env.unwrapped
        self.metadata, self.render_mode = env.metadata, env.render_mode
        self.action_space = env.action_space
        goal = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.observation_space = spaces.Dict(observation=env.observation_space, achieved_goal=goal, desired_goal=goal)
        self.task = _Tolerance(self._inner._goal_tol)
        self.maze = _geometry(self._inner.maze_map, self._inner._maze_unit)
        self._cells, self._corners = _cells(self._inner.maze_map)
        self._steps_draw = self._inner._teleport_info is not None
        self._stream = np.random.RandomState().get_state()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; OGBench's options (`task_id`, `task_info`) choose its start and goal."""
        super().reset(seed=seed)
        if seed is not None:
            self.action_space.seed(seed)  # OGBench takes some random actions at each reset
            self._stream = np.random.RandomState(np.random.SeedSequence(seed).generate_state(4)).get_state()
        options = dict(options or {})
        if not {"task_id", "task_info"} & set(options):
            options |= self._draw()
        with self._own_randomness():
            observation, info = self._env.reset(seed=seed, options=options)
        found = self._dictionary(observation)
        return found, info | {"is_success": self._reached(found)}

    def _draw(self) -> dict[str, Any]:
        """Return options with a random start and goal."""
        if self.mode == "test":
            return {"task_id": int(self.np_random.integers(1, self._inner.num_tasks + 1))}
        start, goal = (cells[self.np_random.integers(len(cells))] for cells in (self._cells, self._corners))
        return {"task_info": {"init_ij": start, "goal_ij": goal}}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment."""
        if self._steps_draw:
            with self._own_randomness():
                observation, _, terminated, truncated, info = self._env.step(action)
        else:
            observation, _, terminated, truncated, info = self._env.step(action)
        success = bool(info["success"])  # not of the new place: a teleport may have moved the body after the test
        return (
            self._dictionary(observation), float(success) - 1.0, bool(terminated), bool(truncated),
            info | {"is_success": success},
        )  # fmt: skip

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any) -> Any:
        """Return 0 within the tolerance and -1 elsewhere, [..., 2] to [...]."""
        distance = np.linalg.norm(np.asarray(achieved_goal) - np.asarray(desired_goal), axis=-1)
        reward = np.where(distance <= self.task.radius, 0.0, -1.0)
        return float(reward) if reward.ndim == 0 else reward

    def render(self) -> Any:
        """Return an image from above."""
        return self._env.render()

    def close(self) -> None:
        """Close OGBench's environment."""
        self._env.close()

    def _dictionary(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        return {
            "observation": observation,
            "achieved_goal": self._inner.get_xy(),
            "desired_goal": np.array(self._inner.cur_goal_xy, np.float64),
        }

    def _reached(self, found: dict[str, np.ndarray]) -> bool:
        return self.compute_reward(found["achieved_goal"], found["desired_goal"], None) == 0.0

    @contextmanager
    def _own_randomness(self) -> Generator[None]:
        """Let NumPy's global generator continue this environment's own stream."""
        outside = np.random.get_state()  # noqa: NPY002 (OGBench draws from it)
        np.random.set_state(self._stream)  # noqa: NPY002
        try:
            yield
        finally:
            self._stream = np.random.get_state()  # noqa: NPY002
            np.random.set_state(outside)  # noqa: NPY002


def _geometry(blocks: np.ndarray, cell: float) -> Maze:
    """Return OGBench's maze as one of ours: its origin, too, is the centre of cell (1, 1)."""
    rows = [[WALL if block else FREE for block in row] for row in blocks]
    rows[1][1] = START
    return Maze(rows, cell)


def _cells(blocks: np.ndarray) -> tuple[list[Cell], list[Cell]]:
    """Return the free cells, and those that are not inside a straight corridor: OGBench's starts and goals."""
    free = [(int(row), int(column)) for row, column in np.argwhere(blocks == 0)]
    corners = []
    for row, column in free:
        above, below = blocks[row - 1, column], blocks[row + 1, column]
        left, right = blocks[row, column - 1], blocks[row, column + 1]
        if not (above == below and left == right and above != left):
            corners.append((row, column))
    return free, corners
