"""Progress displays."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from higl.run import progress
from higl.run.loop import Loop
from higl.run.observers import Observers
from higl.run.progress import LiveDisplay, PlainLines, Recent, Silent, evaluation_line, make_progress, status_line

ROW = {
    "step": 5000,
    "time": 1.0,
    "episodes": 10,
    "success": 0.4,
    "success_at_end": 0.1,
    "return": -80.0,
    "steps_to_success": 120.4,
}
METRICS = {
    "episode/success": 1.0,
    "episode/return": -50.0,
    "high/landmarks": 40.0,
    "seconds/low": 3.0,
    "seconds/high": 1.0,
}


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_speed_leaves_out_the_first_episode(clock):
    recent = Recent(0, 10_000)
    assert status_line(recent).endswith("speed not known yet")
    for seconds, step in ((60.0, 500), (61.0, 1000), (62.0, 1500)):
        clock[0] = seconds
        recent.add(METRICS | {"step": step})
    assert (recent.speed, recent.seconds_left) == (500.0, 17.0)
    assert recent.stage_shares() == {"low": 0.75, "high": 0.25}
    assert status_line(recent) == (
        "step 1,500 of 10,000: training, exploring: success 100%, return -50.0, landmarks 40; 500 steps/s, 17s left"
    )


def test_how_much_was_visited_is_that_of_the_last_episode():
    recent = Recent(0, 10_000)
    for step, share in ((500, 0.25), (1000, 0.75)):
        recent.add(METRICS | {"step": step, "explored_share": share})
    assert "maze visited 75%" in status_line(recent)


def test_evaluation_line():
    text = "evaluation at step 5,000: success 40% of 10 episodes (10% at the last step), return -80.0"
    assert evaluation_line(ROW) == f"{text}, 120 steps to success"
    assert evaluation_line(ROW | {"steps_to_success": ""}) == text


def test_plain_lines_come_now_and_then(clock, capsys):
    lines = PlainLines()
    lines.begin("task", 0, 1000)
    for step in range(10, 1000, 10):
        clock[0] += 1.0
        lines.episode(METRICS | {"step": step})
    lines.evaluation(ROW)
    lines.warn("disk full")
    lines.end()
    captured = capsys.readouterr()
    assert 3 <= len(captured.out.splitlines()) <= 6
    assert captured.out.splitlines()[-1] == evaluation_line(ROW)
    assert captured.err == "higl: disk full\n"


def test_live_display():
    screen = io.StringIO()
    display = LiveDisplay(Console(file=screen, force_terminal=True, width=120))
    display.begin("ant-maze-u", 0, 1000)
    display.note("continuing")
    display.episode(METRICS | {"step": 500})
    display.evaluation(ROW)
    display.warn("[not markup]")
    display.end()
    display.end()
    shown = screen.getvalue()
    for text in (
        "ant-maze-u",
        "500 of 1,000 steps",
        "continuing",
        "[not markup]",
        "at step 5,000: success 40%",
        "low 75%",
    ):
        assert text in shown


def test_a_long_name_takes_one_line_of_a_narrow_terminal():
    screen = io.StringIO()
    display = LiveDisplay(Console(file=screen, force_terminal=True, width=90))
    display.begin("warehouse:PickAndPlaceWithObstacles-v12 (higl, sparse, seed 0)", 0, 1000)
    display.end()
    assert len([row for row in on_screen(screen.getvalue()) if row.strip()]) == 4


def test_choice(monkeypatch):
    assert type(make_progress(quiet=True)) is Silent
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert type(make_progress(quiet=False)) is PlainLines
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert type(make_progress(quiet=False)) is LiveDisplay


def on_screen(written: str) -> list[str]:
    """Return the lines that a terminal shows: a small part of one, for what the display writes."""
    rows, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        if part == "\n":
            row += 1
            rows += [""] * (row == len(rows))
        elif part == "\x1b[2K":
            rows[row] = ""
        elif part.endswith("A") and part.startswith("\x1b"):
            row -= int(part[2:-1] or 1)
        elif not part.startswith(("\x1b", "\r")):
            rows[row] += part
    return rows


def test_an_interrupted_display_leaves_no_stale_lines():
    screen = io.StringIO()
    display = LiveDisplay(Console(file=screen, force_terminal=True, width=120))
    assert not display.interrupted("nothing is shown yet")
    display.begin("ant-maze-u", 0, 1000)
    loop = SimpleNamespace(observers=Observers([display]), stop_signal=None)
    with Loop.stopping_on(loop, [signal.SIGINT], "stopping after this stage"):
        os.kill(os.getpid(), signal.SIGINT)
    assert loop.stop_signal == signal.SIGINT
    display._live.refresh()
    assert "higl: stopping after this stage" in on_screen(screen.getvalue())[-1]
    display.episode(METRICS | {"step": 500})
    display.end()
    shown = on_screen(screen.getvalue())
    assert sum("ant-maze-u" in row for row in shown) == 1
    assert not any("stopping" in row for row in shown)


class Terminal(io.StringIO):
    """A terminal that can be closed: writing to it then fails, as with a pseudo-terminal whose other end is gone."""

    closed_by_user = False

    def write(self, text: str) -> int:
        if self.closed_by_user:
            raise OSError(5, "Input/output error")
        return super().write(text)


def test_a_closed_terminal_does_not_stop_a_run():
    terminal = Terminal()
    display = LiveDisplay(Console(file=terminal, force_terminal=True, width=100))
    display.begin("point-maze (higl)", 0, 10_000)
    terminal.closed_by_user = True
    display.episode({"step": 500, "time": 1.0} | METRICS)
    display.note("a note")
    display.warn("a warning")
    display.evaluation(ROW)
    display.end()


def test_lines_that_nobody_reads_do_not_stop_a_run(monkeypatch):
    terminal = Terminal()
    terminal.closed_by_user = True
    monkeypatch.setattr(sys, "stdout", terminal)
    PlainLines().note("a note")


def test_an_interruption_without_a_display_is_written_at_once(capfd):
    loop = SimpleNamespace(observers=Observers([Silent()]), stop_signal=None)
    with Loop.stopping_on(loop, [signal.SIGINT], "stopping after this stage"):
        os.kill(os.getpid(), signal.SIGINT)
    assert capfd.readouterr().err == "\nhigl: stopping after this stage\n"
