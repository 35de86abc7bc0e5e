"""Make environments by the name of their task. All environments of a name are made here."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium

from higl.envs import TASKS, find_task
from higl.envs.adapt import HideGoal, ObserveAchieved
from higl.envs.check import check_env
from higl.envs.ogbench import PREFIX, make_ogbench
from higl.envs.robotics import register_robotics
from higl.envs.trust import check_imported
from higl.errors import TaskError
from higl.text import SIMILAR, first_line


def is_own(task: str) -> bool:
    """Return whether a short name or Gymnasium id belongs to one of our tasks."""
    return any(task in (own.name, own.id) for own in TASKS)


def make_env(
    task: str,
    reward: str = "sparse",
    mode: str = "train",
    *,
    observe_achieved: bool = False,
    hide_goal: bool = False,
    **options: Any,
) -> gymnasium.Env:
    """Make the environment of a task.

    Args:
        task: short name of one of our tasks, one of OGBench's mazes (`ogbench:antmaze-medium`), or any Gymnasium id.
            The module of `module:id` must have been imported, see `higl.envs.trust`.
        reward: "sparse" or "dense"; only our own tasks use it.
        mode: "train" or "test"; only our own tasks and OGBench's use it.
        observe_achieved: put the achieved goal before the observation.
        hide_goal: hide desired goals and rewards, see `HideGoal`; success does not end the episodes of our own tasks.
        options: passed on to `gymnasium.make`.

    Raises:
        TaskError: there is no such task, its module has not been imported, or it is not goal-conditioned with vector
            observations and actions.
    """
    if hide_goal and is_own(task) and find_task(task).ends_on_success:
        options = {"ends_on_success": False} | options
    env = _make(task, reward, mode, options)
    return adapted(HideGoal(env) if hide_goal else env, observe_achieved)


def adapted(env: gymnasium.Env, observe_achieved: bool) -> gymnasium.Env:
    """Wrap an environment so that it observes the achieved goal, if asked to."""
    return ObserveAchieved(env) if observe_achieved else env


def _make(task: str, reward: str, mode: str, options: dict[str, Any]) -> gymnasium.Env:
    if is_own(task):
        return gymnasium.make(find_task(task).id, reward=reward, mode=mode, **options)
    name = task.rpartition(":")[2]
    if name.startswith("higl/"):  # Gymnasium finds some of these, but would ignore reward and mode
        raise TaskError(f"unknown task {task!r}{_nearest(name)}")
    if task.startswith(PREFIX):
        env = make_ogbench(task, mode, **options)
        check_env(env, task)
        return env
    check_imported(task)
    if task not in gymnasium.registry or "gymnasium_robotics" in sys.modules:
        register_robotics()
    try:
        env = gymnasium.make(task, **options)
    except (ModuleNotFoundError, gymnasium.error.DependencyNotInstalled) as error:
        raise TaskError(f"task {task!r} needs a package that is not installed: {first_line(error)}") from None
    except gymnasium.error.Error:  # no such name, or no such version of it
        raise TaskError(f"unknown task {task!r}{_nearest(task)}{_module_hint(task)}") from None
    except Exception as error:  # the constructor may raise anything
        raise TaskError(f"task {task!r}: making it raised {type(error).__name__}: {first_line(error)}") from error
    check_env(env, task)
    return env


@contextmanager
def hinting_at_load(run: Path, task: str, algo: str) -> Generator[None]:
    """Add to an error about an unknown task of a run that Python can load the run with an environment object."""
    try:
        yield
    except TaskError as error:
        if is_own(task) or ":" in task:  # such a name is enough to make the environment
            raise
        raise TaskError(
            f"{error}. If the run was trained in Python on an environment object, give an id of that environment "
            f"(--env ID) or use Python: higl.{algo.upper()}.load({str(run)!r}, env)"
        ) from None


def _nearest(task: str) -> str:
    """Suggest a task of a similar name; its version does not count, and the module stays."""
    module, colon, name = task.rpartition(":")
    known = [name for own in TASKS for name in (own.name, own.id)] + list(gymnasium.registry)
    newest = {_without_version(name): name for name in known}
    nearest = difflib.get_close_matches(_without_version(name), newest, n=1, cutoff=SIMILAR)
    found = [f"{module}{colon}{newest[other]}" for other in nearest]
    return f"; did you mean {found[0]}?" if found else "; `higl tasks` lists the built-in tasks"


def _module_hint(task: str) -> str:
    """Say how to name an environment whose module has not been imported; nothing if a module is named."""
    own = f" (for an environment of your own, name the module that registers it: module:{task})"
    return "" if ":" in task else own


def _without_version(name: str) -> str:
    return re.sub(r"-v\d+$", "", name)
