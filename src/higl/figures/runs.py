"""Reading run folders: also of runs that are going on, were killed, or have lost some of their files.

Nothing here raises because of what a file holds: what cannot be read is left out, and a notice says so.
"""

from __future__ import annotations

import csv
import io
import json
import math
import tomllib
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from higl.errors import NoRunsError
from higl.run.folder import BEFORE_THE_SETTING, CONFIG, EVALUATIONS, FACTS, METRICS, POLICY, SNAPSHOTS, run_status
from higl.settings.config import Config
from higl.settings.layers import flat
from higl.settings.presets import has_rewards
from higl.text import number_text

VIDEO = "video.mp4"
"""Where `higl render` puts a run's video, and the report looks for it."""
# Folders below a given one that are searched for runs.
_DEPTH = 3

Columns = dict[str, np.ndarray]
Settings = dict[str, Any]


@dataclass(frozen=True)
class SnapshotFile:
    """A snapshot on disk: the step it was taken at, and its file."""

    step: int
    path: Path

    def load(self) -> Columns:
        """Return its arrays; an unreadable one has none."""
        try:
            with np.load(self.path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (OSError, ValueError, zipfile.BadZipFile, KeyError, EOFError):
            return {}


@dataclass
class Run:
    """What could be read of a run folder.

    Attributes:
        path: the folder.
        settings: all settings by dotted name; empty if they could not be read.
        facts: what `run.json` says.
        metrics: columns of `metrics.jsonl` [N], NaN where a line has no such number; `step` is always there.
        evaluations: columns of `eval.csv` [N], NaN where a cell is empty; `step` is always there.
        snapshots: oldest first.
        notices: what is missing or damaged, one sentence each.
        label: name of the curve that it belongs to, if it was given one; else its settings tell.
    """

    path: Path
    settings: Settings = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    metrics: Columns = field(default_factory=dict)
    evaluations: Columns = field(default_factory=dict)
    snapshots: list[SnapshotFile] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    label: str = ""

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.resolve().name

    @property
    def task(self) -> str:
        """Task, or 'unknown task'."""
        return str(self.settings.get("task", "unknown task"))

    @property
    def algo(self) -> str:
        """Algorithm, or 'unknown'."""
        return str(self.settings.get("algo", "unknown"))

    @property
    def reward(self) -> str:
        """Reward of the task, or nothing."""
        return str(self.settings.get("reward", ""))

    @property
    def seed(self) -> int | None:
        """Seed, if known."""
        seed = self.settings.get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def last_step(self) -> int:
        """The furthest step that any file speaks of."""
        steps = [int(column["step"][-1]) for column in (self.metrics, self.evaluations) if len(column["step"])]
        return max([*steps, *(snapshot.step for snapshot in self.snapshots[-1:])], default=0)

    @property
    def status(self) -> str:
        """One word for where the run stands."""
        steps = self.settings.get("steps")
        return run_status(self.path, self.facts, steps if isinstance(steps, int) else 0)

    @property
    def video(self) -> Path | None:
        """The run's video, if there is one."""
        path = self.path / VIDEO
        return path if path.is_file() and path.stat().st_size > 0 else None

    @property
    def policy(self) -> Path:
        """Where the run's policy is."""
        return self.path / POLICY

    @cached_property
    def title(self) -> str:
        """One line that tells the run from others."""
        parts = [algorithm_name(self.algo), f"seed {self.seed}" if self.seed is not None else self.name]
        return f"{task_title(self.task, self.reward)}: {', '.join(parts)}"


def algorithm_name(algo: str) -> str:
    """Return an algorithm's name as the papers write it."""
    return algo.upper() if algo in ("higl", "hrac", "hiro") else algo


def task_title(task: str, reward: str) -> str:
    """Return a task's name for people: 'Ant Maze U (sparse)'; ids stay as they are, and other tasks have one reward."""
    name = " ".join(word.capitalize() for word in task.split("-")) if task.islower() and "/" not in task else task
    return f"{name} ({reward})" if reward and has_rewards(task) else name


# --- Reading --------------------------------------------------------------------------------------------------------


def find_runs(paths: Iterable[str | Path]) -> list[Run]:
    """Read the runs that are named, and those in folders that are named.

    Raises:
        NoRunsError: a path does not exist, or there is no run in it.
    """
    folders: list[Path] = []
    for given in paths:
        path = Path(given)
        if not path.is_dir():
            raise NoRunsError(f"{path} {'is not a folder' if path.exists() else 'does not exist'}")
        found = [path] if looks_like_run(path) else _runs_below(path, _DEPTH)
        if not found:
            raise NoRunsError(f"{path} holds no run (no folder with {FACTS}, {CONFIG} or {METRICS})")
        folders += found
    unique = {folder.resolve(): folder for folder in folders}
    return [read_run(folder) for folder in unique.values()]


def looks_like_run(path: Path) -> bool:
    """Whether a folder is, or once was, a run's."""
    return any((path / name).is_file() for name in (FACTS, METRICS, EVALUATIONS)) or (
        (path / CONFIG).is_file() and (path / SNAPSHOTS).is_dir()
    )


def _runs_below(path: Path, depth: int) -> list[Path]:
    if depth == 0:
        return []
    found: list[Path] = []
    for child in sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith(".")):
        found += [child] if looks_like_run(child) else _runs_below(child, depth - 1)
    return found


