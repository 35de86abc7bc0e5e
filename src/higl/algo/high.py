"""The high level: proposes subgoals (section 3), drawn to the pseudo-landmark by a loss (eq. 8 and 9)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from higl.algo.adjacency import embedding_distance
from higl.algo.forward import MLP, Affine, Array, actor_action, affine
from higl.algo.nets import safe_norm
from higl.algo.subgoals import Scheme, View, goal_transition, high_input, low_input, subgoal_target, subgoal_towards
from higl.algo.td3 import Batch, Info, Smoothing
from higl.settings.config import Config, HighConfig

# Random candidates for relabelling, besides the stored subgoal and the displacement achieved. HIRO's paper has eight;
# the cost of relabelling grows with them.
RELABEL_DRAWS = 10

# Noise on the target policy's subgoals, in units of the goal space. The paper is silent: TD3's own numbers.
SMOOTHING = Smoothing(sigma=0.2, limit=0.5)


class Segment(NamedTuple):
    """The low level's steps in a segment, for relabelling: [m, ...]; `took_place` is 0 after the end of the episode."""

    observation: Array
    achieved: Array
    action: Array
    took_place: Array


class HighRow(NamedTuple):
    """A high-level transition: one segment of m steps.

    `reward` is the sum over its steps (eq. 1); `end` is 1 where values do not bootstrap.
    """

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


def high_batch(config: HighConfig, view: View | None, rows: HighRow, subgoal: jax.Array) -> Batch:
    """Return sampled high-level transitions with the given subgoals as a batch for TD3, rewards scaled."""
    return Batch(
        high_input(view, rows.observation, rows.achieved, rows.desired),
        subgoal,
        config.reward_scale * rows.reward,
        high_input(view, rows.next_observation, rows.next_achieved, rows.next_desired),
        config.discount * (1.0 - rows.end),
    )


def relabel(
    config: HighConfig,
    limit: Array,
    low_actor: MLP,
    view: View,
    rows: HighRow,
    key: jax.Array,
    affine: Affine = affine,
) -> jax.Array:
    """Return the subgoals under which the low level would most likely have taken the stored actions: [B, G] (HIRO).

    Candidates are the stored subgoal, the displacement achieved (for absolute subgoals: the point reached), and draws
    around the latter with half the range as standard deviation, clipped to the range.
    """
    scheme: Scheme = config.subgoals
    reached = subgoal_towards(scheme, rows.next_achieved, rows.achieved)
    shape = (RELABEL_DRAWS, *reached.shape)
    draws = reached + 0.5 * limit * jax.random.normal(key, shape)
    candidates = jnp.concatenate([rows.subgoal[None], reached[None], draws])
    candidates = jnp.clip(candidates, -limit, limit).at[0].set(rows.subgoal)

    def misfit(candidate: jax.Array) -> jax.Array:
        """Sum the squared differences between stored actions and the low level's under a candidate: [B]."""
        segment = rows.segment
        assert segment is not None
        subgoals = goal_transition(scheme, candidate[:, None], rows.achieved[:, None], segment.achieved)
        subgoals = jnp.broadcast_to(subgoals, segment.achieved.shape)
        actions = actor_action(low_actor, 1.0, low_input(view, segment.observation, subgoals), affine)
        return jnp.sum(jnp.square(actions - segment.action).sum(-1) * segment.took_place, axis=-1)

    best = jnp.argmin(jax.lax.map(misfit, candidates), axis=0)
    return jnp.take_along_axis(candidates, best[None, :, None], axis=0)[0]


def landmark_loss(
    config: Config, network: MLP, achieved: jax.Array, pseudo: jax.Array, subgoal: jax.Array
) -> tuple[jax.Array, Info]:
    """Return the weighted landmark loss of subgoals [B, G]: eta * L_landmark (eq. 8, the second term of eq. 9).

    L_landmark = max(||psi(g_pseudo) - psi(g)|| - epsilon_k, 0), averaged over the batch; epsilon_k is
    `adjacency.margin` and eta `landmarks.coefficient`. `td3.actor_loss` adds it to the first term of eq. 9. With the
    current state as pseudo-landmark it is HRAC's adjacency loss.
    """
    target = subgoal_target(config.high.subgoals, subgoal, achieved)
    distance = embedding_distance(network, pseudo, target)
    excess = jnp.maximum(distance - config.adjacency.margin, 0.0)
    value = jnp.mean(excess)
    return config.landmarks.coefficient * value, {
        "landmark_loss": value,
        "landmark_loss_active": jnp.mean(excess > 0),
        "subgoal_distance": jnp.mean(safe_norm(target - achieved)),
        "pseudo_landmark_distance": jnp.mean(safe_norm(pseudo - achieved)),
    }
