"""Options by which the user names the environment of a run, or allows the module that a file names to be imported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from higl.commands.arguments import Argument, Switch
from higl.commands.command import agrees
from higl.errors import TaskError


@dataclass(frozen=True, kw_only=True)
class TrustOptions:
    """Whether a module may be imported."""

    trust: Switch = False
    """Import the module of a task `module:Id` that a file names. Importing runs its code."""


@dataclass(frozen=True, kw_only=True)
class EnvOptions(TrustOptions):
    """Which environment to make."""

    env: Annotated[str | None, Argument(metavar="ID", default="the task of the run")] = None
    """Environment: a task or a Gymnasium id, `module:Id` imports the module first."""

    def allowed_task(self, task: str, file: Path) -> str:
        """Return the task whose environment to make, and import its module if the user named or allows it.

        Args:
            task: the task that a file names.
            file: that file, for messages.

        Raises:
            TaskError: the module is not allowed, or cannot be imported.
        """
        if self.env is None:
            allow_module(task, file, trust=self.trust, instead=f"--env {task}")
        chosen = task if self.env is None else self.env
        import_task_module(chosen)
        return chosen


def import_task_module(task: str) -> None:
    """Import the module of a task that the user named or allowed.

    Raises:
        TaskError: it cannot be imported.
    """
    if ":" in task:  # without this, `higl.envs` would import NumPy
        from higl.envs.trust import import_module_of

        import_module_of(task)


def allow_module(task: str, file: Path, *, trust: bool, instead: str = "") -> None:
    """Check that the user trusts the module of a task that a file names; ask in a terminal.

    Args:
        task: the task that a file names.
        file: that file, for messages.
        trust: whether the user has allowed it already.
        instead: what the user can pass instead of --trust.

    Raises:
        TaskError: the user does not allow it, or there is no such module.
    """
    if trust or ":" not in task:
        return
    from higl.envs.trust import is_imported, would_import

    if is_imported(task):
        return
    wants = f"{file}: {would_import(task)}"
    if not agrees(f"{wants}. Its code will run. Import it?", default=False):
        raise TaskError(f"{wants}; if you trust it, pass {' or '.join(filter(None, ['--trust', instead]))}")
