"""Environments whose goal can be chosen: `env.reset(options={"goal": ...})`.

Our own environments and those of `wrap_goal` take the option themselves. Any other goal environment is wrapped: the
wrapper puts the goal into its observations, and tells success by the environment's own `compute_reward`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from higl.envs.adapt import GoalWrapper
from higl.envs.base import GoalEnv
from higl.errors import TaskError
from higl.text import first_line

Rewards = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From achieved and desired goals [N, G] to the rewards [N]."""

# How far from a goal a sparse reward must still be that of the goal, as a share of the goal's size (at least of 1).
_NEAR = 1e-5


def choosable(env: gymnasium.Env, name: str) -> gymnasium.Env:
    """Return an environment that takes the option `goal` at each reset.

    Raises:
        TaskError: it cannot tell success for any goal but its own.
    """
    if isinstance(env.unwrapped, GoalEnv) or _has_wrapper(env, GoalWrapper):
        return env
    if not callable(getattr(env.unwrapped, "compute_reward", None)):
        raise TaskError(
            f"task {name!r}: its goals cannot be chosen, since it has no compute_reward(achieved_goal, desired_goal, "
            "info), which would tell whether they are reached"
        )
    return ChosenGoal(env, name)


def reward_function(env: gymnasium.Env, name: str) -> Rewards:
    """Return the rewards of an environment for any goals, by its `compute_reward`; the `info` of the steps is empty.

    Raises:
        TaskError: it has none, or none that does without `info`.
    """
    try:
        compute: Any = env.get_wrapper_attr("compute_reward")
    except AttributeError:
        raise TaskError(
            f"task {name!r}: it has no compute_reward(achieved_goal, desired_goal, info), so goals of the agent's own "
            "cannot be rewarded"
        ) from None

    def rewards(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        # One by one: not every environment takes batches.
        return np.array([float(compute(*pair, {})) for pair in zip(achieved, desired, strict=True)], np.float32)

    space: Any = env.observation_space
    nowhere = np.zeros((1, *space["achieved_goal"].shape), np.float32)
    try:
        rewards(nowhere, nowhere)
    except Exception as error:  # it may raise anything
        raise TaskError(
            f"task {name!r}: compute_reward with an empty info raised {type(error).__name__}: {first_line(error)}"
        ) from error
    return rewards


def _has_wrapper(env: gymnasium.Env, kind: type) -> bool:
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, kind):
            return True
        env = env.env
    return False


class ChosenGoal(gymnasium.Wrapper):
    """Shows a chosen goal in place of the environment's own; success is a reward like that at the goal itself."""

    def __init__(self, env: gymnasium.Env, name: str):
        super().__init__(env)
        self._name = name
        self._goal: np.ndarray | None = None
        self._best = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; the option `goal` is the goal of the episode.

        Raises:
            TaskError: the reward is dense, so that it does not tell success.
        """
        options = dict(options or {})
        goal = options.pop("goal", None)
        observation, info = self.env.reset(seed=seed, options=options or None)
        self._goal = None
        if goal is not None:
            self._goal = np.asarray(goal, observation["desired_goal"].dtype).reshape(observation["desired_goal"].shape)
            self._best = self._reward(self._goal, info)
            near = self._goal + _NEAR * max(1.0, float(np.abs(self._goal).max()))
            if self._reward(near, info) != self._best:
                raise TaskError(
                    f"task {self._name!r}: its goals cannot be chosen, since its reward is dense and does not tell "
                    "whether they are reached; make it with its sparse reward"
                )
        return self._shown(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; reward and success are those of the chosen goal."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._goal is not None:
            reward = self._reward(observation["achieved_goal"], info)
            info = {**info, "is_success": reward == self._best}
        return self._shown(observation), float(reward), bool(terminated), bool(truncated), info

    def _reward(self, achieved: np.ndarray, info: dict[str, Any]) -> float:
        inner: Any = self.unwrapped
        return float(inner.compute_reward(achieved, self._goal, info))

    def _shown(self, observation: Any) -> Any:
        return observation if self._goal is None else {**observation, "desired_goal": self._goal.copy()}
