"""From a task's name to an environment: the one place that makes them."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from higl.envs import TASKS, find_task
from higl.envs.adapt import ObserveAchieved, make_vector
from higl.envs.check import check_env
from higl.envs.robotics import register_robotics
from higl.errors import TaskError
from higl.settings.config import Config

__all__ = ["TaskError", "adapted", "hinting_at_load", "is_own", "make_env", "make_env_of", "make_envs_of"]


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
    module, colon, name = task.rpartition(":")
    if name.startswith("higl/"):  # Gymnasium would find some of these, but make them without our reward and mode
        raise TaskError(f"unknown task {task!r}{_nearest(name)}")
    if colon:
        _import_module(module, task)
    if task not in gymnasium.registry or "gymnasium_robotics" in sys.modules:
        register_robotics()
    try:
        env = gymnasium.make(task, **options)
    except gymnasium.error.Error as error:
        raise TaskError(f"unknown task {task!r}{_nearest(task)} ({_first_line(error)})") from None
    except ModuleNotFoundError as error:
        raise TaskError(f"task {task!r} needs a package that is not installed: {_first_line(error)}") from None
    except Exception as error:  # its constructor's
        raise TaskError(f"task {task!r}: making it raised {type(error).__name__}: {_first_line(error)}") from error
    check_env(env, task)
    return env


def _import_module(module: str, task: str) -> None:
    """Import the module that an id names before its colon: an installed one, or one in the working folder.

    Raises:
        TaskError: there is none, or importing it fails.
    """
    here = str(Path.cwd())
    if here not in sys.path:  # the command line has its own folder there, not the user's
        sys.path.append(here)
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module.partition(".")[0]:
            found = f"there is no module {error.name!r}, neither installed nor in {here}"
        else:
            found = f"importing {module!r} needs a package that is not installed: {_first_line(error)}"
        raise TaskError(f"task {task!r}: {found}") from None
    except Exception as error:
        raise TaskError(
            f"task {task!r}: importing {module!r} raised {type(error).__name__}: {_first_line(error)}"
        ) from error


def make_env_of(config: Config, mode: str = "train", **options: Any) -> gymnasium.Env:
    """Make the environment of a run as its settings want it."""
    return adapted(make_env(config.task, config.reward, mode, **options), config)


def make_envs_of(config: Config, *, processes: bool = False) -> gymnasium.Env | VectorEnv:
    """Make the environment, or environments, that a run collects its episodes from."""
    if config.num_envs == 1:
        return make_env_of(config)
    return make_vector([partial(make_env_of, config)] * config.num_envs, processes=processes)


@contextmanager
def hinting_at_load(run: Path, config: Config) -> Generator[None]:
    """Where the environment of an earlier run cannot be made by its name, tell the way that takes an environment."""
    try:
        yield
    except TaskError as error:
        if is_own(config.task) or ":" in config.task:  # with a module it was made by its name
            raise
        raise TaskError(
            f"{error}. If the run was trained in Python, on an environment that was given as such, only Python can go "
            f"on with it: higl.{config.algo.upper()}.load({str(run)!r}, env)"
        ) from None


def adapted(env: gymnasium.Env, config: Config) -> gymnasium.Env:
    """Return an environment as the settings want it observed."""
    return ObserveAchieved(env) if config.observe_achieved else env


def _nearest(task: str) -> str:
    known = [name for own in TASKS for name in (own.name, own.id)] + list(gymnasium.registry)
    found = difflib.get_close_matches(task, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else "; `higl tasks` lists ours"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
