"""A synthetic folder `results/`, with figures of the paper in all states: complete, in part, and without runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from higl.sweep.catalogue import Entry, read_catalogue
from higl.sweep.results import add_run
from support.sweeps import make_run

# Panels of figure 3 with runs: task, reward, evaluations, and for each algorithm its seeds, final success and onset.
FIGURE_3 = {
    ("point-maze", "dense", 40): {"higl": (4, 1.0, 0.1), "hrac": (4, 0.9, 0.5)},
    ("ant-maze-u", "dense", 60): {"higl": (4, 0.98, 0.3), "hrac": (2, 0.7, 0.6)},
    ("point-maze", "sparse", 40): {"higl": (4, 1.0, 0.15), "hrac": (4, 0.8, 0.6)},
    ("ant-maze-u", "sparse", 60): {"higl": (4, 0.98, 0.3), "hrac": (4, 0.15, 0.7)},
    ("ant-maze-w", "sparse", 60): {"higl": (1, 0.95, 0.3), "hrac": (2, 0.0, 0.5)},
    ("reacher", "sparse", 20): {"higl": (4, 1.0, 0.3), "hrac": (3, 0.95, 0.4)},
    ("ant-maze-u-stochastic", "sparse", 60): {"higl": (4, 0.92, 0.45)},
}


def success_curve(count: int, final: float, onset: float, seed: int) -> list[float]:
    """Return the success of `count` evaluations of five episodes, whose mean rises around a share `onset` of them."""
    rng = np.random.default_rng([seed, count])
    share = np.arange(1, count + 1) / count
    mean = final / (1 + np.exp(-20 * (share - onset - rng.normal(0, 0.05))))
    return (rng.binomial(5, mean) / 5).tolist()


def make_figure_3(folder: Path) -> Path:
    """Write a folder `results/` with most of figure 3 in the preset `best`; return it."""
    for (task, reward, count), algorithms in FIGURE_3.items():
        for algo, (seeds, final, onset) in algorithms.items():
            for seed in range(seeds):
                success = success_curve(count, final, onset, seed)
                run = folder / "runs" / f"{task}-{reward}-{algo}-{seed}"
                add_run(make_run(run, success, task=task, reward=reward, algo=algo, seed=seed), folder / "results")
    return folder / "results"


def make_entry(folder: Path, name: str, finals: dict[str, float], seeds: int = 2) -> Path:
    """Add runs of some variants of an entry of the catalogue, with these final success rates; return the folder."""
    entry: Entry = read_catalogue()[name]
    for variant in entry.variants:
        for seed in range(seeds) if variant.name in finals else ():
            given = entry.given(entry.tasks[0], variant, seed, {})
            settings = {key.replace(".", "__"): value for key, value in given.items() if key != "steps"}
            success = success_curve(60, finals[variant.name], 0.5, seed)
            run = make_run(folder / "runs" / f"{name}-{variant.name}-{seed}", success, **settings)
            add_run(run, folder / "results")
    return folder / "results"
