"""Trackers: observers that copy a run's measurements elsewhere. A tracker that fails never stops the run."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from higl.run.files import TENSORBOARD
from higl.run.observers import Observer, Row


def make_trackers(run: Path, warn: Callable[[str], None]) -> list[Observer]:
    """Return the trackers of a run folder: TensorBoard, if the extra `tensorboard` is installed."""
    if importlib.util.find_spec("tensorboardX") is None:
        return []
    return [Guarded("TensorBoard", TensorBoard(run / TENSORBOARD), warn)]


class Guarded(Observer):
    """A tracker that is dropped, with one warning, when it fails; the run continues without it."""

    def __init__(self, name: str, tracker: Observer, warn: Callable[[str], None]):
        self._name, self._warn = name, warn
        self._tracker: Observer | None = tracker

    def begin(self, name: str, step: int, total: int) -> None:
        """Pass it on."""
        self._try(lambda tracker: tracker.begin(name, step, total))

    def episode(self, row: Row) -> None:
        """Pass it on."""
        self._try(lambda tracker: tracker.episode(row))

    def evaluation(self, row: Row) -> None:
        """Pass it on."""
        self._try(lambda tracker: tracker.evaluation(row))

    def saved(self, step: int) -> None:
        """Pass it on."""
        self._try(lambda tracker: tracker.saved(step))

    def end(self) -> None:
        """Pass it on."""
        self._try(lambda tracker: tracker.end())

    def _try(self, call: Callable[[Observer], None]) -> None:
        tracker = self._tracker
        if tracker is None:
            return
        try:
            call(tracker)
        except Exception as error:
            self._tracker = None
            with suppress(Exception):
                tracker.end()
            reason = (
                error.strerror if isinstance(error, OSError) and error.strerror else f"{type(error).__name__}: {error}"
            )
            self._warn(
                f"{self._name} failed ({reason}): disabled until the run is resumed; metrics.jsonl has everything"
            )


class TensorBoard(Observer):
    """Writes scalars as TensorBoard events into a folder.

    Uses tensorboardX's plain file writer: its usual one hands events to a thread, and a run whose disk is full would
    wait for that thread forever.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._writer: Any = None

    def begin(self, name: str, step: int, total: int) -> None:
        """Open a new file; events after `step` in older files are hidden, because the run writes them again."""
        self._events = _module("tensorboardX.proto.event_pb2")
        self._summary = _module("tensorboardX.proto.summary_pb2").Summary
        self._folder.mkdir(exist_ok=True)
        self._writer = _module("tensorboardX.event_file_writer").EventsWriter(str(self._folder / "events"))
        self._write(step=step + 1, session_log=self._events.SessionLog(status=self._events.SessionLog.START))

    def episode(self, row: Row) -> None:
        """Write the episode's measurements."""
        self._write_numbers(row, {name: value for name, value in row.items() if "/" in name})

    def evaluation(self, row: Row) -> None:
        """Write the evaluation."""
        self._write_numbers(row, {f"evaluation/{name}": value for name, value in row.items()})

    def end(self) -> None:
        """Close the file."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _write_numbers(self, row: Row, values: Row) -> None:
        numbers = {name: value for name, value in values.items() if isinstance(value, float)}
        scalars = [self._summary.Value(tag=tag, simple_value=value) for tag, value in numbers.items()]
        self._write(step=row["step"], summary=self._summary(value=scalars))

    def _write(self, **event: Any) -> None:
        self._writer.write_event(self._events.Event(wall_time=time.time(), **event))
        self._writer.flush()


def _module(name: str) -> Any:
    """Import a module without known types: its members are made when it is imported."""
    return importlib.import_module(name)
