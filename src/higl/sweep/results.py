"""`results/`: of each run worth keeping the small text files, without anything about whose machine it ran on.

results/TASK-REWARD/ALGO[-VARIANT]/seed-N/{config.toml,eval.csv,facts.json,test.json}; the last if it was measured.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from higl.errors import ResultsError, RunFolderError, SettingsError
from higl.run.files import CONFIG, EVALUATIONS, replace_file
from higl.run.naming import algorithm_name, different_settings, task_name
from higl.run.reading import last_step, read_config, read_evaluations, read_facts, run_status
from higl.settings.config import Config
from higl.settings.layers import to_toml

RESULT_FACTS = "facts.json"
TEST = "test.json"
_FORMAT = 1
_SEED = re.compile(r"seed-(\d+)")
_VARIANT = re.compile(r"[a-z0-9][a-z0-9.+-]*")


@dataclass(frozen=True)
class Result:
    """One seed in `results/`."""

    path: Path
    config: Config
    facts: Mapping[str, Any]
    steps: tuple[int, ...]
    success: tuple[float, ...]
    test: Mapping[str, Any] | None = None

    @property
    def group(self) -> str:
        """Algorithm and variant, as the folder says."""
        return self.path.parent.name

    @property
    def variant(self) -> str:
        """Variant, as the folder says; empty for a preset's own settings."""
        return self.group.removeprefix(self.config.algo).removeprefix("-")


# --- Adding ---------------------------------------------------------------------------------------------------------


def add_run(run: Path, results: Path, *, variant: str | None = None, partial: bool = False) -> Path:
    """Copy what is worth keeping of a run; return where it is.

    Args:
        run: its folder.
        results: the folder of all results.
        variant: name of the variant, if the one that the settings give is not the right one.
        partial: take a run also if it has not finished.

    Raises:
        ResultsError: the run has not finished, has no evaluations, or its place is taken by another.
        RunFolderError: it is no run folder, or a damaged one.
    """
    facts, config = read_facts(run), read_config(run)
    facts["status"] = run_status(run, facts, config.steps)
    if facts["status"] != "finished" and not partial:
        raise ResultsError(f"{run} is {facts['status']}, not finished: --partial takes it as it is")
    if not _evaluation_rows(run):
        raise ResultsError(f"{run} has no evaluations yet")
    place = results / task_name(config) / _group_name(config, variant) / f"seed-{config.seed}"
    _check_place(place, config, last_step(run))
    kept = result_facts(facts, config, last_step(run))
    if not _has_policy_of(place, kept):
        (place / TEST).unlink(missing_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    replace_file(place / CONFIG, to_toml(config).encode())
    shutil.copyfile(run / EVALUATIONS, place / EVALUATIONS)
    replace_file(place / RESULT_FACTS, (json.dumps(kept, indent=1) + "\n").encode())
    return place


def _has_policy_of(place: Path, facts: Mapping[str, Any]) -> bool:
    """Return whether a place has the same run as it is now, so that a test of its policy still holds.

    Settings are not compared: a run keeps them, and a place has one kind.
    """
    if not (place / RESULT_FACTS).is_file():
        return False
    earlier = read_result(place).facts
    return all(earlier.get(name) == facts[name] for name in ("created", "step", "ended"))


def keep_test(place: Path, summary: Mapping[str, Any]) -> None:
    """Keep what a run's policy came to over test episodes, beside its result."""
    replace_file(place / TEST, (json.dumps(summary, indent=1) + "\n").encode())


def _group_name(config: Config, variant: str | None) -> str:
    if variant is None:
        return algorithm_name(config)
    if variant and not _VARIANT.fullmatch(variant):
        raise ResultsError(f"--variant {variant!r}: expected small letters, digits, dots, plus and dashes")
    return f"{config.algo}-{variant}" if variant else config.algo


def _check_place(place: Path, config: Config, step: int) -> None:
    """Refuse to mix runs of different settings in one curve, and to replace a longer run by a shorter one."""
    for seed in sorted(place.parent.glob("seed-*")):
        other = read_result(seed)
        names = different_settings(other.config, config, "seed", "steps")
        if names:
            raise ResultsError(
                f"{seed} has other settings ({', '.join(names[:3])}): give this run a --variant, or remove that"
            )
        if seed == place and other.facts["step"] > step:
            raise ResultsError(f"{place} has the same run with more steps ({other.facts['step']:,} and {step:,} here)")


def result_facts(facts: Mapping[str, Any], config: Config, step: int) -> dict[str, Any]:
    """Return what `facts.json` says: versions, kind of machine and times, but no paths, hosts or commands."""
    starts = facts["starts"]
    last = starts[-1] if starts else {}
    return {
        "format": _FORMAT,
        "status": facts["status"],
        "step": step,
        "steps": config.steps,
        "seconds": facts.get("seconds"),
        "created": facts["created"],
        "ended": facts.get("updated"),
        "starts": [{name: start.get(name) for name in ("started", "from_step", "commit")} for start in starts],
        "system": str(last.get("system", "")).partition("-")[0],
        **{name: last.get(name) for name in ("processor", "cores", "device", "python", "packages")},
    }


# --- Reading --------------------------------------------------------------------------------------------------------


def read_results(results: Path) -> list[Result]:
    """Return every result, by task, algorithm and seed."""
    if not results.is_dir():
        return []
    places = [place.parent for place in results.glob(f"*/*/seed-*/{RESULT_FACTS}")]
    return [read_result(place) for place in sorted(places, key=_order)]


def _order(place: Path) -> tuple[str, str, int]:
    match = _SEED.fullmatch(place.name)
    if match is None:
        raise ResultsError(f"{place}: expected a folder seed-N")
    return place.parent.parent.name, place.parent.name, int(match[1])


def read_result(place: Path) -> Result:
    """Return one result.

    Raises:
        ResultsError: a file is missing or damaged, or the folder's name says something else than its settings.
    """
    try:
        config = read_config(place)
        facts = json.loads((place / RESULT_FACTS).read_bytes())
        rows = _evaluation_rows(place)
        test = json.loads((place / TEST).read_bytes()) if (place / TEST).is_file() else None
    except (OSError, ValueError, RunFolderError, SettingsError) as error:
        raise ResultsError(f"{place}: {' '.join(str(error).split())}") from None
    if place.name != f"seed-{config.seed}" or place.parent.parent.name != task_name(config):
        raise ResultsError(f"{place}: its {CONFIG} is of {task_name(config)}, seed {config.seed}")
    if not place.parent.name.startswith(config.algo):
        raise ResultsError(f"{place}: its {CONFIG} is of {config.algo}")
    return Result(
        place, config, facts, tuple(int(row["step"]) for row in rows), tuple(row["success"] for row in rows), test
    )


def _evaluation_rows(place: Path) -> list[dict[str, float]]:
    found = read_evaluations(place)
    if found.damaged:
        raise ResultsError(f"{place / EVALUATIONS} is damaged")
    return found.rows
