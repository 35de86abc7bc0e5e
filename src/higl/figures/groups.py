"""Grouping runs into curves: runs that differ in their seed only belong to the same curve.

Runs that began with what others had learned are not in one curve with those that began from nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from higl.run.naming import algorithm_title
from higl.run.reading import Run, as_number
from higl.settings.flat import differing
from higl.text import counted, value_text

ALGORITHM_ORDER = ("higl", "hrac", "hiro")
"""Order of the algorithms in figures and tables."""

# Evaluations are spaced by the number of steps and by the speed of the machine, and do not change what is learned.
_NOT_COMPARED = ("seed", "steps", "task", "reward", "algo", "evaluation.every")
# Maximum number of settings in a label.
_MAX_NAMED = 3


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed only.

    Attributes:
        task: title of the task, with the test environment if it is not the task's own.
        algo: algorithm.
        label: the algorithm, what was learned before, and the settings in which other groups of the same task and
            algorithm differ.
        variant: number of the group among those.
        runs: ordered by seed; usually one for each.
    """

    task: str
    algo: str
    label: str
    variant: int
    runs: tuple[Run, ...]

    @property
    def by_seed(self) -> list[list[int]]:
        """Places of the runs of each seed; a run whose seed is unknown counts as a seed of its own."""
        places: dict[int | str, list[int]] = {}
        for place, run in enumerate(self.runs):
            places.setdefault(f"unknown {place}" if run.seed is None else run.seed, []).append(place)
        return list(places.values())

    @property
    def seeds_text(self) -> str:
        """Number of seeds, and of runs if there are more: '2 seeds, 3 runs'."""
        seeds, runs = len(self.by_seed), len(self.runs)
        return counted(seeds, "seed") + (f", {counted(runs, 'run')}" if runs > seeds else "")


def repeated_seeds(runs: Sequence[Run]) -> list[str]:
    """Return a notice for each seed of a group that has several runs."""
    notices = []
    for group in group_runs(runs):
        for same in ([group.runs[place] for place in places] for places in group.by_seed if len(places) > 1):
            what = f"{len(same)} runs have seed {same[0].seed} ({', '.join(run.name for run in same)})"
            notices.append(f"{group.task}, {group.label}: {what}: their mean counts as one seed.")
    return notices


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Group runs by task, test environment, algorithm, what they began with, and settings in which such runs differ."""
    families: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        families.setdefault((run.task_title, run.algo), []).append(run)
    ordered = sorted(families.items(), key=lambda item: (item[0][0], _algorithm_place(item[0][1])))
    return [group for (task, algo), family in ordered for group in _variants(task, algo, family)]


def _algorithm_place(algo: str) -> tuple[int, str]:
    return ALGORITHM_ORDER.index(algo) if algo in ALGORITHM_ORDER else len(ALGORITHM_ORDER), algo


def _variants(task: str, algo: str, family: Sequence[Run]) -> list[Group]:
    """Return the groups of one task and algorithm, ordered by the values of their settings."""
    names = differing(*(run.settings for run in family if run.settings), leave_out=_NOT_COMPARED)
    variants: dict[tuple[str, ...], list[Run]] = {}
    for run in family:
        values = (run.before, *(value_text(run.settings.get(name)) for name in names))
        variants.setdefault(values, []).append(run)
    # What was learned before tells variants apart better than the settings that were derived for its sake.
    told = len({values[0] for values in variants}) == len(variants) > 1
    groups = []
    for number, values in enumerate(sorted(variants, key=_values_order)):
        members = sorted(variants[values], key=lambda run: (run.seed is None, run.seed or 0, run.name))
        label = _given_label(members) or _label(
            algo, values[0], [] if told else list(zip(names, values[1:], strict=True))
        )
        groups.append(Group(task, algo, label, number, tuple(members)))
    return groups


def _values_order(values: Sequence[str]) -> list[tuple[float, str]]:
    """Order numbers by size, and words after them."""
    numbers = [as_number(value) for value in values]
    return [(math.inf if math.isnan(n) else n, value) for n, value in zip(numbers, values, strict=True)]


def _given_label(members: Sequence[Run]) -> str:
    labels = {run.label for run in members}
    return labels.pop() if len(labels) == 1 else ""


def _label(algo: str, before: str, settings: Sequence[tuple[str, str]]) -> str:
    words = [f"{name} {value}" for name, value in settings]
    more = ["..."] if len(words) > _MAX_NAMED else []
    return ", ".join([algorithm_title(algo), *filter(None, [before]), *words[:_MAX_NAMED], *more])
