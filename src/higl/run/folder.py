"""Writing a run folder: settings, facts, metrics, evaluations, log, and the lock. `run.reading` reads them.

`docs/run-folder.md` describes each file.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from higl.errors import RunFolderError, WrongFolderError
from higl.processor import cpu_info
from higl.run.files import (
    CONFIG,
    EVALUATION_COLUMNS,
    EVALUATIONS,
    FACTS,
    FORMAT,
    LOCK,
    LOG,
    METRICS,
    replace_file,
    unfinished,
)
from higl.run.observers import Observer, Row
from higl.run.reading import evaluation_columns, is_run, read_config, read_facts
from higl.settings.config import Config
from higl.settings.layers import to_toml
from higl.text import timestamp

# Files that may be left of a run that was killed while its folder was being created.
_EARLY_FILES = {CONFIG, METRICS, EVALUATIONS, LOG, LOCK, *(unfinished(Path(name)).name for name in (CONFIG, FACTS))}

_PACKAGES = ("higl", "jax", "jaxlib", "numpy", "optax", "mujoco", "gymnasium", "safetensors")


class Lock:
    """The right to write into a run folder. The system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path):
        self._file = open(folder / LOCK, "a+")  # noqa: SIM115 (held as long as the run)
        if not self._take():
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise RunFolderError(f"{folder} is in use by {holder}: only one process can use it at a time")
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {platform.node()}\n")
        self._file.flush()

    def _take(self) -> bool:
        """Try for a moment: a process that only checks whether the run is locked holds the lock very briefly."""
        for _ in range(10):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.05)
            else:
                return True
        return False

    def release(self) -> None:
        """Release the lock."""
        self._file.close()


