"""Scripted controllers for the worlds of `benchmarks`: ways along points, and the steps that they take."""

from collections.abc import Callable
from typing import Any

import numpy as np

Controller = Callable[[], np.ndarray]


def follow(position: Callable[[], np.ndarray], points: Any, near: Any) -> Controller:
    """Return the way to the next of some points; a point is passed where every coordinate is `near` it."""
    left = [np.asarray(point, float) for point in points]

    def way() -> np.ndarray:
        while len(left) > 1 and np.all(np.abs(left[0] - position()) < near):
            left.pop(0)
        return left[0] - position()

    return way


def steps_to_goal(env: Any, control: Callable[[Any], Controller], seed: int) -> int:
    """Return the step of the first success, or a step after the end; actions are shares of their range."""
    env.reset(seed=seed)
    act = control(env)
    for step in range(1, env.steps + 1):
        if env.step(env.action_range * np.clip(act(), -1, 1))[4]["is_success"]:
            return step
    return env.steps + 1
