"""Networks as plain arrays and their forward pass, in NumPy or JAX: acting and the compiled programs share it.

Imports neither of them, so that a policy acts without JAX.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# A NumPy or a JAX array.
Array = Any


class Layer(NamedTuple):
    """A fully connected layer: weight [in, out], bias [out]."""

    weight: Array
    bias: Array


MLP = tuple[Layer, ...]

_NORM_EPSILON = 1e-5


def mlp(params: MLP, x: Array, *, layer_norm: bool = False) -> Array:
    """Apply a network with ReLU between its layers: [..., in] -> [..., out]. Takes NumPy or JAX, returns the same."""
    xp = x.__array_namespace__()
    for layer in params[:-1]:
        x = x @ layer.weight + layer.bias
        if layer_norm:
            x = x - xp.mean(x, axis=-1, keepdims=True)
            x = x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + _NORM_EPSILON)
        x = xp.maximum(x, 0.0)
    last = params[-1]
    return x @ last.weight + last.bias


def actor_action(actor: MLP, scale: Array, x: Array) -> Array:
    """Return the actor's action, tanh scaled to the action range: [..., S] -> [..., A]. NumPy or JAX."""
    return x.__array_namespace__().tanh(mlp(actor, x)) * scale