class LineLog:
    """A file to which lines are appended, and which can be truncated to an earlier length.

    If the disk is full, lines wait in memory and a half-written one is removed.
    """

    def __init__(self, path: Path):
        self.path = path
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (held as long as the run)
        self._length = os.fstat(self._file.fileno()).st_size
        self._waiting = b""

    def write(self, line: str) -> None:
        """Append a line.

        Raises:
            OSError: it could not be written; it waits in memory for the next attempt.
        """
        self._waiting += line.encode() + b"\n"
        self._write_waiting()

    def _write_waiting(self) -> None:
        done = 0
        try:
            while done < len(self._waiting):
                done += self._file.write(self._waiting[done:]) or 0
        except OSError:
            self._file.truncate(self._length)
            raise
        self._length += done
        self._waiting = b""

    @property
    def is_empty(self) -> bool:
        """Whether no line has been written."""
        return self._length == 0 and not self._waiting

    def length(self) -> int:
        """Flush every line to disk and return the file's length in bytes."""
        self._write_waiting()
        os.fsync(self._file.fileno())
        return self._length

    def cut(self, length: int) -> bool:
        """Truncate the file to a length; return whether it was at least that long."""
        complete = self._length >= length
        self._length = min(length, self._length)
        self._file.truncate(self._length)
        self._waiting = b""
        return complete

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class RunFolder(Observer):
    """A run's folder, open for writing by this process alone. As an observer it logs everything."""

    def __init__(self, path: Path, config: Config, facts: dict[str, Any], lock: Lock, warn: Callable[[str], None]):
        self.path, self.config, self.facts = path, config, facts
        self._lock, self._warn = lock, warn
        self._log = LineLog(path / LOG)
        self._metrics = LineLog(path / METRICS)
        self._evaluations = LineLog(path / EVALUATIONS)
        self._columns = evaluation_columns(path)  # a run that continues keeps those of its file
        self._complained = False
        self.seconds_logging = 0.0

    @classmethod
    def create(cls, path: Path, config: Config, warn: Callable[[str], None]) -> RunFolder:
        """Create the folder of a new run.

        Raises:
            WrongFolderError: it is a file, or not empty.
        """
        if is_run(path):
            loading = f"{config.algo.upper()}.load({str(path)!r}, env)"
            raise WrongFolderError(f"{path} already holds a run: {loading} continues it; or choose another folder")
        if path.exists() and not path.is_dir():
            raise WrongFolderError(f"{path} is a file; a run needs a folder")
        path.mkdir(parents=True, exist_ok=True)
        strangers = sorted({place.name for place in path.iterdir()} - _EARLY_FILES)
        if strangers:
            raise WrongFolderError(f"{path} is not empty (it contains {strangers[0]}): choose another folder")
        lock = Lock(path)
        replace_file(path / CONFIG, to_toml(config).encode())
        facts = {"format": FORMAT, "created": timestamp(), "status": "running", "saved_step": None, "starts": []}
        return cls(path, config, facts, lock, warn)

    @classmethod
    def open(cls, path: Path, warn: Callable[[str], None]) -> RunFolder:
        """Open the folder of an earlier run to continue it.

        Raises:
            RunFolderError: this is not a run folder, it is damaged, or another process is using it.
        """
        read_facts(path)  # first: only run folders get a lock
        lock = Lock(path)
        try:  # again: another process may have written until now
            return cls(path, read_config(path), read_facts(path), lock, warn)
        except BaseException:
            lock.release()
            raise

    def change_settings(self, config: Config) -> None:
        """Write other settings (more steps)."""
        if config != self.config:
            self.update(status="running")  # first: a kill in between must not leave a longer run as finished
            replace_file(self.path / CONFIG, to_toml(config).encode())
            self.config = config

    def close(self) -> None:
        """Close the files and release the lock."""
        for log in (self._log, self._metrics, self._evaluations):
            log.close()
        self._lock.release()

    # --- Facts ---

    def start(self, cores: int, device: str, from_step: int) -> list[str]:
        """Record a start on this machine; return how it differs from the last one."""
        here = {
            "started": timestamp(),
            "from_step": from_step,
            "host": platform.node(),
            "process": os.getpid(),
            "system": platform.platform(),
            "processor": _processor(),
            "cores": cores,
            "device": device,
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in _PACKAGES},
            "commit": _commit(),
            "command": sys.argv,
        }
        starts = self.facts["starts"]
        differences = _differences(starts[-1], here) if starts else []
        starts.append(here)
        self.update(status="running", message=None)
        return differences

    def update(self, **facts: Any) -> None:
        """Update facts in `run.json`."""
        self.facts |= facts | {"updated": timestamp()}
        try:
            replace_file(self.path / FACTS, (json.dumps(self.facts, indent=1) + "\n").encode())
        except OSError as error:
            self._complain(FACTS, error)

    # --- Lines ---

    def episode(self, row: Row) -> None:
        """Append the measurements of an episode to `metrics.jsonl`."""
        self._append(self._metrics, json.dumps(dict(row)))

    def evaluation(self, row: Row) -> None:
        """Append an evaluation to `eval.csv`."""
        if self._evaluations.is_empty:
            self._columns = EVALUATION_COLUMNS
            self._append(self._evaluations, ",".join(self._columns))
        text = io.StringIO()
        csv.DictWriter(text, self._columns, extrasaction="ignore", lineterminator="").writerow(row)
        self._append(self._evaluations, text.getvalue())

    def log(self, text: str) -> None:
        """Append a dated line to `log.txt`."""
        self._append(self._log, f"{timestamp()} {text}")

    def note(self, text: str) -> None:
        """Log a message."""
        self.log(text)

    def warn(self, text: str) -> None:
        """Log a warning."""
        self.log(text)

    def log_traceback(self, error: BaseException) -> None:
        """Append the traceback of an exception to `log.txt`."""
        for line in traceback.format_exception(error):
            for part in line.rstrip().splitlines():
                self.log(part)

    def _append(self, log: LineLog, line: str) -> None:
        start = time.perf_counter()
        try:
            log.write(line)
        except OSError as error:
            self._complain(log.path.name, error)
        self.seconds_logging += time.perf_counter() - start

    def _complain(self, name: str, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            self._warn(f"{name} could not be written ({error.strerror}): the run continues and keeps it in memory")

    def lengths(self) -> dict[str, int]:
        """Flush the logs to disk and return their lengths, to which a resumed run truncates them."""
        return {METRICS: self._metrics.length(), EVALUATIONS: self._evaluations.length()}

    def cut(self, lengths: Mapping[str, int]) -> None:
        """Remove the lines that were logged after a checkpoint: the resumed run writes them again."""
        for log in (self._metrics, self._evaluations):
            if not log.cut(lengths.get(log.path.name, 0)):
                self._warn(f"{log.path} is shorter than it was at the checkpoint: some of its lines are lost")


# --- Facts about the machine ----------------------------------------------------------------------------------------


def _differences(before: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return how two starts differ in what can change the numbers: machine, device and versions."""

    def flat(start: Mapping[str, Any]) -> dict[str, Any]:
        names = ("python", "processor", "cores", "device")
        return {**{name: start.get(name) for name in names}, **start.get("packages", {})}

    old, new = flat(before), flat(here)
    return [f"{name} {old.get(name)} -> {new[name]}" for name in new if old.get(name) != new[name]]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    return cpu_info("model name") or platform.processor() or platform.machine()


def _commit() -> str | None:
    """Return the commit of this checkout, with `+` if files were changed; None if this is not a checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        ask = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"]
        answer = subprocess.run(ask, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None
