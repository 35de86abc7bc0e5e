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
    chosen, real = farthest_points(buffer.rows.achieved[pool], config.coverage)
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
