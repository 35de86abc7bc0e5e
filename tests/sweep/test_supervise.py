"""Supervising the process of a run, as a task of Ray or a job of Slurm does."""

import os
import signal
import threading
import time

import pytest
from support.sweeps import STAND_IN, history, status

from higl.sweep.backend import ExitStatus
from higl.sweep.catalogue import read_catalogue
from higl.sweep.launch import write_settings
from higl.sweep.plan import make_plan
from higl.sweep.supervise import supervise_run


@pytest.fixture
def run(catalogue, tmp_path):
    [first, *_] = make_plan(read_catalogue(catalogue(steps=3_000))["toy"], tmp_path / "runs")
    return first


def test_finished_run_is_not_repeated(run):
    write_settings(run)
    assert supervise_run(run, 0.0, STAND_IN) == ExitStatus(0)
    assert supervise_run(run, 0.0, STAND_IN) == ExitStatus(0)
    assert history(run.folder) == ["start 0", "finish 3000", "finished before"]


def test_interrupted_supervisor_lets_its_run_save(run):
    """Ray cancels a task by raising KeyboardInterrupt in its main thread, as Ctrl-C does."""
    write_settings(run)

    def cancel() -> None:
        while len(history(run.folder)) == 0:
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        supervise_run(run, 0.0, STAND_IN)
    assert status(run.folder) == "stopped"
    assert history(run.folder)[-1].startswith("stop ")


def test_node_without_the_shared_folder_is_reported(run):
    exit_status = supervise_run(run, 0.0, STAND_IN)
    assert exit_status.code == 1
    assert "--out must be on shared storage" in str(exit_status.reason)
