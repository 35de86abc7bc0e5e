"""Reading run folders: the only reader, used by every command, figure and page.

Runs may be in progress, killed, or missing files. Functions for one file raise `RunFolderError`; `read_run` never
raises because of what a file holds: it leaves out what it cannot read and adds a notice.

Imports neither NumPy nor JAX, so that listing runs is quick.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import math
import os
import shlex
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from higl.errors import NoRunsError, RunFolderError, SettingsError, WrongFolderError
from higl.run.files import CONFIG, EVALUATIONS, FACTS, FORMAT, LOCK, METRICS, POLICY, SNAPSHOTS, VIDEO
from higl.run.naming import algorithm_title, task_title
from higl.settings.config import Config
from higl.settings.flat import flat_config
from higl.settings.layers import complete_config, read_settings
from higl.text import module_in, steps_text

if TYPE_CHECKING:
    import numpy as np

# Levels of folders below a given one that are searched for runs: DIR/GROUP/RUN.
_DEPTH = 3

Columns: TypeAlias = "dict[str, np.ndarray]"
Settings: TypeAlias = dict[str, Any]

# --- Finding --------------------------------------------------------------------------------------------------------


def is_run(path: Path) -> bool:
    """Return whether a folder belongs to a run."""
    return (path / FACTS).is_file()


def looks_like_run(path: Path) -> bool:
    """Return whether a folder belongs to a run, possibly one that has lost files."""
    return any((path / name).is_file() for name in (FACTS, METRICS, EVALUATIONS)) or (
        (path / CONFIG).is_file() and (path / SNAPSHOTS).is_dir()
    )


def run_folders(path: Path, depth: int = _DEPTH) -> list[Path]:
    """Return the run folders at or below a folder, sorted by name; folders that start with a dot are skipped."""
    if looks_like_run(path):
        return [path]
    if depth == 0:
        return []
    children = sorted(child for child in path.iterdir() if child.is_dir() and not child.name.startswith("."))
    return [run for child in children for run in run_folders(child, depth - 1)]


def find_runs(paths: Iterable[str | Path]) -> list[Run]:
    """Read the runs at or below the given folders, each once.

    Raises:
        NoRunsError: a path does not exist, or there is no run in it.
    """
    folders: list[Path] = []
    for given in paths:
        path = Path(given)
        if not path.is_dir():
            raise NoRunsError(f"{path} {'is not a folder' if path.exists() else 'does not exist'}")
        found = run_folders(path)
        if not found:
            raise NoRunsError(f"{path} holds no run (no folder with {FACTS}, {CONFIG} or {METRICS})")
        folders += found
    unique = {folder.resolve(): folder for folder in folders}
    return [read_run(folder) for folder in unique.values()]


# --- Settings, facts, status ----------------------------------------------------------------------------------------


def read_config(path: Path) -> Config:
    """Return the settings of a run.

    Raises:
        RunFolderError: they cannot be read, or a setting is missing, unknown, or has a wrong value.
    """
    try:
        layer = read_settings(path / CONFIG)
    except SettingsError as error:  # names the file
        raise RunFolderError(str(error)) from None
    if "task" not in layer:
        raise RunFolderError(f"{path / CONFIG} is damaged (it names no task)")
    try:
        return complete_config(layer)
    except SettingsError as error:
        raise RunFolderError(f"{path / CONFIG}: {error}") from None


def read_facts(path: Path) -> dict[str, Any]:
    """Return the content of `run.json`.

    Raises:
        RunFolderError: this is not a run folder, or the file is damaged or has another format.
    """
    if not is_run(path):
        raise WrongFolderError(f"{path} is not a run folder (it has no {FACTS})")
    try:
        facts = json.loads((path / FACTS).read_bytes())
        written = facts["format"]
    except (ValueError, KeyError, TypeError):
        raise RunFolderError(f"{path / FACTS} is damaged") from None
    except OSError as error:
        raise RunFolderError(f"{path / FACTS} cannot be read ({error.strerror})") from None
    if written != FORMAT:
        raise RunFolderError(f"{path / FACTS} has format {written}; this version of higl reads format {FORMAT}")
    return facts


def is_locked(path: Path) -> bool:
    """Return whether a process is working in a run folder."""
    try:
        with open(path / LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def run_status(path: Path, facts: Mapping[str, Any], steps: int) -> str:
    """Return the status of a run of `steps` steps: the one in its facts, unless that is out of date."""
    noted = str(facts.get("status", "unknown"))
    if noted == "running" and not is_locked(path):
        return "stopped"  # killed before it could note its end
    saved = facts.get("saved_step")
    if noted == "finished" and isinstance(saved, int) and saved < steps and not facts.get("reached"):
        return "stopped"  # extended to more steps, and killed before it continued
    return noted


def how_to_continue(path: Path, facts: Mapping[str, Any], config: Config) -> str:
    """Return what continues a run: a command, or Python code if the command line cannot make its environment."""
    if facts.get("has_id", True):
        return f"higl resume {path}{_trust(config.task, facts.get('test_env') or '')}"
    return f"higl.{config.algo.upper()}.load({str(path)!r}, env).learn(...)"


def how_to_evaluate(path: Path, facts: Mapping[str, Any], config: Config) -> str:
    """Return the command that evaluates a run."""
    return f"higl eval {path}{_trust(other_test_env(facts, config.task) or config.task)}"


def _trust(*names: str) -> str:
    """Return the option that a command needs if a file names one of these environments and its module."""
    return " --trust" if any(map(module_in, names)) else ""


def how_to_repeat(facts: Mapping[str, Any], config: Config, file: str = CONFIG) -> str:
    """Return the command that trains a run again from its file of settings."""
    other = other_test_env(facts, config.task)
    if other is not None and not facts.get("has_id", True):  # the task is no id: the test environment stands for it
        words, other = ["higl", "train", other, "--config", file], None
    else:
        words = ["higl", "train", "--config", file, *_trust(config.task).split()]
    words += [] if other is None else ["--test-env", other]
    words += [] if facts.get("stop_at") is None else ["--stop-at", f"{facts['stop_at']:g}"]
    return shlex.join(words)


def other_test_env(facts: Mapping[str, Any], task: str) -> str | None:
    """Return the name of a run's test environment, None if it is the task's own."""
    name = facts.get("test_env")
    return name if isinstance(name, str) and name != task else None


def tested_in(path: Path, config: Config) -> str:
    """Return the name of the environment that a run, or the policy of a file, was tested in."""
    return (other_test_env(read_facts(path), config.task) if is_run(path) else None) or config.task


def policy_path(path: Path) -> Path:
    """Return the policy file of a run folder; a file is returned as it is.

    Raises:
        RunFolderError: there is none.
    """
    if path.is_file():
        return path
    if not looks_like_run(path):
        raise WrongFolderError(f"{path} is neither a run folder nor a policy file")
    if not (path / POLICY).exists():
        raise RunFolderError(f"{path} has no policy yet: it is written with the first checkpoint")
    return path / POLICY


# --- Metrics and evaluations ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """Rows of numbers from a file, and the number of lines that were damaged and left out."""

    rows: list[dict[str, Any]]
    damaged: int = 0


def read_evaluations(path: Path) -> Rows:
    """Return the evaluations in a run's `eval.csv`, oldest first; an empty cell is NaN, a missing file has no rows.

    A last line that is still being written is left out and not counted as damaged.
    """
    content = _read_tail(path / EVALUATIONS)
    whole = content[: content.rfind(b"\n") + 1].decode(errors="replace")
    reader = csv.DictReader(io.StringIO(whole))
    rows, damaged = [], int(bool(whole) and not {"step", "success"} <= set(reader.fieldnames or ()))
    for cells in reader:
        row = {name: as_number(cell) for name, cell in cells.items() if name}
        if all(math.isfinite(row.get(name, math.nan)) for name in ("step", "success")):
            rows.append(row)
        else:
            damaged += 1
    return Rows(rows, damaged)


def evaluation_columns(path: Path) -> Sequence[str]:
    """Return the columns of a run's `eval.csv`; none without the file."""
    header, newline, _ = _read_tail(path / EVALUATIONS).partition(b"\n")
    return header.decode(errors="replace").strip().split(",") if newline else []


