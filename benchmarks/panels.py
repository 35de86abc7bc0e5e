"""The panels of the paper's figure 3 with the preset `best`: train HIGL and HRAC on every task, several seeds each.

    .venv/bin/python benchmarks/panels.py run --seeds 371 372 373 374 --cores 0 1     # days; one run per core
    .venv/bin/python benchmarks/panels.py list --seeds 371 372 373 374                # which runs are missing

`run` trains what `results/` does not hold yet, all panels with the first seed, then with the next; each finished run
goes to `results/` with 100 test episodes. Stop it at any time: the same command continues. HIGL has no runs with dense
rewards: its map does not learn from rewards, so they would be those with sparse ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from recipe import ROOT, on_each_core, train_and_store

from higl.sweep.results import Result, read_results


class Panel(NamedTuple):
    """A curve of the figure: an algorithm on a task, and for how many steps it is trained."""

    task: str
    algo: str
    steps: int
    reward: str = "sparse"
    seeds: int = 4


# The most informative first.
PANELS = (
    Panel("ant-maze-u", "higl", 300_000),
    Panel("ant-maze-u", "hrac", 500_000),
    Panel("ant-maze-w", "higl", 300_000),
    Panel("ant-maze-w", "hrac", 500_000),
    Panel("point-maze", "higl", 50_000),
    Panel("point-maze", "hrac", 200_000),
    Panel("reacher", "higl", 300_000),
    Panel("reacher", "hrac", 200_000),
    Panel("pusher", "higl", 300_000),
    Panel("pusher", "hrac", 300_000),
    Panel("ant-maze-u-large", "higl", 500_000),
    Panel("ant-maze-u-large", "hrac", 1_000_000, seeds=2),
    Panel("ant-maze-u-stochastic", "higl", 300_000),
    Panel("ant-maze-u-stochastic", "hrac", 500_000),
    Panel("ant-maze-u", "hrac", 500_000, "dense"),
    Panel("ant-maze-w", "hrac", 500_000, "dense"),
    Panel("point-maze", "hrac", 200_000, "dense"),
    Panel("ant-maze-u-large", "hrac", 1_000_000, "dense", seeds=2),
)


def is_run_of(result: Result, panel: Panel, seed: int) -> bool:
    """Return whether a stored run is a finished run of a panel."""
    config = result.config
    same = (config.task, config.reward, result.path.parent.name) == (panel.task, panel.reward, panel.algo)
    return same and config.seed == seed and result.curve.last >= 0.98 * panel.steps


def missing(seeds: Sequence[int], held: Sequence[Result]) -> Iterator[tuple[Panel, int]]:
    """Yield the runs that are not stored yet: all panels with the first seed, then with the next."""
    for place, seed in enumerate(seeds):
        for panel in PANELS:
            if place < panel.seeds and not any(is_run_of(result, panel, seed) for result in held):
                yield panel, seed


def train(panel: Panel, seed: int, runs: Path, results: Path, core: int) -> int:
    """Train or continue one run on a core, test it and store it; return the exit code."""
    words = [panel.task, "--algo", panel.algo, "--reward", panel.reward, "--seed", seed, "--steps", panel.steps]
    return train_and_store(words, core, runs / f"{panel.task}-{panel.reward}-{panel.algo}-{seed}", results)


def main(words: Sequence[str] | None = None) -> int:
    """Train or list what is missing, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("run", "list"))
    parser.add_argument("--seeds", nargs="+", type=int, required=True)
    parser.add_argument("--cores", nargs="+", type=int, default=[0], help="one run on each")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "panels", help="folder of the runs")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the results")
    options = parser.parse_args(words)
    wanted = list(missing(options.seeds, read_results(options.results)))
    if options.command == "list":
        for panel, seed in wanted:
            print(f"{panel.task} {panel.reward}, {panel.algo}, seed {seed}, {panel.steps:,} steps")
        print(f"{len(wanted)} runs are missing, {sum(panel.steps for panel, _ in wanted):,} steps")
        return 0
    jobs = [partial(train, panel, seed, options.runs, options.results) for panel, seed in wanted]
    return on_each_core(jobs, options.cores)


if __name__ == "__main__":
    sys.exit(main())
