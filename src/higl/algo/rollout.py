"""Acting: the policy in NumPy, and episodes of an environment.

An episode depends on its seed alone: the environment is reset with it, and exploration draws from it. So a run needs
to remember no random state but the number of the episode, and continues exactly in any Gymnasium environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.high import HighRow, Segment, high_input
from higl.algo.low import LowRow, Scheme, goal_transition, low_input, visible_entries
from higl.algo.nets import MLP
from higl.algo.td3 import actor_action
from higl.envs.adapt import succeeded
from higl.settings.config import Config

# Make the streams of exploration, and of whether there is any, others than the environment's.
_EXPLORATION, _GREEDY = 1, 2


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

    @property
    def action_range(self) -> tuple[float, ...]:
        """Return half the width of the action range in each dimension: what scaled actions of 1 stand for."""
        return tuple((high - low) / 2 for low, high in zip(self.action_low, self.action_high, strict=True))

    @classmethod
    def of(cls, env: gymnasium.Env | VectorEnv) -> Spaces:
        """Read the sizes off an environment (of a vector environment: those of each)."""
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


def low_noise_unit(config: Config, spaces: Spaces) -> tuple[float, ...]:
    """Return what the low level's sigmas are divided by, so that they fit actions scaled to [-1, 1]: [A]."""
    return spaces.action_range if config.low.noise_unit == "action" else (1.0,) * spaces.action


