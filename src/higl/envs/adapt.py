"""Wrappers: goals for environments without them, and the adapters that the learner puts around an environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from higl.errors import TaskError
from higl.observations import with_achieved

GoalFunction = Callable[[np.ndarray], np.ndarray]
DesiredFunction = Callable[[np.random.Generator], Any]
RewardFunction = Callable[[np.ndarray, np.ndarray, dict[str, Any]], float]

# Separates the random stream of desired goals from the other streams of the same seed.
_DESIRED = 4
# Resets that show whether the observation contains the goal.
_RESETS = 4


class GoalWrapper(gymnasium.Wrapper):
    """Makes an environment goal-conditioned; see `wrap_goal`."""

    def __init__(
        self,
        env: gymnasium.Env,
        goal_fn: GoalFunction,
        reward_fn: RewardFunction | None,
        desired_fn: DesiredFunction | None,
        success_fn: Callable[[np.ndarray, np.ndarray], bool] | None,
    ):
        super().__init__(env)
        inner = env.observation_space
        if not isinstance(inner, spaces.Box) or len(inner.shape) != 1:
            raise ValueError(
                f"wrap_goal: the observation must be a vector (a Box of one dimension), not {inner}; "
                "gymnasium.wrappers.FlattenObservation flattens most others"
            )
        self._goal_fn, self._reward_fn, self._desired_fn = goal_fn, reward_fn, desired_fn
        self._success_fn = success_fn
        self._rng = np.random.default_rng()
        goal = spaces.Box(-np.inf, np.inf, self._goal(inner.sample()).shape, np.float32)
        self.observation_space = spaces.Dict(observation=inner, achieved_goal=goal, desired_goal=goal)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and draw a goal, both from the seed; the option `goal` sets it instead."""
        options = dict(options or {})
        chosen = options.pop("goal", None)
        observation, info = self.env.reset(seed=seed, options=options or None)
        if seed is not None:
            self._rng = np.random.default_rng([seed, _DESIRED])
        if chosen is None and self._desired_fn is not None:
            chosen = self._desired_fn(self._rng)
        self._desired = None if chosen is None else self.check_desired(chosen)
        return self._dictionary(observation), info

    @property
    def has_goals(self) -> bool:
        """Whether episodes have a goal of their own."""
        return self._desired_fn is not None

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; `reward_fn` gives the reward."""
        observation, _, terminated, truncated, info = self.env.step(action)
        found = self._dictionary(observation)
        achieved, desired = found["achieved_goal"], found["desired_goal"]
        if self._success_fn is not None:
            info = info | {"is_success": self._desired is not None and bool(self._success_fn(achieved, desired))}
        has_reward = self._desired is not None and self._reward_fn is not None
        reward = float(self._reward_fn(achieved, desired, info)) if has_reward else 0.0
        return found, reward, bool(terminated), bool(truncated), info

    @property
    def compute_reward(self) -> RewardFunction:
        """The reward of an achieved goal for any desired one, as goal environments have it.

        Raises:
            AttributeError: there is no reward.
        """
        if self._reward_fn is None:
            raise AttributeError("wrap_goal without reward_fn and radius: there is no compute_reward")
        return self._reward_fn

    def check_desired(self, desired: Any) -> np.ndarray:
        """Return a desired goal as a vector of the shape that `goal_fn` returns.

        Raises:
            ValueError: the goal has another shape.
        """
        goal = np.atleast_1d(np.asarray(desired, np.float32))
        parts: Any = self.observation_space
        expected = parts["desired_goal"].shape
        if goal.shape != expected:
            raise ValueError(f"wrap_goal: desired has shape {goal.shape}, but goal_fn returns {expected}")
        return goal

    def _goal(self, observation: np.ndarray) -> np.ndarray:
        return np.atleast_1d(np.asarray(self._goal_fn(observation), np.float32))

    def _dictionary(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        achieved = self._goal(observation)
        desired = achieved if self._desired is None else self._desired
        return {"observation": observation, "achieved_goal": achieved, "desired_goal": desired.copy()}


def wrap_goal(
    env: gymnasium.Env,
    goal_fn: GoalFunction,
    reward_fn: RewardFunction | None = None,
    *,
    desired: DesiredFunction | np.ndarray | Sequence[float] | float | None = None,
    radius: float | None = None,
) -> gymnasium.Env:
    """Make an environment goal-conditioned.

    Args:
        env: An environment whose observation is a vector.
        goal_fn: Returns the achieved goal of an observation: `lambda observation: observation[:2]`.
        reward_fn: `reward_fn(achieved, desired, info)` replaces the environment's reward. Default: 0 within `radius`
            of the goal, else -1.
        desired: The goal: fixed numbers, or a function that draws one for each episode from a random generator. Not
            given: there is none, and an agent can only be trained without a goal (`goal="none"`). A goal may then still
            be chosen for an episode: `env.reset(options={"goal": ...})`; with `radius`, success is reported for it.
        radius: The goal counts as reached within this distance, and `info["is_success"]` says so. Default: the
            environment's own `info["is_success"]`, if it has one.

    Raises:
        ValueError: the observation is not a vector, neither `reward_fn` nor `radius` is given for a goal, or `desired`
            has another shape than `goal_fn` returns.
    """
    if reward_fn is None and radius is None and desired is not None:
        raise ValueError("wrap_goal needs reward_fn or radius: without a reward there is nothing to learn")
    if radius is not None and not radius > 0:
        raise ValueError(f"wrap_goal: radius = {radius}: expected a number greater than 0")

    def within(achieved: np.ndarray, desired: np.ndarray) -> bool:
        assert radius is not None
        return bool(np.linalg.norm(achieved - desired) < radius)

    def sparse(achieved: np.ndarray, desired: np.ndarray, info: dict[str, Any]) -> float:
        return 0.0 if within(achieved, desired) else -1.0

    draw = desired if desired is None or callable(desired) else lambda _: np.asarray(desired, np.float32)
    reward = reward_fn or (None if radius is None else sparse)
    wrapped = GoalWrapper(env, goal_fn, reward, draw, None if radius is None else within)
    if desired is not None and not callable(desired):  # fail here, not at the first reset
        wrapped.check_desired(desired)
    return wrapped


class ObserveAchieved(gymnasium.ObservationWrapper):
    """Puts the achieved goal before the observation."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        parts: Any = env.observation_space
        both = [parts["achieved_goal"], parts["observation"]]
        low, high = (np.concatenate([getattr(part, end) for part in both]) for end in ("low", "high"))
        joined = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
        self.observation_space = spaces.Dict({**parts.spaces, "observation": joined})

    def observation(self, observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return an observation with the achieved goal in front."""
        return with_achieved(observation)


class HideGoal(gymnasium.Wrapper):
    """Hides what a task wants, for training without a goal: no other part of the program sees it.

    The desired goal is the achieved one, the reward 0, and `info` does not report success.

    Raises:
        TaskError: the observation shows the goal as well.
    """

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        shown = _shown_goal(env)
        if shown is not None:
            raise TaskError(
                f'goal = "none": entry {shown} of the observation is the desired goal; leave it out of the '
                "observation (gymnasium.wrappers.TransformObservation), or train with a goal"
            )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._hidden(observation), _without_success(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment."""
        observation, _, terminated, truncated, info = self.env.step(action)
        return self._hidden(observation), 0.0, bool(terminated), bool(truncated), _without_success(info)

    def _hidden(self, observation: Any) -> dict[str, Any]:
        # Exactly the declared type: a vector environment copies observations into arrays of it.
        parts: Any = self.observation_space
        goal = np.array(observation["achieved_goal"], parts["desired_goal"].dtype)
        return {**observation, "desired_goal": goal}


def _shown_goal(env: gymnasium.Env) -> int | None:
    """Return the first entry of the observation that follows the desired goal from reset to reset; None without one."""
    try:
        states = [env.reset(seed=seed)[0] for seed in range(_RESETS)]
        observed, achieved, desired = (
            np.stack([state[part] for state in states]) for part in ("observation", "achieved_goal", "desired_goal")
        )
    except (KeyError, IndexError, TypeError, ValueError):  # no goal environment: `check_env` says so
        return None
    varied = desired[:, (np.ptp(desired, axis=0) > 0) & (desired != achieved).any(axis=0)]
    same = (observed[:, :, None] == varied[:, None, :]).all(axis=0).any(axis=1)
    return int(np.argmax(same)) if same.any() else None


def _without_success(info: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in info.items() if name not in ("is_success", "success")}


class EndsInInfo(gymnasium.Wrapper):
    """Reports the end of an episode only in `info`, and repeats its last result until it is reset.

    A vector environment can then step the others to their ends. It never resets one by itself, so that each episode
    gets its own seed.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment."""
        self._last: tuple[Any, float, bool, bool, dict[str, Any]] | None = None
        observation, _ = self.env.reset(seed=seed, options=options)
        return observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment, unless the episode has ended."""
        if self._last is not None:
            return self._last
        observation, reward, terminated, truncated, info = self.env.step(action)
        reported = {name: bool(info[name]) for name in ("is_success", "success") if name in info}
        reported |= {"terminated": bool(terminated), "truncated": bool(truncated)}
        result = (observation, float(reward), False, False, reported)
        if terminated or truncated:
            self._last = result
        return result


def make_vector(factories: Sequence[Callable[[], gymnasium.Env]], *, processes: bool = False) -> VectorEnv:
    """Make a vector environment for `collect_episodes`; with `processes`, each environment runs in its own process."""
    ending = [_Ending(factory) for factory in factories]
    mode = AutoresetMode.DISABLED
    if processes:  # forking a process with JAX threads can deadlock
        return AsyncVectorEnv(ending, context="spawn", autoreset_mode=mode)
    return SyncVectorEnv(ending, autoreset_mode=mode)


class _Ending:
    """Makes an environment and wraps it in `EndsInInfo`; can be pickled."""

    def __init__(self, factory: Callable[[], gymnasium.Env]):
        self._factory, self._maker = factory, os.getpid()

    def __call__(self) -> gymnasium.Env:
        if os.getpid() != self._maker:
            # Ctrl-C reaches every process of the terminal; the training process ends its episode first.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return EndsInInfo(self._factory())
