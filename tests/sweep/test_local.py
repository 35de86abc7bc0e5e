"""The local back end: stopping, continuing, failing. Most tests do without training; one trains."""

import json
import os
import signal
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from support.sweeps import STAND_IN, evaluated, history, kill, status, wait_until

from higl.errors import SettingsError
from higl.run.folder import RunFolder
from higl.sweep.catalogue import read_catalogue
from higl.sweep.launch import arguments
from higl.sweep.local import LocalBackend, choose_cores
from higl.sweep.plan import make_plan, read_status
from higl.sweep.runner import Summary, print_summary, reason_of_failure, run_sweep

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]

# What `higl sweep run` does, with a stand-in for the training.
DRIVER = """
import sys
from pathlib import Path
from higl.commands import sweep
from higl.sweep.local import LocalBackend
sweep.LocalBackend = lambda cores, minutes: LocalBackend(cores, minutes, (sys.argv[1],))
sys.exit(sweep.sweep(sys.argv[2:]))
"""


def plan_of(path: Path, out: Path, **options):
    return make_plan(read_catalogue(path)["toy"], out, **options)


def go(plan) -> tuple[Summary, str]:
    text = StringIO()
    summary = run_sweep(plan, LocalBackend([CORES[0], CORES[-1]], 0.0, STAND_IN), Console(file=text), "toy")
    return summary, text.getvalue()


def test_every_run_once_and_never_again(catalogue, tmp_path):
    plan = plan_of(catalogue(), tmp_path / "runs")
    summary, text = go(plan)
    assert summary.exit_code == 0
    assert sorted(run.name for run in summary.finished) == sorted(run.name for run in plan)
    assert "4 finished; 4,000 of 4,000 steps" in text
    for run in plan:
        assert history(run.folder) == ["start 0", "finish 1000"]
    again, _ = go(plan)
    assert len(again.finished_before) == 4
    assert not again.finished
    assert all(len(history(run.folder)) == 2 for run in plan)


def test_a_longer_sweep_continues_finished_runs(catalogue, tmp_path):
    go(plan_of(catalogue(steps=300, seeds=1), tmp_path / "runs"))
    longer = plan_of(catalogue(steps=500, seeds=1), tmp_path / "runs")
    assert [read_status(run).state for run in longer] == ["stopped", "stopped"]
    assert all("resume" in arguments(run, 5.0) for run in longer)
    shorter = plan_of(catalogue(steps=200, seeds=1), tmp_path / "runs")
    assert all(read_status(run).done for run in shorter)


def test_a_run_on_its_way_to_more_than_is_asked_is_done(catalogue, tmp_path):
    """Stopped at 600 of 1,000 steps: `resume --steps 500` would be refused, time and again."""
    (run, _) = plan_of(catalogue(steps=1000, seeds=1), tmp_path / "runs")
    folder = RunFolder.create(run.folder, run.config, print)
    folder.update(status="stopped", saved_step=600)
    folder.close()
    asked = [plan_of(catalogue(steps=steps, seeds=1), tmp_path / "runs")[0] for steps in (500, 600, 700)]
    assert [read_status(each).done for each in asked] == [True, True, False]


def test_a_failed_run_stops_no_other_and_is_named(catalogue, tmp_path, capsys):
    unlucky = '"unlucky" = { high.policy_period = 13 }\n'
    plan = plan_of(catalogue(more=unlucky, seeds=1), tmp_path / "runs")
    summary, _ = go(plan)
    assert len(summary.finished) == 2
    assert summary.exit_code == 1
    print_summary(summary, "toy")
    said = capsys.readouterr()
    assert "2 finished, 1 failed" in said.out
    assert "Fix the cause, then run the same command to continue failed runs" in said.out
    assert "-0: failed at step 600: a stand-in's bad luck" in said.err


def test_a_run_that_cannot_start_is_named_with_what_it_said(catalogue, tmp_path):
    plan = plan_of(catalogue(seeds=1), tmp_path / "runs")
    plan[0].folder.mkdir(parents=True)
    (plan[0].folder / "novel.txt").write_text("not a run")
    summary, _ = go(plan)
    assert [run.name for run in summary.finished] == [plan[1].name]
    [(failed, reason)] = summary.failed
    assert failed == plan[0]
    assert "is not empty (there is novel.txt)" in reason


def test_what_a_process_said_last_is_the_reason(catalogue, tmp_path):
    (run, _) = plan_of(catalogue(seeds=1), tmp_path)
    run.output_file.parent.mkdir()
    for command in ("train", "resume"):
        run.output_file.write_text(f"first\nhigl {command}: the disk is full\n")
        assert reason_of_failure(run, 1) == "the disk is full"


