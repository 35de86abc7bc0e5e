"""Probe an unknown environment with random episodes.

Nothing here knows the settings; `derive.py` turns what is found into settings.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np

from higl.errors import TaskError

EPISODES, STEPS, RESETS = 10, 100, 40
"""Random episodes, steps of each, and further resets that show only starts and goals."""

LONGEST_EPISODE = 10_000
"""An episode that is longer than this counts as endless."""

# Number of goal coordinates from which on the user is told.
_MANY_GOALS = 12

_PARTS = ("observation", "achieved_goal", "desired_goal")

# Largest difference between an entry of the observation and a goal coordinate, as a share of the range of the latter.
_SAME = 1e-4

# MuJoCo's numbers for a joint that moves freely and one that turns about an axis, and for an actuator of a joint.
_FREE, _HINGE, _OF_JOINT = 0, 3, 0

# Steps of the random episodes in which bodies may turn over.
_FALL_STEPS = 300

# Tests have a clock of their own.
_clock = time.perf_counter

# Share of the variance below which the next observation counts as predicted.
_PREDICTABLE = 0.02


@dataclass(frozen=True)
class Trace:
    """A random episode, or its beginning: T + 1 states, T actions and rewards, and the seconds of the T steps."""

    observation: np.ndarray
    achieved: np.ndarray
    desired: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    seconds: np.ndarray


# --- Episodes -------------------------------------------------------------------------------------------------------


def episode_steps(env: gymnasium.Env) -> int:
    """Return the largest length of an episode: the declared limit, else the length of a random episode.

    Raises:
        TaskError: there is no limit, and a random episode does not end.
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


def rewards_any_goal(env: gymnasium.Env) -> bool:
    """Return whether an environment tells the reward for any goal, without the `info` of a step."""
    space: Any = env.observation_space
    nowhere = np.zeros(space["achieved_goal"].shape, np.float32)
    try:
        float(env.get_wrapper_attr("compute_reward")(nowhere, nowhere, {}))
    except Exception:  # it may raise anything
        return False
    return True


def reports_success(env: gymnasium.Env) -> bool:
    """Return whether `info` reports success or failure within the first steps of a random episode."""
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
    """Act at random: every second segment of `period` steps repeats one action, the others draw one at each step.

    Repeated actions show how far a segment can lead; a random walk would not. The last traces are resets only.
    """
    return [
        _random_trace(env, seed, STEPS if seed < EPISODES else 0, period, np.random.default_rng([seed, 3]))
        for seed in range(EPISODES + RESETS)
    ]


