"""Training networks: first weights, one gradient step, and small helpers on arrays and pytrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import optax

from higl.algo.forward import MLP, Layer

Params = TypeVar("Params")


def init_mlp(key: jax.Array, sizes: tuple[int, ...]) -> MLP:
    """Draw the weights of a network with the given layer sizes, uniform within 1 / sqrt(fan-in)."""
    layers = []
    for fan_in, fan_out, layer_key in zip(sizes[:-1], sizes[1:], jax.random.split(key, len(sizes) - 1), strict=True):
        weight_key, bias_key = jax.random.split(layer_key)
        bound = fan_in**-0.5
        layers.append(
            Layer(
                jax.random.uniform(weight_key, (fan_in, fan_out), minval=-bound, maxval=bound),
                jax.random.uniform(bias_key, (fan_out,), minval=-bound, maxval=bound),
            )
        )
    return tuple(layers)


def descend(optimiser: optax.GradientTransformation, params: Params, grads: Params, state: Any) -> tuple[Params, Any]:
    """Return parameters after one step of an optimiser, and the optimiser's new state."""
    steps, state = optimiser.update(cast(Any, grads), state, cast(Any, params))
    return cast(Params, optax.apply_updates(cast(Any, params), steps)), state


def safe_norm(x: jax.Array, axis: int = -1) -> jax.Array:
    """Return the Euclidean norm, with gradient zero (not NaN) at zero.

    `optax.safe_norm` is the same function, but its gradient rounds differently, and recorded runs would change.
    """
    square = jnp.sum(x * x, axis=axis)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def squared_distance(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return squared Euclidean distances: [..., G] -> [...]."""
    return jnp.sum(jnp.square(first - second), axis=-1)


def tree_finite(tree: Any) -> jax.Array:
    """Return whether every floating-point number of a pytree is finite."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))


def zeros_like_result(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return zeros shaped like the result of a function: the other branch of a compiled condition."""
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, *arguments))
