"""What a Slurm job does on its node: supervise one run, and requeue itself near the time limit.

submitit pickles the `SlurmJob`, calls it on the node, and calls it again after a requeue.
"""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from higl.run.files import replace_file
from higl.sweep.backend import ExitStatus
from higl.sweep.plan import PlannedRun
from higl.sweep.supervise import supervise_run

STOP_SIGNAL = signal.SIGUSR1
"""Asks a job to let its run save, then exit."""
_TIME_LIMIT_SIGNAL = signal.SIGUSR2  # what Slurm sends before the time limit, at submitit's request


class _Interrupted(BaseException):
    """A signal to the job. Not an `Exception`, so that submitit does not store it as the job's result."""


@dataclass(frozen=True)
class SlurmJob:
    """The job of one run."""

    run: PlannedRun
    checkpoint_minutes: float
    program: tuple[str, ...]

    def __call__(self) -> None:
        """Supervise the run and write its exit status.

        On `STOP_SIGNAL` let the run save and end without an exit status; near the time limit also requeue the job.
        """
        requeue: Any = signal.getsignal(_TIME_LIMIT_SIGNAL)  # submitit's handler
        received = []

        def interrupt(number: int, frame: FrameType | None) -> NoReturn:
            for each in (STOP_SIGNAL, _TIME_LIMIT_SIGNAL):
                signal.signal(each, signal.SIG_IGN)
            received.append(number)
            raise _Interrupted

        for each in (STOP_SIGNAL, _TIME_LIMIT_SIGNAL):
            signal.signal(each, interrupt)
        try:
            status = supervise_run(self.run, self.checkpoint_minutes, self.program)
            replace_file(exit_status_file(self.run), json.dumps(asdict(status)).encode())
        except _Interrupted:
            # Only after the run has saved: a requeue sends SIGTERM to its process, and a second SIGTERM kills it.
            if received == [_TIME_LIMIT_SIGNAL]:
                requeue(_TIME_LIMIT_SIGNAL, None)
            raise

    def checkpoint(self) -> Any:
        """Return what submitit calls after the requeue: the same job, because the run folder holds the progress."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def exit_status_file(run: PlannedRun) -> Path:
    """Return the file in which a job leaves the exit status of its run."""
    return run.settings_file.with_suffix(".exit.json")


def read_exit_status(run: PlannedRun) -> ExitStatus | None:
    """Return the exit status that the job of a run wrote; None if it was interrupted before."""
    try:
        return ExitStatus(**json.loads(exit_status_file(run).read_bytes()))
    except OSError:
        return None
