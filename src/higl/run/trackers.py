"""Trackers: programs that keep the record of a run elsewhere. One that fails or hangs neither stops nor slows the run.

The run itself writes TensorBoard events, into a file. All other trackers work in a process of their own, which follows
the run folder (`tracker_process.py`, `higl track`).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from higl.errors import SettingsError
from higl.run.files import TENSORBOARD, TRACKERS
from higl.run.observers import Observer, Row
from higl.text import did_you_mean

# --- The interface --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """The record of a run that a tracker begins or continues.

    Attributes:
        folder: the run folder.
        settings: all settings of the run by dotted name; `higl track` adds its test environment, `test_env`.
        id: the same each time the run is continued.
        step: environment step up to which the record has been written.
    """

    folder: Path
    settings: Mapping[str, Any]
    id: str = ""
    step: int = 0

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.folder.resolve().name


class Tracker:
    """Keeps the record of one run. Every method does nothing unless a subclass overrides it."""

    def begin(self, record: Record) -> None:
        """Begin a record, or continue it."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write named numbers of a step. Steps never decrease; a step may come more than once."""

    def picture(self, step: int, name: str, file: Path) -> None:
        """Write a picture, a PNG file that is removed afterwards."""

    def video(self, step: int, name: str, file: Path) -> None:
        """Write a video, an MP4 file."""

    def end(self) -> None:
        """Finish writing, also after a failure; possibly more than once."""


def episode_numbers(row: Row) -> dict[str, float]:
    """Return what a tracker gets of an episode: the learner's measurements."""
    return {name: value for name, value in row.items() if "/" in name and isinstance(value, float)}


def evaluation_numbers(row: Row) -> dict[str, float]:
    """Return what a tracker gets of an evaluation; an empty cell and NaN are left out."""
    named = {f"evaluation/{name}": value for name, value in row.items() if name != "step"}
    return {name: value for name, value in named.items() if isinstance(value, float) and value == value}


class TensorBoard(Tracker):
    """Writes scalars as TensorBoard events into the run folder.

    Uses tensorboardX's plain file writer: its usual one hands events to a thread, and a run whose disk is full would
    wait for that thread forever.
    """

    def __init__(self) -> None:
        self._writer: Any = None

    def begin(self, record: Record) -> None:
        """Open a new file; events after the record's step in older files are hidden: the run writes them again."""
        self._events = _module("tensorboardX.proto.event_pb2")
        self._summary = _module("tensorboardX.proto.summary_pb2").Summary
        folder = record.folder / TENSORBOARD
        folder.mkdir(exist_ok=True)
        self._writer = _module("tensorboardX.event_file_writer").EventsWriter(str(folder / "events"))
        self._write(step=record.step + 1, session_log=self._events.SessionLog(status=self._events.SessionLog.START))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the numbers as scalars."""
        scalars = [self._summary.Value(tag=tag, simple_value=value) for tag, value in numbers.items()]
        self._write(step=step, summary=self._summary(value=scalars))

    def end(self) -> None:
        """Close the file."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _write(self, **event: Any) -> None:
        self._writer.write_event(self._events.Event(wall_time=time.time(), **event))
        self._writer.flush()


class WandB(Tracker):
    """Weights & Biases. Its own variables hold: `WANDB_MODE=offline`, `WANDB_PROJECT` (default: higl), and so on."""

    package = "wandb"
    _run: Any = None

    def begin(self, record: Record) -> None:
        """Begin the run, or continue the one with the record's id."""
        self._package = _module(self.package)
        self._run = self._package.init(**self._options(record))

    def _options(self, record: Record) -> dict[str, Any]:
        return {
            "project": os.environ.get("WANDB_PROJECT", "higl"),
            "id": record.id,
            "name": record.name,
            "config": dict(record.settings),
            "dir": str(record.folder / TRACKERS),
            "resume": "allow",
        }

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the numbers."""
        self._run.log(dict(numbers), step=step)

    def picture(self, step: int, name: str, file: Path) -> None:
        """Write a picture."""
        self._run.log({name: self._package.Image(str(file))}, step=step)

    def video(self, step: int, name: str, file: Path) -> None:
        """Write a video."""
        self._run.log({name: self._package.Video(str(file), format="mp4")}, step=step)

    def end(self) -> None:
        """Finish the run: everything is written."""
        if self._run is not None:
            run, self._run = self._run, None
            run.finish()


class Trackio(WandB):
    """Trackio, which has the interface of Weights & Biases and writes into its own folder (`TRACKIO_DIR`)."""

    package = "trackio"

    def _options(self, record: Record) -> dict[str, Any]:
        # It knows a run by its name, so the name must be as unique as the id.
        return {
            "project": os.environ.get("TRACKIO_PROJECT", "higl"),
            "name": f"{record.name}-{record.id}",
            "config": dict(record.settings),
            "resume": "allow",
        }


def _module(name: str) -> Any:
    """Import a module without known types: its members are made when it is imported."""
    return importlib.import_module(name)


# --- By name --------------------------------------------------------------------------------------------------------

_KINDS: dict[str, type[WandB]] = {"wandb": WandB, "trackio": Trackio}


def make_tracker(name: str) -> Tracker:
    """Return the tracker of a name, `wandb` or `trackio`, or of your own class, `module:Class`.

    Raises:
        SettingsError: there is no such tracker, or its package is not installed.
    """
    module, colon, kind = name.partition(":")
    if colon:
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.append(here)
        try:
            return getattr(_module(module), kind)()
        except (ImportError, AttributeError) as error:
            raise SettingsError(f"tracker {name!r} cannot be imported: {error}") from None
    if name == "tensorboard":
        raise SettingsError(
            "tracker 'tensorboard': not needed, the run folder has TensorBoard events whenever higl[tensorboard] is "
            "installed"
        )
    if name not in _KINDS:
        known = f"; known: {', '.join(_KINDS)}, and your own as module:Class"
        raise SettingsError(f"unknown tracker {name!r}{did_you_mean(name, _KINDS) or known}")
    tracker = _KINDS[name]()
    if importlib.util.find_spec(tracker.package) is None:
        raise SettingsError(f"tracker {name!r}: the package is not installed: pip install 'higl[{name}]'")
    return tracker


# --- In the run's own process ---------------------------------------------------------------------------------------


def make_trackers(record: Record, warn: Callable[[str], None]) -> list[Observer]:
    """Return the trackers that work in the run's own process: TensorBoard, if the extra `tensorboard` is installed."""
    if importlib.util.find_spec("tensorboardX") is None:
        return []
    return [Guarded("TensorBoard", TensorBoard(), record, warn)]


class Guarded(Observer):
    """Hands a run's measurements to a tracker, which is dropped with one warning when it fails."""

    def __init__(self, name: str, tracker: Tracker, record: Record, warn: Callable[[str], None]):
        self._name, self._record, self._warn = name, record, warn
        self._tracker: Tracker | None = tracker

    def begin(self, name: str, step: int, total: int) -> None:
        """Begin or continue the record."""
        self._try(lambda tracker: tracker.begin(replace(self._record, step=step)))

    def episode(self, row: Row) -> None:
        """Write the episode's measurements."""
        self._try(lambda tracker: tracker.log(int(row["step"]), episode_numbers(row)))

    def evaluation(self, row: Row) -> None:
        """Write the evaluation."""
        self._try(lambda tracker: tracker.log(int(row["step"]), evaluation_numbers(row)))

    def end(self) -> None:
        """End the record."""
        self._try(lambda tracker: tracker.end())

    def _try(self, call: Callable[[Tracker], None]) -> None:
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
