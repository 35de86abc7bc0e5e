"""Settings for an environment that no preset knows, from its spaces and a short random rollout.

The rules give nearly the paper's numbers where its point maze is put in: a goal region 12 wide gives cells of 1, lambda
0.2, a shift of 2 and a cut-off of 40 (the paper: 38). `docs/own-environment.md` tells them in words. Each setting can
be given instead; those that depend on it follow the one given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from higl.errors import SettingsError, TaskError
from higl.settings.config import Config
from higl.settings.layers import apply, setting_types

EPISODES, STEPS, RESETS = 10, 100, 40
"""Random episodes, steps of each, and resets whose start and goal are looked at besides."""

LONGEST_EPISODE = 10_000
"""An episode that is longer counts as one that never ends."""

NO_SUCCESS_TOLD = (
    'No info["is_success"] in a random episode: if it never comes, success reads 0%, and only the return counts.'
)

# Up to this many steps an episode is short, and subgoals come twice as often (as the paper has it for its arms).
_SHORT_EPISODE = 100

# Most steps between two trainings of the adjacency network, and most steps with random subgoals.
_ADJACENCY_EVERY, _RANDOM_STEPS = 10_000, 50_000

_SAME = 1e-4

# A share of the variance below which the next observation counts as predicted.
_PREDICTABLE = 0.02

# A random segment that reaches less than this share of the goal region says nothing.
_NEGLIGIBLE = 0.005


@dataclass(frozen=True)
class Derived:
    """A setting that was derived, and why it has this value."""

    name: str
    value: Any
    reason: str

    def __str__(self) -> str:
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return f"{self.name} = {value}  # {self.reason}"


@dataclass(frozen=True)
class Trace:
    """A random episode, or its beginning: T + 1 states, T actions and rewards."""

    observation: np.ndarray
    achieved: np.ndarray
    desired: np.ndarray
    action: np.ndarray
    reward: np.ndarray


def derive(config: Config, given: Collection[str], env: gymnasium.Env) -> tuple[Config, list[Derived]]:
    """Return settings that fit an environment, and what was derived; what is `given` (dotted names) stays.

    Raises:
        TaskError: the environment fails, or its episodes do not end.
    """
    values = _Values(config, given)
    if set(setting_types(Config)) <= set(given):  # the configuration of another run
        return config, []
    try:
        _derive(values, env)
    except (TaskError, SettingsError):
        raise
    except Exception as error:
        raise TaskError(
            f"task {config.task!r}: the environment raised {type(error).__name__} in a random episode: {error}"
        ) from error
    return values.config, values.derived


def _derive(values: _Values, env: gymnasium.Env) -> None:
    horizon = episode_steps(env)
    short = horizon <= _SHORT_EPISODE
    period = values.put("high.period", 5 if short else 10, f"episodes take up to {horizon} steps")
    traces = random_traces(env, period)
    if values["algo"] == "higl":
        values.put("adjacency.degree", (period + 1) // 2, "half a segment: near the pseudo-landmark, not just near")
    else:
        values.put("adjacency.degree", period, "HRAC holds subgoals within what one segment can reach")
    _put_goal_entries(values, traces)
    _put_scales(values, env, traces)
    _put_time(values, traces)
    values.put("low.exploration", 0.1, "a tenth of the range")
    values.put("low.target_noise", 0.2, "as TD3 has it")
    values.put("low.target_noise_clip", 0.5, "as TD3 has it")


def derive_schedule(config: Config, given: Collection[str]) -> tuple[Config, list[Derived]]:
    """Return settings whose dates fit the number of steps, and what was derived; a short run plans early, too.

    Where the adjacency network is trained more often, each training is shorter, so that its share of the work stays.
    """
    values = _Values(config, given)
    reason = f"for {config.steps:,} steps"
    every = values.put("adjacency.every", int(np.clip(config.steps // 10, 500, _ADJACENCY_EVERY)), reason)
    values.put("adjacency.epochs", int(np.clip(every // 400, 2, 25)), reason)
    if every < _ADJACENCY_EVERY:
        values.put("adjacency.all_pairs_up_to", 300, "the trainings are many: the rest of the pairs is a sample")
    rate = _number(np.clip(1e-4 * (1_000_000 / config.steps) ** 0.5, 1e-4, 1e-3))
    for level in ("low", "high"):
        values.put(f"{level}.actor_learning_rate", rate, f"{reason}: few updates, larger ones")
    values.put("high.random_steps", int(min(config.steps // 20, _RANDOM_STEPS)), reason)
    values.put("landmarks.start", int(np.clip(config.steps // 10, every, 60_000)), reason)
    values.put("evaluation.every", int(np.clip(config.steps // 20, 500, 5_000)), reason)
    return values.config, values.derived


class _Values:
    """Settings under derivation."""

    def __init__(self, config: Config, given: Collection[str]):
        self.config, self._given = config, given
        self.derived: list[Derived] = []

    def put(self, name: str, value: Any, reason: str) -> Any:
        """Derive a setting, unless it is given; return what holds."""
        if name not in self._given:
            self.config = apply(self.config, {name: value})
            self.derived.append(Derived(name, value, reason))
        return self[name]

    def __getitem__(self, name: str) -> Any:
        value: Any = self.config
        for part in name.split("."):
            value = getattr(value, part)
        return value


# --- Looking at the environment -------------------------------------------------------------------------------------


def episode_steps(env: gymnasium.Env) -> int:
    """Return how long an episode may take: the declared limit, else the length of a random one.

    Raises:
        TaskError: neither is known after many steps.
    """
    limit = getattr(env.spec, "max_episode_steps", None)
    try:
        limit = limit or env.get_wrapper_attr("_max_episode_steps")
    except AttributeError:
        limit = limit or None
    if limit is not None:
        return int(limit)
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for step in range(1, LONGEST_EPISODE + 1):
        _, _, terminated, truncated, _ = env.step(_random_action(env, rng))
        if terminated or truncated:
            return step
    raise TaskError(
        f"an episode did not end within {LONGEST_EPISODE:,} steps: give it a limit, "
        "env = gymnasium.wrappers.TimeLimit(env, max_episode_steps=500)"
    )


def tells_success(env: gymnasium.Env) -> bool:
    """Return whether anything in a random episode, or its beginning, tells success or its want."""
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(STEPS):
        _, _, terminated, truncated, info = env.step(_random_action(env, rng))
        if {"is_success", "success"} & set(info):
            return True
        if terminated or truncated:
            break
    return False


def random_traces(env: gymnasium.Env, period: int) -> list[Trace]:
    """Act at random: each second segment of `period` steps holds one action, the others draw anew at every step.

    Held actions show how far a segment can lead, where a random walk would stay. The last traces are resets alone.
    """
    return [
        _random_trace(env, seed, STEPS if seed < EPISODES else 0, period, np.random.default_rng([seed, 3]))
        for seed in range(EPISODES + RESETS)
    ]


def _random_trace(env: gymnasium.Env, seed: int, steps: int, period: int, rng: np.random.Generator) -> Trace:
    observation, _ = env.reset(seed=seed)
    states, actions, rewards = [_vectors(observation)], [], []
    action = _random_action(env, rng)
    for step in range(steps):
        if step % period == 0 or (step // period) % 2:
            action = _random_action(env, rng)
        observation, reward, terminated, truncated, _ = env.step(action)
        states.append(_vectors(observation))
        actions.append(action)
        rewards.append(float(reward))
        if terminated or truncated:
            break
    columns = [np.stack(column) for column in zip(*states, strict=True)]
    if not all(np.isfinite(column).all() for column in (*columns, rewards)):
        raise TaskError("the environment gave NaN or infinity in a random episode")
    return Trace(*columns, np.asarray(actions, np.float64), np.asarray(rewards))


def _vectors(observation: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.array(observation[part], np.float64) for part in ("observation", "achieved_goal", "desired_goal"))


def _random_action(env: gymnasium.Env, rng: np.random.Generator) -> np.ndarray:
    space: Any = env.action_space
    return rng.uniform(space.low, space.high).astype(space.dtype)


# --- Goal coordinates in the observation ----------------------------------------------------------------------------


def matching_entries(traces: Iterable[Trace]) -> list[list[int]]:
    """Return, for each dimension of the goal space, the entries of the observation that always equal it.

    A dimension that never changes equals others by chance: it matches none.
    """
    traces = list(traces)
    observation = np.concatenate([trace.observation for trace in traces])
    achieved = np.concatenate([trace.achieved for trace in traces])
    found = []
    for goal in achieved.T:
        tolerance = _SAME * max(np.ptp(goal), 1e-12)
        same = np.abs(observation - goal[:, None]).max(axis=0) <= tolerance + 1e-6 * np.abs(goal).max()
        found.append([int(entry) for entry in np.flatnonzero(same)] if _varies(goal) else [])
    return found


def _varies(values: np.ndarray) -> bool:
    return bool(np.ptp(values) > 1e-6 * max(1.0, np.abs(values).max()))


def _put_goal_entries(values: _Values, traces: list[Trace]) -> None:
    """Decide what the low level must not see, and whether the high level must be shown where it is."""
    found = matching_entries(traces)
    achieved = np.concatenate([trace.achieved for trace in traces])
    unseen = [index for index, entries in enumerate(found) if not entries and _varies(achieved[:, index])]
    reason = (
        f"the observation leaves out goal coordinates {unseen}"
        if unseen
        else "the observation has every goal coordinate"
    )
    added = values.put("observe_achieved", bool(unseen), reason)
    values.put("high.subgoals", "relative", "offsets from where the agent is")
    entries = sorted({entry for entries in found for entry in entries})
    reason = "these entries equal the achieved goal" if entries else "none equals the achieved goal"
    matters = place_matters(traces, entries)
    if added:
        size = len(found)
        entries = [*range(size), *(size + entry for entry in entries)]
        reason = "the achieved goal, put in front"
    if values["high.subgoals"] == "absolute":
        entries, reason = [], "subgoals are absolute: nothing has to be hidden"
    elif matters:
        entries, reason = [], f"what an action does depends on {entries}: not hidden"
    values.put("low.hidden_entries", tuple(entries), reason)


def place_matters(traces: Iterable[Trace], entries: Collection[int]) -> bool:
    """Return whether what an action does depends on where the agent is: on a hill, say, but not on a plain.

    Two regressions (ridge, on random features) predict how the rest of the observation changes, one with the goal's
    coordinates and one without; it matters if the coordinates take away half of the error on episodes not fitted.
    """
    traces = [trace for trace in traces if len(trace.reward)]
    fitted, held_out = traces[::2], traces[1::2]
    inputs = np.concatenate([trace.observation[:-1] for trace in traces])
    rest = [entry for entry in range(inputs.shape[1]) if entry not in entries and _varies(inputs[:, entry])]
    if not entries or not rest or not held_out:
        return False

    def columns(some: list[Trace], seen: list[int]) -> tuple[np.ndarray, np.ndarray]:
        before = np.concatenate([np.hstack([trace.observation[:-1][:, seen], trace.action]) for trace in some])
        return before, np.concatenate([np.diff(trace.observation[:, rest], axis=0) for trace in some])

    blind, sighted = (
        _prediction_error(*columns(fitted, seen), *columns(held_out, seen)) for seen in (rest, [*rest, *entries])
    )
    return blind > _PREDICTABLE and sighted < 0.5 * blind


def _prediction_error(x: np.ndarray, y: np.ndarray, test_x: np.ndarray, test_y: np.ndarray) -> float:
    """Return the share of the variance that a ridge regression on random features leaves, on other data."""
    centre, scale = x.mean(axis=0), x.std(axis=0) + 1e-9
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(x.shape[1], 100)), rng.normal(size=100)

    def features(values: np.ndarray) -> np.ndarray:
        values = (values - centre) / scale
        return np.hstack([values, np.tanh(values @ weight + bias), np.ones((len(values), 1))])

    unit, middle = y.std(axis=0) + 1e-12, y.mean(axis=0)
    known = features(x)
    solution = np.linalg.solve(known.T @ known + 1e-2 * np.eye(known.shape[1]), known.T @ ((y - middle) / unit))
    return float(np.mean(np.square((test_y - middle) / unit - features(test_x) @ solution)))


def _put_time(values: _Values, traces: list[Trace]) -> None:
    entry = time_entry(traces)
    if entry is None:
        values.put("time_limit", "bootstrap", "time is not observed")
    else:
        values.put("time_limit", "terminal", f"time is observed (entry {entry})")


def time_entry(traces: Iterable[Trace]) -> int | None:
    """Return the entry of the observation that tells the time: the same at each step of every episode, and rising."""
    observations = [trace.observation for trace in traces if len(trace.observation) > 2]
    if len(observations) < 2:
        return None
    length = min(map(len, observations))
    stacked = np.stack([observation[:length] for observation in observations])
    same = np.ptp(stacked, axis=0).max(axis=0) <= 1e-9 + 1e-6 * np.abs(stacked).max(axis=(0, 1))
    steps = np.diff(stacked[0], axis=0)
    rising = (steps > 0).all(axis=0) | (steps < 0).all(axis=0)
    found = np.flatnonzero(same & rising)
    return int(found[0]) if len(found) else None


# --- Scales ---------------------------------------------------------------------------------------------------------


def goal_region(env: gymnasium.Env, traces: Iterable[Trace]) -> tuple[np.ndarray, np.ndarray]:
    """Return the box that starts, desired goals and (but for outliers) random episodes lie in: low [G], high [G].

    It is cut to the box that the environment declares, but where all that was seen lies outside of that.
    """
    traces = list(traces)
    ends = np.concatenate([np.stack([trace.achieved[0], trace.desired[0]]) for trace in traces])
    walked = np.concatenate([trace.achieved for trace in traces])
    low = np.minimum(ends.min(axis=0), np.quantile(walked, 0.05, axis=0))
    high = np.maximum(ends.max(axis=0), np.quantile(walked, 0.95, axis=0))
    space: Any = env.observation_space
    declared = space["achieved_goal"]
    agree = (low <= declared.high) & (high >= declared.low)
    return (
        np.where(agree, np.maximum(low, declared.low), low),
        np.where(agree, np.minimum(high, declared.high), high),
    )


def segment_reach(traces: Iterable[Trace], period: int) -> float:
    """Return how far a segment leads: the 95% quantile of the distance between its ends, under random actions."""
    moves = [
        np.linalg.norm(trace.achieved[stop] - trace.achieved[stop - period])
        for trace in traces
        for stop in range(period, len(trace.achieved), period)
    ]
    return float(np.quantile(moves, 0.95)) if moves else 0.0


def _put_scales(values: _Values, env: gymnasium.Env, traces: list[Trace]) -> None:
    """Derive all that has the units of the goal space, of the low level's value, or of the reward."""
    low, high = goal_region(env, traces)
    period = values["high.period"]
    reach = segment_reach(traces, period)
    width = float((high - low).max()) or 1.0
    reason = f"the goal region is {_number(width)} wide, a random segment reaches {_number(reach)}"
    if reach < _NEGLIGIBLE * width:  # an object, say, that has to be touched first: it tells nothing of what can be
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
    shift = values.put("landmarks.shift", _number(far), "one and a half times that reach, or two cells if that is more")
    values.put("high.random_sigma", shift, "the shift")
    _put_value_scales(values, width, cell, shift, len(widths))
    typical = float(np.mean(limit))
    values.put("high.exploration", _number(0.1 * typical), "a tenth of the subgoal range")
    values.put("high.target_noise", _number(0.05 * typical), "a twentieth of the subgoal range")
    values.put("high.target_noise_clip", _number(0.1 * typical), "twice that")
    size = float(np.quantile(np.abs(np.concatenate([trace.reward for trace in traces])), 0.95)) or 1.0
    values.put("high.reward_scale", _number(1 / (period * size)), "a segment's reward is about 1")


def _put_value_scales(values: _Values, width: float, cell: float, shift: float, dimensions: int) -> None:
    """Derive what is measured in the low level's value: the cost of standing still at a distance for ever."""
    scale = values.put("low.reward_scale", _number(1 / cell), "the low level counts distance in cells")
    landmarks = max(1, values["landmarks.coverage"] + values["landmarks.novelty"])
    spacing = max(shift, width / landmarks ** (1 / dimensions))
    forever = 1 / (1 - min(values["low.discount"], 0.999))
    cutoff = values.put(
        "landmarks.cutoff", _number(spacing * scale * forever), f"{_number(spacing)} away, and never nearer"
    )
    values.put("landmarks.goal_within", _number(cutoff / 4), "a quarter of the cut-off")


def _number(value: Any) -> float:
    """Return a number to two significant digits: these are rules of thumb."""
    return float(f"{float(value):.2g}")


def describe(derived: Iterable[Derived]) -> str:
    """Return what was derived, a setting a line, as TOML takes it."""
    return "\n".join(f"  {line}" for line in derived)
