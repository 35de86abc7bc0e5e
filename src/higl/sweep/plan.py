"""From an entry of a catalogue to runs: names, folders, what is done already, and the command that does the rest."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast

from higl.errors import CatalogueError, RunFolderError, SettingsError
from higl.run.files import replace_file
from higl.run.naming import different_settings, run_name
from higl.run.reading import is_run, last_evaluation, last_step, read_config, read_facts, run_status
from higl.settings.config import Config
from higl.settings.layers import Layer, build_config, layer_to_toml, to_toml
from higl.settings.presets import has_preset
from higl.sweep.catalogue import Entry

State = Literal["waiting", "running", "finished", "stopped", "failed", "damaged", "other settings"]

UNUSABLE: tuple[State, ...] = ("damaged", "other settings")
"""States in which a folder holds nothing of the planned run that could be shown or continued."""

# Beside the run folders: each run's settings and what its process says. Hidden, so nobody takes it for a run.
NOTES = ".sweep"


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep.

    Attributes:
        config: all of its settings; those that are derived from an environment are not in it yet.
        variant: label of its curve.
        folder: where it is, or will be.
        given: the settings that the catalogue and the command line say.
    """

    config: Config
    variant: str
    folder: Path
    given: Layer = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the run: that of its folder."""
        return self.folder.name

    @property
    def derives(self) -> bool:
        """Whether the run derives settings from its environment when it begins: no preset knows the task."""
        return not has_preset(self.config.task)

    @property
    def settings_file(self) -> Path:
        """Where the settings of a run that has not begun are."""
        return self.folder.parent / NOTES / f"{self.name}.toml"

    @property
    def output_file(self) -> Path:
        """Where the run's process writes what it says."""
        return self.folder.parent / NOTES / f"{self.name}.log"


def make_plan(
    entry: Entry,
    out: Path,
    *,
    seeds: int | None = None,
    only: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
) -> list[PlannedRun]:
    """Return the runs of an entry, one seed of every curve before the next, so that early results are comparable.

    Args:
        entry: what to run.
        out: folder that holds the runs' folders.
        seeds: only so many of each curve (more than the entry has: from 0 on).
        only: words that a run's name must have, see `matches`.
        more: settings that come after the entry's.

    Raises:
        CatalogueError: two different runs have the same name; steps are no part of it.
        SettingsError: a setting of `more` is wrong, or nothing is left.
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
        differ = different_settings(same.config, config)
        if differ:
            raise CatalogueError(
                f"{entry.name}: {same.variant!r} and {variant.name!r} have runs of the same name {name}, and differ in "
                f"{', '.join(differ[:3])}: leave one out, or put it into another sweep with another --out"
            )
    kept = [run for run in plan.values() if matches(run.name, only)]
    if not kept:
        raise SettingsError(
            f"--only {' '.join(only)}: no run of {entry.name}; `higl sweep show {entry.name}` lists them"
        )
    return kept


def _chosen_seeds(seeds: tuple[int, ...], count: int | None) -> tuple[int, ...]:
    if count is None:
        return seeds
    return seeds[:count] if count <= len(seeds) else tuple(range(count))


def matches(name: str, only: Sequence[str]) -> bool:
    """Return whether a run's name has every word; of alternatives with commas between them it needs one.

    A word matches whole parts of the name (`hrac`, `ant-maze-u-sparse`, `higl-0`), or with stars the whole name.
    """

    def has(word: str) -> bool:
        return fnmatchcase(name, word) if "*" in word else f"-{word}-" in f"-{name}-"

    return all(any(has(word) for word in words.split(",")) for words in only)


# --- What is done ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """Where a planned run stands. `reason` says what is wrong, if anything is."""

    state: State
    step: int = 0
    success: float | None = None
    reason: str | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.state == "finished"


def standing(run: PlannedRun) -> Standing:
    """Read where a run stands from its folder alone."""
    if not is_run(run.folder):
        return Standing("waiting")
    try:
        facts, config = read_facts(run.folder), read_config(run.folder)
    except RunFolderError as error:
        return Standing("damaged", reason=str(error))
    last = last_evaluation(run.folder)
    step, success = last_step(run.folder), float(last["success"]) if last else None
    names = different_settings(config, run.config, "steps")
    if run.derives:  # the folder has what was derived
        names = [name for name in names if name in run.given]
    if names:
        reason = f"{run.folder} holds a run with other settings ({', '.join(names[:3])}): choose another --out"
        return Standing("other settings", step, success, reason)
    state = cast(State, run_status(run.folder, facts, config.steps))
    if state == "stopped" and (facts["saved_step"] or 0) >= run.config.steps:
        state = "finished"  # on its way to more than is asked
    if state == "finished" and config.steps < run.config.steps:
        state = "stopped"  # as long as it was asked to be, and now more is asked
    return Standing(state, step, success, facts.get("message") if state == "failed" else None)


# --- How a run is started -------------------------------------------------------------------------------------------


def write_settings(run: PlannedRun) -> None:
    """Write the settings of a run where the process that does it will look for them.

    All of them, so that a run stays what it is; where some are derived, those that are given.
    """
    run.settings_file.parent.mkdir(parents=True, exist_ok=True)
    text = layer_to_toml(run.given) if run.derives else to_toml(run.config)
    replace_file(run.settings_file, text.encode())


def arguments(run: PlannedRun, checkpoint_minutes: float, cores: Sequence[int] = ()) -> list[str]:
    """Return the words after `higl` that begin a run, or continue it."""
    if is_run(run.folder) and (run.derives or read_config(run.folder).steps != run.config.steps):
        words = ["resume", str(run.folder), "--steps", str(run.config.steps)]
    else:
        words = ["train", "--config", str(run.settings_file), "--out", str(run.folder), "--resume"]
    words += ["--quiet", f"--checkpoint-minutes={checkpoint_minutes:g}"]
    return [*words, "--cores", *map(str, cores)] if cores else words


def command(
    run: PlannedRun,
    parent: int,
    checkpoint_minutes: float,
    cores: Sequence[int] = (),
    *,
    program: Sequence[str],
) -> list[str]:
    """Return the command that does a run as a child of a process, whose end it does not outlive.

    `program` is what Python runs: `higl.sweep.work`.
    """
    begin = [sys.executable, *program, str(parent), str(run.folder)]
    return begin + arguments(run, checkpoint_minutes, cores)


def reason_of_failure(run: PlannedRun, code: int) -> str:
    """Say why a process that ended with this code did not finish its run."""
    try:
        now = standing(run)
    except RunFolderError as error:
        return str(error)
    if now.state in ("failed", "damaged", "other settings") and now.reason:
        return now.reason
    lines = _last_lines(run.output_file)
    what = f"its process was ended by signal {-code}" if code < 0 else f"its process ended with code {code}"
    return lines[-1].removeprefix("higl train: ").removeprefix("higl resume: ") if lines and code >= 0 else what


def _last_lines(path: Path) -> list[str]:
    try:
        text = path.read_text(errors="replace")[-4000:]
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]
