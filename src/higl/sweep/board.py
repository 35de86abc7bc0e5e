"""The live table of a sweep: in a terminal kept up to date, elsewhere a line now and then."""

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

from higl.sweep.plan import PlannedRun, Standing, standing
from higl.text import duration, steps_text

_COLOURS = {"running": "green", "finished": "bold", "stopped": "yellow", "failed": "red", "damaged": "red"}
_LOOK_SECONDS = 2.0
_LINE_SECONDS = 60.0
# Lines of a terminal that are not rows of the table, and rows that are shown however small it is.
_FRAME_ROWS, _FEWEST_ROWS = 6, 4


class Board:
    """What everybody sees of a sweep."""

    def __init__(self, plan: Sequence[PlannedRun], console: Console, title: str = ""):
        self._plan, self._console, self._title = list(plan), console, title
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._next_look = self._next_line = 0.0
        self._done: dict[str, Standing] = {}
        self._began = time.monotonic()
        self._first_steps: int | None = None

    @contextmanager
    def showing(self) -> Generator[None]:
        """Show the table while the block runs; its last state stays."""
        if self._live is None:
            yield
            return
        with self._live:
            yield

    def say(self, text: str) -> None:
        """Say something once."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def look(self, failed: Sequence[tuple[PlannedRun, str]] = (), *, now: bool = False) -> None:
        """Read the folders again if the last look is a while ago, and show what is new."""
        clock = time.monotonic()
        if clock < self._next_look and not now:
            return
        self._next_look = clock + _LOOK_SECONDS
        standings = self._standings({run.name for run, _ in failed})
        if self._live is not None:
            self._live.update(self._picture(standings), refresh=True)
        elif clock >= self._next_line or now:
            self._next_line = clock + _LINE_SECONDS
            self.say(f"{self._title}: {self._line(standings)}")

    def _standings(self, failed: set[str]) -> list[Standing]:
        """Return where each run stands; finished ones are read once."""
        found = []
        for run in self._plan:
            now = self._done.get(run.name) or standing(run)
            if now.done and now.step >= run.config.steps:  # else about to be continued
                self._done[run.name] = now
            elif run.name in failed and now.state != "running":
                now = Standing("failed", now.step, now.success, now.reason)
            found.append(now)
        return found

    def _picture(self, standings: Sequence[Standing]) -> Table:
        """Return a table that fits a terminal: what goes on first, then what has not begun, then the rest."""
        order = {"running": 0, "failed": 1, "other settings": 1, "damaged": 1, "stopped": 2, "waiting": 3}
        rows = list(zip(self._plan, standings, strict=True))
        room = max(_FEWEST_ROWS, self._console.height - _FRAME_ROWS)
        kept = sorted(range(len(rows)), key=lambda place: order.get(rows[place][1].state, 4))[:room]
        shown = [rows[place] for place in sorted(kept)]
        hidden = f"; {len(rows) - len(shown)} not shown" if len(shown) < len(rows) else ""
        title = f"{self._title}: {self._line(standings)}{hidden}"
        return runs_table([run for run, _ in shown], [now for _, now in shown], title)

    def _line(self, standings: Sequence[Standing]) -> str:
        counts = Counter(now.state for now in standings)
        done = sum(min(now.step, run.config.steps) for now, run in zip(standings, self._plan, strict=True))
        total = sum(run.config.steps for run in self._plan)
        if self._first_steps is None:
            self._first_steps = done
        seconds, new = time.monotonic() - self._began, done - self._first_steps
        left = f", {duration(seconds * (total - done) / new)} left" if new > 0 and done < total else ""
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        return f"{states}; {done:,} of {total:,} steps{left}"


def runs_table(
    plan: Sequence[PlannedRun],
    standings: Sequence[Standing],
    title: str = "",
    hours: Sequence[float | None] | None = None,
) -> Table:
    """Return the runs of a sweep as a table; with `hours`, the time that each of them still needs."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("state", no_wrap=True)
    for name in ("steps", "done", "success", *(() if hours is None else ("time left",))):
        table.add_column(name, justify="right", no_wrap=True)
    for run, now, left in zip(plan, standings, hours or [None] * len(plan), strict=True):
        cells = [
            f"{steps_text(now.step)} of {steps_text(run.config.steps)}",
            f"{min(1.0, now.step / run.config.steps):.0%}",
        ]
        cells.append("" if now.success is None else f"{now.success:.0%}")
        if hours is not None:
            cells.append("?" if left is None else duration(3600 * left))
        table.add_row(Text(run.name), Text(now.state, style=_COLOURS.get(now.state, "")), *cells)
    return table
