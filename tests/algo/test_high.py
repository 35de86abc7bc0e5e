"""The high level: relabelling and the landmark loss, by hand and against plain loops."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from higl.algo import high
from higl.algo.forward import Layer
from higl.algo.nets import init_mlp
from higl.algo.subgoals import low_view, no_statistics
from higl.settings.config import AdjacencyConfig, Config, HighConfig, LandmarksConfig, LowConfig

OBSERVATION, GOAL, ACTION, PERIOD, BATCH = 4, 2, 3, 5, 7


def random_rows(seed: int) -> high.HighRow:
    """Return random segments; in some of them the last steps did not take place."""
    rng = np.random.default_rng(seed)
    achieved = rng.normal(size=(BATCH, PERIOD + 1, GOAL)).cumsum(1)
    took_place = (np.arange(PERIOD) < rng.integers(1, PERIOD + 1, (BATCH, 1))).astype(np.float32)
    took_place[0], took_place[1] = 1, [1, 1, 0, 0, 0]
    observation = rng.normal(size=(BATCH, PERIOD + 1, OBSERVATION))
    desired = rng.normal(size=(BATCH, GOAL))
    segment = high.Segment(
        observation[:, :-1], achieved[:, :-1], rng.uniform(-1, 1, (BATCH, PERIOD, ACTION)), took_place
    )
    rows = high.HighRow(
        observation[:, 0],
        achieved[:, 0],
        desired,
        rng.uniform(-2, 2, (BATCH, GOAL)),
        rng.normal(size=BATCH),
        observation[:, -1],
        achieved[:, -1],
        desired + 1,
        np.array([0, 1, 0, 0, 0, 0, 1]),
        segment,
    )
    return jax.tree.map(lambda column: jnp.asarray(column, jnp.float32), rows)


def action_of(actor, x: np.ndarray) -> np.ndarray:
    """Return the low level's action for one input, in plain NumPy."""
    for weight, bias in actor[:-1]:
        x = np.maximum(x @ np.asarray(weight) + np.asarray(bias), 0)
    return np.tanh(x @ np.asarray(actor[-1].weight) + np.asarray(actor[-1].bias))


@pytest.mark.parametrize("scheme", ["relative", "absolute"])
def test_relabelling_against_a_loop(scheme):
    config = HighConfig(subgoals=scheme, relabel=True)
    limit = np.array([2.0, 1.5], np.float32)
    visible = np.array([0, 0, 1, 1], np.float32)
    view = low_view(LowConfig(hidden_entries=(0, 1)), no_statistics(OBSERVATION))
    # Weights this large make the actions depend on the subgoal.
    actor = jax.tree.map(lambda x: 3 * x, init_mlp(jax.random.key(0), (OBSERVATION + GOAL, 8, ACTION)))
    key = jax.random.key(5)
    draws = np.asarray(jax.random.normal(key, (10, BATCH, GOAL)))
    kinds, clipped = set(), False
    for seed in range(6):
        rows = random_rows(seed)
        ours = high.relabel(config, jnp.asarray(limit), actor, view, rows, key)
        assert ours.shape == (BATCH, GOAL)
        rows = jax.device_get(rows)
        for number in range(BATCH):
            start, stop = rows.achieved[number], rows.next_achieved[number]
            reached = stop - start if scheme == "relative" else stop
            around = [reached + draw * limit / 2 for draw in draws[:, number]]
            candidates = [rows.subgoal[number]] + [np.clip(each, -limit, limit) for each in [reached, *around]]
            clipped |= bool((np.abs(reached) > limit).any())
            misfits = []
            for candidate in candidates:
                misfit = 0.0
                for step in range(PERIOD):
                    if not rows.segment.took_place[number, step]:
                        continue
                    subgoal = candidate
                    if scheme == "relative":
                        subgoal = candidate + start - rows.segment.achieved[number, step]
                    x = np.concatenate([rows.segment.observation[number, step] * visible, subgoal])
                    misfit += ((action_of(actor, x) - rows.segment.action[number, step]) ** 2).sum()
                misfits.append(misfit)
            kinds.add(min(int(np.argmin(misfits)), 2))
            np.testing.assert_allclose(ours[number], candidates[int(np.argmin(misfits))], atol=1e-5)
    # The stored subgoal, the displacement achieved and a draw have each won somewhere; some candidate was clipped.
    assert kinds == {0, 1, 2}
    assert clipped