class Policy:
    """Both levels' actors in NumPy: what is needed to act. Works on single observations and on batches."""

    def __init__(self, config: Config, spaces: Spaces, low_actor: MLP, high_actor: MLP):
        self.period = config.high.period
        self.scheme: Scheme = config.high.subgoals
        self.low_actor, self.high_actor = low_actor, high_actor
        self.spaces = spaces
        self.limit = subgoal_limit(config, spaces)
        self.visible = visible_entries(config.low, spaces.observation)
        self.action_low = np.asarray(spaces.action_low)
        self.action_high = np.asarray(spaces.action_high)
        self.low_sigma = config.low.exploration / np.asarray(low_noise_unit(config, spaces))
        self.high_sigma = config.high.exploration
        self.random_sigma = config.high.random_sigma
        self.random_subgoals = False

    def propose(self, observation: np.ndarray, desired: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Return a subgoal, with exploration if there is a generator to draw it from."""
        subgoal = actor_action(self.high_actor, self.limit, high_input(observation, desired))
        if rng is not None:
            subgoal = subgoal + rng.normal(0.0, self.high_sigma, subgoal.shape)
        return np.clip(subgoal, -self.limit, self.limit).astype(np.float32)

    def random_subgoal(self, achieved: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a subgoal around where the body is: those of the start of a run (`random_subgoals`)."""
        offset = rng.normal(0.0, self.random_sigma, achieved.shape)
        subgoal = offset if self.scheme == "relative" else achieved + offset
        return np.clip(subgoal, -self.limit, self.limit).astype(np.float32)

    def act(self, observation: np.ndarray, subgoal: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Return an action scaled to [-1, 1], with exploration if there is a generator to draw it from."""
        action = actor_action(self.low_actor, np.float32(1.0), low_input(self.visible, observation, subgoal))
        if rng is not None:
            action = np.clip(action + rng.normal(0.0, self.low_sigma, action.shape), -1.0, 1.0)
        return action.astype(np.float32)

    def environment_action(self, action: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Return a scaled action in the environment's units and type: one that its action space contains."""
        scaled = self.action_low + (action + 1.0) * 0.5 * (self.action_high - self.action_low)
        return np.clip(scaled, self.action_low, self.action_high).astype(dtype)


@dataclass(frozen=True)
class Episode:
    """One episode of T steps. States have T + 1 rows; `subgoal` is the one pursued at each step.

    `terminated` says that the task ended, `truncated` that time ran out.
    """

    observation: np.ndarray
    achieved: np.ndarray
    desired: np.ndarray
    subgoal: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    success: np.ndarray
    terminated: bool
    truncated: bool

    def __len__(self) -> int:
        return len(self.reward)


def _decide(
    policy: Policy,
    states: Sequence[tuple[np.ndarray, ...]],
    subgoals: Sequence[np.ndarray],
    rng: np.random.Generator | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the subgoal to pursue in the last of the states so far, and the action."""
    observation, achieved, desired = states[-1]
    if len(subgoals) % policy.period > 0:
        subgoal = goal_transition(policy.scheme, subgoals[-1], states[-2][1], achieved)
    elif rng is not None and policy.random_subgoals:
        subgoal = policy.random_subgoal(achieved, rng)
    else:
        subgoal = policy.propose(observation, desired, rng)
    return subgoal, policy.act(observation, subgoal, rng)


def explores(config: Config, policy: Policy, seed: int) -> bool:
    """Return whether a training episode is one with exploration: all are while subgoals are random (`greedy`)."""
    return policy.random_subgoals or np.random.default_rng([seed, _GREEDY]).random() >= config.greedy


def collect_episode(env: gymnasium.Env, policy: Policy, seed: int, *, explore: bool) -> Episode:
    """Run one episode. All that is random in it comes from the seed."""
    # Gymnasium seeds the environment's generator like `default_rng(seed)`: one more number, or exploration would repeat
    # the very draws that the start and the goal came from.
    rng = np.random.default_rng([seed, _EXPLORATION]) if explore else None
    observation, _ = env.reset(seed=seed)
    states = [_float32(observation)]
    subgoals, actions, rewards, successes = [], [], [], []
    terminated = truncated = False
    dtype = env.action_space.dtype
    while not (terminated or truncated):
        subgoal, action = _decide(policy, states, subgoals, rng)
        observation, reward, terminated, truncated, info = env.step(policy.environment_action(action, dtype))
        states.append(_float32(observation))
        subgoals.append(subgoal)
        actions.append(action)
        rewards.append(reward)
        successes.append(succeeded(info))
    columns = (np.stack(column) for column in zip(*states, strict=True))
    return Episode(
        *columns,
        np.stack(subgoals),
        np.stack(actions),
        np.asarray(rewards, np.float32),
        np.asarray(successes),
        bool(terminated),
        bool(truncated),
    )


class _Generators:
    """One random generator for each row of a batch: a row draws what it would draw alone, a greedy one nothing."""

    def __init__(self, seeds: Sequence[int], explore: Sequence[bool]):
        self._each = [
            np.random.default_rng([seed, _EXPLORATION]) if draws else None
            for seed, draws in zip(seeds, explore, strict=True)
        ]

    def normal(self, mean: float, sigma: Any, shape: tuple[int, ...]) -> np.ndarray:
        rows = [np.zeros(shape[1:]) if each is None else each.normal(mean, sigma, shape[1:]) for each in self._each]
        return np.stack(rows)


def collect_episodes(env: VectorEnv, policy: Policy, seeds: list[int], *, explore: Sequence[bool]) -> list[Episode]:
    """Run one episode in each environment of a vector environment (see `make_vector`), acting in batches.

    Each is what `collect_episode` gives for its seed and whether it explores, but for the rounding of batched products.
    """
    rng: Any = _Generators(seeds, explore) if any(explore) else None
    observation, _ = cast(Any, env).reset(seed=seeds)  # a list is allowed; its type does not say so
    states = [_float32(observation)]
    subgoals, actions, told = [], [], []
    length = np.zeros(len(seeds), int)
    dtype = env.single_action_space.dtype
    while not length.all():
        subgoal, action = _decide(policy, states, subgoals, rng)
        observation, reward, _, _, info = env.step(policy.environment_action(action, dtype))
        states.append(_float32(observation))
        subgoals.append(subgoal)
        actions.append(action)
        told.append((reward.astype(np.float32), info["is_success"], info["terminated"], info["truncated"]))
        ended = info["terminated"] | info["truncated"]
        length = np.where((length == 0) & ended, len(actions), length)
    columns = [np.stack(column) for column in zip(*states, strict=True)]
    columns += [np.stack(subgoals), np.stack(actions)]
    columns += [np.stack(column) for column in zip(*told, strict=True)]
    return [_cut(columns, row, int(steps)) for row, steps in enumerate(length)]


def _cut(columns: list[np.ndarray], row: int, steps: int) -> Episode:
    """Return one episode of a batch: states have a row more than the rest."""
    states = [column[: steps + 1, row] for column in columns[:3]]
    subgoal, action, reward, success, terminated, truncated = (column[:steps, row] for column in columns[3:])
    return Episode(*states, subgoal, action, reward, success, bool(terminated[-1]), bool(truncated[-1]))


def _float32(observation: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return copies of observation, achieved and desired goal in single precision."""
    return (
        np.array(observation["observation"], np.float32),
        np.array(observation["achieved_goal"], np.float32),
        np.array(observation["desired_goal"], np.float32),
    )


def _ends(config: Config, episode: Episode) -> bool:
    """Return whether the episode's last state is an end that nothing bootstraps from."""
    return episode.terminated or config.time_limit == "terminal"


def low_rows(config: Config, episode: Episode) -> LowRow:
    """Cut an episode into low-level transitions [T, ...]."""
    end = np.zeros(len(episode), np.float32)
    end[-1] = _ends(config, episode)
    return LowRow(
        observation=episode.observation[:-1],
        achieved=episode.achieved[:-1],
        subgoal=episode.subgoal,
        action=episode.action,
        next_observation=episode.observation[1:],
        next_achieved=episode.achieved[1:],
        end=end,
    )


def high_rows(config: Config, episode: Episode) -> HighRow:
    """Cut an episode into high-level transitions, one per segment of m steps; the last may be shorter (eq. 1)."""
    period, length = config.high.period, len(episode)
    starts = np.arange(0, length, period)
    stops = np.minimum(starts + period, length)
    end = np.zeros(len(starts), np.float32)
    end[-1] = _ends(config, episode)
    segment = None
    if config.high.relabel:
        steps = starts[:, None] + np.arange(period)
        took_place = (steps < length).astype(np.float32)
        steps = np.minimum(steps, length - 1)
        segment = Segment(episode.observation[steps], episode.achieved[steps], episode.action[steps], took_place)
    return HighRow(
        observation=episode.observation[starts],
        achieved=episode.achieved[starts],
        desired=episode.desired[starts],
        subgoal=episode.subgoal[starts],
        reward=np.add.reduceat(episode.reward, starts),
        next_observation=episode.observation[stops],
        next_achieved=episode.achieved[stops],
        next_desired=episode.desired[stops],
        end=end,
        segment=segment,
    )
