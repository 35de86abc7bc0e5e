"""Landmark sampling against brute force."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from higl.algo import landmarks as lm
from higl.algo.low import LowRow
from higl.algo.novelty import Queue
from higl.algo.replay import Buffer
from higl.settings.config import LandmarksConfig

_farthest = jax.jit(lm.farthest_points, static_argnums=1)


def brute_force_farthest(points: np.ndarray, count: int) -> list[int]:
    """Return the indices in the order of choice, each the farthest from all before it; no point twice."""
    chosen = [0]
    while len(chosen) < count:
        distances = [min(((point - points[place]) ** 2).sum() for place in chosen) for point in points]
        if max(distances) == 0:
            break
        chosen.append(int(np.argmax(distances)))
    return chosen


# Whole numbers, so that distances are exact and points coincide now and then.
@settings(max_examples=60)
@given(data=st.data(), number=st.sampled_from([1, 2, 9, 14]), count=st.sampled_from([1, 4, 12]))
def test_farthest_points_against_brute_force(data, number, count):
    points = data.draw(hnp.arrays(np.float32, (number, 2), elements=st.integers(-4, 4)))
    chosen, real = (np.asarray(x) for x in _farthest(jnp.asarray(points), count))
    assert chosen.shape == real.shape == (count,)
    expected = brute_force_farthest(points, count)
    assert chosen[real].tolist() == expected
    # The real ones come first, and there are as many as there are different points to choose.
    assert real.sum() == min(count, len(np.unique(points, axis=0)))
    assert real[: real.sum()].all()


def test_no_farthest_points_at_all():
    chosen, real = lm.farthest_points(jnp.zeros((3, 2)), 0)
    assert chosen.shape == real.shape == (0,)


# ---- sampling from buffer and queue --------------------------------------------------------------------------------


def seen(points: list[float]) -> tuple[Buffer, Queue]:
    """Return a buffer with states at these places on a line, and a queue with one of its two slots filled."""
    places = jnp.asarray(points)[:, None]
    observation, blank = jnp.concatenate([places, places + 100], axis=1), jnp.zeros((len(points), 1))
    rows = LowRow(observation, places, blank, blank, observation, places, blank[:, 0])
    queue = Queue(jnp.array([[7.0, 8.0], [0.0, 0.0]]), jnp.array([[7.0], [0.0]]), jnp.ones(2), jnp.array([True, False]))
    return Buffer(rows, jnp.asarray(len(points)), jnp.asarray(0)), queue


def test_coverage_landmarks_come_from_the_buffer_and_novelty_landmarks_from_the_queue():
    """Two clusters; the pool is large enough to hold every state, and farthest points lie at the rim."""
    config = LandmarksConfig(coverage=2, novelty=2, pool=400)
    buffer, queue = seen([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    found = {float(x) for key in range(8) for x in sampled(config, buffer, queue, key)[:, 0]}
    # Farthest point sampling starts at a random state of the pool and then goes to an end of the line.
    assert {0.0, 12.0} <= found


def sampled(config: LandmarksConfig, buffer: Buffer, queue: Queue, key: int) -> np.ndarray:
    """Return the points of the coverage landmarks, after checking everything that does not depend on the draw."""
    landmarks = lm.sample_landmarks(config, buffer, queue, jax.random.key(key))
    np.testing.assert_array_equal(landmarks.observation[:, 0], landmarks.achieved[:, 0])
    np.testing.assert_array_equal(landmarks.observation[:2, 1], landmarks.achieved[:2, 0] + 100)
    np.testing.assert_array_equal(landmarks.observation[2:], queue.observation)
    assert landmarks.present.tolist() == [True, True, True, False]
    assert landmarks.novel.tolist() == [False, False, True, True]
    return np.asarray(landmarks.achieved[:2])
