"""The low level: the intrinsic reward, its batches, exchanged subgoals, and the distance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from higl.algo import low, td3
from higl.algo.subgoals import low_view, no_statistics
from higl.settings.config import LowConfig


@pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
def test_intrinsic_reward_by_hand(xp):
    """Equation 2: minus |g - (s' - s)|; equation 3: minus |g - s'|."""
    subgoal = xp.asarray([[3.0, 4.0], [1.0, 0.0], [1.0, 1.0]])
    achieved = xp.asarray([[10.0, 10.0], [5.0, 5.0], [0.0, 0.0]])
    following = xp.asarray([[10.0, 10.0], [6.0, 5.0], [1.0, -1.0]])
    relative = low.intrinsic_reward("relative", subgoal, achieved, following)
    np.testing.assert_allclose(relative, [-5.0, 0.0, -2.0])
    absolute = low.intrinsic_reward("absolute", subgoal, achieved, following)
    np.testing.assert_allclose(absolute, [-np.hypot(7, 6), -np.hypot(5, 5), -2.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("scheme", "next_subgoals", "rewards"),
    [("relative", [[4, 5], [6, 8]], [-np.hypot(4, 5), -10]), ("absolute", [[7, 8], [9, 10]], [-np.hypot(3, 3), 0])],
)
def test_low_batch_by_hand(scheme, next_subgoals, rewards):
    rows = low.LowRow(
        observation=np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        achieved=np.array([[1.0, 2.0], [6.0, 8.0]]),
        subgoal=np.array([[7.0, 8.0], [9.0, 10.0]]),
        action=np.array([[0.5], [-0.5]]),
        next_observation=np.array([[4.0, 5.0, 6.0], [11.0, 12.0, 13.0]]),
        next_achieved=np.array([[4.0, 5.0], [9.0, 10.0]]),
        end=np.array([0.0, 1.0]),
    )
    config = LowConfig(hidden_entries=(0, 1), discount=0.9)
    batch = low.low_batch(config, scheme, low_view(config, no_statistics(3)), jax.tree.map(jnp.asarray, rows))
    np.testing.assert_array_equal(batch.input, [[0, 0, 3, 7, 8], [0, 0, 6, 9, 10]])
    expected = np.hstack([[[0, 0, 6], [0, 0, 13]], next_subgoals])
    np.testing.assert_allclose(batch.next_input, expected, atol=1e-6)
    np.testing.assert_array_equal(batch.action, rows.action)
    np.testing.assert_allclose(batch.reward, rewards, rtol=1e-6)
    np.testing.assert_allclose(batch.discount, [0.9, 0.0])


@pytest.mark.parametrize(("scheme", "taken"), [("relative", "subgoal"), ("absolute", "achieved")])
@pytest.mark.parametrize(("share", "exchanged"), [(0.0, 0), (0.5, 3), (0.34, 3), (1.0, 6)])
def test_exchanged_subgoals_come_from_other_transitions(share, exchanged, scheme, taken):
    rng = np.random.default_rng(0)
    shapes = {"observation": (6, 3), "achieved": (6, 2), "subgoal": (6, 2), "action": (6, 1), "end": (6,)}
    shapes |= {"next_observation": (6, 3), "next_achieved": (6, 2)}
    rows = low.LowRow(**{name: jnp.asarray(rng.normal(size=shape)) for name, shape in shapes.items()})
    changed = low.exchange_subgoals(scheme, share, rows)
    others = [1, 2, 3, 4, 5, 0]
    for row in range(6):
        expected = getattr(rows, taken)[others[row]] if row < exchanged else rows.subgoal[row]
        np.testing.assert_array_equal(changed.subgoal[row], expected)
    for name in shapes.keys() - {"subgoal"}:
        np.testing.assert_array_equal(getattr(changed, name), getattr(rows, name))


@pytest.mark.parametrize("scheme", ["relative", "absolute"])
def test_distance_is_the_negative_value_of_the_subgoal_towards_the_target(scheme):
    config = LowConfig(hidden_entries=(0, 1))
    level = td3.TD3(config, td3.Smoothing(sigma=0.2, limit=0.5), (8,), 5, (1.0,))
    networks = td3.init(level, jax.random.key(1)).networks
    view = low_view(config, no_statistics(3))
    rng = np.random.default_rng(0)
    observation, target = rng.normal(size=(40, 3)), 3 * rng.normal(size=(40, 2))
    achieved = observation[:, :2]
    subgoal = target - achieved if scheme == "relative" else target
    x = jnp.asarray(np.hstack([observation * [0, 0, 1], subgoal]))
    action = jnp.tanh(td3.mlp(networks.actor, x))
    values = [td3.mlp(critic, jnp.hstack([x, action]))[:, 0] for critic in networks.critics]
    expected = np.maximum(0, -np.min(values, axis=0))
    assert (expected == 0).any()
    assert (expected > 0).any()
    arrays = (jnp.asarray(array) for array in (observation, achieved, target))
    distance = low.low_distance(level, networks, view, scheme, *arrays)
    np.testing.assert_allclose(distance, expected, atol=1e-5)
