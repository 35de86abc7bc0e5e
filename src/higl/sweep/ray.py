"""The Ray back end: one task per run, wherever the cluster has a core free.

A task only minds the run's process, which is the same as on one machine. When the task's worker or node dies, Ray
starts the task again on a node that lives, and the run continues from its last checkpoint: the run folders are on
storage that all nodes share. `docs/sweeps.md` tells how to set up a cluster and its token.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from higl.errors import RayError
from higl.sweep.local import WORK
from higl.sweep.plan import PlannedRun
from higl.sweep.runner import Ended
from higl.sweep.supervise import mind_run

# As often as it takes: only the death of a worker or a node counts, not a run that fails.
_RETRIES = -1
# A task passes a few bytes: the smallest store that Ray allows.
_OBJECT_STORE_BYTES = 80 * 2**20


def connect(address: str) -> Any:
    """Connect to a cluster, or start one on this machine's loopback; return the module `ray`.

    `local` starts one, and so does `auto` where there is none. Token authentication is on unless the user has
    decided otherwise.

    Raises:
        RayError: Ray is not installed, there is no cluster, or it does not accept our token.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own = address == "local" or (address == "auto" and not _cluster_is_near())
    if own:
        # Whatever its name says: with 0, a Ray of one machine listens on loopback only. Read when Ray is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError:
        raise RayError("--ray needs the extra `ray`: pip install 'higl[ray]'") from None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if own:
        options |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        ray.init(address="local" if own else address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise RayError(f"--ray {address}: {' '.join(str(error).split())[:300]}") from None
    return ray


def _cluster_is_near() -> bool:
    """Return whether RAY_ADDRESS names a cluster, or this machine is part of one: where Ray itself looks."""
    note = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    return bool(os.environ.get("RAY_ADDRESS")) or note.is_file()


class RayBackend:
    """Runs as tasks of a Ray cluster. All are handed over at once: Ray knows which node has room."""

    def __init__(self, address: str, checkpoint_minutes: float, program: tuple[str, ...] = WORK):
        self._ray = connect(address)
        # Each task in a worker of its own: nothing of one run is left for the next.
        make_remote: Callable[..., Any] = self._ray.remote(
            num_cpus=1, max_retries=_RETRIES, max_calls=1, scheduling_strategy="SPREAD"
        )
        self._task = make_remote(mind_run)
        self._checkpoint_minutes, self._program = checkpoint_minutes, program
        self._tasks: dict[Any, PlannedRun] = {}

    def free(self) -> bool:
        """Whether Ray takes another run: always."""
        return True

    def active(self) -> int:
        """Return how many tasks have not ended."""
        return len(self._tasks)

    def start(self, run: PlannedRun) -> None:
        """Hand a run over."""
        run.output_file.unlink(missing_ok=True)
        there = replace(run, folder=run.folder.absolute())
        self._tasks[self._task.options(name=run.name).remote(there, self._checkpoint_minutes, self._program)] = run

    def poll(self) -> list[Ended]:
        """Return the tasks that have ended."""
        if not self._tasks:
            return []
        ready, _ = self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)
        return [self._ended(task, self._tasks.pop(task)) for task in ready]

    def _ended(self, task: Any, run: PlannedRun) -> Ended:
        try:
            outcome = self._ray.get(task)
        except self._ray.exceptions.TaskCancelledError:
            return Ended(run, -signal.SIGTERM)
        except self._ray.exceptions.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return Ended(run, 1, f"Ray: {lines[-1] if lines else type(error).__name__}")
        return Ended(run, outcome.code, outcome.reason)

    def stop(self) -> None:
        """Cancel every task: those that run stop their process, which saves."""
        for task in self._tasks:
            self._ray.cancel(task, force=False)

    def kill(self) -> None:
        """End every task's worker."""
        for task in self._tasks:
            self._ray.cancel(task, force=True)

    def close(self) -> None:
        """Leave the cluster; end it if it was started here."""
        self._ray.shutdown()
