"""Novelty: random network distillation (eq. 4) and the queue of novel states (section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from higl.algo.adjacency import embedding_distance
from higl.algo.forward import MLP, Affine, affine, mlp
from higl.algo.nets import descend, init_mlp, safe_norm, squared_distance
from higl.settings.config import NoveltyConfig

# The paper's networks (appendix, network structure) and the training of the predictor (appendix, table 2).
HIDDEN = (300, 300)
EMBEDDING = 128
LEARNING_RATE = 1e-3
BATCH_SIZE = 128


class Queue(NamedTuple):
    """The priority queue Q of novel states, K = M_nov slots: observation [K, O], achieved [K, G], score [K].

    `filled` [K]: which slots hold a state. A block of new states has the same fields.
    """

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


def init_novelty(key: jax.Array, observation_size: int, goal_size: int, slots: int) -> NoveltyState:
    """Draw both networks; the queue starts empty."""
    predictor_key, target_key = jax.random.split(key)
    sizes = (observation_size, *HIDDEN, EMBEDDING)
    predictor = init_mlp(predictor_key, sizes)
    queue = Queue(
        jnp.zeros((slots, observation_size)),
        jnp.zeros((slots, goal_size)),
        jnp.zeros((slots,)),
        jnp.zeros((slots,), bool),
    )
    return NoveltyState(predictor, init_mlp(target_key, sizes), optax.adam(LEARNING_RATE).init(predictor), queue)


# ---- random network distillation -------------------------------------------------------------------------------------


def novelty(state: NoveltyState, observation: jax.Array) -> jax.Array:
    """Return the novelty of states, n(s) (eq. 4): [..., O] -> [...]."""
    return safe_norm(mlp(state.predictor, observation) - mlp(state.target, observation))


def distil(state: NoveltyState, observation: jax.Array, affine: Affine = affine) -> tuple[NoveltyState, jax.Array]:
    """Update the predictor on a batch of states [B, O]; return the loss too."""
    wanted = mlp(state.target, observation, affine=affine)

    def loss(predictor: MLP) -> jax.Array:
        return jnp.mean(jnp.square(mlp(predictor, observation, affine=affine) - wanted))

    value, grads = jax.value_and_grad(loss)(state.predictor)
    optimiser = optax.adam(LEARNING_RATE)
    predictor, optimiser_state = descend(optimiser, state.predictor, grads, state.optimiser)
    return state._replace(predictor=predictor, optimiser=optimiser_state), value


# ---- the queue -------------------------------------------------------------------------------------------------------


class QueueUpdate:
    """Updates the queue with the states of an episode ("Novelty-based sampling"); holds the compiled programs.

    In order: score the new states, discard the stored states that are similar to a new one, enter the new states, and
    keep the K most novel. A stored state keeps its first score.
    """

    def __init__(self, config: NoveltyConfig):
        self.scored = jax.jit(scored)
        self.discard_similar = jax.jit(partial(discard_similar, config))
        self.enter = jax.jit(enter)

    def __call__(self, state: NoveltyState, network: MLP, blocks: Sequence[tuple[Any, int]]) -> NoveltyState:
        """Return the state with the queue after an episode.

        Args:
            state: The novelty networks and the queue.
            network: The adjacency network, which may measure similarity.
            blocks: The episode's states as padded blocks of (observation, achieved), each with its number of states.
        """
        queue = state.queue
        new = [self.scored(state, *block, count) for block, count in blocks]
        # Discard for all blocks before entering any, or a long episode would discard its own states.
        for block in new:
            queue = self.discard_similar(queue, block, network)
        for block in new:
            queue = self.enter(queue, block)
        return state._replace(queue=queue)


def scored(state: NoveltyState, observation: jax.Array, achieved: jax.Array, count: jax.Array) -> Queue:
    """Return a block of states [N, O], [N, G] with their novelty; the first `count` of them are filled."""
    return Queue(observation, achieved, novelty(state, observation), jnp.arange(observation.shape[0]) < count)


def discard_similar(config: NoveltyConfig, queue: Queue, new: Queue, network: MLP) -> Queue:
    """Discard the stored states that are closer than lambda (`novelty.similarity`) to any new one.

    Closeness is the distance in the goal space, ||phi(s) - phi(s')||, or the distance between the embeddings of the
    adjacency network (appendix, `novelty.discard`).
    """
    stored = queue.achieved[:, None]
    if config.discard == "adjacency":
        distance = embedding_distance(network, stored, new.achieved)
    else:
        distance = jnp.sqrt(squared_distance(stored, new.achieved))
    close = distance < config.similarity
    return queue._replace(filled=queue.filled & ~jnp.any(close & new.filled, axis=1))


def enter(queue: Queue, new: Queue) -> Queue:
    """Enter new states (those `filled`) into the queue; the K most novel of all stay."""
    everything = jax.tree.map(lambda old, fresh: jnp.concatenate([old, fresh]), queue, new)
    order = jnp.where(everything.filled, everything.score, -jnp.inf)
    _, places = jax.lax.top_k(order, queue.score.shape[0])
    return jax.tree.map(lambda column: column[places], everything)
