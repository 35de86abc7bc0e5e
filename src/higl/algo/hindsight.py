"""Hindsight for a high level that learns from rewards (not in the paper; `Config.learns_in_hindsight`).

Far goals are seldom reached, and random ones (`goal = "none"`) neither. So each segment is also learned from with goals
that the same episode reached later, and with the rewards for those: hindsight experience replay with the strategy
"future" (Andrychowicz et al., NeurIPS 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from higl.algo.episodes import Episode, high_rows
from higl.algo.high import HighRow
from higl.settings.config import Config

Rewards = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From achieved and desired goals [N, G], in units of the goal space, to the rewards [N]."""

# Goals in hindsight for each segment; the same number as in the paper on hindsight.
COPIES = 4


def rewarded(episode: Episode, rewards: Rewards) -> Episode:
    """Return an episode with the rewards for its desired goals."""
    return replace(episode, reward=rewards(episode.achieved[1:], episode.desired[1:]))


def hindsight_rows(config: Config, episode: Episode, rewards: Rewards, rng: np.random.Generator) -> HighRow:
    """Return the high-level transitions of S segments, each with COPIES goals that were reached at its end or later.

    The reward of a segment is the sum over its steps, for its new goal. Rows: [S * COPIES, ...].
    """
    starts, stops = (np.repeat(ends, COPIES) for ends in episode.segments)
    goals = episode.achieved[rng.integers(stops, len(episode) + 1)]
    lengths = stops - starts
    first = np.cumsum(lengths) - lengths
    row = np.repeat(np.arange(len(starts)), lengths)
    step = np.arange(len(row)) - first[row] + starts[row]
    reward = np.add.reduceat(rewards(episode.achieved[step + 1], goals[row]), first)
    rows = jax.tree.map(lambda column: np.repeat(column, COPIES, axis=0), high_rows(config, episode))
    return rows._replace(desired=goals, next_desired=goals, reward=reward)
