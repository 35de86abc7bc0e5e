"""What the tests of sweeps share."""

import csv
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

STAND_IN = (str(Path(__file__).with_name("stand_in.py")),)


def history(folder: Path) -> list[str]:
    """Return what a stand-in run noted."""
    return (folder / "history.txt").read_text().split("\n")[:-1] if (folder / "history.txt").is_file() else []


def evaluated(folder: Path) -> list[int]:
    """Return the steps at which a run was evaluated."""
    with open(folder / "eval.csv") as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


def status(folder: Path) -> str:
    """Return what a run's facts say, 'none' if there are none."""
    try:
        return json.loads((folder / "run.json").read_text())["status"]
    except FileNotFoundError:
        return "none"


def wait_until(condition: Callable[[], bool], seconds: float = 240.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def kill(process: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that a test started."""
    os.kill(process, number)
