"""A body in a maze: Point Maze, the Ant Mazes, and custom mazes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from gymnasium import spaces

from higl.envs.base import GoalEnv, Info, Observation
from higl.envs.bodies import MAZE_BODIES, maze_model
from higl.envs.maps import Maze
from higl.envs.tasks import FixedGoal, Goal, Task, UniformGoal, find_task

TIME_SCALE = 0.001
"""The observation's last number is the time step times this."""
RESET_POSITION_NOISE = 0.1
"""Every position starts at its initial value plus U(-0.1, 0.1)."""
RESET_VELOCITY_NOISE = 0.1
"""Every velocity starts at N(0, 0.1)."""
RADIUS_PER_CELL = 0.625
"""Default success radius of a custom map, in cells: that of the U-shape, 2.5 of 4 and 5 of 8."""
DEFAULT_CELL = 4.0
DEFAULT_MAX_STEPS = 500

MapLike = str | Sequence[str] | Sequence[Sequence[str]]


class MazeEnv(GoalEnv):
    """A point or an ant in a maze of square cells.

    Observation: the body's positions (point 3, ant 15), its velocities (3, 14), time step x 0.001. Goals are x, y.
    Positions start with x, y; the ant's continue with z, a unit quaternion and eight joint angles.

    A body whose centre is inside a wall after a step is moved back to its x, y before that step, because contacts alone
    let it tunnel through.

    Args:
        task: short name or id of a task, whose values the other arguments override; None for a custom maze.
        body: "ant" or "point".
        map: rows of symbols, see `higl.envs.maps`.
        cell: side of a cell in metres.
        goal: x, y of the test goal, and of the training goal without `goal_range`. Default: the map's `G`.
        goal_range: ((low x, low y), (high x, high y)) from which training goals are drawn uniformly.
        radius: success is a distance of at most this. Default for a custom map: 0.625 cells.
        max_steps: step limit.
        ends_on_success: whether success terminates the episode.
        position_noise: standard deviation of noise on x and y after every step.
        reward: "dense" or "sparse".
        mode: "train" or "test".
        render_mode: None, "rgb_array" or "human".
        camera: "top" or "track".
        width: of rendered images, in pixels.
        height: of rendered images, in pixels.
    """

    def __init__(
        self,
        task: str | None = None,
        *,
        body: str | None = None,
        map: MapLike | None = None,
        cell: float | None = None,
        goal: Sequence[float] | None = None,
        goal_range: Sequence[Sequence[float]] | None = None,
        radius: float | None = None,
        max_steps: int | None = None,
        ends_on_success: bool | None = None,
        position_noise: float | None = None,
        reward: str = "dense",
        mode: str = "train",
        render_mode: str | None = None,
        camera: str = "top",
        width: int = 480,
        height: int = 480,
    ) -> None:
        base = _unfinished_task() if task is None else find_task(task)
        rows = base.map if map is None else map
        if rows is None:
            raise ValueError("a maze needs a map: pass map=(rows of '#', '.', 'S' and 'G')")
        self.maze = Maze(rows, base.cell if cell is None else cell)
        merged = _merged_task(
            base,
            self.maze,
            custom_map=map is not None,
            body=body,
            goal=goal,
            goal_range=goal_range,
            radius=radius,
            max_steps=max_steps,
            ends_on_success=ends_on_success,
            position_noise=position_noise,
        )

        self.body = MAZE_BODIES[merged.body]
        model = maze_model(merged.body, self.maze.rows, self.maze.cell, merged.radius)
        super().__init__(
            merged,
            model,
            self.body.frame_skip,
            self.body.action_low,
            self.body.action_high,
            model.nq + model.nv + 1,
            2,
            reward=reward,
            mode=mode,
            render_mode=render_mode,
            camera=camera,
            width=width,
            height=height,
        )
        low_x, low_y, high_x, high_y = self.extent()
        box = spaces.Box(np.array([low_x, low_y]), np.array([high_x, high_y]), dtype=np.float64)
        goals = {"achieved_goal": box, "desired_goal": box}
        space: Any = self.observation_space
        self.observation_space = spaces.Dict({**space.spaces, **goals})
        self._nq = model.nq
        self._nq_nv = model.nq + model.nv
        self._size = self._nq_nv + 1
        self._ctrl = self.data.ctrl
        self._drive = self.body.drive
        self._sparse = reward == "sparse"
        self._radius = merged.radius
        self._noise = merged.position_noise
        self._max_steps = merged.max_steps
        self._ends_on_success = merged.ends_on_success
        self._in_wall = self.maze.in_wall

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, Info]:
        """Act for one time step (ant 0.1 s, point 0.02 s).

        Args:
            action: torques of the eight motors, or the point's (forward, turn); clipped to the action space.

        Raises:
            ValueError: the action contains NaN or has the wrong shape; nothing has moved.
        """
        action = self._checked_action(action)
        qpos = self._qpos
        x_before, y_before = qpos.item(0), qpos.item(1)  # arithmetic on Python floats is faster
        if self._drive is None:
            np.minimum(action, self._high, out=self._ctrl)
            np.maximum(self._ctrl, self._low, out=self._ctrl)
        else:
            self._drive(qpos, np.maximum(np.minimum(action, self._high), self._low))
        mujoco.mj_step(self.model, self.data, self.frame_skip)
        if self._noise:
            qpos[:2] += self.np_random.normal(0.0, self._noise, 2)
        x, y = qpos.item(0), qpos.item(1)
        if self._in_wall(x, y):
            qpos[0], qpos[1] = x, y = x_before, y_before
        self._steps += 1

        observation = self.observe()
        goal = observation["desired_goal"]
        dx, dy = x - goal.item(0), y - goal.item(1)
        distance = math.sqrt(dx * dx + dy * dy)
        success = distance <= self._radius
        reward = (0.0 if success else -1.0) if self._sparse else -distance
        if self.render_mode == "human":
            self.render()
        return (
            observation,
            reward,
            success and self._ends_on_success,
            self._steps >= self._max_steps,
            {"is_success": success},
        )

    def observe(self) -> Observation:
        """Return the observation of the current state in new arrays."""
        observation = np.empty(self._size)
        observation[: self._nq] = self._qpos
        observation[self._nq : -1] = self._qvel
        observation[-1] = self._steps * TIME_SCALE
        return {
            "observation": observation,
            "achieved_goal": observation[:2].copy(),
            "desired_goal": self.goal,
        }

    def extent(self) -> tuple[float, float, float, float]:
        """Return low x, low y, high x, high y of the maze with half of its border walls."""
        low_x, low_y, high_x, high_y = self.maze.bounds()
        half = self.maze.cell / 2
        return low_x + half, low_y + half, high_x - half, high_y - half

    def scene_height(self) -> float:
        """Return the height of the walls."""
        return self.maze.cell / 2

    def _place(self, rng: np.random.Generator, start: np.ndarray | None) -> None:
        qpos = self.model.qpos0 + rng.uniform(-RESET_POSITION_NOISE, RESET_POSITION_NOISE, self.model.nq)
        qvel = rng.normal(0.0, RESET_VELOCITY_NOISE, self.model.nv)
        cells = self.maze.starts
        if len(cells) > 1:
            qpos[:2] += self.maze.centre(cells[rng.integers(len(cells))])
        if start is not None:
            qpos[:2] = start
        # MuJoCo normalises quaternions internally; the observation shows the normalised one.
        mujoco.mj_normalizeQuat(self.model, qpos)
        self._qpos[:] = qpos
        self._qvel[:] = qvel

    def _place_goal_marker(self, goal: np.ndarray) -> None:
        self.data.mocap_pos[0, :2] = goal

    def _checked_options(self, options: dict[str, Any]) -> np.ndarray | None:
        start = options.pop("start", None)
        if options:
            raise ValueError(f"unknown reset option {next(iter(options))!r}; mazes accept 'goal' and 'start'")
        if start is None:
            return None
        start = self._checked_point("start", start, (2,))
        if self.maze.in_wall(start[0], start[1]):
            raise ValueError(f"the start ({start[0]:g}, {start[1]:g}) is inside a wall")
        return start


