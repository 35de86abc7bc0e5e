"""The process of one run of a sweep: `python -m higl.sweep.work PARENT FOLDER WORDS...`.

It is `higl WORDS...`, but:

- it stops, saving, when the process that started it is gone, so that nobody works on a run that another process is
  about to continue;
- it waits for a run folder whose earlier process has not quite ended yet.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from higl.cli import main
from higl.run.reading import is_locked

# Seconds that a process which was told to stop may take: the longest stage of a run, and its checkpoint.
PATIENCE = 180.0
_LOOK_EVERY = 0.5


def watch_parent(parent: int) -> None:
    """Ask this process to stop as soon as its parent is another: the one that started it has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def wait_for(folder: Path, patience: float = PATIENCE) -> None:
    """Wait until no process works in a run folder, for a while; after that, the run itself says who does."""
    end = time.monotonic() + patience
    while is_locked(folder) and time.monotonic() < end:
        time.sleep(_LOOK_EVERY)


def environment() -> dict[str, str]:
    """Return the environment of a run that shares its machine with others: one thread for each library."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PJRT_NPROC", "NPROC"), "1")
    return single | dict(os.environ)


if __name__ == "__main__":
    watch_parent(int(sys.argv[1]))
    wait_for(Path(sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