def _random_trace(env: gymnasium.Env, seed: int, steps: int, period: int, rng: np.random.Generator) -> Trace:
    observation, _ = env.reset(seed=seed)
    states, actions, rewards, seconds = [_vectors(observation)], [], [], []
    action = _random_action(env, rng)
    for step in range(steps):
        if step % period == 0 or (step // period) % 2:
            action = _random_action(env, rng)
        start = _clock()
        observation, reward, terminated, truncated, _ = env.step(action)
        seconds.append(_clock() - start)
        states.append(_vectors(observation))
        actions.append(action)
        rewards.append(float(reward))
        if terminated or truncated:
            break
    columns = [np.stack(column) for column in zip(*states, strict=True)]
    for name, values in zip((*_PARTS, "reward"), (*columns, rewards), strict=True):
        if not np.isfinite(values).all():
            raise TaskError(f"the environment returned NaN or infinity in {name!r} in a random episode (seed {seed})")
    return Trace(*columns, np.asarray(actions, np.float64), np.asarray(rewards), np.asarray(seconds))


def step_seconds(traces: Iterable[Trace]) -> float:
    """Return the time that a step of the environment takes: the median.

    Where other processes have the core now and then, they lengthen few of the steps.
    """
    return float(np.median(np.concatenate([trace.seconds for trace in traces])))


def _vectors(observation: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.array(observation[part], np.float64) for part in _PARTS)


def _random_action(env: gymnasium.Env, rng: np.random.Generator, share: float = 1.0) -> np.ndarray:
    """Draw an action from a share of the range, around its middle."""
    space: Any = env.action_space
    middle = 0.5 * (space.low + space.high)
    return (share * rng.uniform(space.low, space.high) + (1.0 - share) * middle).astype(space.dtype)


# --- Entries of the observation -------------------------------------------------------------------------------------


def matching_entries(traces: Iterable[Trace]) -> list[list[int]]:
    """Return, for each dimension of the goal space, the entries of the observation that always equal it.

    A dimension that never changes has no entries: others would equal it by chance.
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


def turning_angles(env: gymnasium.Env) -> list[int]:
    """Return the entries of the observation that are angles of joints without limits, if MuJoCo simulates them."""
    simulation = _simulation(env)
    if simulation is None:
        return []
    model, data = simulation
    turning = (np.asarray(model.jnt_type) == _HINGE) & ~np.asarray(model.jnt_limited, bool)
    addresses = np.asarray(model.jnt_qposadr)[turning]
    rng, rows = np.random.default_rng([0, 4]), []
    observation, _ = env.reset(seed=0)
    for _ in range(STEPS):
        angles = np.array(data.qpos)[addresses]
        rows.append((np.array(observation["observation"], np.float64), angles))
        observation, _, terminated, truncated, _ = env.step(_random_action(env, rng))
        if terminated or truncated:
            break
    observed, angles = (np.stack(column) for column in zip(*rows, strict=True))
    same = np.abs(observed[:, :, None] - angles[:, None, :]).max(axis=0) < 1e-6
    return [int(entry) for entry in np.flatnonzero((same & (np.ptp(angles, axis=0) > 1e-6)).any(axis=1))]


def _simulation(env: gymnasium.Env) -> tuple[Any, Any] | None:
    """Return MuJoCo's model and data of an environment, or of one that it holds, as gymnasium-robotics' mazes do."""
    inner: Any = env.unwrapped
    held = [value.unwrapped for value in getattr(inner, "__dict__", {}).values() if isinstance(value, gymnasium.Env)]
    for each in (inner, *held):
        model, data = getattr(each, "model", None), getattr(each, "data", None)
        if hasattr(model, "jnt_type") and hasattr(data, "xmat"):
            return model, data
    return None


def turned_over(env: gymnasium.Env, share: float) -> float | None:
    """Return the share of random episodes, with a share of the range of the actions, that turn a body upside down.

    None if there is no such body: one that MuJoCo simulates, that moves freely and has motors. It is upside down if
    what was above at the start of the episode is below.
    """
    simulation = _simulation(env)
    body = None if simulation is None else _motorised_body(simulation[0])
    if simulation is None or body is None:
        return None
    frame = simulation[1].xmat[body]  # [9], and kept up to date by MuJoCo
    return float(np.mean([_turns_over(env, frame, share, seed) for seed in range(EPISODES)]))


def _turns_over(env: gymnasium.Env, frame: np.ndarray, share: float, seed: int) -> bool:
    """Return whether a random episode turns a body with this orientation [9] upside down."""
    env.reset(seed=seed)
    rng, above = np.random.default_rng([seed, 5]), frame[6:].copy()  # the vertical, seen from the body
    for _ in range(_FALL_STEPS):
        _, _, terminated, truncated, _ = env.step(_random_action(env, rng, share))
        if frame[6:] @ above < 0:
            return True
        if terminated or truncated:
            break
    return False


def _motorised_body(model: Any) -> int | None:
    """Return the first body of a MuJoCo model that moves freely and of which an actuator moves a joint."""
    joints = np.asarray(model.actuator_trnid)[np.asarray(model.actuator_trntype) == _OF_JOINT, 0]
    roots = np.asarray(model.body_rootid)[np.asarray(model.jnt_bodyid)[joints]]
    free = np.asarray(model.jnt_bodyid)[np.asarray(model.jnt_type) == _FREE]
    return next((int(body) for body in free if body in roots), None)


def unobserved_goals(traces: Iterable[Trace]) -> list[int]:
    """Return the dimensions of the goal space that vary and that no entry of the observation equals."""
    traces = list(traces)
    achieved = np.concatenate([trace.achieved for trace in traces])
    return [
        index for index, entries in enumerate(matching_entries(traces)) if not entries and _varies(achieved[:, index])
    ]


def _varies(values: np.ndarray) -> bool:
    """Return whether some numbers differ by more than rounding."""
    return bool(np.ptp(values) > 1e-6 * max(1.0, np.abs(values).max()))


def time_entry(traces: Iterable[Trace]) -> int | None:
    """Return the entry of the observation that shows the time: equal at each step of every episode, and monotone."""
    observations = [trace.observation for trace in traces if len(trace.observation) > 2]
    if len(observations) < 2:
        return None
    length = min(map(len, observations))
    stacked = np.stack([observation[:length] for observation in observations])
    same = np.ptp(stacked, axis=0).max(axis=0) <= 1e-9 + 1e-6 * np.abs(stacked).max(axis=(0, 1))
    steps = np.diff(stacked[0], axis=0)
    monotone = (steps > 0).all(axis=0) | (steps < 0).all(axis=0)
    found = np.flatnonzero(same & monotone)
    return int(found[0]) if len(found) else None


def place_matters(traces: Iterable[Trace], entries: Collection[int]) -> bool:
    """Return whether the effect of an action depends on the place of the agent, as on a hill but not on a plain.

    Two regressions (ridge, on random features) predict how the rest of the observation changes, one with the goal
    coordinates and one without. The place matters if the coordinates halve the error on held-out episodes.
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
    """Return the share of the variance of held-out data that a ridge regression on random features leaves."""
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


# --- Distances ------------------------------------------------------------------------------------------------------


def goal_region(env: gymnasium.Env, traces: Iterable[Trace]) -> tuple[np.ndarray, np.ndarray]:
    """Return the box of starts, desired goals and (without outliers) random episodes: low [G], high [G].

    It is cut to the box that the environment declares, except in dimensions where the two do not overlap.
    """
    traces = list(traces)
    ends = np.concatenate([np.stack([trace.achieved[0], trace.desired[0]]) for trace in traces])
    walked = np.concatenate([trace.achieved for trace in traces])
    low = np.minimum(ends.min(axis=0), np.quantile(walked, 0.05, axis=0))
    high = np.maximum(ends.max(axis=0), np.quantile(walked, 0.95, axis=0))
    space: Any = env.observation_space
    declared = space["achieved_goal"]
    overlap = (low <= declared.high) & (high >= declared.low)
    return (
        np.where(overlap, np.maximum(low, declared.low), low),
        np.where(overlap, np.minimum(high, declared.high), high),
    )


def switches(traces: Iterable[Trace]) -> np.ndarray:
    """Return which coordinates of the goal are switches, such as whether a key was taken: [G].

    They take two values in goals and random episodes, no more and no less. Goals or episodes alone must show both,
    unless they are 0 and 1: a target at another height than a table is no switch.
    """
    traces = list(traces)
    desired, achieved = (np.concatenate([getattr(trace, part) for trace in traces]) for part in ("desired", "achieved"))
    return np.array([_is_switch(*columns) for columns in zip(desired.T, achieved.T, strict=True)])


def _is_switch(desired: np.ndarray, achieved: np.ndarray) -> bool:
    values = np.unique(np.concatenate([desired, achieved]))
    shown = len(np.unique(desired)) == 2 or len(np.unique(achieved)) == 2
    return len(values) == 2 and (shown or values.tolist() == [0.0, 1.0])


def declared_region(env: gymnasium.Env, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the box of goals that an environment declares, where it is finite; elsewhere the given one: [G], [G]."""
    space: Any = env.observation_space
    box = space["achieved_goal"]
    finite = np.isfinite(box.low) & np.isfinite(box.high)
    return np.where(finite, box.low, low), np.where(finite, box.high, high)


def goal_notices(low: np.ndarray, high: np.ndarray) -> list[str]:
    """Return what about a goal region [G], [G] makes learning hard: many dimensions."""
    widths = high - low
    if len(widths) < _MANY_GOALS:
        return []
    return [
        f"The goal has {len(widths)} coordinates. Landmarks cover a goal space of few dimensions only (our tasks "
        "have 2 to 6): leave out coordinates that do not matter for success, for example with `higl.wrap_goal`."
    ]


def with_goals_of_others(env: gymnasium.Env, traces: list[Trace]) -> list[Trace]:
    """Return traces with the rewards for the last point of another trace as goal, if the environment computes them."""
    try:
        compute: Any = env.get_wrapper_attr("compute_reward")
    except AttributeError:  # a run in it is rejected: `checks.py`
        return traces
    goals = [trace.achieved[-1] for trace in traces[-1:] + traces[:-1]]
    rewards = [
        np.array([float(compute(achieved, goal, {})) for achieved in trace.achieved[1:]])
        for trace, goal in zip(traces, goals, strict=True)
    ]
    return [replace(trace, reward=reward) for trace, reward in zip(traces, rewards, strict=True)]


def reward_size(traces: Iterable[Trace]) -> float:
    """Return the 95% quantile of the size of a reward; 1 if all are 0."""
    return float(np.quantile(np.abs(np.concatenate([trace.reward for trace in traces])), 0.95)) or 1.0
