"""What a task or job of a cluster does for a run: it minds the run's process, which is the same as on one machine."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from dataclasses import dataclass

from higl.sweep.local import spawn
from higl.sweep.plan import PlannedRun, command

_LOOK_EVERY = 0.5


@dataclass(frozen=True)
class Outcome:
    """How a task ended: the exit code of the run's process, or why there was none."""

    code: int
    reason: str | None = None


def mind_run(run: PlannedRun, checkpoint_minutes: float, program: tuple[str, ...]) -> Outcome:
    """Do a run, or what is left of it, in a process of its own; interrupted, let it save first."""
    if not run.settings_file.is_file():
        return Outcome(1, f"{platform.node()} does not see {run.settings_file}: --out must be storage that is shared")
    words = command(run, os.getpid(), checkpoint_minutes, program=program)
    with open(run.output_file, "ab") as output:
        child = spawn(words, output)
    try:
        return Outcome(_wait(child))
    finally:  # interrupted by an exception, which a blocking wait would not notice
        if child.poll() is None:
            child.terminate()
            _wait(child)


def _wait(child: subprocess.Popen) -> int:
    while child.poll() is None:
        time.sleep(_LOOK_EVERY)
    return child.returncode
