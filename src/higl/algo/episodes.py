"""Episodes: collecting them, and cutting them into rows for both buffers.

`policy.py` keeps the subgoals during an episode; they are recorded here. All randomness in an episode comes from its
seed, which seeds the environment and the exploration. The only random state that a run has to save is therefore its
number of episodes, and it resumes exactly in any Gymnasium environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.high import HighRow, Segment
from higl.algo.low import LowRow
from higl.algo.plans import Plan
from higl.algo.policy import Policy, Spaces
from higl.settings.config import Config

# Second entry of the seeds: the stream of exploration differs from the environment's own, which Gymnasium seeds like
# `default_rng(seed)`.
_EXPLORATION = 1


@dataclass(frozen=True)
class Episode:
    """One episode of T steps. States have T + 1 rows; `subgoal` is the one pursued at each step.

    `terminated`: the task ended. `truncated`: time ran out. `begins` [T]: where segments begin. `plan`: how it went to
    its goal, if there is a map.
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
    begins: np.ndarray
    plan: Plan = Plan.EXPLORE

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def succeeded(self) -> bool:
        """Whether any step succeeded."""
        return bool(self.success.any())

    @property
    def steps_to_success(self) -> int | None:
        """Steps up to the first success, None without one."""
        return int(self.success.argmax()) + 1 if self.succeeded else None

    @property
    def total_reward(self) -> float:
        """Sum of the rewards."""
        return float(self.reward.sum())

    @property
    def segments(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the segments start and stop (exclusive): [S], [S]."""
        starts = np.flatnonzero(self.begins)
        return starts, np.append(starts[1:], len(self))


def in_units(episode: Episode, unit: np.ndarray) -> Episode:
    """Return an episode with its goals and subgoals in units of the goal space [G]."""
    if (unit == 1.0).all():
        return episode
    achieved, desired, subgoal = episode.achieved / unit, episode.desired / unit, episode.subgoal / unit
    return replace(episode, achieved=achieved, desired=desired, subgoal=subgoal)


def blank_episode(spaces: Spaces) -> Episode:
    """Return an episode of one step that holds zeros: a template for the rows of buffers."""
    observation, goal, action = (
        np.zeros(size, np.float32) for size in (spaces.observation, spaces.goal, spaces.action)
    )
    return Episode(
        observation=np.stack([observation] * 2),
        achieved=np.stack([goal] * 2),
        desired=np.stack([goal] * 2),
        subgoal=goal[None],
        action=action[None],
        reward=np.zeros(1, np.float32),
        success=np.zeros(1, bool),
        terminated=False,
        truncated=True,
        begins=np.ones(1, bool),
    )


def collect_episode(
    env: gymnasium.Env,
    policy: Policy,
    seed: int,
    *,
    explore: bool,
    goal: np.ndarray | None = None,
    shown: np.ndarray | None = None,
) -> Episode:
    """Run one episode. All its randomness comes from the seed.

    The environment gets a `goal` [G], if it takes one. A goal that is only `shown` [G] is desired instead of the
    environment's, which does not know of it.
    """
    rng = np.random.default_rng([seed, _EXPLORATION]) if explore else None
    observation, _ = env.reset(seed=seed, options=None if goal is None else {"goal": goal})
    states, state = [_float32(observation, shown)], policy.begin()
    subgoals, actions, rewards, successes, begins = [], [], [], [], []
    terminated = truncated = False
    dtype = env.action_space.dtype
    while not (terminated or truncated):
        action, state = policy.step(*states[-1], state, rng)
        observation, reward, terminated, truncated, info = env.step(policy.environment_action(action, dtype))
        states.append(_float32(observation, shown))
        subgoals.append(state.subgoal * policy.unit)
        begins.append(state.begins)
        actions.append(action)
        rewards.append(reward)
        successes.append(_success(info))
    columns = (np.stack(column) for column in zip(*states, strict=True))
    return Episode(
        *columns,
        np.stack(subgoals),
        np.stack(actions),
        np.asarray(rewards, np.float32),
        np.asarray(successes),
        bool(terminated),
        bool(truncated),
        np.asarray(begins, bool),
        plan=state.plans[0] if state.plans else Plan.EXPLORE,
    )


def _success(info: dict[str, Any]) -> np.ndarray:
    """Return whether a step's info reports success: `is_success`, or `success` (the mazes of gymnasium-robotics).

    For a vector environment: one value for each row, or a single one if `info` has neither key.
    """
    return np.asarray(info.get("is_success", info.get("success", False))).astype(bool)


class _Generators:
    """One random generator per row of a batch, in `each`: every row draws what it would draw alone."""

    def __init__(self, seeds: Sequence[int]):
        self.each = [np.random.default_rng([seed, _EXPLORATION]) for seed in seeds]

    def normal(self, mean: float, sigma: Any, shape: tuple[int, ...]) -> np.ndarray:
        return np.stack([each.normal(mean, sigma, shape[1:]) for each in self.each])


def collect_episodes(
    env: VectorEnv, policy: Policy, seeds: list[int], shown: np.ndarray | None = None
) -> list[Episode]:
    """Run one episode, exploring, in each environment of a vector environment (see `make_vector`), acting in batches.

    `shown` [N, G] are goals that are desired instead of those of the environments.

    Each equals what `collect_episode` returns for the same seed, apart from the rounding of batched products.
    """
    rng: Any = _Generators(seeds)
    observation, _ = cast(Any, env).reset(seed=seeds)  # a list is allowed, but not in the annotation
    states, state = [_float32(observation, shown)], policy.begin(len(seeds))
    subgoals, actions, outcomes = [], [], []
    length = np.zeros(len(seeds), int)
    dtype = env.single_action_space.dtype
    while not length.all():
        action, state = policy.step(*states[-1], state, rng)
        observation, reward, _, _, info = env.step(policy.environment_action(action, dtype))
        states.append(_float32(observation, shown))
        subgoals.append(state.subgoal * policy.unit)
        actions.append(action)
        success = np.broadcast_to(_success(info), reward.shape)
        outcomes.append((reward.astype(np.float32), success, info["terminated"], info["truncated"], state.begins))
        ended = info["terminated"] | info["truncated"]
        length = np.where((length == 0) & ended, len(actions), length)
    columns = [np.stack(column) for column in zip(*states, strict=True)]
    columns += [np.stack(subgoals), np.stack(actions)]
    columns += [np.stack(column) for column in zip(*outcomes, strict=True)]
    plans = state.plans or (Plan.EXPLORE,) * len(seeds)
    return [
        _one_episode(columns, row, int(steps), plan)
        for row, (steps, plan) in enumerate(zip(length, plans, strict=True))
    ]


def _one_episode(columns: list[np.ndarray], row: int, steps: int, plan: Plan) -> Episode:
    """Return one episode of a batch: states have one row more than the other columns."""
    states = [column[: steps + 1, row] for column in columns[:3]]
    subgoal, action, reward, success, terminated, truncated, begins = (column[:steps, row] for column in columns[3:])
    return Episode(*states, subgoal, action, reward, success, bool(terminated[-1]), bool(truncated[-1]), begins, plan)


def _float32(observation: dict[str, np.ndarray], shown: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return copies of the observation, the achieved and the desired goal, or the one shown, in single precision."""
    return (
        np.array(observation["observation"], np.float32),
        np.array(observation["achieved_goal"], np.float32),
        np.array(observation["desired_goal"] if shown is None else shown, np.float32),
    )


def _ends(config: Config, episode: Episode) -> bool:
    """Return whether values do not bootstrap from the episode's last state."""
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
    """Cut an episode into high-level transitions, one per segment of m steps; the last may be shorter.

    The reward of a segment is the sum over its steps (eq. 1).
    """
    period, length = config.high.period, len(episode)
    starts, stops = episode.segments
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
