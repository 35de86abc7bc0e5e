"""Evaluation: episodes without exploration, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium
import numpy as np

from higl.algo.episodes import Episode, collect_episode
from higl.algo.policy import Policy
from higl.run.intervals import wilson_interval


@dataclass(frozen=True)
class Outcome:
    """What an evaluation episode came to: success at any step, return, steps, steps to success, path length."""

    success: bool
    reward: float
    steps: int
    steps_to_success: int | None
    path_length: float

    @classmethod
    def of(cls, episode: Episode) -> Outcome:
        """Sum up an episode."""
        reached = np.flatnonzero(episode.success)
        path = np.linalg.norm(np.diff(episode.achieved, axis=0), axis=1).sum()
        return cls(
            bool(len(reached)),
            float(episode.reward.sum()),
            len(episode),
            int(reached[0]) + 1 if len(reached) else None,
            float(path),
        )


@dataclass(frozen=True)
class Evaluation:
    """What some episodes came to."""

    outcomes: tuple[Outcome, ...]

    @property
    def episodes(self) -> int:
        """Return the number of episodes."""
        return len(self.outcomes)

    @property
    def success(self) -> float:
        """Return the share of episodes that succeeded at any step."""
        return float(np.mean([outcome.success for outcome in self.outcomes]))

    @property
    def success_interval(self) -> tuple[float, float]:
        """Return the 95% interval of that share."""
        return wilson_interval(sum(outcome.success for outcome in self.outcomes), self.episodes)

    @property
    def mean_return(self) -> float:
        """Return the mean sum of rewards."""
        return float(np.mean([outcome.reward for outcome in self.outcomes]))

    @property
    def steps_to_success(self) -> float | None:
        """Return the mean number of steps to the first success, over the episodes that had one."""
        steps = [outcome.steps_to_success for outcome in self.outcomes if outcome.steps_to_success is not None]
        return float(np.mean(steps)) if steps else None

    def __str__(self) -> str:
        low, high = self.success_interval
        return (
            f"success {self.success:.0%} of {self.episodes} episodes (95% interval {low:.0%} to {high:.0%}), "
            f"return {self.mean_return:.1f}"
        )


def evaluate(env: gymnasium.Env, policy: Policy, seeds: list[int]) -> list[Outcome]:
    """Run one episode for each seed."""
    return [Outcome.of(collect_episode(env, policy, seed, explore=False)) for seed in seeds]


def evaluation_row(step: int, seconds: float, outcomes: list[Outcome]) -> dict[str, float | int | str]:
    """Return a row of `eval.csv`; `steps_to_success` is empty where no episode succeeded."""
    times = [outcome.steps_to_success for outcome in outcomes if outcome.steps_to_success is not None]
    return {
        "step": step,
        "time": round(seconds, 3),
        "episodes": len(outcomes),
        "success": float(np.mean([outcome.success for outcome in outcomes])),
        "return": float(np.mean([outcome.reward for outcome in outcomes])),
        "steps_to_success": float(np.mean(times)) if times else "",
        "path_length": float(np.mean([outcome.path_length for outcome in outcomes])),
    }
