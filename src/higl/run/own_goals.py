"""Goals other than the task's, for high levels that are networks: random ones, and those learned from in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.adjacency import CellMatrix
from higl.algo.hindsight import Rewards
from higl.algo.policy import Spaces, goal_unit
from higl.envs.goals import reward_function
from higl.errors import TaskError
from higl.settings.config import Config

# Separates the random stream of goals from the other streams of the same seed.
_GOALS = 5


def hindsight_rewards(config: Config, env: gymnasium.Env | VectorEnv, test_env: gymnasium.Env) -> Rewards | None:
    """Return the rewards by which a run learns in hindsight; None if it does not.

    Goals are in units of the goal space. Several environments are known by the test environment. One that computes no
    rewards is learned from without hindsight, unless the run draws goals (`checks.check_goals`).
    """
    if not config.learns_in_hindsight:
        return None
    one = test_env if isinstance(env, VectorEnv) else env
    try:
        rewards = reward_function(one, config.task)
    except TaskError:
        return None
    unit = goal_unit(config, Spaces.of(one))
    return lambda achieved, desired: rewards(achieved * unit, desired * unit)


class OwnGoals:
    """Draws the goal of each training episode (`goal = "none"`, without a map that explores).

    Goals are drawn uniformly from the box that the environment declares for them. If that is infinite, they are drawn
    from the cells that were visited so far.
    """

    def __init__(self, config: Config, env: gymnasium.Env):
        self._unit = goal_unit(config, Spaces.of(env))
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
