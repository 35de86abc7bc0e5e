"""The Ray back end: one task per run, wherever the cluster has a core free.

A task supervises the process of its run, which is the same as on one machine. When the task's worker or node dies, Ray
restarts the task on another node, and the run continues from its last checkpoint, because the run folders are on shared
storage. `docs/sweeps.md` explains how to set up a cluster and its token.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from higl.errors import RayError
from higl.sweep.backend import STOPPED, EndedRun, ExitStatus
from higl.sweep.launch import WORKER
from higl.sweep.plan import PlannedRun
from higl.sweep.supervise import supervise_run

# Without limit. Ray counts the deaths of workers and nodes, not runs that fail.
_RETRIES = -1
# The smallest store that Ray allows: a task passes only a few bytes.
_OBJECT_STORE_BYTES = 80 * 2**20


def connect(address: str) -> Any:
    """Connect to a cluster, or start one on this machine's loopback interface; return the module `ray`.

    `local` starts a cluster, and so does `auto` if none is found. Token authentication is on unless the user has
    configured it otherwise.

    Raises:
        RayError: Ray is not installed, there is no cluster, or it rejects our token.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own = address == "local" or (address == "auto" and not _finds_cluster())
    if own:
        # Despite its name, 0 makes a Ray of one machine listen on loopback only. Ray reads it when it is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise RayError("--ray needs the extra `ray`: pip install 'higl[ray]'") from None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if own:
        options |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        ray.init(address="local" if own else address, **options)
    except ray.exceptions.AuthenticationError:
        raise RayError(
            f"--ray {address}: no authentication token that the cluster accepts: put its token into ~/.ray/auth_token "
            "or into the variable RAY_AUTH_TOKEN (docs/sweeps.md)"
        ) from None
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise RayError(f"--ray {address}: {' '.join(str(error).split())[:300]}") from None
    return ray


def _finds_cluster() -> bool:
    """Return whether RAY_ADDRESS names a cluster or this machine belongs to one, as Ray itself decides it."""
    note = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    return bool(os.environ.get("RAY_ADDRESS")) or note.is_file()


class RayBackend:
    """Runs as tasks of a Ray cluster. It submits all of them at once and leaves the scheduling to Ray."""

    def __init__(self, address: str, checkpoint_minutes: float, program: tuple[str, ...] = WORKER):
        self._ray = connect(address)
        # One worker process per task, so that no run inherits anything from an earlier one.
        make_remote: Callable[..., Any] = self._ray.remote(
            num_cpus=1, max_retries=_RETRIES, max_calls=1, scheduling_strategy="SPREAD"
        )
        self._task = make_remote(supervise_run)
        self._checkpoint_minutes, self._program = checkpoint_minutes, program
        self._tasks: dict[Any, PlannedRun] = {}

    def free(self) -> bool:
        """Whether Ray accepts another run: always."""
        return True

    def active(self) -> int:
        """Return the number of tasks that have not ended."""
        return len(self._tasks)

    def start(self, run: PlannedRun) -> None:
        """Submit a run."""
        run.output_file.unlink(missing_ok=True)
        there = replace(run, folder=run.folder.absolute())
        self._tasks[self._task.options(name=run.name).remote(there, self._checkpoint_minutes, self._program)] = run

    def poll(self) -> list[EndedRun]:
        """Return the runs whose tasks ended."""
        if not self._tasks:
            return []
        ready, _ = self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)
        return [EndedRun(self._tasks.pop(task), self._exit_status(task)) for task in ready]

    def _exit_status(self, task: Any) -> ExitStatus:
        try:
            return self._ray.get(task)
        except self._ray.exceptions.TaskCancelledError:
            return STOPPED
        except self._ray.exceptions.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return ExitStatus(1, f"Ray: {lines[-1] if lines else type(error).__name__}")

    def stop(self) -> None:
        """Cancel every task. A task that has started stops its process, which saves."""
        for task in self._tasks:
            self._ray.cancel(task, force=False)

    def kill(self) -> None:
        """Kill the workers of all tasks."""
        for task in self._tasks:
            self._ray.cancel(task, force=True)

    def close(self) -> None:
        """Disconnect from the cluster, and shut it down if it was started here."""
        self._ray.shutdown()
