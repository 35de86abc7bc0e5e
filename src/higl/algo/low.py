"""The low level: pursues a subgoal for one segment (section 3, eq. 2 and 3)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from higl.algo.forward import Array
from higl.algo.subgoals import Scheme, View, goal_transition, low_input, subgoal_target, subgoal_towards
from higl.algo.td3 import TD3, Batch, Networks, policy_value
from higl.settings.config import LowConfig


class LowRow(NamedTuple):
    """A low-level transition with the subgoal pursued; the reward and the next subgoal are computed from these.

    Actions are scaled to [-1, 1]. `achieved` is phi(s), the goal-space point of `observation`; `end` is 1 where values
    do not bootstrap.
    """

    observation: Array
    achieved: Array
    subgoal: Array
    action: Array
    next_observation: Array
    next_achieved: Array
    end: Array


def intrinsic_reward(scheme: Scheme, subgoal: Array, achieved: Array, next_achieved: Array) -> Array:
    """Return minus the distance left to the subgoal's target after a step (eq. 2, eq. 3): [..., G] -> [...]."""
    xp = next_achieved.__array_namespace__()
    left = subgoal_target(scheme, subgoal, achieved) - next_achieved
    return -xp.sqrt((left * left).sum(axis=-1))


def exchange_subgoals(scheme: Scheme, share: float, rows: LowRow) -> LowRow:
    """Return sampled transitions with the subgoals of the first `share` of them exchanged.

    A step teaches as much about other subgoals, because its reward and next subgoal can be computed for any of them.
    Each transition takes the subgoal of the next row; rows are sampled at random, so that one is random too. Absolute
    subgoals are replaced by the point that the next row achieved, because an arm can reach few of the points that an
    untrained high level asks for. It is not in the paper (`low.exchange`).
    """
    exchanged = (jnp.arange(len(rows.end)) < share * len(rows.end))[:, None]
    others = jnp.roll(rows.subgoal if scheme == "relative" else rows.achieved, -1, axis=0)
    return rows._replace(subgoal=jnp.where(exchanged, others, rows.subgoal))


def low_batch(config: LowConfig, scheme: Scheme, view: View, rows: LowRow) -> Batch:
    """Return sampled low-level transitions as a batch for TD3, with the rewards of eq. 2 or 3 (scale 1: table 1)."""
    next_subgoal = goal_transition(scheme, rows.subgoal, rows.achieved, rows.next_achieved)
    return Batch(
        low_input(view, rows.observation, rows.subgoal),
        rows.action,
        intrinsic_reward(scheme, rows.subgoal, rows.achieved, rows.next_achieved),
        low_input(view, rows.next_observation, next_subgoal),
        config.discount * (1.0 - rows.end),
    )


def low_distance(
    td3: TD3,
    networks: Networks,
    view: View,
    scheme: Scheme,
    observation: jax.Array,
    achieved: jax.Array,
    target: jax.Array,
) -> jax.Array:
    """Return how far a goal-space point is from a state by the low level's value, max(0, -V): [...].

    This is the weight of an edge of the planner's graph (section 4.2).
    """
    subgoal = subgoal_towards(scheme, target, achieved)
    return jnp.maximum(0.0, -policy_value(td3, networks, low_input(view, observation, subgoal)))
