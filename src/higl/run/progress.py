"""Progress displays: a live one in a terminal, plain lines elsewhere, or warnings only."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from higl.run.observers import Observer, Row
from higl.text import duration

STATUS_STYLES = {"running": "green", "finished": "bold", "stopped": "yellow", "failed": "red", "damaged": "red"}
"""How a terminal shows where a run stands."""

# Episodes over which speed and success are averaged.
_WINDOW = 20
_PLAIN_LINE_SECONDS = 30.0
# What these averages are of: neither test goals nor the policy as it is evaluated.
_EXPLORING = "training, exploring"


class Silent(Observer):
    """Shows warnings only, on standard error."""

    def warn(self, text: str) -> None:
        """Print a warning."""
        print(f"higl: {text}", file=sys.stderr, flush=True)


class Recent:
    """Averages over the last episodes: speed, success, return, and where the time goes."""

    def __init__(self, step: int, total: int):
        self.step, self.total = step, total
        # Starts at the end of the first episode, which includes compiling everything.
        self._times: deque[tuple[float, int]] = deque(maxlen=_WINDOW + 1)
        self._metrics: deque[Mapping[str, float]] = deque(maxlen=_WINDOW)

    def add(self, row: Row) -> None:
        """Add an episode."""
        self.step = int(row["step"])
        self._times.append((time.perf_counter(), self.step))
        self._metrics.append({name: value for name, value in row.items() if not isinstance(value, str)})

    @property
    def speed(self) -> float:
        """Environment steps per second; 0 until it is known."""
        if not self._times:
            return 0.0
        (start, first), (end, last) = self._times[0], self._times[-1]
        return (last - first) / (end - start) if end > start else 0.0

    @property
    def share_done(self) -> str:
        """Steps so far, of how many; the last episode may go beyond the planned steps, which are then left out."""
        return f"{self.step:,}" if self.step > self.total else f"{self.step:,} of {self.total:,}"

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the remaining time, None until it is known."""
        return max(0, self.total - self.step) / self.speed if self.speed > 0 else None

    def mean(self, name: str) -> float | None:
        """Return the mean of a measurement over the episodes that had it."""
        values = [metrics[name] for metrics in self._metrics if name in metrics]
        return sum(values) / len(values) if values else None

    def latest(self, name: str) -> float | None:
        """Return a measurement of the last episode that had it."""
        return next((metrics[name] for metrics in reversed(self._metrics) if name in metrics), None)

    def stage_shares(self) -> dict[str, float]:
        """Return the share of each stage in the time of the last episodes."""
        totals: dict[str, float] = {}
        for metrics in self._metrics:
            for name, value in metrics.items():
                if name.startswith("seconds/"):
                    stage = name.removeprefix("seconds/")
                    totals[stage] = totals.get(stage, 0.0) + value
        whole = sum(totals.values()) or 1.0
        return {stage: taken / whole for stage, taken in totals.items()}


class PlainLines(Silent):
    """Prints a line now and then, for files and pipes."""

    def begin(self, name: str, step: int, total: int) -> None:
        """Start the averages."""
        self._recent = Recent(step, total)
        self._next_line = time.perf_counter()

    def episode(self, row: Row) -> None:
        """Print a line if the last one was long enough ago."""
        self._recent.add(row)
        if time.perf_counter() >= self._next_line:
            self._next_line = time.perf_counter() + _PLAIN_LINE_SECONDS
            self.note(status_line(self._recent))

    def evaluation(self, row: Row) -> None:
        """Print the evaluation."""
        self.note(evaluation_line(row))

    def note(self, text: str) -> None:
        """Print a line; a run goes on if nobody reads it any more."""
        with contextlib.suppress(OSError):
            print(text, flush=True)


