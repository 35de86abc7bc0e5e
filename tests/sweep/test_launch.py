"""Starting the process of a run: its settings file, its arguments and its environment."""

import json
import os
import signal
import tomllib

import pytest
from support.sweeps import OWN_CATALOGUE, make_run

from higl.settings.layers import to_toml
from higl.sweep.catalogue import read_catalogue
from higl.sweep.launch import arguments, start_process, write_settings
from higl.sweep.plan import PlannedRun, make_plan


@pytest.fixture
def plan(tmp_path) -> list[PlannedRun]:
    """Runs on Reacher with the paper's settings, and on another environment with derived ones."""
    text = OWN_CATALOGUE.replace("plain = {}", 'plain = { preset = "paper" }')
    (tmp_path / "own.toml").write_text(text)
    return make_plan(read_catalogue(tmp_path / "own.toml")["mine"], tmp_path)


def test_settings_file_holds_all_settings_or_those_that_are_not_derived(plan):
    known, derived = plan[0], plan[2]
    for run in (known, derived):
        write_settings(run)
    assert known.settings_file.read_text() == to_toml(known.config)
    given = {"task": "gym/Other-v0", "reward": "dense", "seed": 0, "steps": 2000, "hidden": [64, 64]}
    assert tomllib.loads(derived.settings_file.read_text()) == given | {"preset": "paper"}


def test_arguments_train_or_resume(plan):
    known, derived = plan[0], plan[2]
    for run in (known, derived):
        words = ["train", "--config", str(run.settings_file), "--out", str(run.folder), "--resume"]
        assert arguments(run, 5.0, [3]) == [*words, "--quiet", "--checkpoint-minutes=5", "--cores", "3"]
        make_run(run.folder, [0.5], task=run.config.task, steps=run.config.steps)
    assert arguments(known, 0.5)[0] == "train"  # `--resume` continues it
    assert arguments(derived, 0.5)[:4] == ["resume", str(derived.folder), "--steps", "2000"]
    make_run(plan[1].folder, [0.5], task="reacher", steps=10)
    assert arguments(plan[1], 0.5)[:4] == ["resume", str(plan[1].folder), "--steps", "5000"]


PROGRAM = """
import json, os, signal, sys
blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
session = os.getsid(0) == os.getpid()
print(json.dumps([sys.argv[1:3], session, blocked, os.environ["OMP_NUM_THREADS"], os.environ["NPROC"]]))
"""


def test_child_has_its_own_session_one_thread_and_appends_its_output(plan, monkeypatch):
    monkeypatch.setenv("NPROC", "2")  # the choice of the user stays
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run = plan[0]
    write_settings(run)
    for _ in range(2):
        assert start_process(run, 5.0, program=("-c", PROGRAM)).wait() == 0
    lines = run.output_file.read_text().splitlines()
    assert len(lines) == 2
    blocked = [signal.SIGUSR1, signal.SIGUSR2]
    assert json.loads(lines[0]) == [[str(os.getpid()), str(run.folder)], True, blocked, "1", "2"]
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & set(blocked)
