"""Run the recipe, the preset `best` with nothing set by hand, in many environments, and compare it with its targets.

    .venv/bin/python benchmarks/recipe.py run --seeds 320 321 --cores 0 1        # hours; one run per core
    .venv/bin/python benchmarks/recipe.py table --seeds 320 321

`run` trains every environment of `TARGETS` on every seed, shorter runs first, below `--runs`; each finished run goes to
`results/` with 100 test episodes. Stop it at any time: the same command continues. `table` prints what the runs in
`results/` reached, as a table in Markdown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Queue

import numpy as np

from higl.figures.statistics import rolling_mean
from higl.sweep.aggregate import SeedCurve, final_success, steps_to
from higl.sweep.results import Result, read_results
from higl.text import steps_text

ROOT = Path(__file__).parents[1]
TEST_EPISODES = 100
WINDOW = 5
"""Evaluations in a row over which success is averaged."""


@dataclass(frozen=True)
class Target:
    """What is to be reached in an environment within a number of steps.

    `level` by step `by` (see `reached`); `final` over the last 50,000 steps; once `level` has been
    reached, no five evaluations in a row below `kept`; `at_end` at the last step of test episodes.
    """

    steps: int
    level: float
    by: int
    final: float = 0.0
    kept: float = 0.0
    at_end: float = 0.0

    def __str__(self) -> str:
        parts = [f"{self.level:.0%} by {steps_text(self.by)}"]
        parts += [f"{self.final:.0%} at the end"] if self.final else []
        parts += [f"never below {self.kept:.0%} again"] if self.kept else []
        parts += [f"{self.at_end:.0%} at the last step"] if self.at_end else []
        return ", ".join(parts)

    def is_met(self, result: Result) -> bool:
        """Return whether a finished run meets the target."""
        step, curve = reached(result.curve, self.level), result.curve
        if step is None or step > self.by or final_success(curve) < self.final - 1e-9:
            return False
        if self.kept and least_after(curve, step) < self.kept - 1e-9:
            return False
        return not self.at_end or (result.test is not None and result.test["success_at_end"] >= self.at_end)


TARGETS = {
    "FetchReach-v4": Target(5_000, 1.0, 5_000, at_end=0.9),
    "PointMaze_UMaze-v3": Target(15_000, 1.0, 15_000),
    "point-maze": Target(50_000, 1.0, 50_000),
    "PointMaze_Medium-v3": Target(60_000, 1.0, 60_000),
    "PointMaze_Large-v3": Target(150_000, 1.0, 150_000),
    "reacher": Target(300_000, 1.0, 20_000, kept=0.95),
    "pusher": Target(300_000, 0.9, 300_000, final=0.95),
    "ant-maze-u": Target(300_000, 0.9, 150_000, final=0.95),
    "ant-maze-w": Target(300_000, 0.9, 150_000, final=0.95),
    "ant-maze-u-large": Target(500_000, 0.9, 250_000, final=0.95),
    "AntMaze_UMaze-v5": Target(300_000, 0.8, 300_000),
}


def reached(curve: SeedCurve, level: float) -> int | None:
    """Return the first step at which five evaluations in a row had a mean success; None if there is none.

    If all five must be perfect, it is the step of the first of them, otherwise of the last.
    """
    last = steps_to(curve, level)
    if last is None or level < 1.0:
        return last
    return int(curve.steps[np.searchsorted(curve.steps, last) - WINDOW + 1])


def least_after(curve: SeedCurve, step: int) -> float:
    """Return the least mean of five evaluations in a row, the first of them at a step or later."""
    return float(rolling_mean(curve.success[curve.steps >= step], WINDOW).min())


# --- Running ----------------------------------------------------------------------------------------------------------


def missing(tasks: Sequence[str], seeds: Sequence[int], results: Path) -> Iterator[tuple[str, int]]:
    """Yield the tasks and seeds that have no finished run in `results/` yet: for each seed, the shortest runs first."""
    held = {(each.config.task, each.config.seed) for each in recipe_results(results) if is_finished(each)}
    for seed in seeds:
        yield from ((task, seed) for task in tasks if (task, seed) not in held)


def is_finished(result: Result) -> bool:
    """Return whether a run went on for as many steps as its target says."""
    return result.config.steps == TARGETS[result.config.task].steps and result.curve.last >= 0.98 * result.config.steps


def recipe_results(results: Path) -> list[Result]:
    """Return the stored runs of the recipe as it is, in the environments of `TARGETS`."""
    found = read_results(results)
    return [each for each in found if each.config.task in TARGETS and each.path.parent.name == "higl"]


def train(task: str, seed: int, core: int, runs: Path, results: Path) -> int:
    """Train or continue one run on a core, test it and store it; return the exit code."""
    return train_and_store(
        [task, "--seed", seed, "--steps", TARGETS[task].steps], core, runs / f"{task}-{seed}", results
    )


def train_and_store(words: Sequence[object], core: int, out: Path, results: Path) -> int:
    """Train or continue one run on a core, test it and store it; return the exit code."""
    code = _higl("train", *words, "--out", out, "--resume", "--quiet", "--cores", core)
    return code or _higl("results", "add", out, "--test", TEST_EPISODES, "--results", results)


def _higl(*words: object) -> int:
    print("higl", *words, flush=True)
    return subprocess.run([sys.executable, "-m", "higl", *map(str, words)], check=False).returncode


def on_each_core(jobs: Iterable[Callable[[int], int]], cores: Sequence[int]) -> int:
    """Run jobs, one per core, each as soon as a core is free; return the largest exit code."""
    free: Queue[int] = Queue()
    for core in cores:
        free.put(core)

    def on_free_core(job: Callable[[int], int]) -> int:
        core = free.get()
        try:
            return job(core)
        finally:
            free.put(core)

    with ThreadPoolExecutor(len(cores)) as pool:
        return max(pool.map(on_free_core, jobs), default=0)


def run(options: argparse.Namespace) -> int:
    """Train what is missing, one run per core."""
    wanted = missing(options.tasks, options.seeds, options.results)
    jobs = [partial(_train_on, task, seed, options) for task, seed in wanted]
    return on_each_core(jobs, options.cores)


def _train_on(task: str, seed: int, options: argparse.Namespace, core: int) -> int:
    return train(task, seed, core, options.runs, options.results)


# --- Table ------------------------------------------------------------------------------------------------------------


def table(options: argparse.Namespace) -> int:
    """Print what was reached, a row for each task and seed."""
    print("| environment | target | seed | steps | reached at | last 50k | test: any step, last step | |")
    print("|---|---|---|---|---|---|---|---|")
    found = {(each.config.task, each.config.seed): each for each in recipe_results(options.results)}
    for task in options.tasks:
        for seed in options.seeds:
            print(_row(task, seed, found.get((task, seed))))
    return 0


def _row(task: str, seed: int, result: Result | None) -> str:
    target = TARGETS[task]
    if result is None:
        return f"| {task} | {target} | {seed} | | | | | not run |"
    step, test = reached(result.curve, target.level), result.test
    when = steps_text(step) if step is not None else "not reached"
    tested = f"{test['successes']}, {test['successes_at_end']} of {test['episodes']}" if test is not None else ""
    verdict = ("met" if target.is_met(result) else "missed") if is_finished(result) else "not finished"
    cells = [task, target, seed, steps_text(result.curve.last), when, f"{final_success(result.curve):.0%}", tested]
    return f"| {' | '.join(map(str, cells))} | {verdict} |"


def main(words: Sequence[str] | None = None) -> int:
    """Run or print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--tasks", nargs="+", choices=TARGETS, default=list(TARGETS), metavar="TASK")
    parser.add_argument("--seeds", nargs="+", type=int, required=True)
    parser.add_argument("--cores", nargs="+", type=int, default=[0], help="one run on each")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "recipe", help="folder of the runs")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the results")
    options = parser.parse_args(words)
    return {"run": run, "table": table}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
