"""The folder `results/`: settings, evaluations and facts of runs, without anything that identifies a machine.

results/TASK-REWARD[-tested-in-ENV]/ALGO[-VARIANT]/seed-N/{config.toml,eval.csv,facts.json,test.json}; `test.json` is
optional.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from higl.errors import ResultsError, RunFolderError
from higl.run.files import CONFIG, EVALUATIONS, replace_file
from higl.run.naming import algorithm_name, task_name
from higl.run.reading import (
    last_metric,
    last_step,
    other_test_env,
    read_config,
    read_evaluations,
    read_facts,
    run_status,
)
from higl.settings.config import Config
from higl.settings.flat import differing
from higl.settings.layers import to_toml
from higl.sweep.aggregate import SeedCurve

RESULT_FACTS = "facts.json"
TEST = "test.json"
RESULT_FORMAT = 9
_SEED = re.compile(r"seed-(\d+)")
_VARIANT = re.compile(r"[a-z0-9][a-z0-9.+-]*")


@dataclass(frozen=True)
class Result:
    """One seed in `results/`.

    Attributes:
        path: its folder.
        config: the settings of the run.
        facts: content of `facts.json`.
        curve: success at each evaluation, at any step of an episode.
        curve_at_end: success at the last step; without evaluations if that was not recorded.
        test: summary of the test episodes of the final policy, if it was tested.
    """

    path: Path
    config: Config
    facts: Mapping[str, Any]
    curve: SeedCurve
    curve_at_end: SeedCurve
    test: Mapping[str, Any] | None = None

    @property
    def task(self) -> str:
        """Task, reward, and test environment if it is not the task's own: the name of the outer folder."""
        return self.path.parent.parent.name

    @property
    def test_env(self) -> str | None:
        """Name of the test environment, if it is not the task's own."""
        return other_test_env(self.facts, self.config.task)

    @property
    def variant(self) -> str:
        """Variant, from the name of the folder; empty for the settings of the preset `best`."""
        return self.path.parent.name.removeprefix(self.config.algo).removeprefix("-")


# --- Adding ---------------------------------------------------------------------------------------------------------


