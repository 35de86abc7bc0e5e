"""Evaluation: episodes without exploration, the outcome of each, and their summary.

The rows of `eval.csv`, `higl eval` and `higl.evaluate` all come from `Evaluation`.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from math import sqrt
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from higl.algo.episodes import Episode, collect_episode
from higl.algo.policy import Policy, Spaces
from higl.envs.goals import choosable
from higl.envs.make import make_env
from higl.envs.trust import import_module_of
from higl.run.checks import check_same_spaces
from higl.run.policy_file import load_policy
from higl.run.process import available_cores
from higl.run.seeds import MEASURING, episode_seed
from higl.settings.config import Config

# Two-sided 95% quantile of the normal distribution.
_Z = 1.959964


@dataclass(frozen=True)
class Outcome:
    """Outcome of one evaluation episode.

    Attributes:
        success: whether any step succeeded.
        success_at_end: whether the last step succeeded.
        reward: sum of the rewards.
        steps: length of the episode.
        steps_to_success: steps up to the first success, None without one.
        path_length: length of the path of achieved goals.
    """

    success: bool
    success_at_end: bool
    reward: float
    steps: int
    steps_to_success: int | None
    path_length: float

    @classmethod
    def of(cls, episode: Episode) -> Outcome:
        """Return the outcome of an episode."""
        path = np.linalg.norm(np.diff(episode.achieved, axis=0), axis=1).sum()
        return cls(
            success=episode.succeeded,
            success_at_end=bool(episode.success[-1]),
            reward=episode.total_reward,
            steps=len(episode),
            steps_to_success=episode.steps_to_success,
            path_length=float(path),
        )


@dataclass(frozen=True)
class Evaluation:
    """Summary of several evaluation episodes."""

    outcomes: tuple[Outcome, ...]

    @classmethod
    def of(cls, episodes: Iterable[Episode]) -> Evaluation:
        """Summarise episodes."""
        return cls(tuple(Outcome.of(episode) for episode in episodes))

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.outcomes)

    @property
    def successes(self) -> int:
        """Number of episodes that succeeded at any step."""
        return sum(outcome.success for outcome in self.outcomes)

    @property
    def success(self) -> float:
        """Share of episodes that succeeded at any step."""
        return self.successes / self.episodes

    @property
    def success_interval(self) -> tuple[float, float]:
        """95% confidence interval of that share."""
        return wilson_interval(self.successes, self.episodes)

    @property
    def successes_at_end(self) -> int:
        """Number of episodes whose last step succeeded."""
        return sum(outcome.success_at_end for outcome in self.outcomes)

    @property
    def success_at_end(self) -> float:
        """Share of episodes whose last step succeeded."""
        return self.successes_at_end / self.episodes

    @property
    def mean_return(self) -> float:
        """Mean sum of rewards."""
        return float(np.mean([outcome.reward for outcome in self.outcomes]))

    @property
    def steps_to_success(self) -> float | None:
        """Mean number of steps to the first success over the episodes that have one; None if none has."""
        steps = [outcome.steps_to_success for outcome in self.outcomes if outcome.steps_to_success is not None]
        return float(np.mean(steps)) if steps else None

    @property
    def path_length(self) -> float:
        """Mean length of the path of achieved goals."""
        return float(np.mean([outcome.path_length for outcome in self.outcomes]))

    def summary(self) -> dict[str, Any]:
        """Return everything by name, as `higl eval --json` prints it."""
        return {
            "episodes": self.episodes,
            "successes": self.successes,
            "success": self.success,
            "success_interval": self.success_interval,
            "successes_at_end": self.successes_at_end,
            "success_at_end": self.success_at_end,
            "success_at_end_interval": wilson_interval(self.successes_at_end, self.episodes),
            "steps_to_success": self.steps_to_success,
            "path_length": self.path_length,
            "return": self.mean_return,
        }

    def row(self, step: int, seconds: float) -> dict[str, float | int | str]:
        """Return a row of `eval.csv`; `steps_to_success` is empty if no episode succeeded."""
        steps = self.steps_to_success
        return {
            "step": step,
            "time": round(seconds, 3),
            "episodes": self.episodes,
            "success": self.success,
            "success_at_end": self.success_at_end,
            "return": self.mean_return,
            "steps_to_success": "" if steps is None else steps,
            "path_length": self.path_length,
        }

    def __str__(self) -> str:
        low, high = self.success_interval
        return (
            f"success {self.success:.0%} of {self.episodes} episodes (95% interval {low:.0%} to {high:.0%}), "
            f"{self.success_at_end:.0%} at the last step, return {self.mean_return:.1f}"
        )


def wilson_interval(successes: int, count: int) -> tuple[float, float]:
    """Return the 95% interval of a rate (Wilson's, which holds for few episodes and for rates near 0 and 1)."""
    rate, share = successes / count, _Z * _Z / count
    centre = (rate + share / 2) / (1 + share)
    half = _Z / (1 + share) * sqrt(rate * (1 - rate) / count + share / (4 * count))
    # Exactly 0 and 1 at the ends, where rounding would leave 3e-17.
    return centre - half if successes else 0.0, centre + half if successes < count else 1.0


def make_test_env(config: Config, name: str | None = None, **options: Any) -> gymnasium.Env:
    """Make the test environment of a run: the one with this name, or the task's, with options of `gymnasium.make`."""
    return make_env(name or config.task, config.reward, "test", observe_achieved=config.observe_achieved, **options)


def greedy_episodes(env: gymnasium.Env, policy: Policy, seeds: Iterable[int]) -> Iterator[Episode]:
    """Run one episode per seed, without exploration."""
    return (collect_episode(env, policy, seed, explore=False) for seed in seeds)


def evaluate(env: gymnasium.Env, policy: Policy, seeds: Iterable[int]) -> Evaluation:
    """Run one episode per seed, without exploration, and summarise them."""
    return Evaluation.of(greedy_episodes(env, policy, seeds))


def measuring_seeds(seed: int, indices: Iterable[int]) -> list[int]:
    """Return the seeds of the test episodes with these numbers."""
    return [episode_seed(seed, MEASURING, index) for index in indices]


def measure_policy(
    file: Path,
    seed: int,
    episodes: int,
    task: str,
    progress: Callable[[int], None] = lambda done: None,
    goals: np.ndarray | None = None,
) -> Evaluation:
    """Evaluate a policy file in a task's test environment on all cores; their number does not change the result.

    Args:
        file: the policy file.
        seed: seed of the episodes.
        episodes: number of episodes.
        task: name of the task; its module must have been imported.
        progress: receives the number of episodes that are done, after each.
        goals: the goal of each episode [E, G]; not given: those of the environment.

    Raises:
        TaskError: the environment cannot be made, or has other spaces than the policy was trained for.
    """
    env, policy = load_tested(file, task, chosen=goals is not None)  # fail here, before any process is started
    workers = min(available_cores(), episodes)
    seeds, chosen = measuring_seeds(seed, range(episodes)), [None] * episodes if goals is None else list(goals)
    if workers == 1:
        outcomes = (
            Outcome.of(collect_episode(env, policy, each, explore=False, goal=goal))
            for each, goal in zip(seeds, chosen, strict=True)
        )
        return Evaluation(tuple(_counting(outcomes, progress)))
    env.close()
    context = multiprocessing.get_context("spawn")  # a fork would copy JAX in the middle of its threads' work
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        measure = partial(_measure_episode, file, task)
        return Evaluation(tuple(_counting(pool.map(measure, seeds, chosen), progress)))


def _counting(outcomes: Iterable[Outcome], progress: Callable[[int], None]) -> Iterator[Outcome]:
    for done, outcome in enumerate(outcomes, 1):
        progress(done)
        yield outcome


def _measure_episode(file: Path, task: str, seed: int, goal: np.ndarray | None) -> Outcome:
    """Run one episode in a process of `measure_policy`."""
    import_module_of(task)  # the process that started this one has it too
    env, policy = _kept_tested(file, task, chosen=goal is not None)
    return Outcome.of(collect_episode(env, policy, seed, explore=False, goal=goal))


def load_tested(file: Path, task: str, *, chosen: bool = False) -> tuple[gymnasium.Env, Policy]:
    """Return the test environment, whose goals can be chosen if asked for, and the policy."""
    policy, config = load_policy(file)
    env = make_test_env(config, task)
    check_same_spaces(Spaces.of(env), policy.spaces)
    return choosable(env, task) if chosen else env, policy


_kept_tested = cache(load_tested)
