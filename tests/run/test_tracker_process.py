"""Trackers in processes of their own: whatever they do, the run ends as it would without them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support import tiny

from higl.envs.source import Source
from higl.errors import RunFolderError
from higl.run import tracker_process
from higl.run.progress import Silent
from higl.run.reading import read_config, read_facts
from higl.run.tracker_process import (
    TrackerProcess,
    Written,
    make_processes,
    read_written,
    recorded_trackers,
    save_written,
    tracker_folder,
)
from higl.run.training import open_training
from higl.settings.config import Config
from higl.settings.layers import apply


class Warnings(Silent):
    """Collects warnings."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def warn(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(autouse=True)
def _known_to_processes(monkeypatch):
    """Let processes find this folder's parent, where `support` is."""
    monkeypatch.setenv("PYTHONPATH", tiny.environment()["PYTHONPATH"])


def train(path: Path, steps: int, trackers: tuple[str, ...] = (), *, new: bool = True) -> list[str]:
    """Train a tiny run to a number of steps; return the warnings."""
    config = apply(Config(), tiny.SETTINGS | {"steps": steps}) if new else apply(read_config(path), {"steps": steps})
    source, progress = Source(config.task), Warnings()
    env = source.training_env(num_envs=1, observe_achieved=False, processes=False)
    test_env = source.test_env(observe_achieved=False)
    with open_training(path, config, env, test_env, new=new, progress=progress, trackers=trackers) as training:
        assert training.run() == 0
    assert read_facts(path)["status"] == "finished"
    return progress.texts


@pytest.mark.slow
def test_a_tracker_that_fails_or_blocks_neither_stops_nor_slows_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(tracker_process, "WAIT_SECONDS", 30)
    assert train(tmp_path / "alone", 120) == []
    (failed,) = train(tmp_path / "failed", 120, ("support.trackers:Raising",))
    assert "tracker support.trackers:Raising failed (higl track: ZeroDivisionError: no server)" in failed
    assert f"the run continues. `higl track {tmp_path / 'failed'} --tracker support.trackers:Raising`" in failed

    monkeypatch.setattr(tracker_process, "WAIT_SECONDS", 0.2)
    (blocked,) = train(tmp_path / "blocked", 120, ("support.trackers:Blocking",))
    assert "did not finish in 0.2 s and was ended" in blocked
    for name in ("failed", "blocked"):
        assert tiny.lines(tmp_path / name) == tiny.lines(tmp_path / "alone")
        assert tiny.evaluations(tmp_path / name) == tiny.evaluations(tmp_path / "alone")


@pytest.mark.parametrize("stopped", [False, True])
def test_the_end_waits_for_a_limited_time_and_leaves_no_process(tmp_path, monkeypatch, stopped):
    """The process is ended although it is blocked, and `begin` and `pause` return at once."""
    warnings: list[str] = []
    monkeypatch.setattr(tracker_process, "END_SECONDS", 0.1)
    monkeypatch.setattr(tracker_process, "STOPPED_WAIT_SECONDS" if stopped else "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(tracker_process.sys, "executable", str(_sleeper(tmp_path)))
    process = TrackerProcess(tmp_path, "wandb", warnings.append)
    start = time.monotonic()
    process.begin("run", 0, 100)
    for _ in range(100):
        process.pause()
    assert time.monotonic() - start < 5
    number = process._process.pid
    process.finish(stopped=stopped)
    assert warnings == [
        f"tracker wandb did not finish in 0.1 s and was ended. `higl track {tmp_path} --tracker wandb` writes the rest",
    ]
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def _sleeper(folder: Path) -> Path:
    """Return a program that never ends and ignores polite signals."""
    program = folder / "sleeper"
    program.write_text("#!/bin/sh\ntrap '' TERM INT\nwhile true; do sleep 1; done\n")
    program.chmod(0o755)
    return program


def test_a_process_that_cannot_start_is_a_warning(tmp_path, monkeypatch):
    warnings: list[str] = []
    monkeypatch.setattr(tracker_process.sys, "executable", str(tmp_path / "missing"))
    process = TrackerProcess(tmp_path, "wandb", warnings.append)
    process.begin("run", 0, 100)
    process.pause()
    process.finish()
    assert len(warnings) == 1
    assert warnings[0].startswith("tracker wandb did not start (No such file or directory)")


@pytest.mark.slow
def test_a_resumed_run_continues_its_record(tmp_path):
    """Without being told again, under the same id, and without writing a step twice."""
    run, name = tmp_path / "run", "support.trackers:Listing"
    assert train(run, 80, (name,)) == []
    first = read_written(run, name)
    assert (first.episode, first.evaluation, first.map, first.video) == (80, 80, 80, 80)
    assert train(run, 160, new=False) == []
    second = read_written(run, name)
    assert second.id == first.id
    assert second.step == 160
    assert (run / "listed-0.json").is_file()
    assert (run / "listed-80.json").is_file()


def test_what_was_written_is_kept(tmp_path):
    assert recorded_trackers(tmp_path) == []
    written = read_written(tmp_path, "mine:Tracker")
    assert (written.tracker, written.step) == ("mine:Tracker", 0)
    assert written.id != Written("mine:Tracker").id
    written.evaluation = 7
    tracker_folder(tmp_path, "mine:Tracker").mkdir(parents=True)
    save_written(tmp_path, written)
    assert read_written(tmp_path, "mine:Tracker") == written
    assert recorded_trackers(tmp_path) == ["mine:Tracker"]
    assert len(make_processes(tmp_path, ["wandb", "mine:Tracker"], pytest.fail)) == 2
    (tracker_folder(tmp_path, "mine:Tracker") / "record.json").write_text("{")
    assert recorded_trackers(tmp_path) == []
    with pytest.raises(RunFolderError, match=r"record\.json is damaged: remove it"):
        read_written(tmp_path, "mine:Tracker")
