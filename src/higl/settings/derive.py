"""Settings for an environment without a preset, from what `probe.py` finds there.

For the paper's point maze the rules give nearly its numbers: a goal region 12 wide gives cells of 1, lambda 0.2, a
shift of 2 and a cut-off of 40 (the paper: 38). `docs/own-environment.md` explains them. Each setting can be given
instead; settings that depend on it follow the given value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from higl.errors import SettingsError, TaskError
from higl.settings import probe
from higl.settings.config import Config
from higl.settings.layers import apply, setting_types, toml_line
from higl.settings.presets import preset
from higl.settings.probe import Trace
from higl.settings.summary import environment_summary, schedule_summary

Announce = Callable[[str], object]
"""Receives a text for the user, such as `print`."""

_NO_SUCCESS = (
    'No info["is_success"] in a random episode. If it is never set, the success rate is 0%, and only the return counts.'
)

# Up to this many steps an episode is short, and subgoals come twice as often (as in the paper's arms).
_SHORT_EPISODE = 100

# Presets and defaults whose numbers the rules share: limits of a schedule, and noise.
_ANT, _ARM, _DEFAULT = preset("ant-maze-u"), preset("reacher"), Config()

# A random segment that reaches less than this share of the goal region is uninformative.
_NEGLIGIBLE = 0.005


@dataclass(frozen=True)
class Derived:
    """A derived setting and the reason for its value."""

    name: str
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"{toml_line(self.name, self.value)}  # {self.reason}"


def derive_settings(
    config: Config, given: Collection[str], env: gymnasium.Env, announce: Announce | None = None, *, brief: bool = False
) -> tuple[Config, list[Derived]]:
    """Return settings that fit an environment, and those that were derived; `given` settings (dotted names) stay.

    `announce` receives the derived settings, or with `brief` a summary, and notices about the environment.

    Raises:
        TaskError: the environment fails, or its episodes do not end.
    """
    values = _Values(config, given)
    try:
        if not set(setting_types(Config)) <= set(given):  # else: the complete settings of another run
            _derive(values, env)
        reports_success = probe.reports_success(env)
    except (TaskError, SettingsError):
        raise
    except Exception as error:
        raise TaskError(
            f"task {config.task!r}: the environment raised {type(error).__name__} in a random episode: {error}"
        ) from error
    title = f"{config.task} has no preset. Derived from its environment"
    _announce(announce, title, values.derived, environment_summary(values.config) if brief else None)
    for notice in [*values.notices, *([] if reports_success else [_NO_SUCCESS])]:
        if announce is not None:
            announce(notice)
    return values.config, values.derived


def derive_schedule(
    config: Config, given: Collection[str], announce: Announce | None = None, *, brief: bool = False
) -> tuple[Config, list[Derived]]:
    """Return settings whose schedule fits the number of steps, and those that were derived; a short run plans early.

    If the adjacency network is trained more often, each training is shorter, so that its share of the work stays.
    """
    values = _Values(config, given)
    reason = f"for {config.steps:,} steps"
    rarest = _ANT.adjacency.every
    every = values.put("adjacency.every", int(np.clip(config.steps // 10, 500, rarest)), reason)
    values.put("adjacency.epochs", int(np.clip(every // 400, 2, _DEFAULT.adjacency.epochs)), reason)
    if every < rarest:
        pairs = _ARM.adjacency.all_pairs_up_to
        values.put("adjacency.all_pairs_up_to", pairs, "trainings are frequent: beyond this, a sample of the pairs")
    slowest = _DEFAULT.low.actor_learning_rate
    rate = _number(np.clip(slowest * (_DEFAULT.steps / config.steps) ** 0.5, slowest, 1e-3))
    for level in ("low", "high"):
        values.put(f"{level}.actor_learning_rate", rate, f"{reason}: few updates, so larger steps")
    values.put("high.random_steps", min(config.steps // 20, _ANT.high.random_steps), reason)
    values.put("landmarks.start", int(np.clip(config.steps // 10, every, _DEFAULT.landmarks.start)), reason)
    values.put("evaluation.every", int(np.clip(config.steps // 20, 500, _DEFAULT.evaluation.every)), reason)
    summary = schedule_summary(values.config) if brief else None
    _announce(announce, "Derived from the number of steps", values.derived, summary)
    return values.config, values.derived


def _announce(announce: Announce | None, title: str, derived: list[Derived], summary: str | None) -> None:
    """Announce derived settings, one per line as valid TOML; if there is a summary, only that."""
    if announce is not None and derived:
        announce(summary or "\n".join([f"{title} (each can be set):", *(f"  {line}" for line in derived)]))


class _Values:
    """Settings under derivation."""

    def __init__(self, config: Config, given: Collection[str]):
        self.config, self._given = config, given
        self.derived: list[Derived] = []
        self.notices: list[str] = []

    def put(self, name: str, value: Any, reason: str) -> Any:
        """Derive a setting unless it is given; return its value."""
        if name not in self._given:
            self.config = apply(self.config, {name: value})
            self.derived.append(Derived(name, value, reason))
        return self[name]

    def __getitem__(self, name: str) -> Any:
        value: Any = self.config
        for part in name.split("."):
            value = getattr(value, part)
        return value


# --- Rules ----------------------------------------------------------------------------------------------------------


def _derive(values: _Values, env: gymnasium.Env) -> None:
    horizon = probe.episode_steps(env)
    short = horizon <= _SHORT_EPISODE
    period = values.put("high.period", 5 if short else 10, f"episodes take up to {horizon} steps")
    traces = probe.random_traces(env, period)
    values.notices += probe.goal_notices(*probe.goal_region(env, traces))
    if values["algo"] == "higl":
        values.put("adjacency.degree", (period + 1) // 2, "half a segment: close to the pseudo-landmark")
    else:
        values.put("adjacency.degree", period, "HRAC keeps subgoals within reach of one segment")
    _put_goal_entries(values, traces)
    _put_scales(values, env, traces)
    _put_time(values, traces)
    values.put("low.exploration", _ANT.low.exploration, "a share of half the action range")
    values.put("low.target_noise", _ANT.low.target_noise, "as in TD3")
    values.put("low.target_noise_clip", _ANT.low.target_noise_clip, "as in TD3")


def _put_goal_entries(values: _Values, traces: list[Trace]) -> None:
    """Decide what to hide from the low level, and whether the observation needs the achieved goal."""
    unseen = probe.unobserved_goals(traces)
    reason = (
        f"the observation leaves out goal coordinates {unseen}"
        if unseen
        else "the observation has every goal coordinate"
    )
    added = values.put("observe_achieved", bool(unseen), reason)
    values.put("high.subgoals", "relative", "offsets from the achieved goal")
    found = probe.matching_entries(traces)
    entries = sorted({entry for entries in found for entry in entries})
    reason = "these entries equal the achieved goal" if entries else "no entry equals the achieved goal"
    matters = probe.place_matters(traces, entries)
    if added:
        size = len(found)
        entries = [*range(size), *(size + entry for entry in entries)]
        reason = "the achieved goal, which is prepended"
    if values["high.subgoals"] == "absolute":
        entries, reason = [], "subgoals are absolute: nothing has to be hidden"
    elif matters:
        entries, reason = [], f"the effect of an action depends on {entries}: not hidden"
    values.put("low.hidden_entries", tuple(entries), reason)


def _put_time(values: _Values, traces: list[Trace]) -> None:
    entry = probe.time_entry(traces)
    if entry is None:
        values.put("time_limit", "bootstrap", "time is not observed")
    else:
        values.put("time_limit", "terminal", f"time is observed (entry {entry})")


def _put_scales(values: _Values, env: gymnasium.Env, traces: list[Trace]) -> None:
    """Derive what has the units of the goal space, of the low level's value, or of the reward."""
    low, high = probe.goal_region(env, traces)
    period = values["high.period"]
    reach = probe.segment_reach(traces, period)
    width = float((high - low).max()) or 1.0
    reason = f"the goal region is {_number(width)} wide, a random segment reaches {_number(reach)}"
    if reach < _NEGLIGIBLE * width:  # for example an object that must be touched first: its reach is unknown
        reach = width
    widths = np.maximum(high - low, 0.05 * width)
    if values["high.subgoals"] == "absolute":
        limit = np.maximum(np.maximum(np.abs(low), np.abs(high)), 0.05 * width)
    else:
        limit = np.clip(20 * reach, widths / 4, widths)
    limit = values.put("high.subgoal_range", tuple(_number(x) for x in limit), reason)
    side = np.clip(2 * reach, width / 40, width / 12)
    cell = values.put("adjacency.cell", _number(side), "twice that reach, from 1/40 to 1/12 of the width")
    values.put("novelty.similarity", _number(cell / 5), "a fifth of a cell")
    far = 2 * cell if reach >= width else max(2 * cell, 1.5 * reach)
    shift = values.put("landmarks.shift", _number(far), "one and a half times that reach, at least two cells")
    values.put("high.random_sigma", shift, "the shift")
    _put_value_scales(values, width, cell, shift, len(widths))
    typical = float(np.mean(limit))
    values.put("high.exploration", _number(0.1 * typical), "a tenth of the subgoal range")
    values.put("high.target_noise", _number(0.05 * typical), "a twentieth of the subgoal range")
    values.put("high.target_noise_clip", _number(0.1 * typical), "twice that")
    size = probe.reward_size(traces)
    values.put("high.reward_scale", _number(1 / (period * size)), "the reward of a segment is about 1")


def _put_value_scales(values: _Values, width: float, cell: float, shift: float, dimensions: int) -> None:
    """Derive what is measured in the low level's value: the cost of standing still at a distance for ever."""
    scale = values.put("low.reward_scale", _number(1 / cell), "the low level counts distance in cells")
    landmarks = max(1, values["landmarks.coverage"] + values["landmarks.novelty"])
    spacing = max(shift, width / landmarks ** (1 / dimensions))
    forever = 1 / (1 - min(values["low.discount"], 0.999))
    cutoff = values.put(
        "landmarks.cutoff", _number(spacing * scale * forever), f"the value of staying {_number(spacing)} away"
    )
    values.put("landmarks.goal_within", _number(cutoff / 4), "a quarter of the cut-off")


def _number(value: Any) -> float:
    """Return a number rounded to two significant digits: these are rules of thumb."""
    return float(f"{float(value):.2g}")
