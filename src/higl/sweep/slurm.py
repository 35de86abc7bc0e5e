"""The Slurm back end: one job of one core per run, through submitit.

Jobs outlive the command that submitted them; the next command finds them in the queue by name. A job that Slurm
requeues, or that requeues itself near its time limit, continues from the run's checkpoint, because the run folders are
on shared storage.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from higl.errors import SettingsError, SlurmError
from higl.sweep.backend import STOPPED, EndedRun, ExitStatus
from higl.sweep.launch import WORKER
from higl.sweep.plan import NOTES, PlannedRun, read_status
from higl.sweep.slurm_job import STOP_SIGNAL, SlurmJob, exit_status_file, read_exit_status
from higl.sweep.worker import STOP_SECONDS

_POLL_SECONDS = 2.0
# Delay before a job that sbatch rejected is submitted again; the user may have reached a limit on jobs.
_RESUBMIT_SECONDS = 60.0
# Number of jobs in a row that may end without an exit status and without progress of the run.
_TRIES = 3
_MAX_REQUEUES = 10**6  # no limit in practice
_FINAL_STATES = (
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "TIMEOUT"),
)
# Options of sbatch that submitit and this module set.
_RESERVED = (
    *("array", "cpus-per-task", "error", "job-name", "nodes", "no-requeue", "ntasks", "ntasks-per-node", "open-mode"),
    *("output", "requeue", "signal"),
)


def read_slurm_options(text: str) -> dict[str, str]:
    """Parse options of sbatch such as `partition=cpu,time=12:00:00`. Values may contain commas.

    Raises:
        SettingsError: the text has another form, or sets an option that higl sets itself.
    """
    options = {}
    for piece in re.split(r",(?=[^,=]*=)", text) if text else []:
        name, _, value = piece.partition("=")
        if not re.fullmatch(r"[a-z][a-z-]*", name) or not value or value.endswith(","):
            raise SettingsError(f"--slurm {piece}: expected sbatch options such as partition=cpu,time=12:00:00,mem=4G")
        if name in _RESERVED:
            raise SettingsError(f"--slurm {piece}: higl sets {name} itself")
        options[name] = value
    return options


def make_executor(folder: Path, options: dict[str, str]) -> Any:
    """Return the submitit executor that submits jobs.

    Raises:
        SlurmError: submitit is not installed, or this machine has no Slurm.
    """
    try:
        import submitit
    except ImportError:
        raise SlurmError("--slurm needs the extra `slurm`: pip install 'higl[slurm]'") from None
    for program in ("sbatch", "squeue", "scancel", "srun"):
        if shutil.which(program) is None:
            raise SlurmError(f"--slurm: no {program} on this machine; start the sweep where jobs can be submitted")

    class Executor(submitit.SlurmExecutor):
        """Leaves the time limit to the partition unless the user sets it; submitit would set five minutes."""

        def _make_submission_file_text(self, command: str, uid: str) -> str:
            lines = super()._make_submission_file_text(command, uid).splitlines(keepends=True)
            return "".join(line for line in lines if "time" in options or not line.startswith("#SBATCH --time="))

    executor = Executor(folder, max_num_timeout=_MAX_REQUEUES)
    executor.update_parameters(
        cpus_per_task=1, signal_delay_s=int(STOP_SECONDS), additional_parameters={"requeue": True, **options}
    )
    return executor


def job_name(run: PlannedRun) -> str:
    """Return the name of a run's job, by which later commands find it."""
    folder = hashlib.sha256(str(run.folder.resolve()).encode()).hexdigest()[:12]
    return re.sub(r"[^\w.-]", "-", f"higl-{run.name}-{folder}")


@dataclass(frozen=True)
class _Job:
    """A job of a run.

    Attributes:
        run: the run.
        found: whether an earlier command submitted the job.
        step: step of the run when the job was submitted.
        tries: number of jobs in a row, with this one, that started from the same step.
    """

    run: PlannedRun
    found: bool = False
    step: int = 0
    tries: int = 1


