"""Run a sweep: start its runs, note how they end, and show the progress. The back ends only launch processes.

The status of every run is read from its folder, so it does not depend on where the run is executed.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rich.console import Console

from higl.run.process import handling
from higl.sweep.backend import Backend, EndedRun
from higl.sweep.board import Board
from higl.sweep.launch import write_settings
from higl.sweep.plan import PlannedRun, RunStatus, read_status

_POLL_SECONDS = 0.5
_OUTPUT_TAIL = 4_000
EXIT_FAILED, EXIT_STOPPED = 1, 128


@dataclass
class Summary:
    """How a sweep ended: the runs that it finished, those `finished_before` it started, and the others."""

    finished: list[PlannedRun] = field(default_factory=list)
    finished_before: list[PlannedRun] = field(default_factory=list)
    stopped: list[PlannedRun] = field(default_factory=list)
    failed: list[tuple[PlannedRun, str]] = field(default_factory=list)
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        """Return 0 if every run is finished, 128 + N if signal N stopped the sweep, else 1."""
        if self.signal is not None:
            return EXIT_STOPPED + self.signal
        return EXIT_FAILED if self.failed or self.stopped else 0


class Stopper:
    """Remembers the first SIGINT or SIGTERM and counts them: a second signal stops without saving."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.count = 0

    @contextmanager
    def listening(self) -> Generator[None]:
        """Handle the signals while the block runs."""

        def note(number: int, frame: FrameType | None) -> None:
            self.signal = number if self.signal is None else self.signal
            self.count += 1

        with handling((signal.SIGINT, signal.SIGTERM), note):
            yield


def run_sweep(plan: Sequence[PlannedRun], backend: Backend, console: Console, title: str = "") -> Summary:
    """Run what is left of a plan and return how it ended. A run that fails does not stop the others."""
    summary, waiting = _prepare(plan)
    stopper, board = Stopper(), Board(plan, console, title)
    passed_on = 0
    with stopper.listening(), board.showing():
        try:
            while backend.active() or (waiting and not stopper.count):
                while waiting and not stopper.count and backend.free():
                    backend.start(waiting.popleft())
                for ended in backend.poll():
                    _note_end(summary, ended, board, stopping=stopper.count > 0)
                board.refresh(summary.failed)
                passed_on = _pass_on(stopper.count, passed_on, backend, board)
                time.sleep(_POLL_SECONDS if backend.active() else 0)
            board.refresh(summary.failed, force=True)
        finally:
            backend.close()
    summary.stopped += waiting
    summary.signal = stopper.signal
    return summary


def _prepare(plan: Sequence[PlannedRun]) -> tuple[Summary, deque[PlannedRun]]:
    """Return a summary of the runs that are finished or unusable, and the other runs with their settings written."""
    summary, waiting = Summary(), deque[PlannedRun]()
    for run in plan:
        status = read_status(run)
        if status.done:
            summary.finished_before.append(run)
        elif not status.usable:
            summary.failed.append((run, status.reason or status.state))
        else:
            write_settings(run)
            waiting.append(run)
    return summary, waiting


def _note_end(summary: Summary, ended: EndedRun, board: Board, *, stopping: bool) -> None:
    """Add a run that ended to the summary."""
    run, status = ended.run, read_status(ended.run)
    if status.done:
        summary.finished.append(run)
        board.say(f"finished: {run.name}{_last_success(status)}")
    elif ended.status.stopped or (ended.status.reason is None and stopping and status.state == "stopped"):
        summary.stopped.append(run)
    else:
        reason = ended.status.reason or reason_of_failure(run, ended.status.code)
        summary.failed.append((run, reason))
        board.say(f"failed: {run.name}: {reason}")


def _last_success(status: RunStatus) -> str:
    return "" if status.success is None else f" (success {status.success:.0%} at step {status.step:,})"


def _pass_on(count: int, passed_on: int, backend: Backend, board: Board) -> int:
    """Pass new signals on to the runs: the first one stops them, later ones kill them."""
    if count > passed_on == 0:
        board.say("stopping: every run saves first; interrupt again to end them at once without saving")
        backend.stop()
    elif count > passed_on:
        backend.kill()
    return count


def reason_of_failure(run: PlannedRun, code: int) -> str:
    """Return why a process that exited with `code` did not finish its run."""
    status = read_status(run)
    if status.reason:
        return status.reason
    if code < 0:
        return f"its process was killed by signal {-code}"
    line = _last_line(run.output_file).removeprefix("higl train: ").removeprefix("higl resume: ")
    return line or f"its process exited with code {code}"


def _last_line(path: Path) -> str:
    """Return the last line of a text file that is not empty."""
    try:
        text = path.read_text(errors="replace")[-_OUTPUT_TAIL:]
    except OSError:
        return ""
    return text.strip().rpartition("\n")[2].strip()


def print_summary(summary: Summary, name: str) -> None:
    """Print how a sweep ended, and why runs failed."""
    parts = [f"{len(summary.finished) + len(summary.finished_before)} finished"]
    if summary.finished_before:
        parts[0] += f" ({len(summary.finished_before)} of them before)"
    if summary.stopped:
        parts.append(f"{len(summary.stopped)} stopped or not started")
    if summary.failed:
        parts.append(f"{len(summary.failed)} failed")
    print(f"{name}: {', '.join(parts)}")
    for run, reason in summary.failed:
        print(f"  failed: {run.name}: {reason}", file=sys.stderr)
    if summary.stopped:
        print("Run the same command to continue; finished runs are not repeated.")
    elif any(read_status(run).usable for run, _ in summary.failed):
        print("Fix the cause, then run the same command to continue failed runs; finished runs are not repeated.")
