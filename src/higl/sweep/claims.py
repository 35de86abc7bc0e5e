"""Whether the conclusions of the paper hold in our runs: the entries of the catalogue that state one, task by task.

What learns faster has the larger area under its success curve, over the steps that all runs of the entry have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from higl.run.naming import task_title
from higl.run.reading import Run
from higl.sweep.aggregate import SeedCurve, area
from higl.sweep.catalogue import Catalogue, Entry
from higl.sweep.results_figure import Folders, runs_of

Scores = Mapping[str, Sequence[float]]
"""Area under the success curve of each seed, by variant; without runs, none."""


@dataclass(frozen=True)
class Finding:
    """What our runs say about the claim of an entry on one of its tasks, up to `steps`."""

    entry: Entry
    task: str
    steps: int
    scores: Scores

    @property
    def verdict(self) -> str:
        """Whether the claim holds, in a few words."""
        return verdict(self.scores, self.entry.better)


def findings(catalogue: Catalogue, folders: Folders) -> list[Finding]:
    """Return what can be said about each entry that states a claim, for its tasks with runs of two variants or more."""
    found = []
    for entry in catalogue.values():
        for task in entry.tasks if entry.better else ():
            runs = {variant.name: runs_of(folders, entry, task, variant) for variant in entry.variants}
            if sum(map(bool, runs.values())) > 1:
                found.append(_finding(entry, task_title(task.task, task.reward), runs))
    return found


def _finding(entry: Entry, task: str, runs: Mapping[str, Sequence[Run]]) -> Finding:
    curves = {name: [curve_of(run) for run in members] for name, members in runs.items()}
    steps = min(curve.last for members in curves.values() for curve in members)
    scores = {name: [area(curve.until(steps)) for curve in members] for name, members in curves.items()}
    return Finding(entry, task, steps, scores)


def curve_of(run: Run) -> SeedCurve:
    """Return the curve of a stored run."""
    return SeedCurve(run.evaluations["step"].astype(int), run.evaluations["success"])


def verdict(scores: Scores, better: Sequence[tuple[str, str]]) -> str:
    """Return whether the first of each pair of variants learns faster than the second.

    It does if each of its seeds is ahead of each seed of the other; it does not if it is not ahead on average.
    """
    missing = list(dict.fromkeys(name for pair in better for name in pair if not scores[name]))
    pairs = [pair for pair in better if not set(pair) & set(missing)]
    behind = [pair for pair in pairs if np.mean(scores[pair[0]]) <= np.mean(scores[pair[1]])]
    overlapping = [p for p in pairs if p not in behind and min(scores[p[0]]) <= max(scores[p[1]])]
    words = []
    if behind:
        words.append("**does not hold**: " + "; ".join(f"{a} is not ahead of {b}" for a, b in behind))
    if overlapping:
        words.append("unclear: " + "; ".join(f"seeds of {a} and {b} overlap" for a, b in overlapping))
    if pairs and not words:
        words.append("holds" + ("" if _several_seeds(scores, pairs) else ", with one seed"))
    if missing:
        words.append(f"not run yet: {', '.join(missing)}")
    return "; ".join(words)


def _several_seeds(scores: Scores, pairs: Sequence[tuple[str, str]]) -> bool:
    return all(len(scores[name]) > 1 for pair in pairs for name in pair)
