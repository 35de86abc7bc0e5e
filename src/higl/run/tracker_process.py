"""The process of a tracker, `higl track`, beside the run's own: what it has written so far, and starting and ending it.

The tracker reads the run folder, so that it can neither stop nor slow the run, whatever it does.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from higl.errors import RunFolderError
from higl.run.files import TRACKERS, replace_file
from higl.run.observers import Observer
from higl.text import OGBENCH

WAIT_SECONDS = 60.0
"""Longest time that a run waits for its tracker, after the run itself has ended."""
STOPPED_WAIT_SECONDS = 10.0
"""The same for a run that a signal has stopped: whoever sent it may not wait long."""
END_SECONDS = 5.0
"""Time that a tracker then has to finish its record."""

_RECORD, _LOG = "record.json", "log.txt"


@dataclass
class Written:
    """What a tracker has written of a run: the last step of each kind.

    A resumed run repeats the steps after its last checkpoint with the same numbers, so they are not written again.
    """

    tracker: str
    id: str = field(default_factory=lambda: secrets.token_hex(4))
    episode: int = 0
    evaluation: int = 0
    map: int = 0
    video: int = 0

    @property
    def step(self) -> int:
        """The last step of any kind."""
        return max(self.episode, self.evaluation, self.map, self.video)


def tracker_folder(run: Path, name: str) -> Path:
    """Return the folder of a tracker in a run folder."""
    return run / TRACKERS / name.replace(":", "-")


def read_written(run: Path, name: str) -> Written:
    """Return what a tracker has written of a run; nothing if it is new.

    Raises:
        RunFolderError: the file is damaged.
    """
    file = tracker_folder(run, name) / _RECORD
    if not file.is_file():
        return Written(name)
    try:
        return msgspec.json.decode(file.read_bytes(), type=Written)
    except msgspec.MsgspecError:
        raise RunFolderError(f"{file} is damaged: remove it to begin a new record") from None


def save_written(run: Path, written: Written) -> None:
    """Note what a tracker has written."""
    replace_file(tracker_folder(run, written.tracker) / _RECORD, (json.dumps(asdict(written)) + "\n").encode())


def recorded_trackers(run: Path) -> list[str]:
    """Return the names of the trackers that keep a record of a run; a damaged one is left out."""
    found = []
    for file in sorted((run / TRACKERS).glob(f"*/{_RECORD}")):
        with contextlib.suppress(msgspec.MsgspecError, OSError):
            found.append(msgspec.json.decode(file.read_bytes(), type=Written).tracker)
    return [name for name in found if not name.startswith(OGBENCH)]  # a task that needs no trust, and no tracker


class TrackerProcess(Observer):
    """Starts a tracker with a run, warns once if it fails, and gives it some time at the end.

    Args:
        run: folder of the run.
        name: the tracker.
        warn: receives warnings.
        trust: whether the process may import the module of the environment, for the video.
    """

    def __init__(self, run: Path, name: str, warn: Callable[[str], None], *, trust: bool = False):
        self._run, self._name, self._warn = run, name, warn
        self.command = [sys.executable, "-P", "-m", "higl", "track", str(run), "--tracker", name]
        self.command += ["--trust"] * trust
        self._process: subprocess.Popen[bytes] | None = None
        self._again = f"`higl track {run} --tracker {name}` writes the rest"

    def begin(self, name: str, step: int, total: int) -> None:
        """Start the process."""
        folder = tracker_folder(self._run, self._name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / _LOG, "wb") as log:
                self._process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=os.environ | {"JAX_PLATFORMS": "cpu"},
                    start_new_session=True,  # Ctrl-C is for the run; and what the tracker starts can be ended with it
                )
        except OSError as error:
            self._warn(f"tracker {self._name} did not start ({error.strerror}); the run continues. {self._again}")

    def pause(self) -> None:
        """Warn if the process has failed."""
        process = self._process
        if process is not None and process.poll() is not None:
            self._process = None
            if process.returncode:
                self._warn(f"tracker {self._name} failed ({self._reason()}); the run continues. {self._again}")

    def finish(self, *, stopped: bool = False) -> None:
        """Wait for the process for a while, then end it; call this when the run folder is closed.

        Args:
            stopped: whether a signal has stopped the run.
        """
        process = self._process
        if process is None:
            return
        seconds = STOPPED_WAIT_SECONDS if stopped else WAIT_SECONDS
        try:
            process.wait(seconds)
            self.pause()
        except subprocess.TimeoutExpired:
            self._warn(f"tracker {self._name} did not finish in {seconds:g} s and was ended. {self._again}")
        finally:  # also on Ctrl-C
            self._process = None
            _end(process)

    def _reason(self) -> str:
        lines = (tracker_folder(self._run, self._name) / _LOG).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "see its log"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to finish its record; if it does not, end it and all that it has started."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def make_processes(
    run: Path, names: Iterable[str], warn: Callable[[str], None], *, trust: bool = False
) -> list[TrackerProcess]:
    """Return the processes of the named trackers and of those that already keep a record of the run."""
    from higl.envs.trust import is_imported  # here: it imports NumPy

    names, recorded = list(names), []
    for name in recorded_trackers(run):
        if is_imported(name):
            recorded.append(name)
        elif name not in names:
            warn(f"{run} names the tracker {name}, which is not continued: it imports a module that nobody named here")
    return [TrackerProcess(run, name, warn, trust=trust) for name in dict.fromkeys([*names, *recorded])]
