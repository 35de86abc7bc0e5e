"""Catalogues of sweeps: each entry lists the tasks, settings, steps and seeds of one figure.

The paper's figures are in `paper_figures.toml`; catalogues of users have the same form. A mistake in a catalogue raises
a `CatalogueError` whose message is one line that says where it is. Imports neither NumPy nor JAX.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from higl.errors import CatalogueError, SettingsError
from higl.settings.config import Config, Preset, Reward
from higl.settings.flat import Layer, flat
from higl.settings.layers import SEED_LIMIT, build_config
from higl.settings.presets import PAPER_TASKS
from higl.text import did_you_mean

PAPER = Path(__file__).with_name("paper_figures.toml")

Draw = Literal["curves", "landmarks"]

MAX_SEEDS = 1_000
"""Largest number of seeds of a curve. Larger numbers are assumed to be typos."""

_ENTRY_KEYS = ("title", "preset", "steps", "seeds", "tasks", "variants", "settings", "draw", "claim", "better")
_TASK_KEYS = ("task", "reward", "steps")
# The entry's `tasks` and `seeds` determine these settings.
_NOT_SETTINGS = ("task", "reward", "seed")
# A Gymnasium id has a namespace, a module or a version. A word with none of them is taken for the name of a task.
_LOOKS_LIKE_AN_ID = re.compile(r"[/:]|-v\d+$")


@dataclass(frozen=True)
class EntryTask:
    """A panel of a figure: a task, its reward and the number of steps of its runs."""

    task: str
    reward: Reward
    steps: int


@dataclass(frozen=True)
class Variant:
    """A curve of a figure: its label, the settings that it changes, and its seeds."""

    name: str
    settings: Layer
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A figure: every variant on every task.

    `claim` is what the figure is said to show; then the first of each pair of variants in `better` learns faster.
    """

    name: str
    title: str
    tasks: tuple[EntryTask, ...]
    variants: tuple[Variant, ...]
    preset: Preset = "best"
    draw: Draw = "curves"
    claim: str = ""
    better: tuple[tuple[str, str], ...] = ()

    def given(self, task: EntryTask, variant: Variant, seed: int, more: Mapping[str, Any]) -> Layer:
        """Return the settings that the entry specifies for one run, overridden by `more`."""
        layer: Layer = {"steps": task.steps, "preset": self.preset} | variant.settings | dict(more)
        return layer | {"task": task.task, "reward": task.reward, "seed": seed}


Catalogue = dict[str, Entry]


def read_catalogue(path: Path | None = None) -> Catalogue:
    """Return the entries of a catalogue file, by default of the paper's, by name.

    Raises:
        CatalogueError: the file cannot be read, or an entry is invalid.
    """
    path = PAPER if path is None else path
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogueError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path} is not a TOML file: {' '.join(str(error).split())}") from None
    if not document:
        raise CatalogueError(f"{path} contains no sweep: each is a table [NAME] with tasks and variants")
    return {name: _read_entry(f"{path}: {name}", name, table) for name, table in document.items()}


def find_entry(catalogue: Catalogue, name: str) -> Entry:
    """Return the entry with this name.

    Raises:
        CatalogueError: there is none; the message suggests similar names.
    """
    if name not in catalogue:
        hint = did_you_mean(name, catalogue) or f"; there are {', '.join(catalogue)}"
        raise CatalogueError(f"no sweep {name!r} in the catalogue{hint}")
    return catalogue[name]


# --- Reading an entry -----------------------------------------------------------------------------------------------


def _read_entry(where: str, name: str, table: Any) -> Entry:
    if not isinstance(table, dict):
        raise CatalogueError(f"{where}: expected a table [{name}]")
    _check_keys(where, table, _ENTRY_KEYS)
    if not name or name.startswith(".") or "/" in name:
        raise CatalogueError(f"{where}: a name must not contain / or start with a dot")
    steps = _number(where, "steps", table["steps"]) if "steps" in table else None
    seeds = _seeds(where, table.get("seeds", 1))
    common = _settings(where, table.get("settings", {}))
    entry = Entry(
        name=name,
        title=_text(where, "title", table.get("title", name)),
        tasks=tuple(_task(where, task, steps) for task in _not_empty(where, "tasks", table.get("tasks"), list)),
        variants=_variants(where, table.get("variants"), common, seeds),
        preset=_choice(where, "preset", table.get("preset", "best"), Preset),
        draw=_choice(where, "draw", table.get("draw", "curves"), Draw),
        claim=_text(where, "claim", table["claim"]) if "claim" in table else "",
        better=_pairs(where, table.get("better", []), table["variants"]),
    )
    _check_configs(where, entry)
    return entry


