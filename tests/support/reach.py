"""A goal environment that no preset knows, with a goal space of any dimension; and small settings for it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

SMALL: dict[str, Any] = {
    "hidden": (32, 32),
    "batch_size": 64,
    "adjacency": {"epochs": 2},
    "landmarks": {"coverage": 8, "novelty": 8, "pool": 100},
}


class ReachEnv(gymnasium.Env):
    """A body with inertia in a box; observed are its velocity, then (unless `blind`) its position.

    Goals lie at 5 from the middle, where it starts, in any direction; the reward is sparse.
    """

    def __init__(self, goals: int = 2, *, radius: float = 1.0, steps: int = 40, blind: bool = False):
        self.goals, self.radius, self.steps, self.blind = goals, radius, steps, blind
        goal = gymnasium.spaces.Box(-np.inf, np.inf, (goals,), np.float64)
        state = gymnasium.spaces.Box(-np.inf, np.inf, (goals if blind else 2 * goals,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(observation=state, achieved_goal=goal, desired_goal=goal)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (goals,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.time, self.velocity = 0, np.zeros(self.goals)
        self.position = self.np_random.uniform(-0.5, 0.5, self.goals)
        direction = self.np_random.normal(size=self.goals)
        self.goal = 5.0 * direction / np.linalg.norm(direction)
        return self._observe(), {}

    def step(self, action: np.ndarray):
        self.velocity = 0.5 * self.velocity + 0.25 * np.clip(action, -1.0, 1.0)
        self.position = np.clip(self.position + self.velocity, -8.0, 8.0)
        self.time += 1
        success = bool(np.linalg.norm(self.position - self.goal) < self.radius)
        return self._observe(), float(success) - 1.0, False, self.time >= self.steps, {"is_success": success}

    def _observe(self) -> dict[str, np.ndarray]:
        state = self.velocity if self.blind else np.append(self.velocity, self.position)
        return {
            "observation": state.astype(np.float32),
            "achieved_goal": self.position.copy(),
            "desired_goal": self.goal.copy(),
        }


class SilentReachEnv(ReachEnv):
    """The same without a report of success."""

    def step(self, action: np.ndarray):
        return *super().step(action)[:4], {}
