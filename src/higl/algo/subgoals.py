"""Subgoals, and what each level sees, in NumPy or JAX: acting and the compiled programs share these functions.

Imports no JAX, so that a policy acts without it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from higl.algo.forward import Array
from higl.settings.config import LowConfig

Scheme = Literal["relative", "absolute"]


def goal_transition(scheme: Scheme, subgoal: Array, achieved: Array, next_achieved: Array) -> Array:
    """Return the subgoal after a step, h(g, s, s'): [..., G]. A relative subgoal keeps its absolute target."""
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


def low_input(visible: Array, observation: Array, subgoal: Array) -> Array:
    """Return the low level's input: the visible part of the observation, then the subgoal."""
    xp = observation.__array_namespace__()
    return xp.concatenate([observation * visible, subgoal], axis=-1)


def high_input(observation: Array, desired: Array) -> Array:
    """Return the high level's input: the observation, then the desired goal."""
    return observation.__array_namespace__().concatenate([observation, desired], axis=-1)
