"""Catalogues of sweeps: each entry says which tasks, settings, steps and seeds make a figure.

The paper's figures are in `paper.toml` beside this file; own catalogues have the same form. Anything wrong with one
is a `CatalogueError` of one line that says where. Imports neither NumPy nor JAX.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from higl.errors import CatalogueError, SettingsError
from higl.settings.config import Config, Reward
from higl.settings.layers import Layer, build_config, flat, nearest
from higl.settings.presets import BEST

PAPER = Path(__file__).with_name("paper.toml")

Draw = Literal["curves", "landmarks"]

MOST_SEEDS = 1_000
"""Of a curve. More are a slip of the pen."""
# What JAX takes for a seed.
_SEED_LIMIT = 2**63

_ENTRY_KEYS = ("title", "steps", "seeds", "tasks", "variants", "settings", "draw")
_TASK_KEYS = ("task", "reward", "steps")
# What the entry's tasks and seeds say, so no variant may.
_NOT_SETTINGS = ("task", "reward", "seed")
# A Gymnasium id has a namespace, a module or a version; a word without any of them is meant for one of our tasks.
_LOOKS_LIKE_AN_ID = re.compile(r"[/:]|-v\d+$")


@dataclass(frozen=True)
class TaskOf:
    """A panel of a figure: a task, its reward and the length of its runs."""

    task: str
    reward: Reward
    steps: int


@dataclass(frozen=True)
class Variant:
    """A curve of a figure: its label, the settings it changes, and its seeds."""

    name: str
    settings: Layer
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A figure: every variant on every task."""

    name: str
    title: str
    tasks: tuple[TaskOf, ...]
    variants: tuple[Variant, ...]
    draw: Draw = "curves"

    def given(self, task: TaskOf, variant: Variant, seed: int, more: Mapping[str, Any]) -> Layer:
        """Return what is said of one run's settings; `more` comes last."""
        layer = {"steps": task.steps} | variant.settings | dict(more)
        return layer | {"task": task.task, "reward": task.reward, "seed": seed}


Catalogue = dict[str, Entry]


def read_catalogue(path: Path | None = None) -> Catalogue:
    """Return the entries of a catalogue by name: the paper's, or those of a file.

    Raises:
        CatalogueError: what is wrong with it, and where.
    """
    path = PAPER if path is None else path
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogueError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path} is not a TOML file: {' '.join(str(error).split())}") from None
    if not document:
        raise CatalogueError(f"{path} has no sweep: each is a table [NAME] with tasks and variants")
    return {name: _read_entry(f"{path}: {name}", name, table) for name, table in document.items()}


def find_entry(catalogue: Catalogue, name: str) -> Entry:
    """Return an entry.

    Raises:
        CatalogueError: there is none of this name; the message says which is nearest.
    """
    if name not in catalogue:
        hint = nearest(name, catalogue) or f"; there are {', '.join(catalogue)}"
        raise CatalogueError(f"no sweep {name!r} in the catalogue{hint}")
    return catalogue[name]


# --- Reading an entry -----------------------------------------------------------------------------------------------


def _read_entry(where: str, name: str, table: Any) -> Entry:
    if not isinstance(table, dict):
        raise CatalogueError(f"{where}: expected a table [{name}]")
    _check_keys(where, table, _ENTRY_KEYS)
    if not name or name.startswith(".") or "/" in name:
        raise CatalogueError(f"{where}: a name has no / and does not start with a dot")
    steps = _number(where, "steps", table["steps"]) if "steps" in table else None
    seeds = _seeds(where, table.get("seeds", 1))
    common = _settings(where, table.get("settings", {}))
    draw = table.get("draw", "curves")
    if draw not in get_args(Draw):
        raise CatalogueError(f"{where}: draw = {draw!r}: expected one of {', '.join(get_args(Draw))}")
    entry = Entry(
        name=name,
        title=_text(where, "title", table.get("title", name)),
        tasks=tuple(_task(where, task, steps) for task in _some(where, "tasks", table.get("tasks"), list)),
        variants=_variants(where, table.get("variants"), common, seeds),
        draw=draw,
    )
    _check_configs(where, entry)
    return entry


def _variants(where: str, tables: Any, common: Layer, seeds: tuple[int, ...]) -> tuple[Variant, ...]:
    found = []
    for name, table in _some(where, "variants", tables, dict).items():
        place = f"{where}, variant {name!r}"
        if not isinstance(table, dict):
            raise CatalogueError(f"{place}: expected a table of settings, as {{ landmarks.coverage = 10 }}")
        own = dict(table)
        own_seeds = _seeds(place, own.pop("seeds")) if "seeds" in own else seeds
        found.append(Variant(name, common | _settings(place, own), own_seeds))
    return tuple(found)


def _task(where: str, table: Any, steps: int | None) -> TaskOf:
    if isinstance(table, str):
        table = {"task": table}
    if not isinstance(table, dict) or "task" not in table:
        raise CatalogueError(f'{where}: tasks: expected {{ task = "NAME", reward = "sparse" }}, not {table!r}')
    _check_keys(f"{where}, tasks", table, _TASK_KEYS)
    reward = table.get("reward", "sparse")
    if reward not in get_args(Reward):
        raise CatalogueError(f"{where}, tasks: reward = {reward!r}: expected one of {', '.join(get_args(Reward))}")
    steps = _number(where, "steps", table["steps"]) if "steps" in table else steps
    if steps is None:
        raise CatalogueError(f"{where}: no steps: give them to the sweep or to each of its tasks")
    name = _text(where, "task", table["task"])
    if name not in BEST and not _LOOKS_LIKE_AN_ID.search(name):
        raise CatalogueError(f"{where}, tasks: unknown task {name!r}{nearest(name, BEST)}")
    return TaskOf(name, reward, steps)


def _settings(where: str, nested: Any) -> Layer:
    """Return nested settings as a flat layer."""
    if not isinstance(nested, dict):
        raise CatalogueError(f"{where}: settings: expected a table")
    layer = flat(nested)
    for name in _NOT_SETTINGS:
        if name in layer:
            raise CatalogueError(f"{where}: {name} is not a setting here: `tasks` and `seeds` say it")
    return layer


def _check_configs(where: str, entry: Entry) -> None:
    """Refuse unknown settings and values that no run could use, and two variants that are the same run."""
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
    """Return seeds: so many from 0 on, or a list of them."""
    if _is_number(value) and 0 < value <= MOST_SEEDS:
        return tuple(range(value))
    if isinstance(value, list) and value and all(_is_number(seed) and 0 <= seed < _SEED_LIMIT for seed in value):
        return tuple(dict.fromkeys(value))
    raise CatalogueError(
        f"{where}: seeds = {value!r}: expected how many (4, at most {MOST_SEEDS:,}) or which ([0, 2, 5])"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(where: str, name: str, value: Any) -> int:
    if not _is_number(value) or value <= 0:
        raise CatalogueError(f"{where}: {name} = {value!r}: expected a whole number of more than 0")
    return value


def _text(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise CatalogueError(f"{where}: {name} = {value!r}: expected a text")
    return value


def _some(where: str, name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or not value:
        raise CatalogueError(f"{where}: no {name}: expected a {'list' if kind is list else 'table'} of at least one")
    return value


def _check_keys(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise CatalogueError(f"{where}: unknown {key!r}{nearest(key, known) or '; there are ' + ', '.join(known)}")
