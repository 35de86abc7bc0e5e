"""TensorBoard events: readable, cut back on resume, and never in the way of a run."""

from __future__ import annotations

import errno
import importlib.util
import struct
from pathlib import Path

import pytest

from higl.run import trackers as tensorboard
from higl.run.trackers import EventWriter

needs_package = pytest.mark.skipif(importlib.util.find_spec("tensorboardX") is None, reason="the extra is not there")


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


@needs_package
def test_events(tmp_path):
    writer = EventWriter(tmp_path, 500, pytest.fail)
    writer.write("evaluation/", {"success": 0.5, "episodes": 5, "steps_to_success": ""}, 1000)
    writer.close()
    version, start, event = events(tmp_path / "tensorboard")
    assert version.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (501, start.session_log.START)
    assert event.step == 1000
    assert [(value.tag, value.simple_value) for value in event.summary.value] == [("evaluation/success", 0.5)]


@needs_package
def test_full_disk_is_told_once(tmp_path):
    warnings: list[str] = []
    writer = EventWriter(tmp_path, 0, warnings.append)

    def full(event):
        raise OSError(errno.ENOSPC, "No space left on device")

    writer._writer.write_event = full
    for step in (500, 1000):
        writer.write("", {"low/loss": 1.0}, step)
    writer.close()
    assert len(warnings) == 1
    assert "No space left on device" in warnings[0]


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(tensorboard.importlib.util, "find_spec", lambda name: None)
    writer = EventWriter(tmp_path, 0, pytest.fail)
    writer.write("", {"low/loss": 1.0}, 500)
    writer.close()
    assert list(tmp_path.iterdir()) == []
