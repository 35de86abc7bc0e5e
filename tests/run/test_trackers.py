"""Trackers: TensorBoard events are readable and hidden on resume; a tracker that fails never stops a run."""

from __future__ import annotations

import errno
import importlib.util
import struct
from pathlib import Path

import pytest
from support.trackers import Raising

from higl.errors import SettingsError
from higl.run import trackers
from higl.run.trackers import (
    Guarded,
    Record,
    TensorBoard,
    episode_numbers,
    evaluation_numbers,
    make_tracker,
    make_trackers,
)

needs_package = pytest.mark.skipif(importlib.util.find_spec("tensorboardX") is None, reason="needs the extra")


def events(folder: Path) -> list:
    """Read the events of all files in order, without their checksums."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            found.append(Event.FromString(content[12 : 12 + length]))
            content = content[16 + length :]
    return found


def numbers(event) -> dict[str, float]:
    return {value.tag: value.simple_value for value in event.summary.value}


@needs_package
def test_events(tmp_path):
    (tracker,) = make_trackers(Record(tmp_path, {}), pytest.fail)
    tracker.begin("run", 500, 1000)
    tracker.episode({"step": 600, "episode": 6, "time": 1.5, "low/loss": 0.25})
    tracker.evaluation({"step": 1000, "success": 0.5, "episodes": 5, "steps_to_success": ""})
    tracker.end()
    tracker.end()
    version, start, episode, evaluation = events(tmp_path / "tensorboard")
    assert version.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (501, start.session_log.START)
    assert (episode.step, numbers(episode)) == (600, {"low/loss": 0.25})
    assert (evaluation.step, numbers(evaluation)) == (1000, {"evaluation/success": 0.5})


@needs_package
def test_a_full_disk_causes_one_warning(tmp_path):
    warnings: list[str] = []
    tracker = TensorBoard()
    guarded = Guarded("TensorBoard", tracker, Record(tmp_path, {}), warnings.append)
    guarded.begin("run", 0, 1000)

    def full(event):
        raise OSError(errno.ENOSPC, "No space left on device")

    tracker._writer.write_event = full
    for step in (500, 1000):
        guarded.episode({"step": step, "low/loss": 1.0})
    guarded.end()
    assert len(warnings) == 1
    assert warnings[0].startswith("TensorBoard failed (No space left on device)")


def test_a_tracker_that_fails_is_dropped_with_one_warning(tmp_path):
    warnings: list[str] = []
    guarded = Guarded("Server", Raising(), Record(tmp_path, {}), warnings.append)
    guarded.begin("run", 0, 10)
    guarded.episode({"step": 1})
    guarded.end()
    assert len(warnings) == 1
    assert warnings[0].startswith("Server failed (ZeroDivisionError: no server)")


def test_without_the_package_there_is_no_tracker(tmp_path, monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    assert make_trackers(Record(tmp_path, {}), pytest.fail) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wandbb", "did you mean wandb"),
        ("tensorboard", "not needed, the run folder has TensorBoard events"),
        ("mlflow", "unknown tracker 'mlflow'; known: wandb, trackio, and your own as module:Class"),
        ("nowhere:Tracker", "tracker 'nowhere:Tracker' cannot be imported: No module named 'nowhere'"),
        ("support.trackers:Nothing", "has no attribute 'Nothing'"),
    ],
)
def test_unknown_trackers(name, message):
    with pytest.raises(SettingsError, match=message):
        make_tracker(name)


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_missing_package_names_the_extra(name, monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=rf"pip install 'higl\[{name}\]'"):
        make_tracker(name)


def test_numbers_of_rows():
    assert episode_numbers({"step": 3, "time": 1.5, "low/loss": 0.5, "episode/length": 20.0}) == {
        "low/loss": 0.5,
        "episode/length": 20.0,
    }
    row = {"step": 3.0, "success": 0.5, "episodes": 2, "steps_to_success": "", "return": float("nan")}
    assert evaluation_numbers(row) == {"evaluation/success": 0.5}
