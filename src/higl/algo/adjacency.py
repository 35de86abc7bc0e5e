"""Adjacency: which cells of the goal space are few steps apart, and a network that learns it (eq. 5 and 6)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from higl.algo.forward import MLP, mlp
from higl.algo.nets import descend, init_mlp, safe_norm
from higl.settings.config import AdjacencyConfig

# The paper's network (appendix, network structure: with the output, four layers) and its training (appendix, table 2).
HIDDEN = (128, 128, 128)
EMBEDDING = 32
LEARNING_RATE = 2e-4
BATCH_SIZE = 64
EPSILON = 1.0
"""Distance between embeddings up to which two cells are adjacent, epsilon_k."""

# Batches in one compiled call of the training loop; the last call has a smaller (traced) count.
CALL_BATCHES = 512


class AdjacencyState(NamedTuple):
    """The adjacency network, psi, and its optimiser."""

    network: MLP
    optimiser: Any


class Pairs(NamedTuple):
    """Pairs of cells: goal-space points [N, G] twice, label [N] (1: adjacent), and weight [N] (0: padding)."""

    first: Any
    second: Any
    adjacent: Any
    weight: Any


class CellMatrix:
    """The k-step adjacency matrix over the cells seen so far. It grows without limit and is sparse.

    `cells` [N, G] holds cell indices in order of discovery; `codes` the adjacent pairs i < j as sorted numbers
    i * 2**32 + j.
    """

    def __init__(self, cell: float, degree: int, goal_size: int):
        self.cell = cell
        self.degree = degree
        self.cells = np.zeros((0, goal_size), np.int32)
        self.codes = np.zeros(0, np.int64)
        self._index: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def points(self) -> np.ndarray:
        """Return the centres of the cells in the goal space: [N, G]."""
        return (self.cells * self.cell).astype(np.float32)

    @property
    def adjacent_share(self) -> float:
        """Return the share of the pairs of different cells that are adjacent."""
        count = len(self)
        return 2 * len(self.codes) / (count * (count - 1)) if count > 1 else 0.0

    def add_trajectory(self, achieved: np.ndarray) -> None:
        """Add a trajectory of goal-space points [T, G]: cells fewer than k (`degree`) steps apart become adjacent."""
        visited = self._indices(np.round(achieved / self.cell).astype(np.int32))
        codes = [self.codes]
        for gap in range(1, min(self.degree, len(visited))):
            first, second = visited[:-gap], visited[gap:]
            low, high = np.minimum(first, second), np.maximum(first, second)
            different = low < high
            codes.append((low[different] << 32) + high[different])
        self.codes = np.unique(np.concatenate(codes))

    def is_adjacent(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return which pairs of cell indices are adjacent; a cell is adjacent to itself."""
        code = (np.minimum(first, second) << 32) + np.maximum(first, second)
        return (first == second) | np.isin(code, self.codes)

    def pairs(self, all_pairs_up_to: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs i < j to train on: first [N], second [N], and their labels [N].

        Up to `all_pairs_up_to` cells these are all pairs. Beyond, they are every adjacent pair and a random sample of
        pairs, as many as that number of cells would have.
        """
        count = len(self)
        if count <= all_pairs_up_to:
            first, second = (side.astype(np.int64) for side in np.triu_indices(count, 1))
        else:
            others = all_pairs_up_to * (all_pairs_up_to - 1) // 2
            drawn = rng.integers(0, count, (2, others))
            drawn = drawn[:, drawn[0] != drawn[1]]
            first = np.concatenate([self.codes >> 32, drawn.min(0)])
            second = np.concatenate([self.codes & 0xFFFFFFFF, drawn.max(0)])
        return first, second, self.is_adjacent(first, second).astype(np.float32)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the contents of the matrix, for saving."""
        return {"cells": self.cells, "codes": self.codes}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the contents that `arrays` returned."""
        self.cells, self.codes = arrays["cells"], arrays["codes"]
        self._index = {cell.tobytes(): place for place, cell in enumerate(self.cells)}

    def _indices(self, cells: np.ndarray) -> np.ndarray:
        """Return the index of each cell [T, G]; new cells get the next free ones."""
        new = []
        indices = np.empty(len(cells), np.int64)
        for step, cell in enumerate(cells):
            name = cell.tobytes()
            place = self._index.get(name)
            if place is None:
                place = self._index[name] = len(self._index)
                new.append(cell)
            indices[step] = place
        if new:
            self.cells = np.concatenate([self.cells, np.stack(new)])
        return indices


def init_adjacency(key: jax.Array, goal_size: int) -> AdjacencyState:
    """Draw the network."""
    network = init_mlp(key, (goal_size, *HIDDEN, EMBEDDING))
    return AdjacencyState(network, optax.adam(LEARNING_RATE).init(network))


def embedding_distance(network: MLP, first: jax.Array, second: jax.Array) -> jax.Array:
    """Return the distance between the embeddings of two points, ||psi(g) - psi(g')||: [..., G] -> [...].

    One unit stands for k / epsilon_k steps (eq. 6).
    """
    return safe_norm(mlp(network, first) - mlp(network, second))


def adjacency_loss(config: AdjacencyConfig, network: MLP, pairs: Pairs) -> jax.Array:
    """Return the contrastive loss with epsilon_k and the margin delta (eq. 5), averaged over the pairs of weight 1."""
    distance = embedding_distance(network, pairs.first, pairs.second)
    near = jnp.maximum(distance - EPSILON, 0.0)
    far = jnp.maximum(EPSILON + config.delta - distance, 0.0)
    loss = pairs.adjacent * near + (1.0 - pairs.adjacent) * far
    return jnp.sum(loss * pairs.weight) / jnp.maximum(jnp.sum(pairs.weight), 1.0)


def train_batches(
    config: AdjacencyConfig, state: AdjacencyState, batches: Pairs, count: jax.Array
) -> tuple[AdjacencyState, jax.Array]:
    """Update the network on the first `count` batches of `batches` [N, B, ...]; return the sum of the losses too."""
    optimiser = optax.adam(LEARNING_RATE)

    def step(index: jax.Array, carry: tuple[AdjacencyState, jax.Array]) -> tuple[AdjacencyState, jax.Array]:
        state, total = carry
        batch = jax.tree.map(lambda column: column[index], batches)
        loss, grads = jax.value_and_grad(lambda n: adjacency_loss(config, n, batch))(state.network)
        return AdjacencyState(*descend(optimiser, state.network, grads, state.optimiser)), total + loss

    return jax.lax.fori_loop(0, count, step, (state, jnp.zeros(())))


def epoch_batches(config: AdjacencyConfig, matrix: CellMatrix, rng: np.random.Generator) -> list[tuple[Pairs, int]]:
    """Return one pass over the pairs in random order: calls of `CALL_BATCHES` batches, each with its real count."""
    first, second, adjacent = matrix.pairs(config.all_pairs_up_to, rng)
    size = CALL_BATCHES * BATCH_SIZE
    points, order = matrix.points, rng.permutation(len(first))
    calls = []
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        flat = Pairs(points[first[chosen]], points[second[chosen]], adjacent[chosen], np.ones(len(chosen), np.float32))

        def shape(column: np.ndarray) -> np.ndarray:
            padded = np.zeros((size, *column.shape[1:]), np.float32)
            padded[: len(column)] = column
            return padded.reshape(CALL_BATCHES, BATCH_SIZE, *column.shape[1:])

        calls.append((Pairs(*map(shape, flat)), -(-len(chosen) // BATCH_SIZE)))
    return calls
