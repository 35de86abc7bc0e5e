"""The runs of a catalogue entry: their settings and folders, and the status of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast

from higl.errors import CatalogueError, RunFolderError, SettingsError
from higl.run.held import find_held_run
from higl.run.naming import run_name
from higl.run.reading import last_evaluation, last_step
from higl.settings.config import Config
from higl.settings.flat import Layer, differing
from higl.settings.layers import build_config
from higl.settings.presets import is_derived
from higl.sweep.catalogue import Entry

State = Literal["waiting", "running", "finished", "stopped", "failed", "damaged", "other settings"]

NOTES = ".sweep"
"""Folder beside the run folders with the settings and the output of each run. Hidden, so it is not taken for a run."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep.

    Attributes:
        config: all settings. Those that the run will derive still have the values of its preset.
        variant: label of the curve that the run belongs to.
        folder: its run folder, which may not exist yet.
        given: the settings that the catalogue and the command line specify.
        trusted: whether the user allows the module of the task (`module:id`) to be imported.
    """

    config: Config
    variant: str
    folder: Path
    given: Layer = field(default_factory=dict)
    trusted: bool = False

    @property
    def name(self) -> str:
        """Name of the run and of its folder."""
        return self.folder.name

    @property
    def derives(self) -> bool:
        """Whether the run derives settings from its environment when it starts."""
        return is_derived(self.config)

    @property
    def settings_file(self) -> Path:
        """File with the settings from which the process of the run starts."""
        return self.folder.parent / NOTES / f"{self.name}.toml"

    @property
    def output_file(self) -> Path:
        """File with the output of the run's process."""
        return self.folder.parent / NOTES / f"{self.name}.log"


def make_plan(
    entry: Entry,
    out: Path,
    *,
    seeds: int | None = None,
    only: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
) -> list[PlannedRun]:
    """Return the runs of an entry, ordered so that every curve gets its first seed before any gets its second.

    Args:
        entry: the catalogue entry.
        out: parent of the run folders.
        seeds: number of seeds per curve. If the entry lists fewer, the seeds count from 0.
        only: keep the runs whose names match, see `matches`.
        more: settings that override those of the entry.

    Raises:
        CatalogueError: two different runs have the same name, which does not include the number of steps.
        SettingsError: a setting of `more` is invalid, or `only` matches no run.
    """
    places = [(task, variant) for task in entry.tasks for variant in entry.variants]
    numbered = [
        (place, task, variant, seed)
        for task, variant in places
        for place, seed in enumerate(_chosen_seeds(variant.seeds, seeds))
    ]
    plan: dict[str, PlannedRun] = {}
    for _, task, variant, seed in sorted(numbered, key=lambda item: item[0]):
        given = entry.given(task, variant, seed, more or {})
        config = build_config(given)
        name = run_name(config)
        same = plan.setdefault(name, PlannedRun(config, variant.name, out / name, given))
        differ = differing(same.config, config)
        if differ:
            raise CatalogueError(
                f"{entry.name}: {same.variant!r} and {variant.name!r} both have a run {name} but differ in "
                f"{', '.join(differ[:3])}: move one of them to another sweep with another --out"
            )
    kept = [run for run in plan.values() if matches(run.name, only)]
    if not kept:
        raise SettingsError(
            f"--only {' '.join(only)}: matches no run of {entry.name}; `higl sweep show {entry.name}` lists them"
        )
    return kept


def presets_text(plan: Sequence[PlannedRun]) -> str:
    """Return which presets the runs of a plan start from: 'preset best'."""
    return f"preset {' and '.join(dict.fromkeys(run.config.preset for run in plan))}"


def _chosen_seeds(seeds: tuple[int, ...], count: int | None) -> tuple[int, ...]:
    if count is None:
        return seeds
    return seeds[:count] if count <= len(seeds) else tuple(range(count))


def matches(name: str, only: Sequence[str]) -> bool:
    """Return whether a run's name matches every item of `only`; an item is one word or alternatives `a,b`.

    A word matches whole parts of the name (`hrac`, `ant-maze-u-sparse`, `higl-0`). With `*` it matches the whole name.
    """

    def has(word: str) -> bool:
        return fnmatchcase(name, word) if "*" in word else f"-{word}-" in f"-{name}-"

    return all(any(has(word) for word in words.split(",")) for words in only)


# --- Status ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunStatus:
    """How far a planned run has come; `reason` says why it failed or cannot be used."""

    state: State
    step: int = 0
    success: float | None = None
    reason: str | None = None

    @property
    def done(self) -> bool:
        """Whether the run has all of its steps."""
        return self.state == "finished"

    @property
    def usable(self) -> bool:
        """Whether the run can be started, continued or shown: its folder is neither damaged nor of another run."""
        return self.state not in ("damaged", "other settings")


def read_status(run: PlannedRun) -> RunStatus:
    """Read the status of a run from its folder."""
    try:  # a derived run is compared by what was given: its folder also holds the derived settings
        held = find_held_run(run.folder, run.config, run.given if run.derives else None)
    except RunFolderError as error:
        return RunStatus("damaged", reason=str(error))
    if held is None:
        return RunStatus("waiting")
    last = last_evaluation(run.folder)
    step, success = last_step(run.folder), float(last["success"]) if last else None
    return RunStatus(cast(State, held.state), step, success, held.reason)
