"""The local back end: one process per core, pinned to it, with one thread."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import IO

from higl.errors import SettingsError
from higl.sweep.plan import PlannedRun, command
from higl.sweep.runner import Ended
from higl.sweep.work import environment

# What Python runs for a run: a module that takes the parent's number, the run's folder and the words of a command.
WORK = ("-m", "higl.sweep.work")


def choose_cores(wanted: Sequence[int]) -> list[int]:
    """Return the cores to work on: those wanted, or all that this process may use.

    Raises:
        SettingsError: there is no such core.
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    missing = [core for core in wanted if core not in allowed]
    if missing:
        raise SettingsError(f"--cores: no core {missing[0]}; this process may use {', '.join(map(str, allowed))}")
    return list(dict.fromkeys(wanted)) or allowed


class LocalBackend:
    """Runs as children of this process, each on a core of its own."""

    def __init__(self, cores: Sequence[int], checkpoint_minutes: float, program: Sequence[str] = WORK):
        self._idle, self._program = list(cores), program
        self._pins = hasattr(os, "sched_setaffinity")
        self._checkpoint_minutes = checkpoint_minutes
        self._children: list[tuple[PlannedRun, int, subprocess.Popen]] = []

    def free(self) -> bool:
        """Whether a core is idle."""
        return bool(self._idle)

    def active(self) -> int:
        """Return how many children there are."""
        return len(self._children)

    def start(self, run: PlannedRun) -> None:
        """Start or continue a run on an idle core.

        The child has a session of its own: a Ctrl-C in the terminal reaches it through this process only.
        """
        core = self._idle.pop(0)
        words = command(run, os.getpid(), self._checkpoint_minutes, [core] if self._pins else [], program=self._program)
        with open(run.output_file, "wb") as output:
            child = spawn(words, output)
        self._children.append((run, core, child))

    def poll(self) -> list[Ended]:
        """Return the children that have ended."""
        ended = [(run, core, child) for run, core, child in self._children if child.poll() is not None]
        for item in ended:
            self._children.remove(item)
            self._idle.append(item[1])
        return [Ended(run, child.returncode) for run, _, child in ended]

    def stop(self) -> None:
        """Send SIGTERM: each child saves and ends."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        for _, _, child in self._children:
            child.send_signal(number)

    def close(self) -> None:
        """Leave no child behind, also if this process fails."""
        self.stop()
        for _, _, child in self._children:
            child.wait()
        self._children.clear()


# Slurm sends these to every process of a job; they are for the one that minds the run, and would end the run's.
_NOT_FOR_RUNS = (signal.SIGUSR1, signal.SIGUSR2)


def spawn(words: Sequence[str], output: IO[bytes]) -> subprocess.Popen:
    """Start a run's process in a session of its own, its output in a file."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_RUNS)  # what is blocked stays so in the child
    try:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment(), start_new_session=True
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
