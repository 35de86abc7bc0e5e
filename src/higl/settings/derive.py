"""Settings that depend on the environment, from what `probe.py` finds there.

The goal space gets a unit in which every task has about the size of the paper's mazes, and a segment leads about one
unit far; all other settings are then the same for every task. `docs/own-environment.md` explains the rules. Each
setting can be given instead; settings that depend on it follow the given value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from higl.errors import SettingsError, TaskError
from higl.settings import probe
from higl.settings.config import GOAL_REGION, Config
from higl.settings.layers import apply, setting_types, toml_line
from higl.settings.presets import preset
from higl.settings.probe import Trace
from higl.settings.summary import environment_summary, schedule_summary

Announce = Callable[[str], object]
"""Receives a text for the user, such as `print`."""

_NO_SUCCESS = (
    'No info["is_success"] in a random episode. If it is never set, the success rate is 0%, and only the return counts.'
)
_NO_HINDSIGHT = (
    "No compute_reward(achieved_goal, desired_goal, info) that works with an empty info: the high level cannot learn "
    "from goals that were reached by chance, and will learn more slowly."
)

# A goal with more coordinates than space has is about several things.
_SPACE = 3

# Segments of an episode at the least, and the steps of the shortest segment.
_SEGMENTS, _SHORTEST_PERIOD = 10, 2

# Shares of the range of the actions that are tried on a body that may fall over. A policy that learns to run is rougher
# than random actions: it gets this part of the share with which they are safe.
_SHARES, _ROUGHER = (1.0, 0.5, 0.25, 0.125), 0.7

# If the widest dimension is this many times wider than the narrowest, each dimension gets a unit of its own.
_DISPARATE = 30

# A step of the environment that takes so many seconds is slow: about as long as learning from it, and five times as
# long as a step of our slowest task. Evaluations are then at most this share of the steps.
_SLOW_STEP, _EVALUATED = 2e-3, 0.1

# Steps between two evaluations, at the least.
_MOST_FREQUENT = 500

# The recipe and the defaults, whose numbers are the limits of a schedule; and pairs for trainings that are frequent.
_RECIPE, _DEFAULT, _FEW_PAIRS = preset(""), Config(), 300


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
        reports_success = config.explores_freely or probe.reports_success(env)
    except (TaskError, SettingsError):
        raise
    except Exception as error:
        raise TaskError(
            f"task {config.task!r}: the environment raised {type(error).__name__} in a random episode: {error}"
        ) from error
    title = f"{config.task}: derived from its environment"
    told = [derived for derived in values.derived if derived.name != "evaluation.every"]  # that is part of the schedule
    _announce(announce, title, told, environment_summary(values.config) if brief else None)
    hindsight = not values.config.learns_in_hindsight or probe.rewards_any_goal(env)
    notices = [*values.notices, *([] if reports_success else [_NO_SUCCESS]), *([] if hindsight else [_NO_HINDSIGHT])]
    for notice in notices:
        if announce is not None:
            announce(notice)
    return values.config, values.derived


def derive_schedule(
    config: Config,
    given: Collection[str],
    announce: Announce | None = None,
    *,
    brief: bool = False,
    found: Collection[Derived] = (),
) -> tuple[Config, list[Derived]]:
    """Return settings whose schedule fits the number of steps, and those that were derived; a short run plans early.

    `found` is what was derived from the environment: in a slow one, evaluations are rare.
    If the adjacency network is trained more often, each training is shorter, so that its share of the work stays.
    """
    values = _Values(config, given)
    reason = f"for {config.steps:,} steps"
    if not config.walks_map:
        rarest = _RECIPE.adjacency.every
        every = values.put("adjacency.every", int(np.clip(config.steps // 10, 500, rarest)), reason)
        values.put("adjacency.epochs", int(np.clip(every // 400, 2, _DEFAULT.adjacency.epochs)), reason)
        if every < rarest:
            values.put(
                "adjacency.all_pairs_up_to", _FEW_PAIRS, "trainings are frequent: beyond this, a sample of the pairs"
            )
        values.put("high.random_steps", min(config.steps // 20, _RECIPE.high.random_steps), reason)
        values.put("landmarks.start", int(np.clip(config.steps // 10, every, _DEFAULT.landmarks.start)), reason)
    every = int(np.clip(config.steps // 20, _MOST_FREQUENT, _DEFAULT.evaluation.every))
    rare = next((derived for derived in found if derived.name == "evaluation.every" and derived.value > every), None)
    values.put("evaluation.every", *((every, reason) if rare is None else (rare.value, rare.reason)))
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
        if not self.is_given(name):
            self.config = apply(self.config, {name: value})
            self.derived.append(Derived(name, value, reason))
        return self[name]

    def is_given(self, name: str) -> bool:
        """Return whether a setting was given, so that it must not be derived."""
        return name in self._given

    def __getitem__(self, name: str) -> Any:
        value: Any = self.config
        for part in name.split("."):
            value = getattr(value, part)
        return value


# --- Rules ----------------------------------------------------------------------------------------------------------


def _derive(values: _Values, env: gymnasium.Env) -> None:
    horizon = probe.episode_steps(env)
    traces = probe.random_traces(env, _DEFAULT.high.period)
    values.notices += probe.goal_notices(*probe.goal_region(env, traces))
    _put_unit(values, env, traces)
    _put_period(values, horizon)
    _put_goal_entries(values, traces)
    _put_angles(values, env)
    _put_action_share(values, env)
    _put_time(values, traces)
    _space_evaluations(values, horizon, probe.step_seconds(traces))
    if not values.config.walks_map:
        _put_high_level(values, env, traces)


def _put_high_level(values: _Values, env: gymnasium.Env, traces: list[Trace]) -> None:
    """Derive what only networks of the high level need."""
    period = values["high.period"]
    if values["algo"] == "higl":
        values.put("adjacency.degree", (period + 1) // 2, "half a segment: close to the pseudo-landmark")
    else:
        values.put("adjacency.degree", period, "HRAC keeps subgoals within reach of one segment")
    if values.config.draws_goals:  # the task's own rewards are hidden
        traces = probe.with_goals_of_others(env, traces)
    scale = _number(1 / (period * probe.reward_size(traces)))
    values.put("high.reward_scale", scale, "the reward of a segment is about 1")


def _put_unit(values: _Values, env: gymnasium.Env, traces: list[Trace]) -> None:
    """Derive the unit of the goal space, so that every task has about the size of the paper's mazes in units."""
    low, high = probe.goal_region(env, traces)
    if values["goal"] == "none":  # no goal shows how large the world is
        low, high = probe.declared_region(env, low, high)
    widths = high - low
    widths = np.where(widths > 0, widths, widths.max() or 1.0)
    if widths.max() <= _DISPARATE * widths.min():
        unit = (_number(widths.max() / GOAL_REGION),)
        reason = f"the goal region is {_number(widths.max())} wide"
    else:
        unit = tuple(_number(width / GOAL_REGION) for width in widths)
        reason = "the goal dimensions have very different ranges"
    switched = probe.switches(traces) & (widths < np.broadcast_to(unit, widths.shape))
    if switched.any():
        unit = tuple(_number(each) for each in np.where(switched, widths, np.broadcast_to(unit, widths.shape)))
        reason = f"{reason}, a switch at least a unit"
    unit = values.put("goal_unit", unit, f"{reason}: that is {GOAL_REGION} units")
    reason = "the width of the goal region"
    if values["high.subgoals"] == "absolute":
        widths, reason = np.maximum(np.abs(low), np.abs(high)), "the farthest goal from the origin"
    wide = np.maximum(widths, np.broadcast_to(np.asarray(unit), widths.shape))
    values.put("high.subgoal_range", tuple(_number(width) for width in wide), reason)