class SlurmBackend:
    """Runs as jobs of Slurm. It submits all of them at once and leaves the scheduling to Slurm."""

    def __init__(
        self, options: dict[str, str], out: Path, checkpoint_minutes: float, program: tuple[str, ...] = WORKER
    ):
        self._folder = out.resolve() / NOTES / "slurm"
        self._executor = make_executor(self._folder, options)
        self._checkpoint_minutes, self._program = checkpoint_minutes, program
        self._jobs: dict[str, _Job] = {}
        self._rejected: list[_Job] = []
        self._rejection = ""
        self._resubmit_time = 0.0
        self._stopping = False
        self._next_poll = 0.0
        queue = _queue()
        if queue is None:
            raise SlurmError("--slurm: squeue does not answer; is Slurm running?")
        self._found = {name: job for job, (state, name) in queue.items() if state not in _FINAL_STATES}

    def free(self) -> bool:
        """Whether Slurm accepts another run: unless it has rejected one."""
        return not self._rejected

    def active(self) -> int:
        """Return the number of jobs that have not ended or are still to be submitted again."""
        return len(self._jobs) + len(self._rejected)

    def start(self, run: PlannedRun) -> None:
        """Submit a run, or adopt the job that an earlier command submitted for it.

        Raises:
            SlurmError: Slurm rejects the job although no other job of the sweep is in the queue.
        """
        job = self._found.pop(job_name(run), None)
        if job is None:
            run.output_file.unlink(missing_ok=True)
            self._submit(_Job(run, step=read_status(run).step))
            self._check_rejected()
        else:
            self._jobs[job] = _Job(run, found=True)

    def _submit(self, job: _Job) -> None:
        """Submit a job. One that Slurm rejects is kept to be submitted again."""
        run = job.run
        there = replace(run, folder=run.folder.absolute())
        exit_status_file(run).unlink(missing_ok=True)
        self._executor.update_parameters(job_name=job_name(run))
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # submitit prints the error that it raises
                submitted = self._executor.submit(SlurmJob(there, self._checkpoint_minutes, self._program))
        except RuntimeError as error:  # submitit raises it if sbatch fails
            self._rejected.append(job)
            self._resubmit_time = time.monotonic() + _RESUBMIT_SECONDS
            message = _sbatch_message(str(error))
            if message != self._rejection and self._jobs:
                print(f"higl: {message}: the remaining runs are submitted again later", file=sys.stderr)
            self._rejection = message
        else:
            self._jobs[submitted.job_id] = job

    def _submit_rejected(self) -> list[EndedRun]:
        """Submit rejected jobs again; when the sweep is stopping, return their runs instead."""
        rejected, self._rejected = self._rejected, []
        if self._stopping:
            return [EndedRun(each.run, STOPPED) for each in rejected]
        if self._jobs and time.monotonic() < self._resubmit_time:
            self._rejected = rejected
            return []
        for each in rejected:
            self._submit(each)
        self._check_rejected()
        return []

    def _check_rejected(self) -> None:
        """Give up if Slurm rejects every remaining job: then a limit on the number of jobs is not the cause."""
        if self._rejected and not self._jobs:
            raise SlurmError(f"--slurm: {self._rejection}")

    def poll(self) -> list[EndedRun]:
        """Return the runs whose jobs ended and are not submitted again.

        Raises:
            SlurmError: Slurm rejects a job although no other job of the sweep is in the queue.
        """
        if not self.active() or time.monotonic() < self._next_poll:
            return []
        self._next_poll = time.monotonic() + _POLL_SECONDS
        if self._stopping:
            self._ask_to_stop()  # again: a job may have been requeued, or not have had its handler yet
        queue = _queue()
        if queue is None:  # Slurm is restarting
            return []
        states = {job: queue.get(job, ("COMPLETED", ""))[0] for job in self._jobs}
        ended = [self._ended(job, state) for job, state in states.items() if state in _FINAL_STATES]
        return [each for each in ended if each is not None] + self._submit_rejected()

    def _ended(self, job_id: str, state: str) -> EndedRun | None:
        """Return a run whose job ended; None if the run continues with another job."""
        job = self._jobs.pop(job_id)
        progress, status = read_status(job.run), read_exit_status(job.run)
        interrupted = status is None or status.code == 0 or status.stopped
        cancelled = state == "CANCELLED" and not job.found
        if self._stopping or progress.done or not interrupted or cancelled:
            return EndedRun(job.run, status or STOPPED)
        tries = 1 if job.found or progress.step > job.step else job.tries + 1
        if tries > _TRIES:
            reason = (
                f"{_TRIES} jobs in a row ended without progress, the last as {state}; see {self._folder}/{job_id}_*"
            )
            return EndedRun(job.run, ExitStatus(1, reason))
        self._submit(_Job(job.run, step=progress.step, tries=tries))
        return None

    def stop(self) -> None:
        """Cancel pending jobs, and ask running ones to let their run save."""
        self._stopping, self._next_poll = True, 0.0
        self._ask_to_stop()

    def _ask_to_stop(self) -> None:
        if not self._jobs:  # scancel without a job would cancel all jobs of the user
            return
        _scancel("--state=PENDING", *self._jobs)
        _scancel("--state=RUNNING", f"--signal={STOP_SIGNAL.name.removeprefix('SIG')}", *self._jobs)

    def kill(self) -> None:
        """Kill the step of every job, because Slurm gives a cancelled job time to end."""
        if not self._jobs:
            return
        _scancel("--state=PENDING", *self._jobs)
        _scancel("--signal=KILL", *(f"{job}.0" for job in self._jobs))

    def close(self) -> None:
        """Do nothing: jobs that are left continue, and the next command finds them."""


def _queue() -> dict[str, tuple[str, str]] | None:
    """Return state and name of the user's jobs, including those that just ended; None if squeue fails."""
    words = ["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%j"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if answer.returncode:
        return None
    rows = [line.split("|", 2) for line in answer.stdout.splitlines()]
    return {job: (state, name) for job, state, name in rows}


def _scancel(*words: str) -> None:
    subprocess.run(["scancel", "--quiet", *words], capture_output=True, check=False)


def _sbatch_message(text: str) -> str:
    """Return the messages of sbatch in an error of submitit, on one line."""
    lines = re.findall(r"^sbatch: (?:error: )?(.+)$", text, re.MULTILINE)
    return "sbatch: " + "; ".join(lines) if lines else " ".join(text.split())[-300:]
