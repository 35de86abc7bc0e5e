"""The high level: proposes subgoals (section 3, eq. 1), and is drawn to the pseudo-landmark (eq. 7 to 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from higl.algo.low import Scheme, goal_transition, low_input, subgoal_target, subgoal_towards
from higl.algo.nets import MLP, Array, safe_norm
from higl.algo.td3 import ActionLoss, Batch, Info, actor_action
from higl.settings.config import HighConfig, LandmarksConfig


class Segment(NamedTuple):
    """What the low level did in a segment, for relabelling: [m, ...], and 1 for each step that took place."""

    observation: Array
    achieved: Array
    action: Array
    took_place: Array


class HighRow(NamedTuple):
    """A high-level transition: one segment. `reward` is the sum over its steps; `end` is 1 where nothing bootstraps."""

    observation: Array
    achieved: Array
    desired: Array
    subgoal: Array
    reward: Array
    next_observation: Array
    next_achieved: Array
    next_desired: Array
    end: Array
    segment: Segment | None


def high_input(observation: Array, desired: Array) -> Array:
    """Return the high level's input: the observation, then the desired goal."""
    return observation.__array_namespace__().concatenate([observation, desired], axis=-1)


def high_batch(config: HighConfig, rows: HighRow, subgoal: jax.Array) -> Batch:
    """Return sampled high-level transitions, with these subgoals as actions, as TD3 takes them (eq. 1, scaled)."""
    return Batch(
        high_input(rows.observation, rows.desired),
        subgoal,
        config.reward_scale * rows.reward,
        high_input(rows.next_observation, rows.next_desired),
        config.discount * (1.0 - rows.end),
    )


def relabel(
    config: HighConfig, limit: Array, low_actor: MLP, visible: Array, rows: HighRow, key: jax.Array
) -> jax.Array:
    """Return the subgoals under which the low level is likeliest to have taken the stored actions: [B, G].

    Candidates (HIRO): the stored subgoal, the displacement achieved (or, of absolute subgoals, the point reached),
    and draws around it with half the range as standard deviation, clipped to the range.
    """
    scheme: Scheme = config.subgoals
    reached = subgoal_towards(scheme, rows.next_achieved, rows.achieved)
    shape = (config.relabel_candidates, *reached.shape)
    draws = reached + 0.5 * limit * jax.random.normal(key, shape)
    candidates = jnp.concatenate([rows.subgoal[None], reached[None], draws])
    candidates = jnp.clip(candidates, -limit, limit).at[0].set(rows.subgoal)

    def misfit(candidate: jax.Array) -> jax.Array:
        """Sum the squared differences between stored actions and the low level's under a candidate: [B]."""
        segment = rows.segment
        assert segment is not None
        subgoals = goal_transition(scheme, candidate[:, None], rows.achieved[:, None], segment.achieved)
        subgoals = jnp.broadcast_to(subgoals, segment.achieved.shape)
        actions = actor_action(low_actor, 1.0, low_input(visible, segment.observation, subgoals))
        return jnp.sum(jnp.square(actions - segment.action).sum(-1) * segment.took_place, axis=-1)

    best = jnp.argmin(jax.lax.map(misfit, candidates), axis=0)
    return jnp.take_along_axis(candidates, best[None, :, None], axis=0)[0]


def pseudo_landmark(config: LandmarksConfig, achieved: jax.Array, selected: jax.Array) -> jax.Array:
    """Return the pseudo-landmarks (eq. 7): from each current state towards its selected landmark, [B, G].

    With `raw` the landmark itself; with `automatic` the shift is the batch's average distance to the selected
    landmarks (appendix); with `capped` a landmark nearer than the shift is the pseudo-landmark itself. A landmark at
    distance zero leaves the current state.
    """
    if config.pseudo == "raw":
        return selected
    offset = selected - achieved
    distance = safe_norm(offset)[:, None]
    shift = {
        "fixed": config.shift,
        "capped": jnp.minimum(config.shift, distance),
        "automatic": jnp.mean(distance),
    }[config.pseudo]
    return achieved + shift * jnp.where(distance > 0, offset / jnp.where(distance > 0, distance, 1.0), 0.0)


def landmark_loss(
    coefficient: float,
    margin: Array,
    scheme: Scheme,
    embed: Callable[[jax.Array], jax.Array],
    achieved: jax.Array,
    pseudo: jax.Array,
) -> ActionLoss:
    """Return the weighted landmark loss on subgoals (eq. 8 and 9); `margin` is the distance that it leaves free.

    `embed` takes points of the goal space [B, G] to where distances are measured: the adjacency network, in the paper.
    With the current state as pseudo-landmark it is HRAC's adjacency loss.
    """
    anchor = embed(pseudo)

    def loss(subgoal: jax.Array) -> tuple[jax.Array, Info]:
        target = subgoal_target(scheme, subgoal, achieved)
        excess = jnp.maximum(safe_norm(anchor - embed(target)) - margin, 0.0)
        value = jnp.mean(excess)
        return coefficient * value, {
            "landmark_loss": value,
            "landmark_loss_active": jnp.mean(excess > 0),
            "subgoal_distance": jnp.mean(safe_norm(target - achieved)),
            "pseudo_landmark_distance": jnp.mean(safe_norm(pseudo - achieved)),
        }

    return loss
