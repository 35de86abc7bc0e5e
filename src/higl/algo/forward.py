"""Networks as plain arrays and their forward pass, in NumPy or JAX: acting and the compiled programs share it.

Imports neither of them, so that a policy acts without JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

# A NumPy or a JAX array.
Array = Any


class Layer(NamedTuple):
    """A fully connected layer: weight [in, out], bias [out]."""

    weight: Array
    bias: Array


MLP = tuple[Layer, ...]
# How a layer multiplies: [..., in] -> [..., out]. `products.py` has faster ones for the compiled programs.
Affine = Callable[[Array, Layer], Array]


def affine(x: Array, layer: Layer) -> Array:
    """Return x W + b: [..., in] -> [..., out]. NumPy or JAX."""
    return x @ layer.weight + layer.bias


def mlp(params: MLP, x: Array, *, affine: Affine = affine) -> Array:
    """Apply a network with ReLU between its layers: [..., in] -> [..., out]. Takes NumPy or JAX, returns the same."""
    xp = x.__array_namespace__()
    for layer in params[:-1]:
        x = xp.maximum(affine(x, layer), 0.0)
    return affine(x, params[-1])


def actor_action(actor: MLP, scale: Array, x: Array, affine: Affine = affine) -> Array:
    """Return the actor's action, tanh scaled to the action range: [..., S] -> [..., A]. NumPy or JAX."""
    return x.__array_namespace__().tanh(mlp(actor, x, affine=affine)) * scale