def _put_period(values: _Values, horizon: int) -> None:
    """Derive the length of a segment in steps: at least ten to an episode. With a map, segments also end on arrival."""
    period = int(np.clip(horizon // _SEGMENTS, _SHORTEST_PERIOD, _DEFAULT.high.period))
    values.put("high.period", period, f"episodes take up to {horizon} steps: at least {_SEGMENTS} segments")


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
    elif len(found) > _SPACE:
        entries, reason = [], "more than one thing moves, and where each is matters to the others: nothing is hidden"
    elif matters:
        entries, reason = [], f"the effect of an action depends on {entries}: not hidden"
    values.put("low.hidden_entries", tuple(entries), reason)


def _put_angles(values: _Values, env: gymnasium.Env) -> None:
    """Find angles that turn without limits: as plain numbers, no scale would fit them."""
    angles = probe.turning_angles(env)
    goals: Any = env.observation_space
    first = goals["desired_goal"].shape[0] if values["observe_achieved"] else 0
    reason = "joints that turn without limits" if angles else "no joint of a MuJoCo model turns without limits"
    entries = [first + entry for entry in angles]
    values.put("low.angles", tuple(entry for entry in entries if entry not in values["low.hidden_entries"]), reason)


def _put_action_share(values: _Values, env: gymnasium.Env) -> None:
    """Restrain the motors of a body that may fall over: it would learn to run by falling, and lie on its back."""
    if not values.is_given("low.action_share"):  # spares the random episodes
        values.put("low.action_share", *_action_share(env))


def _action_share(env: gymnasium.Env) -> tuple[float, str]:
    """Return the share of the range of the actions to be used, and the reason."""
    for share in _SHARES:
        falls = probe.turned_over(env, share)
        if falls is None:
            return 1.0, "no body of a MuJoCo model moves freely"
        if not falls:
            reason = f"{_ROUGHER:g} of the share with which random actions never turn the body over ({share:g})"
            return _number(_ROUGHER * share), reason
    return 1.0, "random actions turn the body over, however weak they are"


def _put_time(values: _Values, traces: list[Trace]) -> None:
    entry = probe.time_entry(traces)
    if entry is None:
        values.put("time_limit", "bootstrap", "time is not observed")
    else:
        values.put("time_limit", "terminal", f"time is observed (entry {entry})")


def _space_evaluations(values: _Values, horizon: int, seconds: float) -> None:
    """Derive the least number of steps between two evaluations, if a step of the environment is slow.

    It is decided once, before the run: a rule that reads the clock during a run would break exact resuming.
    """
    steps = horizon * values["evaluation.episodes"]
    every = round(steps / _EVALUATED)
    if seconds < _SLOW_STEP or every <= _MOST_FREQUENT or values.is_given("evaluation.every"):
        return
    values.put("evaluation.every", every, f"a slow environment: evaluations take up to {_EVALUATED:.0%} of the steps")
    values.notices.append(
        f"A step of the environment takes {1e3 * seconds:.2g} ms, and an evaluation up to {steps:,} steps: evaluations "
        f"are at least {every:,} steps apart, so that they take little of the time (`evaluation.every`)."
    )


def _number(value: Any) -> float:
    """Return a number rounded to two significant digits: these are rules of thumb."""
    return float(f"{float(value):.2g}")
