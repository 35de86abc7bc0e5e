"""Random goals for training without those of the task, where no map explores: HRAC and HIRO with `goal = "none"`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.adjacency import CellMatrix
from higl.algo.policy import Spaces, goal_unit
from higl.envs.goals import reward_function
from higl.settings.config import Config

# Separates the random stream of goals from the other streams of the same seed.
_GOALS = 5


class OwnGoals:
    """Draws the goal of each training episode, and rewards it by the environment's `compute_reward`.

    Goals are drawn uniformly from the box that the environment declares for them. If that is infinite, they are drawn
    from the cells that were visited so far.
    """

    def __init__(self, config: Config, env: gymnasium.Env):
        self._unit = goal_unit(config, Spaces.of(env))
        self._rewards = reward_function(env, config.task)
        space: Any = env.observation_space
        box = space["achieved_goal"]
        self._box = (box.low, box.high) if box.is_bounded() else None

    @classmethod
    def of(cls, config: Config, env: gymnasium.Env | VectorEnv, test_env: gymnasium.Env) -> OwnGoals | None:
        """Return the goals of a run; None if it draws none. Several environments are known by the test environment."""
        if not config.draws_goals:
            return None
        return cls(config, test_env if isinstance(env, VectorEnv) else env)

    def draw(self, visited: CellMatrix, seeds: Sequence[int]) -> np.ndarray:
        """Return a goal for each episode, from its seed: [E, G]. Before anything was visited, it is the origin."""
        return np.stack([self._draw(visited, np.random.default_rng([seed, _GOALS])) for seed in seeds])

    def _draw(self, visited: CellMatrix, rng: np.random.Generator) -> np.ndarray:
        if self._box is not None:
            return rng.uniform(*self._box)
        if not len(visited):
            return np.zeros_like(self._unit)
        place = visited.points[rng.integers(len(visited))]
        return self._unit * (place + visited.cell * rng.uniform(-0.5, 0.5, place.shape))

    def rewards(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        """Return the rewards [N] of goals [N, G] in units of the goal space."""
        return self._rewards(achieved * self._unit, desired * self._unit)
