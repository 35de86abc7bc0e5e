"""The Slurm back end: one job of one core per run, through submitit.

Jobs do not need the command that submitted them: when it dies they go on, and the next one finds them in the queue by
their names. A job that Slurm requeues, or that nears its time limit and requeues itself, continues from the run's
checkpoint: the run folders are on storage that all nodes share.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from higl.errors import SettingsError, SlurmError
from higl.run.files import replace_file
from higl.sweep.local import WORK
from higl.sweep.plan import NOTES, PlannedRun, standing
from higl.sweep.runner import STOPPED_CODES, Ended
from higl.sweep.supervise import Outcome, mind_run
from higl.sweep.work import PATIENCE

_LOOK_EVERY = 2.0
# Seconds until a job that sbatch refused, as beyond the limit on a user's jobs, is submitted again.
_SUBMIT_AGAIN = 60.0
# Jobs that end without a result are submitted again; so often in a row if the run does not get on.
_TRIES = 3
_TIME_LIMITS = 10**6  # as often as it takes
_STOP, _NEAR_TIME_LIMIT = signal.SIGUSR1, signal.SIGUSR2
_OVER = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY")
_OVER += ("PREEMPTED", "REVOKED", "TIMEOUT")
# What submitit and this module say to sbatch.
_OURS = ("array", "cpus-per-task", "error", "job-name", "nodes", "no-requeue", "ntasks", "ntasks-per-node", "open-mode")
_OURS += ("output", "requeue", "signal")


def read_slurm_options(text: str) -> dict[str, str]:
    """Return the options of sbatch that `partition=cpu,time=12:00:00` stands for; values may have commas.

    Raises:
        SettingsError: the text has another form, or an option is not the user's to choose.
    """
    options = {}
    for piece in re.split(r",(?=[^,=]*=)", text) if text else []:
        name, _, value = piece.partition("=")
        if not re.fullmatch(r"[a-z][a-z-]*", name) or not value or value.endswith(","):
            raise SettingsError(f"--slurm {piece}: expected options of sbatch, as partition=cpu,time=12:00:00,mem=4G")
        if name in _OURS:
            raise SettingsError(f"--slurm {piece}: higl itself decides on {name}")
        options[name] = value
    return options


# --- On the node ----------------------------------------------------------------------------------------------------


class _Interrupted(BaseException):
    """A signal to the job; no `Exception`, so that submitit takes it for no result."""


@dataclass(frozen=True)
class RunJob:
    """What a job does. submitit keeps it in a file, calls it, and calls it again after a requeue."""

    run: PlannedRun
    checkpoint_minutes: float
    program: tuple[str, ...]

    def __call__(self) -> None:
        """Mind the run. Asked to stop, let it save and end without a result; near the time limit, also requeue."""
        requeue: Any = signal.getsignal(_NEAR_TIME_LIMIT)
        heard = []

        def interrupt(number: int, frame: FrameType | None) -> NoReturn:
            for each in (_STOP, _NEAR_TIME_LIMIT):
                signal.signal(each, signal.SIG_IGN)
            heard.append(number)
            raise _Interrupted

        for each in (_STOP, _NEAR_TIME_LIMIT):
            signal.signal(each, interrupt)
        try:
            outcome = mind_run(self.run, self.checkpoint_minutes, self.program)
            replace_file(_outcome_file(self.run), json.dumps(asdict(outcome)).encode())
        except _Interrupted:
            # Not before the run has saved: a requeue sends SIGTERM to its process too, and twice ends it at once.
            if heard == [_NEAR_TIME_LIMIT]:
                requeue(_NEAR_TIME_LIMIT, None)
            raise

    def checkpoint(self) -> Any:
        """Return what submitit shall call after the requeue: the same, as the run folder knows how far it is."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


# --- The command ----------------------------------------------------------------------------------------------------