def read_run(path: str | Path) -> Run:
    """Read a run folder; never raises because of what is in it."""
    run = Run(Path(path))
    run.settings = _read_settings(run)
    run.facts = _read_facts(run)
    run.metrics = _read_metrics(run)
    run.evaluations = _read_evaluations(run)
    run.snapshots = _list_snapshots(run)
    if run.facts.get("synthetic"):
        run.notices.insert(0, "These numbers are synthetic: made up to test the figures, not from training.")
    if run.status == "stopped":
        run.notices.append("The run has stopped before its end: `higl resume` continues it.")
    message = run.facts.get("message")
    if isinstance(message, str) and message:
        run.notices.append(f"The run says: {message}")
    return run


def _read_bytes(run: Run, name: str, what: str) -> bytes | None:
    """Return a file's content, or None with a notice."""
    try:
        return (run.path / name).read_bytes()
    except FileNotFoundError:
        run.notices.append(f"{name} is missing: {what}.")
    except OSError as error:
        run.notices.append(f"{name} cannot be read ({error.strerror}): {what}.")
    return None


def _read_settings(run: Run) -> Settings:
    content = _read_bytes(run, CONFIG, "the settings are not known")
    if content is None:
        return {}
    try:
        found = flat(tomllib.loads(content.decode()))
    except ValueError:
        found = {}
    if "task" not in found:
        run.notices.append(f"{CONFIG} is damaged: the settings are not known.")
        return {}
    # A setting that the run's version did not know yet is what it did without, as `read_config` has it.
    return flat(asdict(Config())) | BEFORE_THE_SETTING | found


def _read_facts(run: Run) -> dict[str, Any]:
    content = _read_bytes(run, FACTS, "versions and times are not known")
    if content is None:
        return {}
    try:
        facts = json.loads(content)
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        run.notices.append(f"{FACTS} is damaged: versions and times are not known.")
        return {}
    return facts


def _read_metrics(run: Run) -> Columns:
    """Read `metrics.jsonl`; the last line may be half-written without a notice."""
    content = _read_bytes(run, METRICS, "there are no measurements of training yet") or b""
    lines = content.split(b"\n")
    rows, damaged = [], 0
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            float(row["step"])
            rows.append(row)
        except (ValueError, KeyError, TypeError):
            damaged += number < len(lines) - 1
    if damaged:
        run.notices.append(f"{METRICS}: {damaged} of {len(lines)} lines are damaged and left out.")
    return _columns(rows)


def _read_evaluations(run: Run) -> Columns:
    """Read `eval.csv`; a last row without its line end is left out."""
    content = _read_bytes(run, EVALUATIONS, "there are no evaluations yet") or b""
    whole = content[: content.rfind(b"\n") + 1].decode(errors="replace")
    reader = csv.DictReader(io.StringIO(whole))
    rows, damaged = [], int(bool(whole) and not {"step", "success"} <= set(reader.fieldnames or ()))
    for row in reader:
        values = {name: _number(cell) for name, cell in row.items() if name}
        if all(math.isfinite(values.get(name, math.nan)) for name in ("step", "success")):
            rows.append(values)
        else:
            damaged += 1
    if damaged:
        run.notices.append(f"{EVALUATIONS}: {damaged} of its lines are damaged and left out.")
    return _columns(rows)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan


def _columns(rows: Sequence[dict[str, Any]]) -> Columns:
    """Turn rows into columns of floats, NaN where a row lacks the number, sorted by step."""
    names = dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, (int, float)))
    columns = {name: np.array([_number(row.get(name)) for row in rows]) for name in names}
    columns.setdefault("step", np.zeros(0))
    order = np.argsort(columns["step"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _list_snapshots(run: Run) -> list[SnapshotFile]:
    folder = run.path / SNAPSHOTS
    try:
        files = [path for path in folder.iterdir() if path.suffix == ".npz" and path.stem.isdecimal()]
    except OSError:
        run.notices.append(f"{SNAPSHOTS}/ is missing: there are no landmark maps yet.")
        return []
    broken = [path for path in files if not zipfile.is_zipfile(path)]
    if broken:
        run.notices.append(f"{SNAPSHOTS}/: {len(broken)} of {len(files)} files are damaged and left out.")
    return sorted((SnapshotFile(int(path.stem), path) for path in files if path not in broken), key=lambda s: s.step)


def notices_of(runs: Sequence[Run]) -> list[str]:
    """Return the notices of all runs, each once, with the names of the runs that it is about."""
    about: dict[str, list[str]] = {}
    for run in runs:
        for notice in run.notices:
            about.setdefault(notice, []).append(run.name)
    if len(runs) == 1:
        return list(about)
    said = []
    for notice, names in about.items():
        few = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        said.append(f"{'All runs' if len(names) == len(runs) else few}: {notice}")
    return said


# --- Grouping -------------------------------------------------------------------------------------------------------

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
        names = differing(family)
        variants: dict[tuple[str, ...], list[Run]] = {}
        for run in family:
            variants.setdefault(tuple(_shown(run.settings.get(name)) for name in names), []).append(run)
        for number, (values, members) in enumerate(sorted(variants.items(), key=_values_order)):
            said = [f"{name} {value}" for name, value in zip(names, values, strict=True)]
            label = ", ".join([algorithm_name(algo), *said[:3]]) + (", ..." if len(said) > 3 else "")
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
    numbers = [_number(value) for value in item[0]]
    return [(math.inf if math.isnan(n) else n, value) for n, value in zip(numbers, item[0], strict=True)]


def differing(runs: Sequence[Run]) -> list[str]:
    """Return the settings, other than seed and length, that are not the same in all runs whose settings are known."""
    known = [run.settings for run in runs if run.settings]
    names = dict.fromkeys(name for settings in known for name in settings if name not in _NOT_COMPARED)
    return [name for name in names if len({_shown(settings.get(name)) for settings in known}) > 1]


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "(" + " ".join(map(_shown, value)) + ")"
    return number_text(value) if isinstance(value, float) else str(value)