class LiveDisplay(Silent):
    """Keeps a few lines at the bottom of a terminal up to date; notes scroll above them."""

    def __init__(self, console: Console):
        self._console = console
        self._live: Live | None = None
        self._evaluation: Row | None = None
        self._interruption: str | None = None

    def begin(self, name: str, step: int, total: int) -> None:
        """Open the display."""
        self._name, self._recent = name, Recent(step, total)
        self._live = Live(self._picture(), console=self._console, refresh_per_second=4, redirect_stderr=False)
        self._live.start()

    def episode(self, row: Row) -> None:
        """Update the display."""
        self._recent.add(row)
        self._update()

    def evaluation(self, row: Row) -> None:
        """Update the display."""
        self._evaluation = row
        self._update()

    def interrupted(self, text: str) -> bool:
        """Show the text below the display."""
        self._interruption = text
        self._update()
        return self._live is not None

    def note(self, text: str) -> None:
        """Print above the display."""
        self._print(text)

    def warn(self, text: str) -> None:
        """Print above the display, in colour."""
        self._print(f"higl: {text}", style="yellow")

    def end(self) -> None:
        """Close the display; its last state stays."""
        if self._live is not None:
            self._interruption = None
            self._update()
            with contextlib.suppress(OSError):  # the terminal may have been closed
                self._live.stop()
            self._live = None

    def _print(self, text: str, style: str | None = None) -> None:
        """Print above the display; a run goes on if its terminal has been closed."""
        with contextlib.suppress(OSError):
            self._console.print(text, style=style, highlight=False, soft_wrap=True, markup=False)

    def _update(self) -> None:
        if self._live is not None:
            self._live.update(self._picture())

    def _picture(self) -> Group:
        recent = self._recent
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            Text(self._name, style="bold", no_wrap=True, overflow="ellipsis"),
            ProgressBar(total=recent.total, completed=min(recent.step, recent.total), width=30),
            f"{recent.share_done} steps",
            speed_text(recent),
        )
        facts = Table.grid(padding=(0, 2))
        facts.add_row(_EXPLORING, episodes_text(recent))
        last = self._evaluation
        facts.add_row("evaluation", "none yet" if last is None else evaluation_line(last).removeprefix("evaluation "))
        shares = ", ".join(f"{stage} {share:.0%}" for stage, share in recent.stage_shares().items())
        facts.add_row("time", shares or "compiling (the first episode takes longer)")
        return Group(bar, facts, *([] if self._interruption is None else [Text(f"higl: {self._interruption}")]))


def make_progress(*, quiet: bool) -> Observer:
    """Return the display that suits where the output goes."""
    if quiet:
        return Silent()
    return LiveDisplay(Console()) if sys.stdout.isatty() else PlainLines()


def episodes_text(recent: Recent) -> str:
    """Return the averages over the last episodes, and how much has been visited by now."""
    parts = []
    for label, name, form in (
        ("success", "episode/success", "{:.0%}"),
        ("return", "episode/return", "{:.1f}"),
        ("progress per subgoal", "low/progress_share", "{:.0%}"),
        ("landmarks", "high/landmarks", "{:.0f}"),
        ("maze visited", "explored_share", "{:.0%}"),
    ):
        value = recent.latest(name) if name == "explored_share" else recent.mean(name)
        if value is not None:
            parts.append(f"{label} {form.format(value)}")
    return ", ".join(parts) or "no episode yet"


def status_line(recent: Recent) -> str:
    """Return the state of a run in one plain line."""
    return f"step {recent.share_done}: {_EXPLORING}: {episodes_text(recent)}; {speed_text(recent)}"


def speed_text(recent: Recent) -> str:
    """Return the speed and the remaining time."""
    if recent.seconds_left is None:
        return "speed not known yet"
    return f"{recent.speed:,.0f} steps/s, {duration(recent.seconds_left)} left"


def evaluation_line(row: Mapping[str, Any]) -> str:
    """Return an evaluation in one plain line."""
    line = f"evaluation at step {row['step']:,}: success {row['success']:.0%} of {row['episodes']} episodes"
    line += f" ({row['success_at_end']:.0%} at the last step), return {row['return']:.1f}"
    if row["steps_to_success"] != "":
        line += f", {row['steps_to_success']:.0f} steps to success"
    return line
