"""The seven tasks of the paper as one table: body, map, goals, success radius, step limit.

Numbers are those of the paper's appendix "Environment details".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from higl.envs import maps
from higl.text import did_you_mean

BodyName = Literal["point", "ant", "reacher", "pusher"]


@dataclass(frozen=True)
class FixedGoal:
    """The same goal in every episode."""

    at: tuple[float, ...]

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Return the goal, [G]; draws nothing."""
        return np.array(self.at, dtype=np.float64)

    def __str__(self) -> str:
        return f"({_numbers(self.at)})"


@dataclass(frozen=True)
class UniformGoal:
    """A goal drawn uniformly from a box, which may include walls."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a goal, [G]."""
        return rng.uniform(self.low, self.high)

    def __str__(self) -> str:
        axes = [f"U({low:g}, {high:g})" for low, high in zip(self.low, self.high, strict=True)]
        return f"{axes[0]} per axis" if len(set(axes)) == 1 else " x ".join(axes)


@dataclass(frozen=True)
class NormalGoal:
    """A goal drawn from a normal distribution with the same standard deviation on each axis."""

    mean: tuple[float, ...]
    std: float

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a goal, [G]."""
        return rng.normal(self.mean, self.std)

    def __str__(self) -> str:
        return f"N(({_numbers(self.mean)}), {self.std:g})"


Goal = FixedGoal | UniformGoal | NormalGoal


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


@dataclass(frozen=True)
class Task:
    """One task: all values in which tasks differ.

    Attributes:
        name: short name, for the command line.
        id: Gymnasium id.
        body: the body that acts.
        train_goal: distribution of goals with `mode="train"`.
        test_goal: distribution of goals with `mode="test"`.
        radius: success is an L2 distance to the goal of at most this.
        max_steps: the episode is truncated after this many steps.
        description: one line.
        map: the maze, see `higl.envs.maps`; None for the arms.
        cell: side of a maze cell in metres.
        ends_on_success: whether success terminates the episode.
        position_noise: standard deviation of the noise on x and y after every step.
        action_penalty: this times the squared length of the action is subtracted from the reward.
    """

    name: str
    id: str
    body: BodyName
    train_goal: Goal
    test_goal: Goal
    radius: float
    max_steps: int
    description: str
    map: tuple[str, ...] | None = None
    cell: float = math.nan
    ends_on_success: bool = False
    position_noise: float = 0.0
    action_penalty: float = 0.0


# The goal disc of the packaged pusher model: x, y as in the paper, z just above the table. Distances are in three
# dimensions, and the puck's centre is 0.048 higher.
_PUSHER_TARGET = (0.45, -0.05, -0.323)

TASKS = (
    Task(
        name="point-maze",
        id="higl/PointMaze-v0",
        body="point",
        map=maps.U_SHAPE,
        cell=4.0,
        train_goal=UniformGoal((-2.0, -2.0), (10.0, 10.0)),
        test_goal=FixedGoal((0.0, 8.0)),
        radius=2.5,
        max_steps=500,
        description="a point mass from the bottom left to the top left of a ⊃-shaped maze",
    ),
    Task(
        name="ant-maze-u",
        id="higl/AntMazeU-v0",
        body="ant",
        map=maps.U_SHAPE,
        cell=4.0,
        train_goal=UniformGoal((-2.0, -2.0), (10.0, 10.0)),
        test_goal=FixedGoal((0.0, 8.0)),
        radius=2.5,
        max_steps=500,
        description="a four-legged ant in the same ⊃-shaped maze",
    ),
    Task(
        name="ant-maze-u-stochastic",
        id="higl/AntMazeUStochastic-v0",
        body="ant",
        map=maps.U_SHAPE,
        cell=4.0,
        train_goal=UniformGoal((-2.0, -2.0), (10.0, 10.0)),
        test_goal=FixedGoal((0.0, 8.0)),
        radius=2.5,
        max_steps=500,
        position_noise=0.05,
        description="the same with noise on the ant's x and y after every step",
    ),
    Task(
        name="ant-maze-u-large",
        id="higl/AntMazeULarge-v0",
        body="ant",
        map=maps.U_SHAPE,
        cell=8.0,
        train_goal=UniformGoal((-4.0, -4.0), (20.0, 20.0)),
        test_goal=FixedGoal((0.0, 16.0)),
        radius=5.0,
        max_steps=500,
        description="the same maze at twice the size",
    ),
    Task(
        name="ant-maze-w",
        id="higl/AntMazeW-v0",
        body="ant",
        map=maps.W_SHAPE,
        cell=2.0,
        train_goal=FixedGoal((2.0, 9.0)),
        test_goal=FixedGoal((2.0, 9.0)),
        radius=1.0,
        max_steps=500,
        ends_on_success=True,
        description="from a random cell of an ∃-shaped maze to the end of its middle corridor",
    ),
    Task(
        name="reacher",
        id="higl/Reacher-v0",
        body="reacher",
        train_goal=NormalGoal((0.0, 0.25, 0.0), 0.1),
        test_goal=NormalGoal((0.0, 0.25, 0.0), 0.1),
        radius=0.25,
        max_steps=100,
        action_penalty=0.0001,
        description="a seven-joint arm brings its hand to a target",
    ),
    Task(
        name="pusher",
        id="higl/Pusher-v0",
        body="pusher",
        train_goal=FixedGoal(_PUSHER_TARGET + _PUSHER_TARGET),
        test_goal=FixedGoal(_PUSHER_TARGET + _PUSHER_TARGET),
        radius=0.25,
        max_steps=100,
        action_penalty=0.001,
        description="a seven-joint arm pushes a puck to a target",
    ),
)


def task_names() -> tuple[str, ...]:
    """Return the short names of all tasks in the order of the table."""
    return tuple(task.name for task in TASKS)


def find_task(name: str) -> Task:
    """Return the task with this short name or Gymnasium id.

    Raises:
        ValueError: there is no such task; the message suggests a similar name.
    """
    by_name = {key: task for task in TASKS for key in (task.name, task.id)}
    if name in by_name:
        return by_name[name]
    hint = did_you_mean(str(name), by_name) or f"; choose from {', '.join(task_names())}"
    raise ValueError(f"unknown task {name!r}{hint}")
