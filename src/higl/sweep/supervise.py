"""Supervise a run on a cluster node: start its process, wait for it, and stop it if the task or job is interrupted."""

from __future__ import annotations

import platform
import subprocess
import time

from higl.sweep.backend import ExitStatus
from higl.sweep.launch import start_process
from higl.sweep.plan import PlannedRun

_POLL_SECONDS = 0.5


def supervise_run(run: PlannedRun, checkpoint_minutes: float, program: tuple[str, ...]) -> ExitStatus:
    """Finish a run in a separate process. When an exception interrupts the wait, the run saves first."""
    if not run.settings_file.is_file():
        return ExitStatus(1, f"{platform.node()} cannot see {run.settings_file}: --out must be on shared storage")
    child = start_process(run, checkpoint_minutes, program=program)
    try:
        return ExitStatus(_wait(child))
    finally:
        if child.poll() is None:
            child.terminate()
            _wait(child)


def _wait(child: subprocess.Popen) -> int:
    """Wait in short sleeps: an exception that Ray raises in this thread would not interrupt a blocking wait."""
    while child.poll() is None:
        time.sleep(_POLL_SECONDS)
    return child.returncode
