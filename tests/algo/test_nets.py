"""Networks in NumPy and JAX, and the helpers on arrays and pytrees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from higl.algo.forward import Layer, mlp
from higl.algo.nets import init_mlp, safe_norm, squared_distance, tree_finite


def test_mlp_is_the_same_in_numpy_and_jax_and_by_hand():
    params = init_mlp(jax.random.key(0), (3, 6, 5, 2))
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    hidden = x.astype(np.float64)
    for weight, bias in params[:-1]:
        hidden = hidden @ np.asarray(weight, np.float64) + np.asarray(bias, np.float64)
        hidden = np.where(hidden > 0, hidden, 0)
    by_hand = hidden @ np.asarray(params[-1].weight) + np.asarray(params[-1].bias)

    in_numpy = mlp(jax.device_get(params), x)
    in_jax = mlp(params, jnp.asarray(x))
    assert isinstance(in_numpy, np.ndarray)
    assert isinstance(in_jax, jax.Array)
    np.testing.assert_allclose(in_numpy, by_hand, atol=1e-5)
    np.testing.assert_allclose(in_jax, by_hand, atol=1e-5)


def test_weights_are_drawn_within_the_fan_in_and_differ_between_layers():
    params = init_mlp(jax.random.key(1), (100, 100, 100, 1))
    assert [layer.weight.shape for layer in params] == [(100, 100), (100, 100), (100, 1)]
    for layer in params:
        assert np.abs(layer.weight).max() <= 0.1
        assert np.abs(layer.bias).max() <= 0.1
        assert np.abs(layer.weight).max() > 0.09
    assert not np.array_equal(params[0].weight, params[1].weight)


def test_safe_norm_has_a_finite_gradient_at_zero():
    points = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(safe_norm(points), [0, 5])
    np.testing.assert_allclose(jax.grad(lambda x: safe_norm(x).sum())(points), [[0, 0], [0.6, 0.8]], rtol=1e-6)


def test_squared_distances_broadcast():
    points = jnp.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    expected = [[0, 25, 100], [25, 0, 25], [100, 25, 0]]
    np.testing.assert_array_equal(squared_distance(points[:, None], points[None]), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_tree_finite_finds_one_bad_number(bad):
    good = (Layer(jnp.ones((2, 2)), jnp.zeros(2)), {"count": jnp.array(3)})
    assert tree_finite(good)
    assert not tree_finite((Layer(jnp.ones((2, 2)).at[1, 0].set(bad), jnp.zeros(2)), good[1]))
