"""From a task's name to an environment: the one place that makes them."""

from __future__ import annotations

import difflib
from typing import Any

import gymnasium
from gymnasium import spaces

from higl.envs import TASKS, find_task

_PARTS = ("observation", "achieved_goal", "desired_goal")


class TaskError(ValueError):
    """There is no such task, or it is not one that can be learned here. The message is one line."""


def make_env(task: str, reward: str = "sparse", mode: str = "train", **options: Any) -> gymnasium.Env:
    """Make the environment of a task: a short name, or any Gymnasium id.

    Our own tasks take `reward` and `mode`; another environment is made as its id says.

    Raises:
        TaskError: no such task, or not a goal-conditioned one with vectors to act and observe.
    """
    if any(task in (own.name, own.id) for own in TASKS):
        return gymnasium.make(find_task(task).id, reward=reward, mode=mode, **options)
    try:
        env = gymnasium.make(task, **options)
    except gymnasium.error.Error as error:
        raise TaskError(f"unknown task {task!r}{_nearest(task, error)}") from None
    except ModuleNotFoundError as error:
        raise TaskError(f"task {task!r} needs a package that is not installed: {_first_line(error)}") from None
    _check(task, env)
    return env


def _nearest(task: str, error: Exception) -> str:
    known = [name for own in TASKS for name in (own.name, own.id)] + list(gymnasium.registry)
    found = difflib.get_close_matches(task, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else f" ({_first_line(error)}); `higl tasks` lists ours"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _check(task: str, env: gymnasium.Env) -> None:
    """Refuse what no policy of ours can act in."""
    space = env.observation_space
    if not isinstance(space, spaces.Dict) or not set(_PARTS) <= set(space):
        raise TaskError(f"task {task!r} is not goal-conditioned: its observation must be a Dict of {', '.join(_PARTS)}")
    for name in _PARTS:
        part = space[name]
        if not isinstance(part, spaces.Box) or len(part.shape) != 1:
            raise TaskError(f"task {task!r}: {name} must be a vector (a Box of one dimension)")
    action = env.action_space
    if not isinstance(action, spaces.Box) or len(action.shape) != 1 or not action.is_bounded():
        raise TaskError(f"task {task!r}: actions must be a bounded vector (a Box of one dimension)")
