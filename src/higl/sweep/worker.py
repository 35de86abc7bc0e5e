"""The process of one run: `python -m higl.sweep.worker PARENT FOLDER ARGUMENTS...`.

It runs `python -m higl ARGUMENTS...` in this process, with two additions:

- It saves and stops when its parent process PARENT ends, so that an abandoned run does not block its successor.
- It first waits until the previous process of the run has released FOLDER.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path

from higl.run.reading import is_locked

STOP_SECONDS = 180.0
"""Time that a process may need to stop: the longest stage of a run, and a checkpoint."""
_POLL_SECONDS = 0.5


def stop_with_parent(parent: int) -> None:
    """Send SIGTERM to this process as soon as its parent process has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def wait_for_folder(folder: Path, seconds: float = STOP_SECONDS) -> None:
    """Wait until no process uses a run folder. After `seconds` give up: the run itself reports who uses it."""
    end = time.monotonic() + seconds
    while is_locked(folder) and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    parent, folder, *sys.argv[1:] = sys.argv[1:]
    stop_with_parent(int(parent))
    wait_for_folder(Path(folder))
    runpy.run_module("higl", run_name="__main__", alter_sys=True)
