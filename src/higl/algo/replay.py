"""Ring buffers as donated pytrees: written in place once per episode, sampled inside the compiled loops."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# Rows are inserted in blocks of one fixed length, so that episodes of any length share one compiled program.
INSERT_BLOCK = 512


class Buffer(NamedTuple):
    """A ring buffer: named columns [capacity, ...], the number of rows held, and where the next row goes."""

    rows: Any
    size: jax.Array
    cursor: jax.Array


def empty_buffer(rows: Any, capacity: int) -> Buffer:
    """Return an empty buffer for rows like `rows` (a NamedTuple of arrays [N, ...])."""
    columns = jax.tree.map(lambda x: jnp.zeros((capacity, *np.shape(x)[1:]), jnp.float32), rows)
    return Buffer(columns, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def insert(buffer: Buffer, block: Any, count: jax.Array) -> Buffer:
    """Write the first `count` rows of a block after the newest row, over the oldest ones."""
    capacity = jax.tree.leaves(buffer.rows)[0].shape[0]
    offsets = jnp.arange(jax.tree.leaves(block)[0].shape[0])
    # Rows past `count` get a place outside the buffer, where `drop` discards them.
    places = jnp.where(offsets < count, (buffer.cursor + offsets) % capacity, capacity)
    rows = jax.tree.map(lambda column, new: column.at[places].set(new, mode="drop"), buffer.rows, block)
    return Buffer(rows, jnp.minimum(buffer.size + count, capacity), (buffer.cursor + count) % capacity)


def blocks(rows: Any, capacity: int) -> list[tuple[Any, int]]:
    """Cut rows [N, ...] (NumPy) into zero-padded blocks of one length, each with its number of real rows."""
    total = len(jax.tree.leaves(rows)[0])
    length = min(INSERT_BLOCK, capacity)
    cut = []
    for start in range(0, total, length):
        count = min(length, total - start)

        def pad(column: np.ndarray, start: int = start, count: int = count) -> np.ndarray:
            block = np.zeros((length, *column.shape[1:]), np.float32)
            block[:count] = column[start : start + count]
            return block

        cut.append((jax.tree.map(pad, rows), count))
    return cut


def sample_places(buffer: Buffer, key: jax.Array, count: int) -> jax.Array:
    """Draw the places of `count` rows, uniformly with replacement: [count]."""
    return jax.random.randint(key, (count,), 0, jnp.maximum(buffer.size, 1))


def sample(buffer: Buffer, key: jax.Array, count: int) -> Any:
    """Draw `count` rows, uniformly with replacement."""
    places = sample_places(buffer, key, count)
    return jax.tree.map(lambda column: column[places], buffer.rows)