def add_run(run: Path, results: Path, *, variant: str | None = None, partial: bool = False) -> Path:
    """Copy settings, evaluations and facts of a run into `results/`; return the new folder.

    Args:
        run: the run folder.
        results: the folder `results/`.
        variant: name of the variant; by default, what differs from the preset `best`, and from what it began.
        partial: accept a run that has not finished.

    Raises:
        ResultsError: the run has not finished or has no evaluations, or the folder holds another run.
        RunFolderError: this is not a run folder, or it is damaged.
    """
    facts, config = read_facts(run), read_config(run)
    facts["status"] = run_status(run, facts, config.steps)
    if facts["status"] != "finished" and not partial:
        raise ResultsError(f"{run} is {facts['status']}, not finished: use --partial to add it as it is")
    if not _read_curve(run).last:
        raise ResultsError(f"{run} has no evaluations yet")
    test_env = other_test_env(facts, config.task)
    place = results / task_name(config, test_env) / _group_name(config, facts, variant) / f"seed-{config.seed}"
    _check_place(place, config, last_step(run))
    new_facts = result_facts(facts, config, last_step(run)) | {"explored_share": last_metric(run, "explored_share")}
    if not _holds_same_policy(place, new_facts):
        (place / TEST).unlink(missing_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    replace_file(place / CONFIG, to_toml(config).encode())
    shutil.copyfile(run / EVALUATIONS, place / EVALUATIONS)
    _write_json(place / RESULT_FACTS, new_facts)
    return place


def add_test(place: Path, summary: Mapping[str, Any]) -> None:
    """Add the summary of the test episodes of a run's final policy to its result."""
    _write_json(place / TEST, summary)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    replace_file(path, (json.dumps(content, indent=1) + "\n").encode())


def _holds_same_policy(place: Path, facts: Mapping[str, Any]) -> bool:
    """Return whether a folder already holds this run at the same step, so that a test of its policy remains valid."""
    if not (place / RESULT_FACTS).is_file():
        return False
    earlier = read_result(place).facts
    return all(earlier.get(name) == facts[name] for name in ("created", "step", "ended"))


def _group_name(config: Config, facts: Mapping[str, Any], variant: str | None) -> str:
    if variant is None:
        before = facts.get("before")
        origin = [] if before is None else ["after-no-goal" if before["goal"] == "none" else "after-another"]
        return "-".join([algorithm_name(config, derived=True), *origin])
    if variant and not _VARIANT.fullmatch(variant):
        raise ResultsError(f"--variant {variant!r}: expected lower-case letters, digits, dots, plus signs and dashes")
    return f"{config.algo}-{variant}" if variant else config.algo


def _check_place(place: Path, config: Config, step: int) -> None:
    """Refuse to mix different settings in one group of seeds, and to replace a run by a shorter one."""
    for seed in sorted(place.parent.glob("seed-*")):
        other = read_result(seed)
        # How often a run is evaluated may depend on the speed of the machine.
        names = differing(other.config, config, leave_out=("seed", "steps", "evaluation.every"))
        if names:
            raise ResultsError(
                f"{seed} has other settings ({', '.join(names[:3])}): give this run a --variant, or remove that folder"
            )
        if seed == place and other.facts["step"] > step:
            raise ResultsError(f"{place} already has {other.facts['step']:,} steps of this run, and {step:,} are fewer")


def result_facts(facts: Mapping[str, Any], config: Config, step: int) -> dict[str, Any]:
    """Return the content of `facts.json`: versions, kind of machine and times, but no paths, hosts or commands."""
    starts = facts["starts"]
    last = starts[-1] if starts else {}
    return {
        "format": RESULT_FORMAT,
        "status": facts["status"],
        "step": step,
        "steps": config.steps,
        "test_env": other_test_env(facts, config.task),
        "before": facts.get("before"),
        "seconds": facts.get("seconds"),
        "created": facts["created"],
        "ended": facts.get("updated"),
        "starts": [{name: start.get(name) for name in ("started", "from_step", "commit")} for start in starts],
        "system": str(last.get("system", "")).partition("-")[0],
        **{name: last.get(name) for name in ("processor", "cores", "device", "python", "packages")},
    }


# --- Reading --------------------------------------------------------------------------------------------------------


def read_results(results: Path) -> list[Result]:
    """Return all results, sorted by task, algorithm and seed."""
    places = [path.parent for path in results.glob(f"*/*/seed-*/{RESULT_FACTS}")]
    return [read_result(place) for place in sorted(places, key=_order)]


def _order(place: Path) -> tuple[str, str, int]:
    match = _SEED.fullmatch(place.name)
    if match is None:
        raise ResultsError(f"{place}: expected a folder seed-N")
    return place.parent.parent.name, place.parent.name, int(match[1])


def read_result(place: Path) -> Result:
    """Return one result.

    Raises:
        ResultsError: a file is missing, damaged or of another format, or does not match the name of the folder.
    """
    try:
        config = read_config(place)
        facts = json.loads((place / RESULT_FACTS).read_bytes())
        test = json.loads((place / TEST).read_bytes()) if (place / TEST).is_file() else None
    except (OSError, ValueError, RunFolderError) as error:
        raise ResultsError(f"{place}: {' '.join(str(error).split())}") from None
    if facts.get("format") != RESULT_FORMAT:
        raise ResultsError(f"{place / RESULT_FACTS} has format {facts.get('format')}, expected {RESULT_FORMAT}")
    task = task_name(config, other_test_env(facts, config.task))
    if place.name != f"seed-{config.seed}" or place.parent.parent.name != task:
        raise ResultsError(f"{place}: its {CONFIG} is for {task}, seed {config.seed}")
    if not place.parent.name.startswith(config.algo):
        raise ResultsError(f"{place}: its {CONFIG} is for {config.algo}")
    return Result(place, config, facts, _read_curve(place), _read_curve(place, "success_at_end"), test)


def _read_curve(place: Path, column: str = "success") -> SeedCurve:
    """Return the success at each evaluation of a run folder or result that has it."""
    found = read_evaluations(place)
    if found.damaged:
        raise ResultsError(f"{place / EVALUATIONS} is damaged")
    rows = [row for row in found.rows if np.isfinite(row.get(column, np.nan))]
    return SeedCurve(np.array([row["step"] for row in rows], int), np.array([row[column] for row in rows]))