def _unfinished_task() -> Task:
    """Return the values of `higl/AntMaze-v0` before its map and goal are known."""
    nowhere = FixedGoal((math.nan, math.nan))
    return Task(
        name="ant-maze",
        id="higl/AntMaze-v0",
        body="ant",
        cell=DEFAULT_CELL,
        train_goal=nowhere,
        test_goal=nowhere,
        radius=math.nan,
        max_steps=DEFAULT_MAX_STEPS,
        description="a custom maze",
    )


def _merged_task(
    base: Task,
    maze: Maze,
    *,
    custom_map: bool,
    body: str | None,
    goal: Sequence[float] | None,
    goal_range: Sequence[Sequence[float]] | None,
    radius: float | None,
    max_steps: int | None,
    ends_on_success: bool | None,
    position_noise: float | None,
) -> Task:
    """Return a task with the environment's arguments applied; None keeps the task's value."""
    body = base.body if body is None else body
    if body not in MAZE_BODIES:
        raise ValueError(f"unknown body {body!r}; choose from {' or '.join(repr(name) for name in MAZE_BODIES)}")
    given: dict[str, Any] = {"body": body, "map": maze.rows, "cell": maze.cell}
    if radius is None and (custom_map or maze.cell != base.cell or math.isnan(base.radius)):
        radius = RADIUS_PER_CELL * maze.cell
    if radius is not None:
        given["radius"] = _positive("radius", radius)
    if max_steps is not None:
        given["max_steps"] = int(_positive("max_steps", max_steps))
    if ends_on_success is not None:
        given["ends_on_success"] = bool(ends_on_success)
    if position_noise is not None:
        if not position_noise >= 0.0:
            raise ValueError(f"position_noise must not be negative, not {position_noise!r}")
        given["position_noise"] = float(position_noise)
    if custom_map or goal is not None or goal_range is not None:
        given |= _goals(maze, base, goal, goal_range, custom_map=custom_map)
    task = dataclasses.replace(base, **given)
    if isinstance(task.test_goal, FixedGoal):
        x, y = task.test_goal.at
        maze.check_goal((x, y), task.radius)
    return task


