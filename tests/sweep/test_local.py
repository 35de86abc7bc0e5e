"""The local back end: cores, signals and killed sweeps, mostly with a stand-in for training."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.sweeps import STAND_IN, evaluated, history, kill, status, toy_plan, wait_until

from higl.errors import SettingsError
from higl.sweep.local import choose_cores
from higl.sweep.plan import read_status

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]

# `higl sweep run` with a stand-in for training.
DRIVER = """
import sys
from pathlib import Path
from higl.commands import sweep
from higl.sweep.local import LocalBackend
sweep.LocalBackend = lambda cores, minutes: LocalBackend(cores, minutes, (sys.argv[1],))
sys.exit(sweep.sweep(sys.argv[2:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_sweep_saves_its_runs(catalogue, tmp_path, number):
    path, out = catalogue(steps=20_000, seeds=2), tmp_path / "runs"
    plan = toy_plan(path, out)
    driver = start_driver(path, out)
    wait_until(lambda: sum(read_status(run).step > 200 for run in plan) == min(2, len(CORES)))
    kill(driver.pid, number)
    output, _ = driver.communicate(timeout=200)
    assert driver.returncode == 128 + number
    assert "4 stopped or not started" in output
    begun = [run for run in plan if history(run.folder)]
    assert len(begun) == min(2, len(CORES))
    for run in begun:
        assert status(run.folder) == "stopped"
        assert history(run.folder)[-1] == f"stop {evaluated(run.folder)[-1]}"


def start_driver(path: Path, out: Path) -> subprocess.Popen:
    words = ["run", "toy", "--catalogue", str(path), "--out", str(out), "--cores", str(CORES[0]), str(CORES[-1])]
    command = [sys.executable, "-c", DRIVER, *STAND_IN, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_runs_end_with_a_killed_sweep_and_continue_later(catalogue, tmp_path):
    path, out = catalogue(steps=4_000, seeds=1), tmp_path / "runs"
    plan = toy_plan(path, out)
    driver = start_driver(path, out)
    wait_until(lambda: all(read_status(run).step > 200 for run in plan[: len(CORES)]))
    kill(driver.pid)
    driver.communicate()
    second = start_driver(path, out)
    output, _ = second.communicate(timeout=200)
    assert second.returncode == 0, output
    for run in plan:
        assert status(run.folder) == "finished"
        assert evaluated(run.folder) == list(range(100, 4_001, 100))
        assert sum(line.startswith("finish") for line in history(run.folder)) == 1
    assert any(line.startswith("stop") for line in history(plan[0].folder))


def test_choice_of_cores():
    assert choose_cores([]) == CORES
    assert choose_cores([CORES[0], CORES[0]]) == [CORES[0]]
    with pytest.raises(SettingsError, match="no core 4096"):
        choose_cores([4096])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_training_stops_and_continues(catalogue, tmp_path):
    """Two training runs, stopped by Ctrl-C and continued, log every episode once."""
    path, out = catalogue(steps=1500, seeds=1), tmp_path / "runs"
    words = ["run", "toy", "--catalogue", str(path), "--out", str(out), "--checkpoint-minutes", "0"]
    command = [sys.executable, "-m", "higl.cli", "sweep", *words]
    plan = toy_plan(path, out)
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: any(read_status(run).step > 0 for run in plan), 600)
    kill(driver.pid, signal.SIGINT)
    output, _ = driver.communicate(timeout=600)
    assert driver.returncode == 130, output
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for run in plan:
        assert status(run.folder) == "finished"
        steps = [json.loads(line)["step"] for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
        assert steps == [500, 1000, 1500]
        assert evaluated(run.folder) == [500, 1000, 1500]
