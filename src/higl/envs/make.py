"""Make environments by the name of their task. All environments of a name are made here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium

from higl.envs import TASKS, find_task
from higl.envs.adapt import ObserveAchieved
from higl.envs.check import check_env
from higl.envs.ogbench import PREFIX, make_ogbench
from higl.envs.robotics import register_robotics
from higl.errors import TaskError
from higl.text import did_you_mean


def is_own(task: str) -> bool:
    """Return whether a short name or Gymnasium id belongs to one of our tasks."""
    return any(task in (own.name, own.id) for own in TASKS)


def make_env(
    task: str, reward: str = "sparse", mode: str = "train", *, observe_achieved: bool = False, **options: Any
) -> gymnasium.Env:
    """Make the environment of a task.

    Args:
        task: short name of one of our tasks, one of OGBench's mazes (`ogbench:antmaze-medium`), or any Gymnasium id,
            with its module in front if need be (`module:id`).
        reward: "sparse" or "dense"; only our own tasks use it.
        mode: "train" or "test"; only our own tasks and OGBench's use it.
        observe_achieved: put the achieved goal before the observation.
        options: passed on to `gymnasium.make`.

    Raises:
        TaskError: there is no such task, or it is not goal-conditioned with vector observations and actions.
    """
    return adapted(_make(task, reward, mode, options), observe_achieved)


def adapted(env: gymnasium.Env, observe_achieved: bool) -> gymnasium.Env:
    """Wrap an environment so that it observes the achieved goal, if asked to."""
    return ObserveAchieved(env) if observe_achieved else env


def _make(task: str, reward: str, mode: str, options: dict[str, Any]) -> gymnasium.Env:
    if is_own(task):
        return gymnasium.make(find_task(task).id, reward=reward, mode=mode, **options)
    module, colon, name = task.rpartition(":")
    if name.startswith("higl/"):  # Gymnasium finds some of these, but would ignore reward and mode
        raise TaskError(f"unknown task {task!r}{_nearest(name)}")
    if task.startswith(PREFIX):
        env = make_ogbench(task, mode, **options)
        check_env(env, task)
        return env
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
    except Exception as error:  # the constructor may raise anything
        raise TaskError(f"task {task!r}: making it raised {type(error).__name__}: {_first_line(error)}") from error
    check_env(env, task)
    return env


def _import_module(module: str, task: str) -> None:
    """Import the module in `module:id`, from an installed package or from the working directory.

    Raises:
        TaskError: there is no such module, or importing it fails.
    """
    here = str(Path.cwd())
    if here not in sys.path:  # the `higl` command has the folder of its script there instead
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


@contextmanager
def hinting_at_load(run: Path, task: str, algo: str) -> Generator[None]:
    """Add to an error about an unknown task of a run that Python can load the run with an environment object."""
    try:
        yield
    except TaskError as error:
        if is_own(task) or ":" in task:  # such a name is enough to make the environment
            raise
        raise TaskError(
            f"{error}. If the run was trained in Python on an environment object, continue it in Python too: "
            f"higl.{algo.upper()}.load({str(run)!r}, env)"
        ) from None


def _nearest(task: str) -> str:
    known = [name for own in TASKS for name in (own.name, own.id)] + list(gymnasium.registry)
    return did_you_mean(task, known) or "; `higl tasks` lists the built-in tasks"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
