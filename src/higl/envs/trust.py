"""The module in a task's name (`module:id`), which is imported only if the user named it.

Files name tasks: policies, run folders, settings, catalogues. Importing a module runs its code, so `make_env` makes the
environment only if the module has been imported already. `import_module_of` imports it and is called for names that the
user gave, and for those that the user agreed to.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from higl.errors import TaskError
from higl.text import first_line, module_in


def is_imported(task: str) -> bool:
    """Return whether making the environment of a task imports no module by name."""
    return not module_in(task) or module_in(task) in sys.modules


def check_imported(task: str) -> None:
    """Reject a task whose module has not been imported.

    Raises:
        TaskError: the message says which module that is, and how to allow it.
    """
    if not is_imported(task):
        raise TaskError(
            f"{would_import(task)}, and nobody has named it here: pass env={task!r} in Python, "
            "or --trust on the command line"
        )


def would_import(task: str) -> str:
    """Return which module the environment of a task would import, and from which file, without importing it.

    Raises:
        TaskError: there is no such module.
    """
    module = module_in(task)
    spec = _find(module.partition(".")[0])
    if spec is None:
        raise TaskError(_no_module(task))
    place = spec.origin or ", ".join(spec.submodule_search_locations or ()) or "unknown file"
    return f"{task!r} imports the module {module!r} ({place})"


def import_module_of(task: str) -> None:
    """Import the module in the name of a task, if any, from an installed package or from the working directory.

    Raises:
        TaskError: there is no such module, or importing it fails.
    """
    module = module_in(task)
    if is_imported(task):
        return
    here = str(Path.cwd())
    if here not in sys.path:  # the `higl` command has the folder of its script there instead
        sys.path.append(here)
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module.partition(".")[0]:
            raise TaskError(_no_module(task)) from None
        raise TaskError(
            f"task {task!r}: importing {module!r} needs a package that is not installed: {first_line(error)}"
        ) from None
    except Exception as error:
        raise TaskError(
            f"task {task!r}: importing {module!r} raised {type(error).__name__}: {first_line(error)}"
        ) from error


def _find(package: str) -> ModuleSpec | None:
    """Find a package where `import_module_of` would, without importing anything: a package has no parent to import."""
    try:
        return importlib.util.find_spec(package) or PathFinder.find_spec(package, [str(Path.cwd())])
    except ValueError:  # no name, or a module that was made by hand
        return None


def _no_module(task: str) -> str:
    package = module_in(task).partition(".")[0]
    return f"task {task!r}: there is no module {package!r}, neither installed nor in {Path.cwd()}"
