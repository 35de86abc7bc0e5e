"""Subgoals, and what each level sees, in NumPy or JAX: acting and the compiled programs share these functions.

Imports no JAX, so that a policy acts without it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from higl.algo.forward import Array
from higl.settings.config import GOAL_REGION, Config, LowConfig

Scheme = Literal["relative", "absolute"]


def goal_transition(scheme: Scheme, subgoal: Array, achieved: Array, next_achieved: Array) -> Array:
    """Return the goal transition, h(g, s, s'): the subgoal after a step, [..., G].

    A relative subgoal keeps its absolute target.
    """
    return subgoal + achieved - next_achieved if scheme == "relative" else subgoal


def subgoal_target(scheme: Scheme, subgoal: Array, achieved: Array) -> Array:
    """Return the goal-space point that a subgoal asks for: [..., G]."""
    return subgoal + achieved if scheme == "relative" else subgoal


def subgoal_towards(scheme: Scheme, target: Array, achieved: Array) -> Array:
    """Return the subgoal that asks for a goal-space point: the inverse of `subgoal_target`."""
    return target - achieved if scheme == "relative" else target


def visible_entries(config: LowConfig, observation_size: int) -> np.ndarray:
    """Return 1 for each entry of the observation that the low level sees, else 0: [O]."""
    visible = np.ones(observation_size, np.float32)
    visible[list(config.hidden_entries)] = 0.0
    return visible


class View(NamedTuple):
    """How a level sees observations: (observation - centre) * factor, within +-bound; [O], [O], [].

    The factor of a hidden entry is 0, and so is that of an angle (`angles` [A]: their entries), of which sine and
    cosine follow.
    """

    centre: Array
    factor: Array
    bound: Array
    angles: Array


class Statistics(NamedTuple):
    """Number, mean [O] and standard deviation [O] of the states seen so far."""

    count: Array
    mean: Array
    std: Array


# Normalised entries are cut off at this many standard deviations, so that no network has to extrapolate far.
_FARTHEST = 10.0
# An entry with a smaller standard deviation has not varied.
_STILL = 1e-6


def no_statistics(size: int) -> Statistics:
    """Return the statistics of no state at all."""
    return Statistics(np.zeros((), np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32))


def updated_statistics(before: Statistics, states: np.ndarray) -> Statistics:
    """Return the statistics after further states [T, O]."""
    old, states = Statistics(*(np.asarray(x, np.float64) for x in before)), states.astype(np.float64)
    count = old.count + len(states)
    share = len(states) / count
    offset = states.mean(axis=0) - old.mean
    variance = (1 - share) * np.square(old.std) + share * states.var(axis=0) + share * (1 - share) * np.square(offset)
    return Statistics(*(np.asarray(x, np.float32) for x in (count, old.mean + share * offset, np.sqrt(variance))))


def low_view(config: LowConfig, statistics: Statistics) -> View:
    """Return the low level's view: without `low.normalise`, the observation as it is. NumPy or JAX.

    An entry that has not varied yet keeps its own unit.
    """
    size = statistics.mean.shape[0]
    visible, angles = visible_entries(config, size), np.asarray(config.angles, np.int32)
    visible[angles] = 0.0
    if not config.normalise:
        return View(np.zeros(size, np.float32), visible, np.float32(np.inf), angles)
    return _normalised(statistics, visible, angles)


def high_view(config: Config, statistics: Statistics) -> View | None:
    """Return the high level's view, from which nothing is hidden; None: the observation as it is. NumPy or JAX."""
    if not config.normalises_high:
        return None
    visible, angles = np.ones(statistics.mean.shape[0], np.float32), np.asarray(config.low.angles, np.int32)
    visible[angles] = 0.0
    return _normalised(statistics, visible, angles)


def _normalised(statistics: Statistics, visible: np.ndarray, angles: np.ndarray) -> View:
    xp = statistics.std.__array_namespace__()
    std = xp.where(statistics.std > _STILL, statistics.std, 1.0)
    return View(statistics.mean, visible / std, np.float32(_FARTHEST), angles)


class Views(NamedTuple):
    """How each level sees observations. The high level's is None if it sees them as they are."""

    low: View
    high: View | None


def views_of(config: Config, statistics: Statistics) -> Views:
    """Return how each level sees observations."""
    return Views(low_view(config.low, statistics), high_view(config, statistics))


def _seen(view: View, observation: Array) -> list[Array]:
    """Return the observation through a view, and sine and cosine of its angles if it has any."""
    xp = observation.__array_namespace__()
    seen = [xp.clip((observation - view.centre) * view.factor, -view.bound, view.bound)]
    if len(view.angles):
        angles = observation[..., view.angles]
        seen += [xp.sin(angles), xp.cos(angles)]
    return seen


def low_input(view: View, observation: Array, subgoal: Array) -> Array:
    """Return the low level's input: the observation as it sees it, then the subgoal."""
    return observation.__array_namespace__().concatenate([*_seen(view, observation), subgoal], axis=-1)


def low_input_size(config: LowConfig, observation_size: int, goal_size: int) -> int:
    """Return the size of the low level's input."""
    return observation_size + 2 * len(config.angles) + goal_size


def high_input(view: View | None, observation: Array, achieved: Array, desired: Array) -> Array:
    """Return the high level's input: the observation, then the desired goal.

    Through a view, the goal is the offset from the achieved one as a share of the goal region, within the same bound.
    That is about +-1 at the most where settings were derived, and the same scale in all dimensions that share a unit.
    """
    xp = observation.__array_namespace__()
    if view is None:
        return xp.concatenate([observation, desired], axis=-1)
    offset = xp.clip((desired - achieved) / np.float32(GOAL_REGION), -view.bound, view.bound)
    return xp.concatenate([*_seen(view, observation), offset], axis=-1)


def high_input_size(config: Config, observation_size: int, goal_size: int) -> int:
    """Return the size of the high level's input."""
    angles = len(config.low.angles) if config.normalises_high else 0
    return observation_size + 2 * angles + goal_size
