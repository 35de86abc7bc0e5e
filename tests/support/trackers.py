"""Trackers for the tests: `--tracker support.trackers:Blocking`."""

from __future__ import annotations

import json
import time

from higl.run.trackers import Record, Tracker


class Listing(Tracker):
    """Lists every call, and writes the list into the run folder when it ends."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []
        self.ends = 0

    def begin(self, record: Record) -> None:
        self.record = record

    def log(self, step, numbers):
        self.calls.append((step, sorted(numbers)))

    def picture(self, step, name, file):
        assert file.read_bytes().startswith(b"\x89PNG")
        self.calls.append((step, name))

    def video(self, step, name, file):
        assert file.stat().st_size > 0
        self.calls.append((step, name))

    def end(self):
        self.ends += 1
        (self.record.folder / f"listed-{self.record.step}.json").write_text(json.dumps(self.calls))


class Raising(Tracker):
    """Fails at everything."""

    def begin(self, record):
        raise ZeroDivisionError("no server")

    def end(self):
        raise ZeroDivisionError("still no server")


class Blocking(Tracker):
    """Waits forever for a server."""

    def begin(self, record):
        (record.folder / "blocked").touch()
        time.sleep(10_000)
