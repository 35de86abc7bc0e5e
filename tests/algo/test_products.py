"""Affine maps in both precisions, against float64 and against what XLA would do by itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from higl.algo import products
from higl.algo.forward import Layer, affine, mlp
from higl.algo.nets import init_mlp
from higl.algo.products import NARROW, mixed_affine, resolved_precision, single_affine, to_bfloat16

BATCH = 24


def random_layer(inputs: int, outputs: int) -> Layer:
    (layer,) = init_mlp(jax.random.key(1), (inputs, outputs))
    return layer


def rounded(x: jax.Array) -> np.ndarray:
    """Return an array rounded to bfloat16 as XLA does it, in float64."""
    return np.asarray(x.astype(jnp.bfloat16).astype(jnp.float32), np.float64)


def exact(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, grad: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return x W + b and its gradients, in float64."""
    return x @ weight + bias, grad @ weight.T, x.T @ grad, grad.sum(0)


def with_gradients(function, x: jax.Array, layer: Layer, grad: jax.Array) -> list[jax.Array]:
    value, pull = jax.vjp(function, x, layer)
    of_input, of_layer = pull(grad)
    return [value, of_input, of_layer.weight, of_layer.bias]


def test_rounding_is_that_of_xla():
    x = jax.random.normal(jax.random.key(0), (10_000,)) * jnp.exp(10 * jax.random.normal(jax.random.key(1), (10_000,)))
    ties = jnp.asarray([1.0 + 2**-8, 1.0 + 3 * 2**-8, -1.0 - 2**-8])  # halfway between two bfloat16 numbers
    special = jnp.asarray([0.0, -0.0, jnp.inf, -jnp.inf, jnp.finfo(jnp.float32).max, 1e-40, jnp.nan])
    everything = jnp.concatenate([x, ties, special])
    ours, theirs = to_bfloat16(everything), everything.astype(jnp.bfloat16)
    np.testing.assert_array_equal(np.asarray(ours, np.float32), np.asarray(theirs, np.float32))


@pytest.mark.parametrize("sizes", [(7, 40), (40, 40), (40, NARROW)])
def test_mixed_products_have_rounded_factors_and_exact_sums(sizes):
    """Value and gradients are those of float64 with rounded factors: no sum is in bfloat16, and no bias is rounded."""
    layer = random_layer(*sizes)
    x, grad = (jax.random.normal(jax.random.key(seed), (BATCH, size)) for seed, size in enumerate(sizes))
    found = with_gradients(mixed_affine, x, layer, grad)
    wanted = exact(rounded(x), rounded(layer.weight), np.asarray(layer.bias), rounded(grad))
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == jnp.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [single_affine, mixed_affine])
@pytest.mark.parametrize("outputs", [1, 2, NARROW - 1])
def test_narrow_layers_stay_in_single_precision(function, outputs):
    layer = random_layer(40, outputs)
    x, grad = (jax.random.normal(jax.random.key(seed), (BATCH, size)) for seed, size in enumerate((40, outputs)))
    found = with_gradients(function, x, layer, grad)
    wanted = exact(*(np.asarray(each, np.float64) for each in (x, layer.weight, layer.bias, grad)))
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_single_precision_of_wide_layers_is_the_plain_product():
    layer, x = random_layer(12, 40), jax.random.normal(jax.random.key(0), (BATCH, 12))
    np.testing.assert_array_equal(single_affine(x, layer), affine(x, layer))


@pytest.mark.parametrize("function", [single_affine, mixed_affine])
@pytest.mark.parametrize("shape", [(5,), (6, 5), (2, 3, 5)])
def test_leading_axes_are_kept(function, shape):
    params = init_mlp(jax.random.key(0), (5, 20, 2))
    x = jax.random.normal(jax.random.key(1), shape)
    value = mlp(params, x, affine=function)
    assert value.shape == (*shape[:-1], 2)
    rows = mlp(params, x.reshape(-1, 5), affine=function)
    np.testing.assert_allclose(value.reshape(-1, 2), rows, atol=1e-6)


def test_numpy_stays_in_single_precision():
    """Acting and the health of a run are computed on the host."""
    params = jax.device_get(init_mlp(jax.random.key(0), (5, 40, 2)))
    x = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    value = mlp(params, x, affine=mixed_affine)
    assert isinstance(value, np.ndarray)
    np.testing.assert_array_equal(value, mlp(params, x))


def test_mixed_precision_is_close_to_single():
    params = init_mlp(jax.random.key(0), (30, 300, 300, 1))
    x = jax.random.normal(jax.random.key(1), (256, 30))
    single, mixed = (mlp(params, x, affine=function)[:, 0] for function in (single_affine, mixed_affine))
    assert not np.array_equal(single, mixed)
    assert jnp.max(jnp.abs(single - mixed)) < 0.02 * jnp.std(single)


@pytest.mark.parametrize(
    ("precision", "fast", "resolved"),
    [("auto", True, "bf16"), ("auto", False, "fp32"), ("bf16", False, "bf16"), ("fp32", True, "fp32")],
)
def test_auto_asks_the_processor(monkeypatch, precision, fast, resolved):
    monkeypatch.setattr(products, "has_fast_bfloat16", lambda: fast)
    assert resolved_precision(precision) == resolved
