"""How long runs take on this machine. `higl bench` measures each kind of run once, and the results are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from higl import __version__
from higl.run.files import replace_file
from higl.run.process import compilation_cache
from higl.settings.config import Config
from higl.settings.flat import flat_config
from higl.settings.presets import PAPER_TASKS, short_name
from higl.sweep.plan import PlannedRun, RunStatus

_FILE = "step-times.json"

COSTLESS = frozenset({"preset", "reward", "seed", "steps", "landmarks.shift", "adjacency.degree"})
"""Settings that catalogues vary and that do not change the cost of a step. Every other setting may change it."""


def cost_key(config: Config) -> str:
    """Return a text that is the same for runs whose steps cost the same: version, task, algorithm, other settings."""
    settings = {name: value for name, value in flat_config(config).items() if name not in COSTLESS}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    return f"{__version__} {config.task} {config.algo} {digest}"


class StepTimes:
    """Milliseconds per step for each kind of run, kept in one file with the compiled programs of this machine."""

    def __init__(self, folder: Path | None = None):
        folder = compilation_cache() if folder is None else folder
        self._file = None if folder is None else folder / _FILE
        self._known = self._read()

    def of(self, config: Config, measure: Callable[[Config], float] | None = None) -> float | None:
        """Return the milliseconds per step. If they are unknown, call `measure`, or return None without it."""
        key = cost_key(config)
        if key not in self._known and measure is not None:
            self._known[key] = measure(config)
            self._write()
        return self._known.get(key)

    def _read(self) -> dict[str, float]:
        """Return the content of the file; nothing if it is missing or damaged."""
        try:
            content = json.loads(self._file.read_bytes()) if self._file is not None else {}
            return {str(key): float(value) for key, value in content.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write(self) -> None:
        if self._file is not None:
            replace_file(self._file, (json.dumps(self._known, indent=1) + "\n").encode())


def measured(config: Config) -> float:
    """Measure the milliseconds per step with `higl bench`, with derived settings as in a run. Imports JAX."""
    from higl.run.bench import as_trained, run_bench

    return run_bench(as_trained(config)).milliseconds_per_step


def is_measurable(config: Config) -> bool:
    """Return whether runs with these settings can be measured: our tasks can, others may need a module of the user."""
    return short_name(config.task) in PAPER_TASKS


def unmeasured(plan: Sequence[PlannedRun], statuses: Sequence[RunStatus], times: StepTimes) -> list[Config]:
    """Return one configuration of each kind of run that `hours_left` would measure."""
    kinds = {
        cost_key(run.config): run.config
        for run, status in zip(plan, statuses, strict=True)
        if not status.done and is_measurable(run.config) and times.of(run.config) is None
    }
    return list(kinds.values())


def hours_left(
    plan: Sequence[PlannedRun],
    statuses: Sequence[RunStatus],
    times: StepTimes,
    measure: Callable[[Config], float] | None,
) -> list[float | None]:
    """Return the hours that each run still needs on a core of its own; None if unknown.

    Only our tasks are measured.
    """
    hours: list[float | None] = []
    for run, status in zip(plan, statuses, strict=True):
        milliseconds = 0.0 if status.done else times.of(run.config, measure if is_measurable(run.config) else None)
        left = max(0, run.config.steps - status.step)
        hours.append(None if milliseconds is None else milliseconds * left / 3.6e6)
    return hours


def wall_hours(hours: Sequence[float], workers: int) -> float:
    """Return the time until all runs have ended if each starts, in order, on the first worker that is free."""
    busy = [0.0] * max(workers, 1)
    for each in hours:
        first = busy.index(min(busy))
        busy[first] += each
    return max(busy)
