"""A goal environment that no preset knows, with a goal space of any dimension; and small settings for it."""

from __future__ import annotations

from types import SimpleNamespace
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


class FallingReachEnv(ReachEnv):
    """The same with a body that falls over at the first action with an entry beyond `limit`, as MuJoCo would tell.

    It moves freely (the first joint) and has a motor at its second joint, if `motor`.
    """

    def __init__(self, limit: float, *, motor: bool = True):
        super().__init__(steps=1_000)
        self.limit = limit
        self.model = SimpleNamespace(
            jnt_type=np.array([0, 3]),
            jnt_limited=np.array([0, 1]),
            jnt_bodyid=np.array([1, 2]),
            jnt_qposadr=np.array([0, 7]),
            body_rootid=np.array([0, 1, 1]),
            actuator_trnid=np.full((int(motor), 2), [1, -1]),
            actuator_trntype=np.zeros(int(motor), np.int32),
        )
        self.data = SimpleNamespace(qpos=np.zeros(8), xmat=np.zeros((3, 9)))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self.data.xmat[1] = [0, 0, 1, 1, 0, 0, 0, 1, 0]  # its y axis points up
        return super().reset(seed=seed)

    def step(self, action: np.ndarray):
        if np.abs(action).max() > self.limit:
            self.data.xmat[1] = [0, 0, 1, -1, 0, 0, 0, -1, 0]
        return super().step(action)


class SilentReachEnv(ReachEnv):
    """The same without a report of success."""

    def step(self, action: np.ndarray):
        return *super().step(action)[:4], {}
