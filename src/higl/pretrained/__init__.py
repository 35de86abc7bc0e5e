"""Trained policies that come with the package: small run folders, `TASK-REWARD-ALGO/`, each from one run.

Each holds the run's policy, settings, evaluations and facts (`run.json`: versions, commit, steps), so that every
command that reads a run reads these too. `python -m higl.pretrained RUN` adds one. Imports nothing heavy.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from higl.errors import RunFolderError, WrongFolderError
from higl.run.files import CONFIG, EVALUATIONS, FACTS, POLICY
from higl.run.reading import is_run, last_step, read_config, read_facts
from higl.settings.presets import short_name

FOLDER = Path(__file__).parent

# What `run.json` keeps of each start of the run: what made the numbers, not where.
_START = ("started", "from_step", "processor", "cores", "device", "python", "packages", "commit")


def available() -> list[str]:
    """Return the names of the trained policies, `TASK-REWARD-ALGO`."""
    return sorted(place.name for place in FOLDER.iterdir() if is_run(place))


def pretrained_run(task: str, reward: str | None = None, algo: str = "higl") -> Path:
    """Return the folder of a trained policy; of the sparse reward, if there are two and none is named.

    Raises:
        WrongFolderError: there is none for this task.
    """
    rewards = ("sparse", "dense") if reward is None else (reward,)
    for name in (f"{short_name(task)}-{reward}-{algo}" for reward in rewards):
        if is_run(FOLDER / name):
            return FOLDER / name
    have = ", ".join(available()) or "none yet"
    raise WrongFolderError(f"no trained policy for {task!r} comes with higl; there are: {have}")


def publish(run: Path, folder: Path = FOLDER) -> Path:
    """Copy what is worth shipping of a run into the package, and return where it went.

    Raises:
        RunFolderError: it is no run folder, or has no policy.
    """
    config = read_config(run)
    place = folder / f"{config.task}-{config.reward}-{config.algo}"
    copy_run(run, place)
    return place


def copy_run(run: Path, place: Path, test_env: str | None = None) -> None:
    """Write a small run folder: policy, settings, evaluations, and facts that do not tell where the run was trained.

    `test_env` names the test environment of a run that has no name for it.

    Raises:
        RunFolderError: it is no run folder, or has no policy.
    """
    facts = read_facts(run)
    if not (run / POLICY).exists():
        raise RunFolderError(f"{run} has no policy yet")
    place.mkdir(parents=True, exist_ok=True)
    for name in (POLICY, CONFIG, EVALUATIONS):
        if (run / name).exists():
            shutil.copyfile(run / name, place / name)
    facts["starts"] = [{name: start.get(name) for name in _START} for start in facts["starts"]]
    facts |= {} if test_env is None else {"test_env": test_env}
    facts["steps"] = last_step(run) or facts.get("steps", 0)
    (place / FACTS).write_text(json.dumps(facts, indent=1) + "\n")
