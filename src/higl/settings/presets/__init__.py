"""Presets: `paper` holds the paper's numbers, `best` (the default) what learns fastest in our own runs.

Each is a TOML file of layers, which gives the reason for each value. `best` is layered over `paper`, and `paper` over
the defaults of `config.py`.
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

# The layers of each task, in order, after `all`.
_LAYERS = {
    "point-maze": ("point-maze",),
    "ant-maze-u": ("few-landmarks", "ant", "ant-maze-u"),
    "ant-maze-u-stochastic": ("few-landmarks", "ant", "ant-maze-u"),
    "ant-maze-u-large": ("ant", "ant-maze-u-large"),
    "ant-maze-w": ("ant", "ant-maze-w"),
    "reacher": ("few-landmarks", "arm", "reacher"),
    "pusher": ("few-landmarks", "arm", "pusher"),
}
# Layers of tasks without a preset; `derive.py` adds to them.
_OTHER_LAYERS = ("few-landmarks", "other")
# The last layer of every task that is trained without a goal.
_NO_GOAL = ("no-goal",)

PRESET_TASKS = tuple(_LAYERS)
"""Short names of the tasks with presets."""

# By Gymnasium id: higl/AntMazeU-v0 is ant-maze-u.
_SHORT_NAMES = {f"higl/{name.title().replace('-', '')}-v0": name for name in PRESET_TASKS}


@cache
def _file(family: Preset) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(f"{family}.toml").read_text(encoding="utf-8"))


@cache
def _of_higl(task: str, family: Preset, goal: GoalSource) -> Config:
    """Return the settings of HIGL: all layers of a task, `best` over `paper`."""
    families: tuple[Preset, ...] = ("paper",) if family == "paper" else ("paper", "best")
    values: Layer = flat_config(Config()) | {"task": task, "preset": family, "goal": goal}
    layers = ("all", *_LAYERS.get(task, _OTHER_LAYERS), *(_NO_GOAL if goal == "none" else ()))
    for each in families:
        for name in layers:
            values |= flat(_file(each).get(name, {}))
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
    config = replace(_of_higl(short_name(task), family, goal), algo=algo)
    if algo != "higl":
        high, adjacency = replace(config.high, relabel=True), replace(config.adjacency, degree=config.high.period)
        config = replace(config, high=high, adjacency=adjacency)
    return config


def short_name(task: str) -> str:
    """Return the short name of one of our tasks that is given by its Gymnasium id; any other name unchanged."""
    return _SHORT_NAMES.get(task, task)


def has_preset(task: str) -> bool:
    """Return whether a task's settings come from a preset; otherwise they are derived from its environment."""
    return short_name(task) in PRESET_TASKS


def has_rewards(task: str) -> bool:
    """Return whether a task offers a dense and a sparse reward: ours do, and so do mazes built from our classes."""
    return task in PRESET_TASKS or task.startswith("higl/")