def last_evaluation(path: Path) -> dict[str, Any] | None:
    """Return the last row of a run's `eval.csv`."""
    rows = read_evaluations(path).rows
    return rows[-1] if rows else None


def read_metrics(path: Path) -> Rows:
    """Return the measurements in a run's `metrics.jsonl`, one row per episode; a missing file has no rows.

    A last line that is still being written is left out and not counted as damaged.
    """
    return _parse_metrics(_read_tail(path / METRICS))


def last_step(path: Path) -> int:
    """Return the environment step of the last whole line of a run's `metrics.jsonl`, 0 without one."""
    rows = _parse_metrics(_read_tail(path / METRICS, size=1 << 14)).rows
    return int(rows[-1]["step"]) if rows else 0


def last_metric(path: Path, name: str) -> float | None:
    """Return a metric of the last whole line of a run's `metrics.jsonl`; None if the line has none."""
    rows = _parse_metrics(_read_tail(path / METRICS, size=1 << 14)).rows
    value = rows[-1].get(name) if rows else None
    return None if value is None else float(value)


class MetricsTail:
    """Reads a run's `metrics.jsonl` while it grows."""

    def __init__(self, path: Path):
        self._path, self._read = path / METRICS, 0

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows whose lines have been completed since the last call; all, if the file has become shorter."""
        content = b""
        with contextlib.suppress(FileNotFoundError), open(self._path, "rb") as file:
            self._read = 0 if os.fstat(file.fileno()).st_size < self._read else self._read
            file.seek(self._read)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        return _parse_metrics(whole).rows


def _parse_metrics(content: bytes) -> Rows:
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
    return Rows(rows, damaged)


def _read_tail(path: Path, size: int | None = None) -> bytes:
    """Return the last `size` bytes of a file, or all of it; nothing if it does not exist."""
    try:
        with open(path, "rb") as file:
            if size is not None:
                file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read()
    except FileNotFoundError:
        return b""


def as_number(cell: Any) -> float:
    """Return a value as a float, NaN if it is not a number."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan


def _columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Turn rows into columns of floats, NaN where a row lacks the number, sorted by step."""
    import numpy as np

    names = dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, (int, float)))
    columns = {name: np.array([as_number(row.get(name)) for row in rows]) for name in names}
    columns.setdefault("step", np.zeros(0))
    order = np.argsort(columns["step"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


# --- State of a run -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunState:
    """State of a run, as `higl runs` shows it.

    `success` is that of the last evaluation, `test_env` the test environment if it is not the task's own.
    """

    run: str
    state: str
    task: str = ""
    test_env: str | None = None
    algo: str = ""
    reward: str = ""
    seed: int = 0
    step: int = 0
    steps: int = 0
    success: float | None = None
    evaluated_at: int | None = None
    updated: str = ""
    message: str | None = None


def run_state(path: Path, folder: Path) -> RunState:
    """Return the state of a run, with its path relative to `folder`; that of an unreadable run is "damaged"."""
    name = str(path if path == folder else path.relative_to(folder))
    try:
        facts, config = read_facts(path), read_config(path)
    except RunFolderError as error:
        return RunState(name, "damaged", message=str(error))
    state = run_status(path, facts, config.steps)
    last = last_evaluation(path)
    return RunState(
        run=name,
        state=state,
        task=config.task,
        test_env=other_test_env(facts, config.task),
        algo=config.algo,
        reward=config.reward,
        seed=config.seed,
        step=last_step(path),
        steps=config.steps,
        success=float(last["success"]) if last else None,
        evaluated_at=int(last["step"]) if last else None,
        updated=facts["updated"],
        message=facts.get("message") if state == "failed" else None,
    )


# --- Whole runs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SnapshotFile:
    """A snapshot on disk: the step it was taken at, and its file."""

    step: int
    path: Path

    def load(self) -> Columns:
        """Return its arrays; an unreadable one has none. Nothing in the file can execute code."""
        import numpy as np

        try:
            with np.load(self.path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (OSError, ValueError, zipfile.BadZipFile, KeyError, EOFError):
            return {}


@dataclass
class Run:
    """Everything that could be read from a run folder.

    Attributes:
        path: the folder.
        settings: all settings by dotted name; empty if they could not be read.
        facts: the content of `run.json`.
        metrics: columns of `metrics.jsonl` [N], NaN where a line has no such number; `step` is always there.
        evaluations: columns of `eval.csv` [N], NaN where a cell is empty; `step` is always there.
        snapshots: oldest first.
        notices: what is missing or damaged, one sentence each.
        label: name of the curve that the run belongs to; empty: named after its settings.
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
        """Reward of the task; empty if unknown."""
        return str(self.settings.get("reward", ""))

    @property
    def seed(self) -> int | None:
        """Seed, if known."""
        seed = self.settings.get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def test_env(self) -> str | None:
        """Name of the test environment, if it is not the task's own."""
        return other_test_env(self.facts, self.task)

    @property
    def before(self) -> str:
        """What it had learned from when it began, 'after 100k steps without a goal'; empty if it began from nothing."""
        before = self.facts.get("before")
        if not before:
            return ""
        return f"after {steps_text(before['steps'])} steps" + " without a goal" * (before["goal"] == "none")

    @property
    def task_title(self) -> str:
        """Task, and test environment if it is not the task's own, for people: what the evaluations measure."""
        return task_title(self.task, self.reward, self.test_env)

    @property
    def last_step(self) -> int:
        """The last step in any file."""
        steps = [int(column["step"][-1]) for column in (self.metrics, self.evaluations) if len(column["step"])]
        return max([*steps, *(snapshot.step for snapshot in self.snapshots[-1:])], default=0)

    @property
    def status(self) -> str:
        """Status in one word, see `run_status`."""
        steps = self.settings.get("steps")
        return run_status(self.path, self.facts, steps if isinstance(steps, int) else 0)

    @property
    def video(self) -> Path | None:
        """The run's video, if there is one."""
        path = self.path / VIDEO
        return path if path.is_file() and path.stat().st_size > 0 else None

    @property
    def policy(self) -> Path:
        """Path of the run's policy."""
        return self.path / POLICY

    @cached_property
    def title(self) -> str:
        """Task, algorithm, whether there was a goal, what was learned before, and seed in one line."""
        goal = ["no goal"] * (self.settings.get("goal") == "none")
        before = [self.before] if self.before else []
        parts = [
            algorithm_title(self.algo),
            *goal,
            *before,
            f"seed {self.seed}" if self.seed is not None else self.name,
        ]
        return f"{self.task_title}: {', '.join(parts)}"