def _goals(
    maze: Maze,
    base: Task,
    goal: Sequence[float] | None,
    goal_range: Sequence[Sequence[float]] | None,
    *,
    custom_map: bool,
) -> dict[str, Goal]:
    """Return training and test goals from `goal` and `goal_range`, else from the map or the task."""
    if goal is not None:
        test_goal: Goal = FixedGoal(_pair("goal", goal))
    elif maze.marked_goal is not None:
        test_goal = FixedGoal(maze.marked_goal)
    elif custom_map:
        raise ValueError("the map has no goal: mark a cell with 'G' or pass goal=(x, y)")
    else:
        test_goal = base.test_goal
    train_goal = test_goal
    if goal_range is not None:
        if len(goal_range) != 2:
            raise ValueError(f"goal_range must be ((low x, low y), (high x, high y)), not {goal_range!r}")
        low, high = _pair("goal_range's low end", goal_range[0]), _pair("goal_range's high end", goal_range[1])
        if low[0] > high[0] or low[1] > high[1]:
            raise ValueError(f"goal_range's low end {low} lies beyond its high end {high}")
        train_goal = UniformGoal(low, high)
    return {"train_goal": train_goal, "test_goal": test_goal}


def _pair(what: str, values: Sequence[float]) -> tuple[float, float]:
    numbers = tuple(float(value) for value in values)
    if len(numbers) != 2 or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{what} must be two finite numbers (x, y), not {values!r}")
    return numbers[0], numbers[1]


def _positive(what: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{what} must be a positive number, not {value!r}")
    return float(value)
