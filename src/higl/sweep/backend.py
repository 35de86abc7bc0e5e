"""What a back end offers to the runner, and how it reports the runs that ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Protocol

from higl.sweep.plan import PlannedRun

# A run that is asked to stop saves and exits with 128 + the signal; one that has not begun is killed by the signal.
_STOPPED_CODES = tuple(code for number in (signal.SIGTERM, signal.SIGINT) for code in (128 + number, -number))


@dataclass(frozen=True)
class ExitStatus:
    """How the process of a run ended: its exit code, or the reason why the back end could not run it at all."""

    code: int
    reason: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether the process ended because it was asked to stop."""
        return self.reason is None and self.code in _STOPPED_CODES


STOPPED = ExitStatus(-signal.SIGTERM)
"""The exit status of a run that was asked to stop before it had a process."""


@dataclass(frozen=True)
class EndedRun:
    """A run whose process ended."""

    run: PlannedRun
    status: ExitStatus


class Backend(Protocol):
    """Launches runs: processes on this machine, tasks of Ray, or jobs of Slurm."""

    def free(self) -> bool:
        """Whether another run can be started."""
        ...

    def start(self, run: PlannedRun) -> None:
        """Start or continue a run."""

    def poll(self) -> list[EndedRun]:
        """Return the runs that ended since the last call."""
        ...

    def active(self) -> int:
        """Return the number of runs that were started and have not ended."""
        ...

    def stop(self) -> None:
        """Ask every run to save and stop."""

    def kill(self) -> None:
        """Kill every run without saving."""

    def close(self) -> None:
        """Release what the back end holds."""