def read_run(path: str | Path) -> Run:
    """Read a run folder; never raises because of what is in it."""
    run = Run(Path(path))
    run.settings = _noting(run, CONFIG, "the settings are not known", _settings) or {}
    run.facts = _noting(run, FACTS, "versions and times are not known", read_facts) or {}
    metrics = _noting(run, METRICS, "there are no measurements of training yet", read_metrics) or Rows([])
    evaluations = _noting(run, EVALUATIONS, "there are no evaluations yet", read_evaluations) or Rows([])
    for name, found in ((METRICS, metrics), (EVALUATIONS, evaluations)):
        if found.damaged:
            lines = found.damaged + len(found.rows)
            run.notices.append(f"{name}: {found.damaged} of {lines} lines are damaged and left out.")
    run.metrics, run.evaluations = _columns(metrics.rows), _columns(evaluations.rows)
    run.snapshots = list_snapshots(run)
    if run.facts.get("synthetic"):
        run.notices.insert(0, "These numbers are synthetic: made up to test the figures, not from training.")
    if run.status == "stopped":
        in_python = f"{run.algo.upper()}.load(folder, env).learn(...)"
        continuing = "higl resume" if run.facts.get("has_id", True) else f"higl.{in_python}"
        run.notices.append(f"The run stopped before its end: `{continuing}` continues it.")
    message = run.facts.get("message")
    if isinstance(message, str) and message:
        run.notices.append(f"The run reports: {message}")
    return run


def _settings(path: Path) -> Settings:
    return flat_config(read_config(path))


def _noting(run: Run, name: str, consequence: str, read: Callable[[Path], Any]) -> Any:
    """Return what `read` returns for the run, or None and a notice if the file is missing or cannot be used."""
    if not (run.path / name).is_file():
        run.notices.append(f"{name} is missing: {consequence}.")
        return None
    try:
        return read(run.path)
    except RunFolderError as error:
        text = " ".join(str(error).replace(f"{run.path}{os.sep}", "").split())
        run.notices.append(f"{text}: {consequence}.")
    except OSError as error:
        run.notices.append(f"{name} cannot be read ({error.strerror}): {consequence}.")
    return None


def list_snapshots(run: Run) -> list[SnapshotFile]:
    """Return the snapshots in a run's folder, oldest first; add a notice to the run if some cannot be used."""
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
    """Return the notices of all runs, each once, with the names of the runs that it concerns."""
    about: dict[str, list[str]] = {}
    for run in runs:
        for notice in run.notices:
            about.setdefault(notice, []).append(run.name)
    if len(runs) == 1:
        return list(about)
    named = []
    for notice, names in about.items():
        few = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        named.append(f"{'All runs' if len(names) == len(runs) else few}: {notice}")
    return named
