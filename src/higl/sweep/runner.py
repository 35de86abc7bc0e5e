"""A sweep at work: what to start, what has ended, what everybody sees. The back ends only launch.

The state of every run is read from its folder, so the picture is the same wherever the runs are worked on.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from rich.console import Console

from higl.sweep.board import Board
from higl.sweep.plan import UNUSABLE, PlannedRun, Standing, reason_of_failure, standing, write_settings

_LOOK_EVERY = 0.5
EXIT_FAILED, EXIT_STOPPED = 1, 128


@dataclass(frozen=True)
class Ended:
    """A process of a run that has ended, with its exit code; `reason`: why the back end could not run it at all."""

    run: PlannedRun
    code: int
    reason: str | None = None


class Backend(Protocol):
    """What launches runs."""

    def free(self) -> bool:
        """Whether another run can be started."""
        ...

    def start(self, run: PlannedRun) -> None:
        """Start or continue a run."""

    def poll(self) -> list[Ended]:
        """Return what has ended since the last call."""
        ...

    def active(self) -> int:
        """Return how many runs are started and have not ended."""
        ...

    def stop(self) -> None:
        """Ask every run to save and stop."""

    def kill(self) -> None:
        """End every run at once."""

    def close(self) -> None:
        """Give back what the back end holds."""


@dataclass
class Summary:
    """How a sweep ended."""

    finished: list[PlannedRun] = field(default_factory=list)
    before: list[PlannedRun] = field(default_factory=list)
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
    """Notes the first SIGINT or SIGTERM; counts them, as more than one means at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.count = 0

    @contextmanager
    def listening(self) -> Generator[None]:
        """Listen while the block runs."""

        def note(number: int, frame: FrameType | None) -> None:
            self.signal = number if self.signal is None else self.signal
            self.count += 1

        handlers = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def run_sweep(plan: Sequence[PlannedRun], backend: Backend, console: Console, title: str = "") -> Summary:
    """Do what is left of a plan; return how it ended. A run that fails does not stop the others."""
    summary, waiting = _sort_out(plan)
    stopper, board = Stopper(), Board(plan, console, title)
    told = 0
    with stopper.listening(), board.showing():
        try:
            while backend.active() or (waiting and not stopper.count):
                while waiting and not stopper.count and backend.free():
                    backend.start(waiting.popleft())
                for ended in backend.poll():
                    _sort_in(summary, ended, board, stopping=stopper.count > 0)
                board.look(summary.failed)
                told = _tell(stopper.count, told, backend, board)
                time.sleep(_LOOK_EVERY if backend.active() else 0)
            board.look(summary.failed, now=True)
        finally:
            backend.close()
    summary.stopped += waiting
    summary.signal = stopper.signal
    return summary


def _sort_out(plan: Sequence[PlannedRun]) -> tuple[Summary, deque[PlannedRun]]:
    """Return what needs no work or cannot be worked on, and the runs that are left, their settings written."""
    summary, waiting = Summary(), deque[PlannedRun]()
    for run in plan:
        now = standing(run)
        if now.done:
            summary.before.append(run)
        elif now.state in UNUSABLE:
            summary.failed.append((run, now.reason or now.state))
        else:
            write_settings(run)
            waiting.append(run)
    return summary, waiting


def _sort_in(summary: Summary, ended: Ended, board: Board, *, stopping: bool) -> None:
    run, now = ended.run, standing(ended.run)
    if now.done:
        summary.finished.append(run)
        board.say(f"finished: {run.name}{_result(now)}")
    elif ended.reason is None and (ended.code in STOPPED_CODES or (stopping and now.state == "stopped")):
        summary.stopped.append(run)
    else:
        reason = ended.reason or reason_of_failure(run, ended.code)
        summary.failed.append((run, reason))
        board.say(f"failed: {run.name}: {reason}")


# A run that is asked to stop saves and ends with 128 + the signal; one that had not begun is ended by it.
STOPPED_CODES = tuple(code for number in (signal.SIGTERM, signal.SIGINT) for code in (128 + number, -number))


def _result(now: Standing) -> str:
    return "" if now.success is None else f" (success {now.success:.0%} at step {now.step:,})"


def _tell(count: int, told: int, backend: Backend, board: Board) -> int:
    """Pass on that the sweep shall stop: the first time politely."""
    if count > told and told == 0:
        board.say("stopping: every run saves first; once more ends them at once, without saving")
        backend.stop()
    elif count > told:
        backend.kill()
    return count


def print_summary(summary: Summary, name: str) -> None:
    """Say how a sweep ended, and name what failed with its reason."""
    parts = [f"{len(summary.finished) + len(summary.before)} finished"]
    if summary.before:
        parts[0] += f" ({len(summary.before)} of them before)"
    if summary.stopped:
        parts.append(f"{len(summary.stopped)} stopped or not begun")
    if summary.failed:
        parts.append(f"{len(summary.failed)} failed")
    print(f"{name}: {', '.join(parts)}")
    for run, reason in summary.failed:
        print(f"  failed: {run.name}: {reason}", file=sys.stderr)
    if summary.stopped:
        print("The same command continues; finished runs are not repeated.")
    elif any(standing(run).state not in UNUSABLE for run, _ in summary.failed):
        print("Once their cause is mended, the same command continues failed runs; finished ones are not repeated.")