def _variants(where: str, tables: Any, common: Layer, seeds: tuple[int, ...]) -> tuple[Variant, ...]:
    found = []
    for name, table in _not_empty(where, "variants", tables, dict).items():
        place = f"{where}, variant {name!r}"
        if not isinstance(table, dict):
            raise CatalogueError(f"{place}: expected a table of settings such as {{ landmarks.coverage = 10 }}")
        own = dict(table)
        own_seeds = _seeds(place, own.pop("seeds")) if "seeds" in own else seeds
        found.append(Variant(name, common | _settings(place, own), own_seeds))
    return tuple(found)


def _pairs(where: str, value: Any, variants: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    pairs = value if isinstance(value, list) else [value]
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(name in variants for name in pair):
            raise CatalogueError(f'{where}: better: expected pairs of variants such as ["A", "B"], not {pair!r}')
    return tuple((better, worse) for better, worse in pairs)


def _task(where: str, table: Any, steps: int | None) -> EntryTask:
    if isinstance(table, str):
        table = {"task": table}
    if not isinstance(table, dict) or "task" not in table:
        raise CatalogueError(f'{where}: tasks: expected {{ task = "NAME", reward = "sparse" }}, not {table!r}')
    _check_keys(f"{where}, tasks", table, _TASK_KEYS)
    reward = _choice(f"{where}, tasks", "reward", table.get("reward", "sparse"), Reward)
    steps = _number(where, "steps", table["steps"]) if "steps" in table else steps
    if steps is None:
        raise CatalogueError(f"{where}: no steps: give the sweep or each of its tasks a number of steps")
    name = _text(where, "task", table["task"])
    if name not in PAPER_TASKS and not _LOOKS_LIKE_AN_ID.search(name):
        raise CatalogueError(f"{where}, tasks: unknown task {name!r}{did_you_mean(name, PAPER_TASKS)}")
    return EntryTask(name, reward, steps)


def _settings(where: str, nested: Any) -> Layer:
    """Return nested settings as a flat layer."""
    if not isinstance(nested, dict):
        raise CatalogueError(f"{where}: settings: expected a table")
    layer = flat(nested)
    for name in _NOT_SETTINGS:
        if name in layer:
            raise CatalogueError(f"{where}: {name} is not a setting here: use `tasks` and `seeds`")
    return layer


def _check_configs(where: str, entry: Entry) -> None:
    """Reject unknown settings, invalid values, and variants that are the same run."""
    for task in entry.tasks:
        seen: dict[Config, str] = {}
        for variant in entry.variants:
            try:
                config = build_config(entry.given(task, variant, 0, {}))
            except SettingsError as error:
                raise CatalogueError(f"{where}, variant {variant.name!r}: {error}") from None
            if config in seen:
                raise CatalogueError(
                    f"{where}: the variants {seen[config]!r} and {variant.name!r} are the same on {task.task}"
                )
            seen[config] = variant.name


def _seeds(where: str, value: Any) -> tuple[int, ...]:
    """Return seeds: a number N stands for 0 to N - 1, a list for itself."""
    if _is_number(value) and 0 < value <= MAX_SEEDS:
        return tuple(range(value))
    if isinstance(value, list) and value and all(_is_number(seed) and 0 <= seed < SEED_LIMIT for seed in value):
        return tuple(dict.fromkeys(value))
    raise CatalogueError(
        f"{where}: seeds = {value!r}: expected a number (4, at most {MAX_SEEDS:,}) or a list ([0, 2, 5])"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(where: str, name: str, value: Any) -> int:
    if not _is_number(value) or value <= 0:
        raise CatalogueError(f"{where}: {name} = {value!r}: expected a positive integer")
    return value


def _text(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise CatalogueError(f"{where}: {name} = {value!r}: expected a string")
    return value


def _choice(where: str, name: str, value: Any, choices: Any) -> Any:
    """Return a value that is one of the choices of a `Literal`."""
    if value not in get_args(choices):
        raise CatalogueError(f"{where}: {name} = {value!r}: expected one of {', '.join(get_args(choices))}")
    return value


def _not_empty(where: str, name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or not value:
        raise CatalogueError(f"{where}: no {name}: expected a {'list' if kind is list else 'table'} that is not empty")
    return value


def _check_keys(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise CatalogueError(
                f"{where}: unknown {key!r}{did_you_mean(key, known) or '; there are ' + ', '.join(known)}"
            )
