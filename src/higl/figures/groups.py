"""Grouping runs: the seeds of one curve, and the order of curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from higl.run.naming import algorithm_title, task_title
from higl.run.reading import Run, as_number
from higl.settings.flat import differing
from higl.text import number_text

_NOT_COMPARED = ("seed", "steps", "task", "reward", "algo")


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed only: the seeds of one curve.

    Attributes:
        task: title of the task.
        algo: algorithm.
        label: the algorithm and what tells this group from others of the same task and algorithm.
        variant: number of the group among those.
        runs: one for each seed.
    """

    task: str
    algo: str
    label: str
    variant: int
    runs: tuple[Run, ...]


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Group runs by task, algorithm and the settings in which runs of the same task and algorithm differ."""
    families: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        families.setdefault((task_title(run.task, run.reward), run.algo), []).append(run)
    groups = []
    for (task, algo), family in sorted(families.items(), key=_family_order):
        names = differing(*(run.settings for run in family if run.settings), leave_out=_NOT_COMPARED)
        variants: dict[tuple[str, ...], list[Run]] = {}
        for run in family:
            variants.setdefault(tuple(_shown(run.settings.get(name)) for name in names), []).append(run)
        for number, (values, members) in enumerate(sorted(variants.items(), key=_values_order)):
            said = [f"{name} {value}" for name, value in zip(names, values, strict=True)]
            label = ", ".join([algorithm_title(algo), *said[:3]]) + (", ..." if len(said) > 3 else "")
            given = {run.label for run in members}
            label = given.pop() or label if len(given) == 1 else label
            members = sorted(members, key=lambda run: (run.seed is None, run.seed or 0, run.name))
            groups.append(Group(task, algo, label, number, tuple(members)))
    return groups


ALGORITHM_ORDER = ("higl", "hrac", "hiro")


def _family_order(item: tuple[tuple[str, str], list[Run]]) -> tuple[str, int, str]:
    (task, algo), _ = item
    place = ALGORITHM_ORDER.index(algo) if algo in ALGORITHM_ORDER else len(ALGORITHM_ORDER)
    return task, place, algo


def _values_order(item: tuple[tuple[str, ...], list[Run]]) -> list[tuple[float, str]]:
    """Order numbers by size, and words after them."""
    numbers = [as_number(value) for value in item[0]]
    return [(math.inf if math.isnan(n) else n, value) for n, value in zip(numbers, item[0], strict=True)]


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + " ".join(map(_shown, value)) + ")"
    return number_text(value) if isinstance(value, float) else str(value)
