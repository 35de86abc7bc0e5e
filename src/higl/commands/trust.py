"""What may be imported: modules that the user names, and those that a file names if the user trusts it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from higl.commands.arguments import Argument, Switch
from higl.commands.command import agrees
from higl.errors import TaskError
from higl.text import module_in


@dataclass(frozen=True, kw_only=True)
class TrustOptions:
    """Whether a module may be imported."""

    trust: Switch = False
    """Import the modules that files name (`module:Id`). Importing runs their code."""


NamedEnv = Annotated[str | None, Argument(metavar="NAME", default="")]
TestedIn = Annotated[str | None, Argument(metavar="NAME", alias="--env", default="")]


def allowed_name(named: str | None, stored: str, file: Path, *, trust: bool, option: str) -> str:
    """Return a name, and import its module if the user gave it or allows it.

    Args:
        named: the name that the user gave, if any.
        stored: the name in a file, which counts otherwise.
        file: that file, for messages.
        trust: whether the user trusts the file.
        option: option by which the user can give the name.

    Raises:
        TaskError: the module is not allowed, or cannot be imported.
    """
    if named is None:
        allow_module(stored, file, trust=trust, instead=f"{option} {stored}")
    name = stored if named is None else named
    import_task_module(name)
    return name


def import_task_module(task: str) -> None:
    """Import the module of a task that the user named or allowed.

    Raises:
        TaskError: it cannot be imported.
    """
    if module_in(task):  # without this, `higl.envs` would import NumPy
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
    if trust or not module_in(task):
        return
    from higl.envs.trust import is_imported, would_import

    if is_imported(task):
        return
    wants = f"{file}: {would_import(task)}"
    if not agrees(f"{wants}. Its code will run. Import it?", default=False):
        raise TaskError(f"{wants}; if you trust it, pass {' or '.join(filter(None, ['--trust', instead]))}")
