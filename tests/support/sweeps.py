"""Helpers for tests of sweeps."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from higl.run.folder import RunFolder
from higl.settings.layers import apply
from higl.settings.presets import preset
from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import PlannedRun, make_plan

OWN_CATALOGUE = """
[mine]
tasks = [{ task = "reacher", steps = 1000 }, { task = "gym/Other-v0", reward = "dense", steps = 2000 }]
[mine.settings]
hidden = [64, 64]
[mine.variants]
plain = {}
long = { steps = 5000, seeds = [3, 7], high.relabel = true }
"""
"""A catalogue of a user, with one of our tasks and another environment; both derive settings."""

STAND_IN = (str(Path(__file__).with_name("stand_in.py")),)


def toy_plan(path: Path, out: Path, **options) -> list[PlannedRun]:
    """Return the runs of the sweep `toy` that the fixture `catalogue` writes."""
    return make_plan(read_catalogue(path)["toy"], out, **options)


def call_higl(*words: str, **environment: str) -> subprocess.CompletedProcess:
    """Call `higl` in a separate process, because importing submitit resets the logging that pytest uses."""
    call = "import sys; from higl.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", call, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def history(folder: Path) -> list[str]:
    """Return the history of a stand-in run."""
    return (folder / "history.txt").read_text().split("\n")[:-1] if (folder / "history.txt").is_file() else []


def evaluated(folder: Path) -> list[int]:
    """Return the steps at which a run was evaluated."""
    with open(folder / "eval.csv") as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


def status(folder: Path) -> str:
    """Return the status in a run's facts, 'none' without a run."""
    try:
        return json.loads((folder / "run.json").read_text())["status"]
    except FileNotFoundError:
        return "none"


def wait_until(condition: Callable[[], bool], seconds: float = 240.0) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not true within {seconds:g} seconds"
        time.sleep(0.1)


def kill(process: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that a test started."""
    os.kill(process, number)


def make_run(folder: Path, success: list[float], status: str = "finished", **settings) -> Path:
    """Write the folder of a run with an evaluation every 5,000 steps."""
    steps = 5_000 * len(success)
    named = {name.replace("__", "."): value for name, value in settings.items()}
    algo = named.pop("algo", "higl")
    config = apply(preset(named.pop("task", "ant-maze-u"), algo, named.pop("preset", "best")), {"steps": steps} | named)
    run = RunFolder.create(folder, config, print)
    run.start(1, "cpu (cpu)", 0)
    for place, rate in enumerate(success, 1):
        row = {"step": 5_000 * place, "time": 1.5, "episodes": 5, "success": rate, "success_at_end": rate / 2}
        run.evaluation(row | {"return": -1.0, "steps_to_success": "", "path_length": 3.0})
        run.episode({"step": 5_000 * place, "episode": place, "time": 1.5})
    run.update(status=status, seconds=3_600.0)
    run.close()
    return folder
