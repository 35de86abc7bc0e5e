"""The progress of a sweep: a live table in a terminal, otherwise a line per minute."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from higl.run.progress import STATUS_STYLES
from higl.sweep.plan import PlannedRun, RunStatus, read_status
from higl.text import duration, progress_text

_REFRESH_SECONDS = 2.0
_LINE_SECONDS = 60.0
# Height of the table without its rows, and the number of rows that are shown in the smallest terminal.
_FRAME_ROWS, _MIN_ROWS = 6, 4
# Which runs to show if the terminal is too small for all: lower numbers first.
_PRIORITY = {"running": 0, "failed": 1, "other settings": 1, "damaged": 1, "stopped": 2, "waiting": 3, "finished": 4}


class Board:
    """Shows the progress of a sweep on a console."""

    def __init__(self, plan: Sequence[PlannedRun], console: Console, title: str = ""):
        self._plan, self._console, self._title = list(plan), console, title
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._next_refresh = self._next_line = 0.0
        self._done: dict[str, RunStatus] = {}
        self._start_time = time.monotonic()
        self._start_steps: int | None = None

    @contextmanager
    def showing(self) -> Generator[None]:
        """Show the live table while the block runs; its last state remains on the screen."""
        if self._live is None:
            yield
            return
        with self._live:
            yield

    def say(self, text: str) -> None:
        """Print a message."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def refresh(self, failed: Sequence[tuple[PlannedRun, str]] = (), *, force: bool = False) -> None:
        """Read the run folders and show the progress, unless it was refreshed a moment ago."""
        now = time.monotonic()
        if now < self._next_refresh and not force:
            return
        self._next_refresh = now + _REFRESH_SECONDS
        statuses = self._read_statuses({run.name for run, _ in failed})
        if self._live is not None:
            self._live.update(self._fitting_table(statuses), refresh=True)
        elif now >= self._next_line or force:
            self._next_line = now + _LINE_SECONDS
            self.say(f"{self._title}: {self._line(statuses)}")

    def _read_statuses(self, failed: set[str]) -> list[RunStatus]:
        """Return the status of each run. Those of finished runs are read only once."""
        statuses = []
        for run in self._plan:
            status = self._done.get(run.name) or read_status(run)
            if status.done and status.step >= run.config.steps:  # with fewer steps it is about to be continued
                self._done[run.name] = status
            elif run.name in failed and status.state != "running":
                status = RunStatus("failed", status.step, status.success, status.reason)
            statuses.append(status)
        return statuses

    def _fitting_table(self, statuses: Sequence[RunStatus]) -> Table:
        """Return a table that fits the terminal, with the runs of highest priority in the order of the plan."""
        rows = list(zip(self._plan, statuses, strict=True))
        room = max(_MIN_ROWS, self._console.height - _FRAME_ROWS)
        kept = sorted(range(len(rows)), key=lambda place: _PRIORITY[rows[place][1].state])[:room]
        shown = [rows[place] for place in sorted(kept)]
        hidden = f"; {len(rows) - len(shown)} not shown" if len(shown) < len(rows) else ""
        title = f"{self._title}: {self._line(statuses)}{hidden}"
        return runs_table([run for run, _ in shown], [status for _, status in shown], title)

    def _line(self, statuses: Sequence[RunStatus]) -> str:
        """Return one line: number of runs by state, steps done, and the remaining time."""
        counts = Counter(status.state for status in statuses)
        done = sum(min(status.step, run.config.steps) for status, run in zip(statuses, self._plan, strict=True))
        total = sum(run.config.steps for run in self._plan)
        if self._start_steps is None:
            self._start_steps = done
        seconds, new = time.monotonic() - self._start_time, done - self._start_steps
        left = f", {duration(seconds * (total - done) / new)} left" if new > 0 and done < total else ""
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        return f"{states}; {done:,} of {total:,} steps{left}"


def runs_table(
    plan: Sequence[PlannedRun],
    statuses: Sequence[RunStatus],
    title: str = "",
    hours: Sequence[float | None] | None = None,
) -> Table:
    """Return the runs of a sweep as a table. `hours` is the remaining time of each run, or None to omit that column."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("state", no_wrap=True)
    for name in ("steps", "done", "success", *(() if hours is None else ("time left",))):
        table.add_column(name, justify="right", no_wrap=True)
    for run, status, left in zip(plan, statuses, hours or [None] * len(plan), strict=True):
        cells = [
            progress_text(status.step, run.config.steps),
            f"{min(1.0, status.step / run.config.steps):.0%}",
            "" if status.success is None else f"{status.success:.0%}",
        ]
        if hours is not None:
            cells.append("?" if left is None else duration(3600 * left))
        table.add_row(Text(run.name), Text(status.state, style=STATUS_STYLES.get(status.state, "")), *cells)
    return table
