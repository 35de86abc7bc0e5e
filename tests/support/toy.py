"""A tiny goal environment and tiny settings, shared by the tests of the learner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import jax
import numpy as np

from higl.algo.episodes import Episode, collect_episode
from higl.algo.learner import Learner
from higl.algo.nets import init_mlp
from higl.algo.policy import Policy, Spaces
from higl.algo.subgoals import high_input_size, low_input_size
from higl.settings.config import (
    AdjacencyConfig,
    Config,
    HighConfig,
    LandmarksConfig,
    LowConfig,
)


class PointEnv(gymnasium.Env):
    """A point of the plane that moves by its action, in the square [-size, size]^2. Observed: x, y, share of time gone.

    Actions have a lopsided range, [0, 2] x [-3, 1], of which the centre stands still: the policy has to scale. The
    desired goal is drawn at reset, at `distance` from the start in any direction.
    """

    reach = 0.5
    """Largest displacement along an axis in one step."""
    success_radius = 1.0

    def __init__(self, *, steps: int = 25, size: float = 8.0, distance: float = 5.0, end_at_success: bool = False):
        self.steps, self.size, self.distance, self.end_at_success = steps, size, distance, end_at_success
        plane = gymnasium.spaces.Box(-size, size, (2,), np.float64)
        self.observation_space = gymnasium.spaces.Dict(
            observation=gymnasium.spaces.Box(-size, size, (3,), np.float64), achieved_goal=plane, desired_goal=plane
        )
        self.action_space = gymnasium.spaces.Box(np.array([0.0, -3.0]), np.array([2.0, 1.0]), dtype=np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.time = 0
        self.position = self.np_random.uniform(-0.1, 0.1, 2)
        angle = self.np_random.uniform(-np.pi, np.pi)
        self.goal = self.distance * np.array([np.cos(angle), np.sin(angle)])
        return self._observe(), {}

    def step(self, action: np.ndarray):
        low, high = self.action_space.low, self.action_space.high  # ty: ignore[unresolved-attribute]
        assert np.all(action >= low - 1e-6)
        assert np.all(action <= high + 1e-6)
        moved = self.reach * (2 * (action - low) / (high - low) - 1)
        self.position = np.clip(self.position + moved, -self.size, self.size)
        self.time += 1
        success = bool(np.linalg.norm(self.position - self.goal) < self.success_radius)
        terminated = success and self.end_at_success
        return self._observe(), float(success) - 1.0, terminated, self.time >= self.steps, {"is_success": success}

    def _observe(self) -> dict[str, np.ndarray]:
        return {
            "observation": np.append(self.position, self.time / self.steps),
            "achieved_goal": self.position.copy(),
            "desired_goal": self.goal.copy(),
        }


SPACES = Spaces.of(PointEnv())


def tiny_config(**changes: Any) -> Config:
    """Return settings small enough to compile in a second or two; a dict as a value changes fields of a part."""
    config = Config(
        task="point",
        precision="fp32",
        hidden=(16, 16),
        batch_size=16,
        buffer_size=300,
        low=LowConfig(exploration=0.2),
        high=HighConfig(period=5, subgoal_range=(3.0, 2.0), exploration=0.5, random_steps=0),
        adjacency=AdjacencyConfig(epochs=1, every=60, degree=3),
        landmarks=LandmarksConfig(coverage=4, novelty=3, pool=50, start=40, shift=2.0),
    )
    return changed(config, **changes)


def changed(config: Config, **changes: Any) -> Config:
    """Return settings with some fields changed; a dict as a value changes fields of a part."""
    flat = {name: value for name, value in changes.items() if not isinstance(value, dict)}
    parts = {
        name: replace(getattr(config, name), **value) for name, value in changes.items() if isinstance(value, dict)
    }
    return replace(config, **flat, **parts)


def episode(learner: Learner, seed: int, *, steps: int = 25, **options: Any) -> Episode:
    """Return an episode of the point with the learner's current policy, exploring."""
    return collect_episode(PointEnv(steps=steps, **options), learner.policy, seed, explore=True)


def random_policy(config: Config, seed: int = 0, spaces: Spaces = SPACES) -> Policy:
    """Return a policy of two small random networks, without a learner."""
    low_key, high_key = jax.random.split(jax.random.key(seed))
    low_size = low_input_size(config.low, spaces.observation, spaces.goal)
    size = high_input_size(config, spaces.observation, spaces.goal)
    low, high = init_mlp(low_key, (low_size, 16, spaces.action)), init_mlp(high_key, (size, 16, spaces.goal))
    return Policy(config, spaces, *jax.device_get((low, high)))


def untrained_policy(config: Config, seed: int = 0) -> Policy:
    """Return the policy of a new learner."""
    return Learner(replace(config, seed=seed), SPACES).policy
