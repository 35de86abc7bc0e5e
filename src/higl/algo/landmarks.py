"""Landmark sampling (section 4.1): coverage landmarks by farthest point sampling, novelty landmarks from the queue."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from higl.algo.nets import squared_distance
from higl.algo.novelty import Queue
from higl.algo.replay import Buffer, sample_places
from higl.settings.config import LandmarksConfig


class Landmarks(NamedTuple):
    """M = M_cov + M_nov places for landmarks: observation [M, O] and achieved [M, G].

    `present` [M]: which places hold a landmark. `novel` [M]: which are for novelty landmarks.
    """

    observation: jax.Array
    achieved: jax.Array
    present: jax.Array
    novel: jax.Array


def sample_landmarks(config: LandmarksConfig, buffer: Buffer, queue: Queue, key: jax.Array) -> Landmarks:
    """Return M_cov coverage landmarks from the low level's buffer, then M_nov novelty landmarks from the queue."""
    pool = sample_places(buffer, key, config.pool)
    points = buffer.rows.achieved[pool]
    chosen, real = farthest_points(points, config.coverage)
    if config.central and config.coverage:
        chosen = central_points(points, chosen)
    places = pool[chosen]
    return Landmarks(
        jnp.concatenate([buffer.rows.observation[places], queue.observation]),
        jnp.concatenate([buffer.rows.achieved[places], queue.achieved]),
        jnp.concatenate([real, queue.filled]),
        jnp.concatenate([jnp.zeros_like(real), jnp.ones_like(queue.filled)]),
    )


def farthest_points(points: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Choose `count` of the points [N, G] by farthest point sampling ("Coverage-based sampling").

    The first point is chosen first. Returns the indices [count], and which of them are real [count]: once every
    remaining point coincides with a chosen one, there is nothing left to choose.
    """

    def step(number: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        nearest, chosen, real = carry
        place = jnp.argmax(nearest)
        chosen, real = chosen.at[number].set(place), real.at[number].set(nearest[place] > 0)
        return jnp.minimum(nearest, squared_distance(points, points[place])), chosen, real

    if count == 0:
        return jnp.zeros(0, jnp.int32), jnp.zeros(0, bool)
    # Nothing is chosen yet: every point is infinitely far, and the first one a little farther.
    start = jnp.full(points.shape[0], jnp.inf).at[1:].set(jnp.finfo(points.dtype).max)
    carry = (start, jnp.zeros(count, jnp.int32), jnp.zeros(count, bool))
    _, chosen, real = jax.lax.fori_loop(0, count, step, carry)
    return chosen, real


def central_points(points: jax.Array, chosen: jax.Array) -> jax.Array:
    """Replace each chosen point [count] by the point at the centre of its region: indices [count].

    The region of a chosen point holds the points [N, G] that are nearer to it than to the other chosen ones. Farthest
    points lie on the rim of the visited space, along walls and in corners, which are poor places to lead a body to.
    This is one step of Lloyd's algorithm, restricted to existing points. It is not in the paper (`landmarks.central`).
    """
    nearest = jnp.argmin(squared_distance(points[:, None], points[chosen][None]), axis=1)
    mine = nearest[None] == jnp.arange(len(chosen))[:, None]
    share = mine / jnp.maximum(jnp.sum(mine, axis=1, keepdims=True), 1)
    from_centre = squared_distance((share @ points)[:, None], points[None])
    central = jnp.argmin(jnp.where(mine, from_centre, jnp.inf), axis=1)
    # A chosen point that coincides with an earlier one has an empty region.
    return jnp.where(jnp.any(mine, axis=1), central, chosen)
