"""`higl tasks`: the table of tasks."""

from __future__ import annotations

from dataclasses import dataclass

from higl.commands.command import command


@dataclass(frozen=True, kw_only=True)
class TasksOptions:
    """List the tasks: short name, Gymnasium id, goals, success radius, step limit."""


@command("tasks", TasksOptions)
def tasks(options: TasksOptions) -> int:
    """Print the table of tasks."""
    from higl.envs.show import print_tasks

    print_tasks()
    return 0
