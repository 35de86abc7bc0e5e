"""Acting: the policy in NumPy, with the one subgoal clock that collecting episodes and `Agent.predict` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.high import high_input
from higl.algo.low import Scheme, goal_transition, low_input, visible_entries
from higl.algo.nets import MLP
from higl.algo.td3 import actor_action
from higl.settings.config import Config


@dataclass(frozen=True)
class Spaces:
    """Sizes of a goal environment's spaces, and the range of its actions."""

    observation: int
    goal: int
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]

    @property
    def action(self) -> int:
        """Return the number of action dimensions."""
        return len(self.action_low)

    @classmethod
    def of(cls, env: gymnasium.Env | VectorEnv) -> Spaces:
        """Read the spaces of an environment; for a vector environment, those of a single one."""
        vector = isinstance(env, VectorEnv)
        observation: Any = env.single_observation_space if vector else env.observation_space
        action: Any = env.single_action_space if vector else env.action_space
        return cls(
            int(observation["observation"].shape[0]),
            int(observation["achieved_goal"].shape[0]),
            tuple(float(x) for x in action.low),
            tuple(float(x) for x in action.high),
        )


def subgoal_limit(config: Config, spaces: Spaces) -> np.ndarray:
    """Return the largest subgoal in each dimension of the goal space: [G]."""
    return np.broadcast_to(np.asarray(config.high.subgoal_range, np.float32), (spaces.goal,)).copy()


@dataclass(frozen=True)
class PolicyState:
    """What a policy remembers between two steps, for one observation or a batch of N.

    `subgoal` [N, G] is the subgoal of the last step, `achieved` [N, G] the goal-space point it was pursued from, and
    `clock` [N] the number of steps since the episode began.
    """

    subgoal: np.ndarray
    achieved: np.ndarray
    clock: np.ndarray


class Policy:
    """Both levels' actors in NumPy. Acts on single observations and on batches."""

    def __init__(self, config: Config, spaces: Spaces, low_actor: MLP, high_actor: MLP):
        self.period = config.high.period
        self.scheme: Scheme = config.high.subgoals
        self.low_actor, self.high_actor = low_actor, high_actor
        self.spaces = spaces
        self.limit = subgoal_limit(config, spaces)
        self.visible = visible_entries(config.low, spaces.observation)
        self.action_low = np.asarray(spaces.action_low)
        self.action_high = np.asarray(spaces.action_high)
        self.low_sigma = config.low.exploration
        self.high_sigma = config.high.exploration
        self.random_sigma = config.high.random_sigma
        self.random_subgoals = False

    def begin(self, *batch: int) -> PolicyState:
        """Return the state at the start of an episode: for one observation, or for a batch of the given size."""
        goals = np.zeros((*batch, self.spaces.goal), np.float32)
        return PolicyState(goals, goals, np.zeros(batch, int))

    def step(
        self,
        observation: np.ndarray,
        achieved: np.ndarray,
        desired: np.ndarray,
        state: PolicyState,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, PolicyState]:
        """Return an action scaled to [-1, 1] and the next state; its `subgoal` is the one this action pursues.

        The subgoal clock: the high level proposes a subgoal every m steps (`high.period`); in between, the subgoal
        follows the goal transition h(g, s, s'). Without a generator there is no exploration.
        """
        due = state.clock % self.period == 0
        if np.all(due):
            subgoal = self._new_subgoal(observation, achieved, desired, rng)
        else:
            subgoal = goal_transition(self.scheme, state.subgoal, state.achieved, achieved)
            if np.any(due):
                fresh = self._new_subgoal(observation, achieved, desired, rng)
                subgoal = np.where(due[:, None], fresh, subgoal)
        action = self.act(observation, subgoal, rng)
        return action, PolicyState(subgoal, achieved, state.clock + 1)

    def _new_subgoal(
        self, observation: np.ndarray, achieved: np.ndarray, desired: np.ndarray, rng: np.random.Generator | None
    ) -> np.ndarray:
        """Return a random subgoal in the random phase at the start of a run, otherwise the high level's."""
        if rng is not None and self.random_subgoals:
            return self.random_subgoal(achieved, rng)
        return self.propose(observation, desired, rng)

    def propose(self, observation: np.ndarray, desired: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Return the high level's subgoal, with exploration noise if a generator is given."""
        subgoal = actor_action(self.high_actor, self.limit, high_input(observation, desired))
        if rng is not None:
            subgoal = subgoal + rng.normal(0.0, self.high_sigma, subgoal.shape)
        return np.clip(subgoal, -self.limit, self.limit).astype(np.float32)

    def random_subgoal(self, achieved: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a random subgoal around the achieved point, as used at the start of a run (`random_subgoals`)."""
        offset = rng.normal(0.0, self.random_sigma, achieved.shape)
        subgoal = offset if self.scheme == "relative" else achieved + offset
        return np.clip(subgoal, -self.limit, self.limit).astype(np.float32)

    def act(self, observation: np.ndarray, subgoal: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Return the low level's action scaled to [-1, 1], with exploration noise if a generator is given."""
        action = actor_action(self.low_actor, np.float32(1.0), low_input(self.visible, observation, subgoal))
        if rng is not None:
            action = np.clip(action + rng.normal(0.0, self.low_sigma, action.shape), -1.0, 1.0)
        return action.astype(np.float32)

    def environment_action(self, action: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Return a scaled action in the environment's units and dtype, within its action space."""
        scaled = self.action_low + (action + 1.0) * 0.5 * (self.action_high - self.action_low)
        return np.clip(scaled, self.action_low, self.action_high).astype(dtype)
