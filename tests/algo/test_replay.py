"""The ring buffer against a plain list."""

from collections import Counter
from typing import NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from higl.algo import replay


class Row(NamedTuple):
    number: np.ndarray
    pair: np.ndarray
    extra: None = None


def rows(numbers: list[int]) -> Row:
    """Return rows that hold their own number, twice in the second column."""
    column = np.asarray(numbers, np.float32)
    return Row(column, np.stack([column, column], axis=1))


TEMPLATE = rows([0])
_insert = jax.jit(replay.insert)


def put(buffer: replay.Buffer, numbers: list[int], capacity: int) -> replay.Buffer:
    for block, count in replay.blocks(rows(numbers), capacity):
        buffer = _insert(buffer, block, count)
    return buffer


@settings(max_examples=60)
@given(
    capacity=st.sampled_from([1, 3, 7]),
    block=st.sampled_from([1, 2, 5, 16]),
    lengths=st.lists(st.integers(1, 20), max_size=6),
)
def test_the_buffer_holds_the_newest_rows_as_a_ring(capacity, block, lengths):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "INSERT_BLOCK", block)
        buffer = replay.empty_buffer(TEMPLATE, capacity)
        history: list[int] = []
        for length in lengths:
            new = list(range(len(history) + 1, len(history) + length + 1))
            buffer = put(buffer, new, capacity)
            history += new
            assert int(buffer.size) == min(len(history), capacity)
            assert int(buffer.cursor) == len(history) % capacity
            expected = np.zeros(capacity)
            for place, number in enumerate(history):
                expected[place % capacity] = number
            np.testing.assert_array_equal(buffer.rows.number, expected)
            np.testing.assert_array_equal(buffer.rows.pair, np.stack([expected, expected], axis=1))


@pytest.mark.parametrize(
    ("total", "capacity", "counts"),
    [(0, 9, []), (1, 9, [1]), (4, 9, [4]), (5, 9, [4, 1]), (9, 9, [4, 4, 1]), (5, 2, [2, 2, 1])],
)
def test_blocks_have_one_length_and_their_counts(monkeypatch, total, capacity, counts):
    monkeypatch.setattr(replay, "INSERT_BLOCK", 4)
    cut = replay.blocks(rows(list(range(1, total + 1))), capacity)
    assert [count for _, count in cut] == counts
    assert {len(block.number) for block, _ in cut} <= {min(4, capacity)}
    kept = [number for block, count in cut for number in block.number[:count]]
    assert kept == list(range(1, total + 1))
    assert all(not block.number[count:].any() for block, count in cut)


def test_samples_are_uniform_over_what_is_held_and_rows_stay_whole():
    buffer = put(replay.empty_buffer(TEMPLATE, 10), list(range(1, 6)), 10)
    drawn = replay.sample(buffer, jax.random.key(0), 5000)
    np.testing.assert_array_equal(drawn.pair, np.stack([drawn.number] * 2, axis=1))
    counts = Counter(np.asarray(drawn.number).tolist())
    assert set(counts) == {1, 2, 3, 4, 5}
    # Five standard deviations of a binomial count (n = 5000, p = 1/5) are 141.
    assert all(abs(count - 1000) < 150 for count in counts.values())


def test_a_full_buffer_is_sampled_whole():
    buffer = put(replay.empty_buffer(TEMPLATE, 4), list(range(1, 8)), 4)
    assert set(np.asarray(replay.sample(buffer, jax.random.key(0), 200).number).tolist()) == {4, 5, 6, 7}


def test_an_empty_buffer_gives_zeros():
    drawn = replay.sample(replay.empty_buffer(TEMPLATE, 4), jax.random.key(0), 3)
    assert not np.asarray(drawn.pair).any()


def test_another_number_of_rows_does_not_compile_again():
    function = jax.jit(replay.insert, donate_argnums=0)
    buffer = replay.empty_buffer(TEMPLATE, 50)
    before = function._cache_size()  # JAX shares it among all that compile this function
    for length in (3, 17, 50, 1):
        for block, count in replay.blocks(rows(list(range(length))), 50):
            buffer = function(buffer, block, count)
    assert function._cache_size() - before <= 1
