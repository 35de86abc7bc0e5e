"""Trackers: TensorBoard events are readable and hidden on resume; a tracker that fails never stops a run."""

from __future__ import annotations

import errno
import importlib.util
import struct
from pathlib import Path

import pytest

from higl.run import trackers
from higl.run.observers import Observer
from higl.run.trackers import Guarded, TensorBoard, make_trackers

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
    tracker = TensorBoard(tmp_path / "events")
    tracker.begin("run", 500, 1000)
    tracker.episode({"step": 600, "episode": 6, "time": 1.5, "low/loss": 0.25})
    tracker.evaluation({"step": 1000, "success": 0.5, "episodes": 5, "steps_to_success": ""})
    tracker.end()
    tracker.end()
    version, start, episode, evaluation = events(tmp_path / "events")
    assert version.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (501, start.session_log.START)
    assert (episode.step, numbers(episode)) == (600, {"low/loss": 0.25})
    assert (evaluation.step, numbers(evaluation)) == (1000, {"evaluation/success": 0.5})


@needs_package
def test_a_full_disk_causes_one_warning(tmp_path):
    warnings: list[str] = []
    tracker = TensorBoard(tmp_path / "events")
    guarded = Guarded("TensorBoard", tracker, warnings.append)
    guarded.begin("run", 0, 1000)

    def full(event):
        raise OSError(errno.ENOSPC, "No space left on device")

    tracker._writer.write_event = full
    for step in (500, 1000):
        guarded.episode({"step": step, "low/loss": 1.0})
    guarded.end()
    assert len(warnings) == 1
    assert warnings[0].startswith("TensorBoard failed (No space left on device)")


class Broken(Observer):
    """Fails at everything."""

    def begin(self, name, step, total):
        raise ZeroDivisionError("no server")

    def end(self):
        raise ZeroDivisionError("still no server")


def test_a_tracker_that_fails_is_dropped_with_one_warning():
    warnings: list[str] = []
    guarded = Guarded("Server", Broken(), warnings.append)
    guarded.begin("run", 0, 10)
    guarded.episode({"step": 1})
    guarded.end()
    assert len(warnings) == 1
    assert warnings[0].startswith("Server failed (ZeroDivisionError: no server)")


def test_without_the_package_there_is_no_tracker(tmp_path, monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    assert make_trackers(tmp_path, pytest.fail) == []
