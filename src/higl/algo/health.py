"""The health of a run: measurements that show which part does not learn. On the host, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from higl.algo.adjacency import EPSILON, CellMatrix
from higl.algo.episodes import Episode, high_rows, low_rows
from higl.algo.forward import MLP, actor_action, mlp
from higl.algo.low import intrinsic_reward
from higl.algo.subgoals import Scheme, View, high_input, low_input, subgoal_target
from higl.algo.td3 import TD3, Networks, RewardRange, policy_value, possible_values
from higl.settings.config import AdjacencyConfig, Config

# An action counts as saturated when it is this close to its range.
_SATURATED = 0.99

# A segment counts as still when it moved by less than this share of the distance to its subgoal. This
# flags three in four segments of ants on their backs (they still kick), and one in twenty of the others.
_STILL = 0.1

# A value counts as impossible when it is this share of the possible range outside of it: networks are not exact.
_INEXACT = 0.1
# Share of impossible values from which a run is warned, and again whenever the share has doubled.
_ALARMING = 0.1


def episode_metrics(config: Config, episode: Episode) -> dict[str, float]:
    """Return the metrics of an episode that need no networks: success, return, and the low level's progress.

    `low/progress` is how far a segment moved along its subgoal, in units of the goal space; `low/progress_share` is
    the share of the distance to the subgoal that it covered; `low/still` is the share of segments that hardly moved,
    as when a body fell over or got stuck.
    """
    outcome = {"episode/success": float(episode.succeeded), "episode/return": episode.total_reward}
    return {
        **({} if config.explores_freely else outcome),  # without a goal there is neither
        "episode/length": float(len(episode)),
        **segment_metrics(episode, config.high.subgoals),
    }


def segment_metrics(episode: Episode, scheme: Scheme) -> dict[str, float]:
    """Return the low level's progress per segment, the distance of its subgoals, and how often it did not move."""
    starts, stops = episode.segments
    begin, end = episode.achieved[starts], episode.achieved[stops]
    offset = subgoal_target(scheme, episode.subgoal[starts], begin) - begin
    distance = np.linalg.norm(offset, axis=1)
    left = np.linalg.norm(begin + offset - end, axis=1)
    safe = np.maximum(distance, 1e-6)
    return {
        "low/progress": float((((end - begin) * offset).sum(1) / safe).mean()),
        "low/progress_share": float(((distance - left) / safe).mean()),
        "low/still": float((np.linalg.norm(end - begin, axis=1) < _STILL * distance).mean()),
        "low/subgoal_distance": float(distance.mean()),
    }


def low_value_metrics(
    config: Config, low: TD3, networks: Networks, rewards: RewardRange, view: View, episode: Episode
) -> dict[str, float]:
    """Compare the low level's values with its returns, and count the actor's actions at the limits of their range.

    `low/value` is V at the start of each segment; `low/value_excess` is how much it exceeds the segment's discounted
    intrinsic rewards plus the discounted V at its last step.
    """
    rows = low_rows(config, episode)
    inputs = low_input(view, rows.observation, rows.subgoal)
    values = policy_value(low, networks, inputs)
    actions = actor_action(networks.actor, np.float32(1.0), inputs)  # without exploration
    starts, stops = episode.segments
    lasts = stops - 1
    powers = config.low.discount ** (np.arange(len(episode)) - np.repeat(starts, stops - starts))
    returns = intrinsic_reward(config.high.subgoals, rows.subgoal, rows.achieved, rows.next_achieved)
    returns = returns * powers
    # The last step of each segment stands for all that follows it: its value replaces its reward.
    returns[lasts] = values[lasts] * powers[lasts]
    return {
        "low/saturated": float((np.abs(actions) > _SATURATED).mean()),
        "low/value": float(values[starts].mean()),
        "low/value_excess": float((values[starts] - np.add.reduceat(returns, starts)).mean()),
        **_range_metrics("low", low, rewards, values),
    }


def high_value_metrics(
    config: Config, high: TD3, networks: Networks, rewards: RewardRange, view: View | None, episode: Episode
) -> dict[str, float]:
    """Compare the high level's value with its return.

    `high/value` is V at the episode's start; `high/return` is what it should be: the discounted, scaled rewards of the
    segments, plus the discounted V of the last state where values bootstrap from it.
    """
    segments = high_rows(config, episode)
    discounts = config.high.discount ** np.arange(len(segments.reward))
    states = np.append(episode.segments[0], len(episode))
    inputs = high_input(view, episode.observation[states], episode.achieved[states], episode.desired[states])
    values = policy_value(high, networks, inputs)
    after = (1.0 - segments.end[-1]) * config.high.discount ** len(segments.reward) * values[-1]
    return {
        "high/value": float(values[0]),
        "high/return": float((config.high.reward_scale * segments.reward * discounts).sum() + after),
        **_range_metrics("high", high, rewards, values),
    }


def _range_metrics(level: str, td3: TD3, rewards: RewardRange, values: np.ndarray) -> dict[str, float]:
    """Return the range that rewards allow for the values of a level, and the share of its values clearly outside."""
    low, high = (float(bound) for bound in possible_values(td3.config.discount, rewards))
    inexact = _INEXACT * (high - low)
    outside = (values < low - inexact) | (values > high + inexact)
    # Without rewards nothing is known yet.
    share = float(outside.mean()) if high > low else 0.0
    return {f"{level}/possible_low": low, f"{level}/possible_high": high, f"{level}/impossible": share}


class ValueWatch:
    """Says when the values of a level leave the range that rewards allow, and again whenever it gets twice as bad."""

    def __init__(self) -> None:
        self._rows: list[Mapping[str, Any]] = []
        self._told: dict[str, float] = {}

    def see(self, row: Mapping[str, Any]) -> None:
        """Take in the metrics of an episode."""
        self._rows.append(row)

    def warnings(self) -> list[str]:
        """Return what is wrong with the episodes since the last call, a line for each level."""
        rows, self._rows, lines = self._rows, [], []
        for level in ("low", "high"):
            seen = [row for row in rows if f"{level}/impossible" in row]
            share = float(np.mean([row[f"{level}/impossible"] for row in seen])) if seen else 0.0
            if share >= max(_ALARMING, 2 * self._told.get(level, 0.0)):
                self._told[level] = share
                low, high, value = (seen[-1][f"{level}/{name}"] for name in ("possible_low", "possible_high", "value"))
                lines.append(
                    f"{share:.0%} of the {level} level's values are impossible: rewards allow {low:.4g} to {high:.4g}, "
                    f"{level}/value is {value:.4g}"
                )
        return lines


def adjacency_metrics(
    config: AdjacencyConfig, network: MLP, matrix: CellMatrix, rng: np.random.Generator
) -> dict[str, float]:
    """Return the share of adjacent pairs of cells, and of other pairs, that the network classifies correctly."""
    first, second, adjacent = matrix.pairs(config.all_pairs_up_to, rng)
    embedding = mlp(network, matrix.points)
    distance = np.linalg.norm(embedding[first] - embedding[second], axis=1)
    near = distance < EPSILON + config.delta / 2
    metrics = {}
    for name, group, right in (("adjacent", adjacent > 0, near), ("other", adjacent == 0, ~near)):
        if group.any():
            metrics[f"adjacency/{name}_right"] = float(right[group].mean())
    return metrics