def make_executor(folder: Path, options: dict[str, str]) -> Any:
    """Return what submits jobs.

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
        """Leaves the time limit to the partition where the user does: submitit's own is five minutes."""

        def _make_submission_file_text(self, command: str, uid: str) -> str:
            lines = super()._make_submission_file_text(command, uid).splitlines(keepends=True)
            return "".join(line for line in lines if "time" in options or not line.startswith("#SBATCH --time="))

    executor = Executor(folder, max_num_timeout=_TIME_LIMITS)
    executor.update_parameters(
        cpus_per_task=1, signal_delay_s=int(PATIENCE), additional_parameters={"requeue": True, **options}
    )
    return executor


def job_name(run: PlannedRun) -> str:
    """Return the name of a run's job, the same from every command."""
    folder = hashlib.sha256(str(run.folder.resolve()).encode()).hexdigest()[:12]
    return re.sub(r"[^\w.-]", "-", f"higl-{run.name}-{folder}")


@dataclass(frozen=True)
class _Submitted:
    """A job in the queue: `found` there, or submitted for the `tries`th time since the run was at `step`."""

    run: PlannedRun
    found: bool = False
    step: int = 0
    tries: int = 1


class SlurmBackend:
    """Runs as jobs of Slurm. All are handed over at once: Slurm knows when and where there is room."""

    def __init__(self, options: dict[str, str], out: Path, checkpoint_minutes: float, program: tuple[str, ...] = WORK):
        self._folder = out.resolve() / NOTES / "slurm"
        self._executor = make_executor(self._folder, options)
        self._checkpoint_minutes, self._program = checkpoint_minutes, program
        self._jobs: dict[str, _Submitted] = {}
        self._refused: list[_Submitted] = []
        self._refusal = ""
        self._submit_again = 0.0
        self._stopping = False
        self._next_look = 0.0
        queue = _queue()
        if queue is None:
            raise SlurmError("--slurm: squeue does not answer; does Slurm run?")
        self._found = {name: job for job, (state, name) in queue.items() if state not in _OVER}

    def free(self) -> bool:
        """Whether Slurm takes another run: unless it has refused one."""
        return not self._refused

    def active(self) -> int:
        """Return how many jobs have not ended, those included that Slurm will be asked for again."""
        return len(self._jobs) + len(self._refused)

    def start(self, run: PlannedRun) -> None:
        """Submit a run, or take on the job that an earlier command submitted for it.

        Raises:
            SlurmError: Slurm refuses it, and no other job of ours could make room.
        """
        job = self._found.pop(job_name(run), None)
        if job is None:
            run.output_file.unlink(missing_ok=True)
            self._submit(_Submitted(run, step=standing(run).step))
            self._check_refused()
        else:
            self._jobs[job] = _Submitted(run, found=True)

    def _submit(self, submitted: _Submitted) -> None:
        """Submit a job; one that Slurm refuses waits to be submitted again."""
        run = submitted.run
        there = replace(run, folder=run.folder.absolute())
        _outcome_file(run).unlink(missing_ok=True)
        self._executor.update_parameters(job_name=job_name(run))
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # submitit would print what the error says
                job = self._executor.submit(RunJob(there, self._checkpoint_minutes, self._program))
        except RuntimeError as error:  # what submitit raises if sbatch fails
            self._refused.append(submitted)
            self._submit_again = time.monotonic() + _SUBMIT_AGAIN
            said = _what_sbatch_says(str(error))
            if said != self._refusal and self._jobs:
                print(f"higl: {said}: the runs that are left wait, and are submitted again", file=sys.stderr)
            self._refusal = said
        else:
            self._jobs[job.job_id] = submitted

    def _submit_refused(self) -> list[Ended]:
        """Submit again what Slurm refused a while ago; return what need not be any more."""
        refused, self._refused = self._refused, []
        if self._stopping:
            return [Ended(each.run, -signal.SIGTERM) for each in refused]
        if self._jobs and time.monotonic() < self._submit_again:
            self._refused = refused
            return []
        for each in refused:
            self._submit(each)
        self._check_refused()
        return []

    def _check_refused(self) -> None:
        """Give up if Slurm refuses all that is left: it is not for want of room."""
        if self._refused and not self._jobs:
            raise SlurmError(f"--slurm: {self._refusal}")

    def poll(self) -> list[Ended]:
        """Return the runs whose jobs have ended, for good.

        Raises:
            SlurmError: Slurm refuses a run, and no other job of ours could make room.
        """
        if not self.active() or time.monotonic() < self._next_look:
            return []
        self._next_look = time.monotonic() + _LOOK_EVERY
        if self._stopping:
            self._ask_to_stop()  # again: one may have been requeued, or not have listened yet
        queue = _queue()
        if queue is None:  # Slurm is being started again
            return []
        states = {job: queue.get(job, ("COMPLETED", ""))[0] for job in self._jobs}
        ended = [self._ended(job, state) for job, state in states.items() if state in _OVER]
        return [each for each in ended if each is not None] + self._submit_refused()

    def _ended(self, job: str, state: str) -> Ended | None:
        """Return how a run ended with its job; None if it goes on with another job."""
        was = self._jobs.pop(job)
        now, outcome = standing(was.run), _read_outcome(was.run)
        interrupted = outcome is None or outcome.code in (0, *STOPPED_CODES)
        if self._stopping or now.done or not interrupted or (state == "CANCELLED" and not was.found):
            outcome = outcome or Outcome(-signal.SIGTERM)
            return Ended(was.run, outcome.code, outcome.reason)
        tries = 1 if was.found or now.step > was.step else was.tries + 1
        if tries > _TRIES:
            reason = f"its job ended {_TRIES} times, at last as {state}; see {self._folder}/{job}_*"
            return Ended(was.run, 1, reason)
        self._submit(_Submitted(was.run, step=now.step, tries=tries))
        return None

    def stop(self) -> None:
        """Cancel the jobs that wait, and ask those that run to let their run save."""
        self._stopping, self._next_look = True, 0.0
        self._ask_to_stop()

    def _ask_to_stop(self) -> None:
        if not self._jobs:  # scancel would take it for all of the user's
            return
        _scancel("--state=PENDING", *self._jobs)
        _scancel("--state=RUNNING", f"--signal={_STOP.name.removeprefix('SIG')}", *self._jobs)

    def kill(self) -> None:
        """End every job at once: its one step, as a job that is cancelled is given time first."""
        if not self._jobs:
            return
        _scancel("--state=PENDING", *self._jobs)
        _scancel("--signal=KILL", *(f"{job}.0" for job in self._jobs))

    def close(self) -> None:
        """Nothing is held: a job that is left, as this process fails, goes on and is found by the next command."""


def _outcome_file(run: PlannedRun) -> Path:
    """Return where a job writes how it ended."""
    return run.settings_file.with_suffix(".outcome.json")


def _read_outcome(run: PlannedRun) -> Outcome | None:
    """Return what a run's job wrote at its end, if it did."""
    try:
        return Outcome(**json.loads(_outcome_file(run).read_bytes()))
    except OSError:
        return None


def _queue() -> dict[str, tuple[str, str]] | None:
    """Return state and name of every job of the user, those that ended a moment ago included; None: no answer."""
    words = ["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%j"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if answer.returncode:
        return None
    rows = [line.split("|", 2) for line in answer.stdout.splitlines()]
    return {job: (state, name) for job, state, name in rows}


def _scancel(*words: str) -> None:
    subprocess.run(["scancel", "--quiet", *words], capture_output=True, check=False)


def _what_sbatch_says(text: str) -> str:
    """Return the lines of sbatch in an error of submitit as one."""
    said = re.findall(r"^sbatch: (?:error: )?(.+)$", text, re.MULTILINE)
    return "sbatch: " + "; ".join(said) if said else " ".join(text.split())[-300:]
