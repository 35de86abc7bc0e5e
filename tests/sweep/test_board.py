"""The progress of a sweep: lines in a file, and a table that fits the terminal."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from support.sweeps import make_run

from higl.sweep import board
from higl.sweep.board import Board, runs_table
from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import PlannedRun, RunStatus, make_plan

STEPS = 10_000


@pytest.fixture
def plan(tmp_path) -> list[PlannedRun]:
    """Three runs of figure 4a: the first has finished, the second has stopped halfway, the third has not started."""
    runs = make_plan(read_catalogue()["fig4a"], tmp_path, seeds=1, more={"steps": STEPS})
    for run, success, status in zip(runs, ([0.0, 1.0], [0.4]), ("finished", "stopped"), strict=False):
        coverage = run.config.landmarks.coverage
        settings = {"preset": "paper", "reward": "dense", "steps": STEPS, "landmarks__coverage": coverage}
        make_run(run.folder, success, status, **settings)
    return runs


def test_lines_count_runs_and_steps(plan, monkeypatch):
    clock = 1_000.0
    monkeypatch.setattr(board.time, "monotonic", lambda: clock)
    text = StringIO()
    shown = Board(plan, Console(file=text), "fig4a")
    shown.refresh()
    clock += 1.0
    shown.refresh()  # too early for another line
    assert text.getvalue() == "fig4a: 1 finished, 1 stopped, 1 waiting; 15,000 of 30,000 steps\n"
    make_run_longer(plan[1].folder)
    clock += 99.0
    shown.refresh([(plan[2], "no memory")])
    line = "fig4a: 2 finished, 1 failed; 20,000 of 30,000 steps, 3m 20s left"  # 5,000 steps in 100 seconds
    assert text.getvalue().splitlines()[1:] == [line]


def make_run_longer(folder: Path) -> None:
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 10000}\n')
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace('"status": "stopped"', '"status": "finished"'))


def test_small_terminal_shows_what_matters_most(tmp_path):
    plan = make_plan(read_catalogue()["fig3"], tmp_path, seeds=1)
    console = Console(file=StringIO(), force_terminal=True, width=160, height=10)
    last = plan[-1].config
    make_run(plan[-1].folder, [0.5], "failed", task=last.task, algo="hrac", preset="paper", steps=last.steps)
    shown = Board(plan, console, "fig3")
    with shown.showing():
        shown.refresh()
    text = console.file.getvalue()
    assert "fig3: 17 waiting, 1 failed" in text
    assert "14 not shown" in text
    assert plan[-1].name in text
    assert plan[0].name in text
    assert plan[4].name not in text


def test_table_shows_progress_success_and_remaining_time(plan):
    text = StringIO()
    statuses = [RunStatus("finished", STEPS, 1.0), RunStatus("running", 2_500, 0.25), RunStatus("waiting")]
    Console(file=text, width=160).print(runs_table(plan, statuses, "title", [0.0, 1.5, None]))
    rows = [line.split() for line in text.getvalue().splitlines() if "higl" in line]
    assert [row[1:] for row in rows] == [
        ["finished", "10k", "100%", "100%", "0s"],
        ["running", "2.5k", "of", "10k", "25%", "25%", "1h", "30m"],
        ["waiting", "0", "of", "10k", "0%", "?"],
    ]
