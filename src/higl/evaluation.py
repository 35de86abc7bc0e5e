"""Evaluation: episodes of the test goal without exploration."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium
import numpy as np

from higl.rollout import Episode, Policy, collect_episode


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


def evaluate(env: gymnasium.Env, policy: Policy, seeds: list[int]) -> list[Outcome]:
    """Run one episode for each seed."""
    return [Outcome.of(collect_episode(env, policy, seed, explore=False)) for seed in seeds]