def test_a_folder_with_another_run_is_left_alone(catalogue, tmp_path, capsys):
    plan = plan_of(catalogue(seeds=1), tmp_path / "runs")
    go(plan)
    for run in plan:
        text = (run.folder / "config.toml").read_text()
        (run.folder / "config.toml").write_text(text.replace("epochs = 10", "epochs = 9"))
    summary, _ = go(plan)
    assert [reason.partition(": choose")[0] for _, reason in summary.failed] == [
        f"{run.folder} holds a run with other settings (adjacency.epochs)" for run in plan
    ]
    print_summary(summary, "toy")
    assert "the same command" not in capsys.readouterr().out.lower()  # it could only say so again


@pytest.mark.parametrize(("number", "parts"), [(signal.SIGKILL, (0, 1)), (signal.SIGTERM, (1, 0))])
def test_a_run_that_somebody_ends_is_not_finished(catalogue, tmp_path, number, parts):
    """Killed, as for want of memory, it has failed; asked to stop, it has stopped; in neither case all is done."""
    plan = plan_of(catalogue(steps=2_000, seeds=1), tmp_path / "runs")
    victim = plan[0].folder

    def end() -> None:
        wait_until(lambda: read_status(plan[0]).step > 200)
        kill(json.loads((victim / "processes.json").read_text())["self"], number)

    threading.Thread(target=end, daemon=True).start()
    summary, _ = go(plan)
    assert (len(summary.stopped), len(summary.failed)) == parts
    assert [reason for _, reason in summary.failed] == ["its process was killed by signal 9"] * parts[1]
    assert [run.name for run in summary.finished] == [plan[1].name]
    assert summary.exit_code == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_sweep_saves(catalogue, tmp_path, number):
    path, out = catalogue(steps=20_000, seeds=2), tmp_path / "runs"
    plan = plan_of(path, out)
    driver = start_driver(path, out)
    wait_until(lambda: sum(read_status(run).step > 200 for run in plan) == min(2, len(CORES)))
    kill(driver.pid, number)
    said, _ = driver.communicate(timeout=200)
    assert driver.returncode == 128 + number
    assert "4 stopped or not started" in said
    begun = [run for run in plan if history(run.folder)]
    assert len(begun) == min(2, len(CORES))
    for run in begun:
        assert status(run.folder) == "stopped"
        assert history(run.folder)[-1] == f"stop {evaluated(run.folder)[-1]}"


def start_driver(path: Path, out: Path) -> subprocess.Popen:
    words = ["run", "toy", "--catalogue", str(path), "--out", str(out), "--cores", str(CORES[0]), str(CORES[-1])]
    command = [sys.executable, "-c", DRIVER, *STAND_IN, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_runs_do_not_outlive_a_killed_driver_and_continue_after(catalogue, tmp_path):
    path, out = catalogue(steps=4_000, seeds=1), tmp_path / "runs"
    plan = plan_of(path, out)
    driver = start_driver(path, out)
    wait_until(lambda: all(read_status(run).step > 200 for run in plan[: len(CORES)]))
    kill(driver.pid)
    driver.communicate()
    second = start_driver(path, out)
    said, _ = second.communicate(timeout=200)
    assert second.returncode == 0, said
    for run in plan:
        assert status(run.folder) == "finished"
        assert evaluated(run.folder) == list(range(100, 4_001, 100))
        assert sum(line.startswith("finish") for line in history(run.folder)) == 1
    assert any(line.startswith("stop") for line in history(plan[0].folder))


def test_cores():
    assert choose_cores([]) == CORES
    assert choose_cores([CORES[0], CORES[0]]) == [CORES[0]]
    with pytest.raises(SettingsError, match="no core 4096"):
        choose_cores([4096])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_real_runs_stop_and_continue(catalogue, tmp_path):
    """Two runs that learn: stopped by Ctrl-C, continued, and as complete as if nothing had happened."""
    path, out = catalogue(steps=1500, seeds=1), tmp_path / "runs"
    words = ["run", "toy", "--catalogue", str(path), "--out", str(out), "--checkpoint-minutes", "0"]
    command = [sys.executable, "-m", "higl.cli", "sweep", *words]
    plan = plan_of(path, out)
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: any(read_status(run).step > 0 for run in plan), 600)
    kill(driver.pid, signal.SIGINT)
    said, _ = driver.communicate(timeout=600)
    assert driver.returncode == 130, said
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for run in plan:
        assert status(run.folder) == "finished"
        steps = [json.loads(line)["step"] for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
        assert steps == [500, 1000, 1500]
        assert evaluated(run.folder) == [500, 1000, 1500]
