"""Running a sweep with the local back end and a stand-in for training: finishing, failing, continuing, reporting."""

import json
import os
import signal
import threading
from io import StringIO

import pytest
from rich.console import Console
from support.sweeps import STAND_IN, evaluated, history, kill, toy_plan, wait_until

from higl.sweep.launch import arguments
from higl.sweep.local import LocalBackend
from higl.sweep.plan import read_status
from higl.sweep.runner import Summary, print_summary, reason_of_failure, run_sweep

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def go(plan) -> tuple[Summary, str]:
    """Run a plan; return how it ended and what was printed."""
    text = StringIO()
    summary = run_sweep(plan, LocalBackend([CORES[0], CORES[-1]], 0.0, STAND_IN), Console(file=text), "toy")
    return summary, text.getvalue()


def test_every_run_is_executed_once(catalogue, tmp_path):
    plan = toy_plan(catalogue(), tmp_path / "runs")
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
    go(toy_plan(catalogue(steps=300, seeds=1), tmp_path / "runs"))
    longer = toy_plan(catalogue(steps=500, seeds=1), tmp_path / "runs")
    assert [read_status(run).state for run in longer] == ["stopped", "stopped"]
    assert all("resume" in arguments(run, 5.0) for run in longer)
    assert len(go(longer)[0].finished) == 2
    for run in longer:
        assert history(run.folder) == ["start 0", "finish 300", "start 300", "finish 500"]
        assert evaluated(run.folder)[-1] == 500


def test_a_shorter_sweep_counts_longer_runs_as_done(catalogue, tmp_path):
    go(toy_plan(catalogue(steps=300, seeds=1), tmp_path / "runs"))
    shorter = toy_plan(catalogue(steps=200, seeds=1), tmp_path / "runs")
    assert all(read_status(run).done for run in shorter)


def test_failed_run_is_reported_and_does_not_stop_others(catalogue, tmp_path, capsys):
    unlucky = '"unlucky" = { batch_size = 13 }\n'
    plan = toy_plan(catalogue(more=unlucky, seeds=1), tmp_path / "runs")
    summary, _ = go(plan)
    assert len(summary.finished) == 2
    assert summary.exit_code == 1
    print_summary(summary, "toy")
    printed = capsys.readouterr()
    assert "2 finished, 1 failed" in printed.out
    assert "Fix the cause, then run the same command to continue failed runs" in printed.out
    assert "-0: failed at step 600: a stand-in's bad luck" in printed.err


def test_run_that_cannot_start_is_reported_with_its_message(catalogue, tmp_path):
    plan = toy_plan(catalogue(seeds=1), tmp_path / "runs")
    plan[0].folder.mkdir(parents=True)
    (plan[0].folder / "novel.txt").write_text("not a run")
    summary, _ = go(plan)
    assert [run.name for run in summary.finished] == [plan[1].name]
    [(failed, reason)] = summary.failed
    assert failed == plan[0]
    assert "is not empty (it contains novel.txt)" in reason


def test_reason_of_failure_is_the_last_line_of_output(catalogue, tmp_path):
    run, _ = toy_plan(catalogue(seeds=1), tmp_path)
    run.output_file.parent.mkdir()
    assert reason_of_failure(run, 3) == "its process exited with code 3"
    for command in ("train", "resume"):
        run.output_file.write_text(f"first\nhigl {command}: the disk is full\n\n")
        assert reason_of_failure(run, 1) == "the disk is full"
    assert reason_of_failure(run, -9) == "its process was killed by signal 9"


def test_folder_with_other_settings_is_left_alone(catalogue, tmp_path, capsys):
    plan = toy_plan(catalogue(seeds=1), tmp_path / "runs")
    go(plan)
    for run in plan:
        text = (run.folder / "config.toml").read_text()
        (run.folder / "config.toml").write_text(text.replace("pool = 20", "pool = 21"))
    summary, _ = go(plan)
    assert [reason.partition(": choose")[0] for _, reason in summary.failed] == [
        f"{run.folder} holds a run with other settings (landmarks.pool = 21 -> 20)" for run in plan
    ]
    print_summary(summary, "toy")
    assert "the same command" not in capsys.readouterr().out.lower()  # it would fail again


@pytest.mark.parametrize(("number", "counts"), [(signal.SIGKILL, (0, 1)), (signal.SIGTERM, (1, 0))])
def test_run_that_is_killed_or_stopped_from_outside_is_not_finished(catalogue, tmp_path, number, counts):
    """A killed run, for example one out of memory, has failed; one that was asked to stop has stopped."""
    plan = toy_plan(catalogue(steps=2_000, seeds=1), tmp_path / "runs")
    victim = plan[0].folder

    def end() -> None:
        wait_until(lambda: read_status(plan[0]).step > 200)
        kill(json.loads((victim / "processes.json").read_text())["self"], number)

    threading.Thread(target=end, daemon=True).start()
    summary, _ = go(plan)
    assert (len(summary.stopped), len(summary.failed)) == counts
    assert [reason for _, reason in summary.failed] == ["its process was killed by signal 9"] * counts[1]
    assert [run.name for run in summary.finished] == [plan[1].name]
    assert summary.exit_code == 1
