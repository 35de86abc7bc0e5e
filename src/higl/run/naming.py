"""Names of runs, from their settings alone: the same settings always get the same folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from functools import cache
from typing import Any

from higl.settings.config import Config
from higl.settings.flat import differences, differing, flat_config
from higl.settings.layers import setting_types
from higl.settings.presets import has_rewards, is_derivable, preset
from higl.text import number_text

# Settings that have a place of their own in a name, or that do not distinguish runs (precision depends on the machine).
_OWN_PLACE = ("task", "reward", "algo", "preset", "seed", "steps", "precision")
_LONGEST = 80


def changed_settings(config: Config, leave_out: Collection[str] = _OWN_PLACE) -> list[str]:
    """Return the settings (dotted names) of a run that differ from its preset.

    Those that may have been derived from the environment do not count.
    """
    names = differing(preset(config.task, config.algo, config.preset, config.goal), config, leave_out=leave_out)
    return [name for name in names if not is_derivable(name, config)]


def variant_name(config: Config, *, derived: bool = False) -> str:
    """Return how a run's settings differ from the preset `best` of its task and algorithm; empty if they do not.

    `coverage60-novelty60`, `relabel`, `paper`, `paper-shift4`. With `derived`, the settings are those of a run that
    has begun: whatever may have been derived from its environment is left out.
    """
    base, own = preset(config.task, config.algo, config.preset, config.goal), flat_config(config)
    names = changed_settings(config) if derived else differing(base, own, leave_out=_OWN_PLACE)
    changed = [_word(name, own[name]) for name in names]
    first = ([] if config.preset == "best" else [config.preset]) + ["no-goal"] * config.explores_freely
    name = "-".join(first + changed)
    if len(name) > _LONGEST:
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        name = f"{name[: _LONGEST - 9].rstrip('-')}-{digest}"
    return name


def unnamed_changes(config: Config, variant: str) -> list[str]:
    """Return the settings that differ from the preset and that the name of a variant does not contain.

    Each as `name = value -> preset's value`. Settings that may have been derived from the environment do not count.
    """
    base, own = preset(config.task, config.algo, config.preset, config.goal), flat_config(config)
    names = [name for name in changed_settings(config) if f"-{_word(name, own[name])}-" not in f"-{variant}-"]
    return differences(config, base, names)


def task_name(config: Config, test_env: str | None = None) -> str:
    """Return task and reward, and the test environment if it is not the task's own: `ant-maze-u-sparse`."""
    other = test_env if test_env != config.task else None
    name = f"{config.task}-{config.reward}" + (f"-tested-in-{other}" if other else "")
    return re.sub(r"[/:]", "-", name)  # a colon is a host to scp and rsync


def algorithm_name(config: Config, *, derived: bool = False) -> str:
    """Return algorithm and variant: `higl-coverage60-novelty60`."""
    return "-".join(filter(None, [config.algo, variant_name(config, derived=derived)]))


def run_name(config: Config, test_env: str | None = None) -> str:
    """Return the name of a run's folder: `ant-maze-u-sparse-higl-coverage60-0`."""
    return f"{task_name(config, test_env)}-{algorithm_name(config)}-{config.seed}"


def run_title(config: Config) -> str:
    """Return a run's name for people: `ant-maze-u (higl, sparse, seed 0)`."""
    what = "no goal" if config.explores_freely else config.reward
    return f"{config.task} ({config.algo}, {what}, seed {config.seed})"


def algorithm_title(algo: str) -> str:
    """Return an algorithm's name as the papers write it: `HIGL`."""
    return algo.upper() if algo in ("higl", "hrac", "hiro") else algo


def task_title(task: str, reward: str, test_env: str | None = None) -> str:
    """Return a task's name for people: 'Ant Maze U (sparse)'. Ids and names with a module stay as they are.

    The reward is named only for tasks that have more than one, and the test environment if it is not the task's own.
    """
    is_short = task.islower() and not set("/:") & set(task)
    name = " ".join(word.capitalize() for word in task.split("-")) if is_short else task
    title = f"{name} ({reward})" if reward and has_rewards(task) else name
    return title if test_env in (None, task) else f"{title}, tested in {test_env}"


@cache
def _short_names() -> dict[str, str]:
    """Return each setting's last part where that is unambiguous, else its parts with a dash."""
    names = list(setting_types(Config))
    last = [name.rpartition(".")[2] for name in names]
    return {name: part if last.count(part) == 1 else name for name, part in zip(names, last, strict=True)}


def _word(name: str, value: Any) -> str:
    short = _short_names()[name].replace("_", "-").replace(".", "-")
    if isinstance(value, bool):
        return short if value else f"no-{short}"
    if isinstance(value, str):
        return f"{short}-{value}"
    numbers = value if isinstance(value, (list, tuple)) else [value]
    return short + "x".join(map(number_text, numbers))
