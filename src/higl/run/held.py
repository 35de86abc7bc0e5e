"""The run that a folder already holds, compared with the run that is wanted there: new, continued, finished, another.

`higl train`, `higl resume` and sweeps decide by this. Imports neither NumPy nor JAX.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from higl.run.reading import is_run, read_config, read_facts, run_status
from higl.settings.config import Config
from higl.settings.flat import differences, differing

OTHER_SETTINGS = "other settings"


@dataclass(frozen=True)
class HeldRun:
    """A run in a folder.

    Attributes:
        folder: the folder.
        config: the settings of the run.
        state: "finished" if it has all steps that are wanted, "other settings", or else its status.
        reason: why it failed, or which settings differ from those that are wanted.
    """

    folder: Path
    config: Config
    state: str
    reason: str | None = None


def find_held_run(folder: Path, wanted: Config, compared: Collection[str] | None = None) -> HeldRun | None:
    """Return the run that a folder holds; None if it holds none, so that a new one can start there.

    Args:
        folder: a folder, which may not exist.
        wanted: settings of the run that is wanted. The number of steps may differ.
        compared: names of the settings to compare; all if not given.

    Raises:
        RunFolderError: the folder holds a run that is damaged.
    """
    if not is_run(folder):
        return None
    facts, config = read_facts(folder), read_config(folder)
    names = differing(config, wanted, leave_out=("steps",))
    if compared is not None:
        names = [name for name in names if name in compared]
    if names:
        return HeldRun(folder, config, OTHER_SETTINGS, other_settings_text(folder, differences(config, wanted, names)))
    state = run_status(folder, facts, config.steps)
    if state == "stopped" and (facts["saved_step"] or 0) >= wanted.steps < config.steps:
        state = "finished"  # stopped on its way to more steps than are wanted
    if state == "finished" and config.steps < wanted.steps:
        state = "stopped"  # more steps are wanted now
    return HeldRun(folder, config, state, facts.get("message") if state == "failed" else None)


def other_settings_text(folder: Path, changes: list[str]) -> str:
    """Return the message for a folder whose run has other settings."""
    some = ", ".join(changes[:3]) + (", ..." if len(changes) > 3 else "")
    return f"{folder} holds a run with other settings ({some}): choose another --out"