def test_a_subgoal_that_explains_the_actions_is_not_relabelled():
    """Actions of the current low level have misfit zero under the stored subgoal."""
    config = HighConfig(subgoals="relative", relabel=True)
    actor = init_mlp(jax.random.key(0), (OBSERVATION + GOAL, 8, ACTION))
    rows = random_rows(0)
    view = low_view(LowConfig(hidden_entries=()), no_statistics(OBSERVATION))
    subgoals = rows.subgoal[:, None] + rows.achieved[:, None] - rows.segment.achieved
    x = jnp.concatenate([rows.segment.observation, subgoals], axis=-1)
    actions = jnp.tanh(jnp.maximum(x @ actor[0].weight + actor[0].bias, 0) @ actor[1].weight + actor[1].bias)
    rows = rows._replace(segment=rows.segment._replace(action=actions))
    kept = high.relabel(config, jnp.full(GOAL, 2.0), actor, view, rows, jax.random.key(1))
    np.testing.assert_array_equal(kept, rows.subgoal)


# An "embedding" of two numbers: (2x, 3y).
STRETCH = (Layer(jnp.diag(jnp.array([2.0, 3.0])), jnp.zeros(2)),)


def loss_of(config: Config, achieved: jax.Array, pseudo: jax.Array) -> Any:
    """Return the landmark loss as a function of subgoals, with the embedding above."""
    return partial(high.landmark_loss, config, STRETCH, achieved, pseudo)


def weighted(coefficient: float, margin: float, scheme: Any = "relative") -> Config:
    landmarks, adjacency = LandmarksConfig(coefficient=coefficient), AdjacencyConfig(margin=margin)
    return Config(landmarks=landmarks, adjacency=adjacency, high=HighConfig(subgoals=scheme))


def test_landmark_loss_by_hand():
    """Equations 8 and 9 with an embedding that stretches x by 2 and y by 3."""
    achieved = jnp.array([[1.0, 1.0], [0.0, 0.0], [5.0, 5.0]])
    pseudo = jnp.array([[2.0, 1.0], [0.0, 1.0], [5.0, 5.0]])
    loss = loss_of(weighted(20.0, 1.0), achieved, pseudo)
    # Targets (5, 1), (0, 1.2), (5, 5): embeddings 6, 0.6 and 0 away from the pseudo-landmark's.
    value, info = loss(jnp.array([[4.0, 0.0], [0.0, 1.2], [0.0, 0.0]]))
    assert float(info["landmark_loss"]) == pytest.approx(5 / 3)
    assert float(value) == pytest.approx(20 * 5 / 3)
    assert float(info["landmark_loss_active"]) == pytest.approx(1 / 3)
    assert float(info["subgoal_distance"]) == pytest.approx((4 + 1.2 + 0) / 3)
    assert float(info["pseudo_landmark_distance"]) == pytest.approx((1 + 1 + 0) / 3)


def test_landmark_loss_takes_absolute_subgoals_as_points():
    achieved, pseudo = jnp.array([[7.0, 7.0]]), jnp.array([[1.0, 0.0]])
    value, _ = loss_of(weighted(1.0, 0.5, "absolute"), achieved, pseudo)(jnp.array([[1.0, 2.0]]))
    assert float(value) == pytest.approx(6.0 - 0.5)


def test_landmark_loss_pulls_the_subgoal_towards_the_pseudo_landmark_and_stops_at_the_margin():
    achieved, pseudo = jnp.zeros((2, 2)), jnp.array([[3.0, 0.0], [3.0, 0.0]])
    loss = loss_of(weighted(1.0, 1.1), achieved, pseudo)
    gradient = jax.grad(lambda subgoal: loss(subgoal)[0])(jnp.array([[1.0, 0.0], [2.9, 0.0]]))
    np.testing.assert_allclose(gradient, [[-2.0 / 2, 0.0], [0.0, 0.0]])


def test_a_subgoal_at_the_pseudo_landmark_has_gradient_zero_not_nan():
    achieved, pseudo = jnp.zeros((1, 2)), jnp.array([[3.0, 0.0]])
    gradient = jax.grad(lambda subgoal: loss_of(weighted(1.0, 0.0), achieved, pseudo)(subgoal)[0])(pseudo)
    np.testing.assert_array_equal(gradient, [[0.0, 0.0]])


def test_high_batch_by_hand():
    rows = random_rows(0)
    subgoal = rows.subgoal + 1
    batch = high.high_batch(HighConfig(reward_scale=0.1, discount=0.9), None, rows, subgoal)
    np.testing.assert_array_equal(batch.input, np.hstack([rows.observation, rows.desired]))
    np.testing.assert_array_equal(batch.next_input, np.hstack([rows.next_observation, rows.next_desired]))
    np.testing.assert_array_equal(batch.action, subgoal)
    np.testing.assert_allclose(batch.reward, 0.1 * rows.reward, rtol=1e-6)
    np.testing.assert_allclose(batch.discount, [0.9, 0, 0.9, 0.9, 0.9, 0.9, 0], rtol=1e-6)
