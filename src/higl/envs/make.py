"""From a task's name to an environment: the one place that makes them."""

from __future__ import annotations

import difflib
import sys
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from higl.config import Config
from higl.envs import TASKS, find_task
from higl.envs.adapt import ObserveAchieved, make_vector
from higl.envs.check import TaskError, check_env
from higl.envs.robotics import register_robotics

__all__ = ["TaskError", "adapted", "is_own", "make_env", "make_env_of", "make_envs_of"]


def is_own(task: str) -> bool:
    """Return whether a task is one of ours, by its short name or its id."""
    return any(task in (own.name, own.id) for own in TASKS)


def make_env(task: str, reward: str = "sparse", mode: str = "train", **options: Any) -> gymnasium.Env:
    """Make the environment of a task: a short name, or any Gymnasium id.

    Our own tasks take `reward` and `mode`; another environment is made as its id says.

    Raises:
        TaskError: no such task, or not a goal-conditioned one with vectors to act and observe.
    """
    if is_own(task):
        return gymnasium.make(find_task(task).id, reward=reward, mode=mode, **options)
    if task not in gymnasium.registry or "gymnasium_robotics" in sys.modules:
        register_robotics()
    try:
        env = gymnasium.make(task, **options)
    except gymnasium.error.Error as error:
        raise TaskError(f"unknown task {task!r}{_nearest(task)} ({_first_line(error)})") from None
    except ModuleNotFoundError as error:
        raise TaskError(f"task {task!r} needs a package that is not installed: {_first_line(error)}") from None
    check_env(env, task)
    return env


def make_env_of(config: Config, mode: str = "train", **options: Any) -> gymnasium.Env:
    """Make the environment of a run as its settings want it."""
    return adapted(make_env(config.task, config.reward, mode, **options), config)


def make_envs_of(config: Config, *, processes: bool = False) -> gymnasium.Env | VectorEnv:
    """Make the environment, or environments, that a run collects its episodes from."""
    if config.num_envs == 1:
        return make_env_of(config)
    return make_vector([partial(make_env_of, config)] * config.num_envs, processes=processes)


def adapted(env: gymnasium.Env, config: Config) -> gymnasium.Env:
    """Return an environment as the settings want it observed."""
    return ObserveAchieved(env) if config.observe_achieved else env


def _nearest(task: str) -> str:
    known = [name for own in TASKS for name in (own.name, own.id)] + list(gymnasium.registry)
    found = difflib.get_close_matches(task, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else "; `higl tasks` lists ours"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
