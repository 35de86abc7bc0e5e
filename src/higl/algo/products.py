"""The affine maps of the compiled programs: in single precision, or with factors rounded to bfloat16.

Processors with AVX512-BF16 or AMX multiply bfloat16 numbers at twice the rate of float32 or more. Weights, optimisers,
sums, biases and activations stay float32: only the two factors of a product are rounded. XLA takes the fast routine
only for some layouts, which is why this module spells out the backward pass.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from higl.algo.forward import Affine, Array, Layer, affine
from higl.processor import has_fast_bfloat16
from higl.settings.config import Precision

# A layer with fewer outputs stays in float32: it costs little, and its outputs are the values and actions themselves.
NARROW = 16


def resolved_precision(precision: Precision) -> Precision:
    """Return fp32 or bf16: `auto` is bf16 if learning runs on a processor that multiplies it faster."""
    if precision != "auto":
        return precision
    return "bf16" if jax.default_backend() == "cpu" and has_fast_bfloat16() else "fp32"


def affine_of(precision: Precision) -> Affine:
    """Return the affine map of a precision."""
    return mixed_affine if resolved_precision(precision) == "bf16" else single_affine


def single_affine(x: Array, layer: Layer) -> Array:
    """Return x W + b in float32: [..., in] -> [..., out]. NumPy or JAX."""
    if isinstance(x, np.ndarray) or not 1 < layer.weight.shape[1] < NARROW:
        return affine(x, layer)
    return _flattened(_narrow, x, layer)


def mixed_affine(x: Array, layer: Layer) -> Array:
    """Return x W + b, with x and W rounded to bfloat16 and sums in float32: [..., in] -> [..., out].

    Narrow layers, and NumPy arrays, stay in float32.
    """
    if isinstance(x, np.ndarray) or layer.weight.shape[1] < NARROW:
        return single_affine(x, layer)
    return _flattened(_mixed, x, layer)


def _flattened(function: jax.custom_vjp, x: jax.Array, layer: Layer) -> jax.Array:
    """Apply an affine map of [B, in] to [..., in]."""
    rows = function(x.reshape(-1, x.shape[-1]), layer.weight, layer.bias)
    return rows.reshape(*x.shape[:-1], -1)


def to_bfloat16(x: jax.Array) -> jax.Array:
    """Round to the nearest bfloat16, ties to even.

    The same as `astype`, but three times as fast on weights: XLA compiles a conversion that it cannot fuse with other
    work to slow code.
    """
    bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return jax.lax.bitcast_convert_type(bits.astype(jnp.uint16), jnp.bfloat16)


def _dot(first: jax.Array, second: jax.Array, *, along: tuple[int, int]) -> jax.Array:
    """Return the product of two matrices in float32, summed along an axis of each."""
    axes = (((along[0],), (along[1],)), ((), ()))
    return jax.lax.dot_general(first, second, axes, preferred_element_type=jnp.float32)


def _transposed_with_ones(x: jax.Array) -> jax.Array:
    """Return the transpose [N + 1, B] of a matrix [B, N], with a last row of ones.

    A product whose first factor is summed along its first axis is slow. XLA would turn the product with a plain
    transpose into such a one; it leaves that with the additional row alone.
    """
    return jnp.concatenate([x.T, jnp.ones((1, x.shape[0]), x.dtype)])


# --- Factors in bfloat16 ---


@jax.custom_vjp
def _mixed(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    return _mixed_forward(x, weight, bias)[0]


def _mixed_forward(x: jax.Array, weight: jax.Array, bias: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    rounded = to_bfloat16(x), to_bfloat16(weight)
    return _dot(*rounded, along=(1, 0)) + bias, rounded


def _mixed_backward(rounded: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, weight = rounded
    grad = to_bfloat16(grad)
    both = _dot(_transposed_with_ones(x), grad, along=(1, 0))
    return _dot(grad, weight, along=(1, 1)), both[:-1], both[-1]


_mixed.defvjp(_mixed_forward, _mixed_backward)


# --- Few outputs, in float32 ---


@jax.custom_vjp
def _narrow(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    return x @ weight + bias


def _narrow_forward(x: jax.Array, weight: jax.Array, bias: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return x @ weight + bias, (x, weight)


def _narrow_backward(saved: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, weight = saved
    of_weight = _dot(_transposed_with_ones(grad), x, along=(1, 0))[:-1].T
    return _dot(grad, weight, along=(1, 1)), of_weight, jnp.sum(grad, axis=0)


_narrow.defvjp(_narrow_forward, _narrow_backward)
