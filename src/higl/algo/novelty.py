"""Novelty: random network distillation (eq. 4) and the queue of novel states (section 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from higl.algo.nets import MLP, descend, init_mlp, mlp, safe_norm
from higl.settings.config import NoveltyConfig


class Queue(NamedTuple):
    """The most novel states, K slots: observation [K, O], achieved [K, G], score [K], and which slots are filled."""

    observation: jax.Array
    achieved: jax.Array
    score: jax.Array
    filled: jax.Array


class NoveltyState(NamedTuple):
    """The predictor, the fixed random network that it predicts, the optimiser, and the queue."""

    predictor: MLP
    target: MLP
    optimiser: Any
    queue: Queue


def init_novelty(
    config: NoveltyConfig, key: jax.Array, observation_size: int, goal_size: int, slots: int
) -> NoveltyState:
    """Draw both networks; the queue starts empty."""
    predictor_key, target_key = jax.random.split(key)
    input_size = goal_size if config.space == "goal" else observation_size
    sizes = (input_size, *config.hidden, config.embedding)
    predictor = init_mlp(predictor_key, sizes)
    queue = Queue(
        jnp.zeros((slots, observation_size)),
        jnp.zeros((slots, goal_size)),
        jnp.zeros((slots,)),
        jnp.zeros((slots,), bool),
    )
    return NoveltyState(predictor, init_mlp(target_key, sizes), optax.adam(config.learning_rate).init(predictor), queue)


def novelty(predictor: MLP, target: MLP, observation: jax.Array) -> jax.Array:
    """Return the novelty of states, n(s) (eq. 4): [..., O] -> [...]."""
    return safe_norm(mlp(predictor, observation) - mlp(target, observation))


def distil(config: NoveltyConfig, state: NoveltyState, observation: jax.Array) -> tuple[NoveltyState, jax.Array]:
    """Update the predictor on a batch of states [B, O]; return the loss too."""
    wanted = mlp(state.target, observation)

    def loss(predictor: MLP) -> jax.Array:
        return jnp.mean(jnp.square(mlp(predictor, observation) - wanted))

    value, grads = jax.value_and_grad(loss)(state.predictor)
    optimiser = optax.adam(config.learning_rate)
    predictor, optimiser_state = descend(optimiser, state.predictor, grads, state.optimiser)
    return state._replace(predictor=predictor, optimiser=optimiser_state), value


def discard_similar(
    queue: Queue, new: Queue, similarity: float, distance: Callable[[jax.Array, jax.Array], jax.Array]
) -> Queue:
    """Drop the stored states that are closer than `similarity` to any new one (those `filled`).

    `distance` takes goal-space points [K, 1, G] and [N, G] to [K, N].
    """
    close = distance(queue.achieved[:, None], new.achieved) < similarity
    return queue._replace(filled=queue.filled & ~jnp.any(close & new.filled, axis=1))


def enter(queue: Queue, new: Queue) -> Queue:
    """Take new states (those `filled`) into the queue; the most novel of all stay."""
    everything = jax.tree.map(lambda old, fresh: jnp.concatenate([old, fresh]), queue, new)
    order = jnp.where(everything.filled, everything.score, -jnp.inf)
    _, places = jax.lax.top_k(order, queue.score.shape[0])
    return jax.tree.map(lambda column: column[places], everything)


def goal_space_distance(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return Euclidean distances in the goal space: [..., G] -> [...]."""
    return jnp.sqrt(jnp.sum(jnp.square(first - second), axis=-1))
