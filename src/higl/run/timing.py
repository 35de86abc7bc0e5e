"""Timing compiled programs, and the machine's matrix product rate to compare them with."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from higl.algo.forward import Affine, Layer
from higl.algo.products import affine_of
from higl.run.process import available_cores
from higl.settings.config import Precision

SECONDS = 0.3
"""Seconds over which a call is repeated; its time is the shortest, because other processes only make it longer."""

PRODUCTS = (128, 300)
"""Batch and width of the matrix products behind MFLOP-equivalents: the paper's. So numbers of any networks compare."""


def clock() -> float:
    """Return processor time on one core, where it is the time of the run without other processes; else wall time."""
    return time.process_time() if available_cores() == 1 else time.perf_counter()


def best_time(call: Callable[[], Any], seconds: float = SECONDS) -> float:
    """Return the shortest of at least two timings of a call, after one call to compile it."""
    jax.block_until_ready(call())
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        start = clock()
        jax.block_until_ready(call())
        times.append(clock() - start)
    return min(times)


class ProductRate:
    """The machine's matrix product rate at the shapes of a hidden layer's update.

    One pass is the three products of such a layer: forward, gradient of the input, gradient of the weight. With bf16 it
    includes the rounding of their factors.
    """

    def __init__(self, batch: int, width: int, precision: Precision, loops: int = 40):
        self._x = jax.random.normal(jax.random.key(0), (batch, width))
        self._layer = Layer(jax.random.normal(jax.random.key(1), (width, width)) * width**-0.5, jnp.zeros(width))
        self._flops = loops * 3 * 2 * batch * width * width
        step = partial(_layer_update, affine_of(precision))
        self._run = jax.jit(lambda x, layer: jax.lax.fori_loop(0, loops, step, (x, layer)))

    def measure(self) -> float:
        """Return the rate in FLOP/s."""
        return self._flops / best_time(lambda: self._run(self._x, self._layer))


def _layer_update(affine: Affine, _: jax.Array, carry: tuple[jax.Array, Layer]) -> tuple[jax.Array, Layer]:
    """Go forward and back through a layer; everything is used, so nothing is optimised away, and stays finite."""
    x, layer = carry
    forward, pull = jax.vjp(affine, x, layer)
    back, grads = pull(forward)
    weight = layer.weight * 0.5 + grads.weight * 1e-9
    return back * (1.0 / x.shape[1]), Layer(weight, layer.bias)
