"""How long runs take on this machine: what `higl bench` measures, measured once for each kind of run and kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from higl import __version__
from higl.run.files import replace_file
from higl.run.process import compilation_cache
from higl.settings.config import Config
from higl.sweep.plan import PlannedRun, RunStatus

_FILE = "step-times.json"


def cost_key(config: Config) -> str:
    """Return what decides the cost of a step, as text: runs that share it take the same time.

    So does the version of the program, as its stages become faster, or more.
    """
    landmarks, novelty, adjacency = config.landmarks, config.novelty, config.adjacency
    parts = [
        __version__,
        config.task,
        config.algo,
        f"{landmarks.coverage}+{landmarks.novelty}/{landmarks.neighbours}" if config.uses_landmarks else "none",
        f"of{landmarks.pool}{'central' if landmarks.central else ''}" if config.uses_landmarks else "",
        f"{novelty.hidden}{novelty.embedding}/{novelty.batch_size}" if config.uses_landmarks else "",
        f"relabel{config.high.relabel_candidates}" if config.high.relabel else "",
        *(
            f"{level.hidden}{level.batch_size}{level.layer_norm}/{level.policy_period}"
            for level in (config.low, config.high)
        ),
        f"{config.high.period}",
        f"{adjacency.hidden}{adjacency.embedding}/{adjacency.batch_size}x{adjacency.epochs}/{adjacency.every}"
        f"upto{adjacency.all_pairs_up_to}"
        if config.reads_adjacency_network
        else "",
        f"{config.evaluation.episodes}/{config.evaluation.every}",
        f"{config.num_envs}",
    ]
    return " ".join(filter(None, parts)).replace(", ", "x")


class StepTimes:
    """Milliseconds of a step by kind of run, kept with the compiled programs: one file for each kind of machine."""

    def __init__(self, folder: Path | None = None):
        folder = compilation_cache() if folder is None else folder
        self._file = None if folder is None else folder / _FILE
        self._known = self._read()

    def of(self, config: Config, measure: Callable[[Config], float] | None = None) -> float | None:
        """Return the milliseconds of a step; measured if not known and `measure` is given."""
        key = cost_key(config)
        if key not in self._known and measure is not None:
            self._known[key] = measure(config)
            self._write()
        return self._known.get(key)

    def _read(self) -> dict[str, float]:
        try:
            found = json.loads(self._file.read_bytes()) if self._file is not None else {}
        except (OSError, ValueError):
            return {}
        return (
            {str(k): float(v) for k, v in found.items() if isinstance(v, (int, float))}
            if isinstance(found, dict)
            else {}
        )

    def _write(self) -> None:
        if self._file is not None:
            replace_file(self._file, (json.dumps(self._known, indent=1) + "\n").encode())


def measured(config: Config) -> float:
    """Measure a step with `higl bench`; this imports JAX."""
    from higl.run.bench import run_bench

    return run_bench(config).milliseconds_per_step


def unmeasured(plan: Sequence[PlannedRun], statuses: Sequence[RunStatus], times: StepTimes) -> list[Config]:
    """Return a run's settings of each kind that `hours_left` would measure."""
    kinds = {
        cost_key(run.config): run.config
        for run, status in zip(plan, statuses, strict=True)
        if not status.done and not run.derives and times.of(run.config) is None
    }
    return list(kinds.values())


def hours_left(
    plan: Sequence[PlannedRun],
    statuses: Sequence[RunStatus],
    times: StepTimes,
    measure: Callable[[Config], float] | None,
) -> list[float | None]:
    """Return the hours that each run still needs on a core of its own; None if not known.

    A run that derives its settings is not measured: they are not known before it begins.
    """
    hours: list[float | None] = []
    for run, status in zip(plan, statuses, strict=True):
        milliseconds = 0.0 if status.done else times.of(run.config, None if run.derives else measure)
        left = max(0, run.config.steps - status.step)
        hours.append(None if milliseconds is None else milliseconds * left / 3.6e6)
    return hours


def wall_hours(hours: Sequence[float], workers: int) -> float:
    """Return how long runs take one after the other on several workers, each next run on the first free one."""
    busy = [0.0] * max(workers, 1)
    for each in hours:
        first = busy.index(min(busy))
        busy[first] += each
    return max(busy)
