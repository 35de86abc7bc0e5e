"""`higl tasks` and `higl show`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from higl.commands.arguments import Switch, asks_for_help, check_suffix, one_line_errors, read_options, show_help
from higl.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class TasksOptions:
    """List the tasks: short name, Gymnasium id, goals, success radius, step limit."""


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """Draw a task at the start of a test episode into an image file."""

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """Short name or Gymnasium id of one of our tasks."""
    out: Annotated[
        Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE", help_behavior_hint="(default: TASK.png)")
    ] = None
    """File to write: png or jpg."""
    camera: Literal["top", "track"] = "top"
    """Look down on the whole scene, or follow the body."""
    flat: Switch = False
    """Draw a plan, which needs no graphics library."""


@one_line_errors("tasks")
def tasks(arguments: list[str]) -> int:
    """Print the table of tasks."""
    if asks_for_help(arguments):
        return show_help("tasks", TasksOptions)
    read_options(arguments, TasksOptions, [])
    from higl.envs.show import print_tasks

    print_tasks()
    return 0


@one_line_errors("show")
def show(arguments: list[str]) -> int:
    """Draw a task."""
    if asks_for_help(arguments):
        return show_help("show", ShowOptions)
    words = ["--out" if word == "-o" else word for word in arguments]
    options = read_options(words, ShowOptions, ["task"])
    from higl.envs.show import draw_task
    from higl.envs.tasks import find_task

    try:
        task = find_task(options.task)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    out = options.out or Path(f"{task.name}.png")
    check_suffix(out, (".png", ".jpg"))
    print(draw_task(task, out, camera=options.camera, flat=True if options.flat else None))
    return 0
