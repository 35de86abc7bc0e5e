"""The local back end: one process per core, pinned to it, with one thread."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from higl.errors import SettingsError
from higl.sweep.backend import EndedRun, ExitStatus
from higl.sweep.launch import WORKER, start_process
from higl.sweep.plan import PlannedRun


def choose_cores(wanted: Sequence[int]) -> list[int]:
    """Return the cores to run on: the wanted ones, or all that this process may use.

    Raises:
        SettingsError: this process may not use one of them.
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    missing = [core for core in wanted if core not in allowed]
    if missing:
        raise SettingsError(f"--cores: no core {missing[0]}; this process may use {', '.join(map(str, allowed))}")
    return list(dict.fromkeys(wanted)) or allowed


@dataclass(frozen=True)
class _Child:
    run: PlannedRun
    core: int
    process: subprocess.Popen


class LocalBackend:
    """Runs as child processes, each on a core of its own."""

    def __init__(self, cores: Sequence[int], checkpoint_minutes: float, program: Sequence[str] = WORKER):
        self._idle, self._program = list(cores), program
        self._pins = hasattr(os, "sched_setaffinity")
        self._checkpoint_minutes = checkpoint_minutes
        self._children: list[_Child] = []

    def free(self) -> bool:
        """Whether a core is idle."""
        return bool(self._idle)

    def active(self) -> int:
        """Return the number of child processes."""
        return len(self._children)

    def start(self, run: PlannedRun) -> None:
        """Start or continue a run on an idle core."""
        core = self._idle.pop(0)
        run.output_file.unlink(missing_ok=True)
        cores = [core] if self._pins else []
        process = start_process(run, self._checkpoint_minutes, cores, program=self._program)
        self._children.append(_Child(run, core, process))

    def poll(self) -> list[EndedRun]:
        """Return the runs whose processes ended, and free their cores."""
        ended = [child for child in self._children if child.process.poll() is not None]
        self._children = [child for child in self._children if child not in ended]
        self._idle += [child.core for child in ended]
        return [EndedRun(child.run, ExitStatus(child.process.returncode)) for child in ended]

    def stop(self) -> None:
        """Send SIGTERM: each child saves and exits."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        for child in self._children:
            child.process.send_signal(number)

    def close(self) -> None:
        """Stop every child that is left and wait for it, also when this process fails."""
        self.stop()
        for child in self._children:
            child.process.wait()
        self._children.clear()
