"""TensorBoard events, if the extra `tensorboard` is installed."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from higl.run.files import TENSORBOARD


def _module(name: str) -> Any:
    """Import a module whose members are made when it is imported, so that no type is known of them."""
    return importlib.import_module(name)


class EventWriter:
    """Writes scalars to `RUN/tensorboard`; without the package, nothing.

    Uses tensorboardX's plain file writer: its usual one hands events to a thread, and a run whose disk is full would
    wait for that thread for ever.
    """

    def __init__(self, run: Path, from_step: int, warn: Callable[[str], None]):
        self._warn = warn
        self._writer: Any = None
        if importlib.util.find_spec("tensorboardX") is None:
            return
        self._events = _module("tensorboardX.proto.event_pb2")
        self._summary = _module("tensorboardX.proto.summary_pb2").Summary
        try:
            (run / TENSORBOARD).mkdir(exist_ok=True)
            writer = importlib.import_module("tensorboardX.event_file_writer").EventsWriter
            self._writer = writer(str(run / TENSORBOARD / "events"))
        except OSError as error:
            self._give_up(error)
        # What was written after the checkpoint that a run continues from is hidden; the run writes it again.
        self._write(step=from_step + 1, session_log=self._events.SessionLog(status=self._events.SessionLog.START))

    def write(self, prefix: str, values: Mapping[str, Any], step: int) -> None:
        """Add every number."""
        if self._writer is not None:
            numbers = {prefix + name: value for name, value in values.items() if isinstance(value, float)}
            scalars = [self._summary.Value(tag=tag, simple_value=value) for tag, value in numbers.items()]
            self._write(step=step, summary=self._summary(value=scalars))

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self, **event: Any) -> None:
        if self._writer is None:
            return
        try:
            self._writer.write_event(self._events.Event(wall_time=time.time(), **event))
            self._writer.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._writer = None
        self._warn(f"no more TensorBoard events until the next start ({error.strerror}); metrics.jsonl has them all")
