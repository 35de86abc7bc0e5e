"""Presets: `paper` holds the paper's numbers task by task, `best` (the default) one recipe for every environment.

Each is a TOML file of layers over the defaults of `config.py`, which gives the reason for each value. What `best`
leaves open is derived from the environment (`derive.py`).
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from higl.errors import SettingsError
from higl.settings.config import Algorithm, Config, GoalSource, Preset
from higl.settings.flat import Layer, flat, flat_config, nested

# The layers of each task in `paper`, in order. Ant Maze U has none: its numbers are the defaults.
_LAYERS = {
    "point-maze": ("point-maze",),
    "ant-maze-u": (),
    "ant-maze-u-stochastic": (),
    "ant-maze-u-large": ("ant-maze-u-large",),
    "ant-maze-w": ("ant-maze-w",),
    "reacher": ("arm", "reacher"),
    "pusher": ("arm", "pusher"),
}

PAPER_TASKS = tuple(_LAYERS)
"""Short names of the paper's tasks."""

# By Gymnasium id: higl/AntMazeU-v0 is ant-maze-u.
_SHORT_NAMES = {f"higl/{name.title().replace('-', '')}-v0": name for name in PAPER_TASKS}


@cache
def _file(family: Preset) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(f"{family}.toml").read_text(encoding="utf-8"))


@cache
def _of_higl(task: str, family: Preset) -> Config:
    """Return the settings of HIGL: all layers of a task in `paper`, the only layer of `best`."""
    values: Layer = flat_config(Config()) | {"task": task, "preset": family}
    for name in _LAYERS.get(task, ()) if family == "paper" else ("all",):
        values |= flat(_file(family)[name])
    return msgspec.convert(nested(values), Config)


def preset(task: str, algo: Algorithm = "higl", family: Preset = "best", goal: GoalSource = "given") -> Config:
    """Return the settings of a preset for a task and an algorithm, with or without a final goal.

    HRAC and HIRO relabel subgoals, as their authors do, and have k = m: HRAC keeps subgoals within the k-step region of
    the current state, where HIGL has a smaller k for the region around the pseudo-landmark.

    Raises:
        SettingsError: there is no such preset.
    """
    if family not in get_args(Preset):
        raise SettingsError(
            f"preset = {json.dumps(family, default=str)}: expected one of {', '.join(get_args(Preset))}"
        )
    config = replace(_of_higl(short_name(task), family), algo=algo, goal=goal)
    if algo != "higl":
        high, adjacency = replace(config.high, relabel=True), replace(config.adjacency, degree=config.high.period)
        config = replace(config, high=high, adjacency=adjacency)
    return config


def short_name(task: str) -> str:
    """Return the short name of one of our tasks that is given by its Gymnasium id; any other name unchanged."""
    return _SHORT_NAMES.get(task, task)


def is_derived(config: Config) -> bool:
    """Return whether settings are derived from the environment: all but those of the paper for its own tasks."""
    return config.preset != "paper" or short_name(config.task) not in PAPER_TASKS


def is_derivable(name: str, config: Config) -> bool:
    """Return whether a run with these settings derives one of them (dotted name), unless it is given: `derive.py`."""
    return is_derived(config) and (name in _DERIVABLE or (name in _WITHOUT_MAP and not config.walks_map))


_DERIVABLE = {
    "goal_unit",
    "observe_achieved",
    "time_limit",
    *("low.hidden_entries", "low.angles", "low.action_share"),
    *("high.period", "high.subgoals", "high.subgoal_range"),
    "evaluation.every",
}
# Derived only for a high level with networks.
_WITHOUT_MAP = {
    *("high.reward_scale", "high.random_steps"),
    *("adjacency.degree", "adjacency.every", "adjacency.epochs", "adjacency.all_pairs_up_to"),
    "landmarks.start",
}


def has_rewards(task: str) -> bool:
    """Return whether a task offers a dense and a sparse reward: ours do, and so do mazes built from our classes."""
    return task in PAPER_TASKS or task.startswith("higl/")
