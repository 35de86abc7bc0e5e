"""The health of a run: measurements that show which part does not learn. On the host, in NumPy."""

from __future__ import annotations

import numpy as np

from higl.algo.adjacency import CellMatrix
from higl.algo.episodes import Episode, high_rows, low_rows
from higl.algo.forward import MLP, actor_action, mlp
from higl.algo.low import intrinsic_reward
from higl.algo.subgoals import Scheme, View, high_input, low_input, subgoal_target
from higl.algo.td3 import TD3, Networks, policy_value
from higl.settings.config import AdjacencyConfig, Config

# An action counts as saturated when it is this close to its range.
_SATURATED = 0.99

# A segment counts as still when it moved by less than this share of the distance to its subgoal. This
# flags three in four segments of ants on their backs (they still kick), and one in twenty of the others.
_STILL = 0.1


def episode_metrics(config: Config, episode: Episode) -> dict[str, float]:
    """Return the metrics of an episode that need no networks: success, return, and the low level's progress.

    `low/progress` is how far a segment moved along its subgoal, in units of the goal space; `low/progress_share` is
    the share of the distance to the subgoal that it covered; `low/still` is the share of segments that hardly moved,
    as when a body fell over or got stuck.
    """
    period, scheme = config.high.period, config.high.subgoals
    outcome = {"episode/success": float(episode.succeeded), "episode/return": episode.total_reward}
    return {
        **({} if config.explores_freely else outcome),  # without a goal there is neither
        "episode/length": float(len(episode)),
        **segment_metrics(episode, period, scheme),
    }


def segment_metrics(episode: Episode, period: int, scheme: Scheme) -> dict[str, float]:
    """Return the low level's progress per segment, the distance of its subgoals, and how often it did not move."""
    starts, stops = episode.segments(period)
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


def low_value_metrics(config: Config, low: TD3, networks: Networks, view: View, episode: Episode) -> dict[str, float]:
    """Compare the low level's values with its returns, and count the actor's actions at the limits of their range.

    `low/value` is V at the start of each segment; `low/value_excess` is how much it exceeds the segment's discounted
    intrinsic rewards plus the discounted V at its last step.
    """
    rows = low_rows(config, episode)
    inputs = low_input(view, rows.observation, rows.subgoal)
    values = policy_value(low, networks, inputs)
    actions = actor_action(networks.actor, np.float32(1.0), inputs)  # without exploration
    starts, stops = episode.segments(config.high.period)
    lasts = stops - 1
    powers = config.low.discount ** (np.arange(len(episode)) % config.high.period)
    rewards = intrinsic_reward(config.high.subgoals, rows.subgoal, rows.achieved, rows.next_achieved)
    rewards = config.low.reward_scale * rewards * powers
    # The last step of each segment stands for all that follows it: its value replaces its reward.
    rewards[lasts] = values[lasts] * powers[lasts]
    return {
        "low/saturated": float((np.abs(actions) > _SATURATED).mean()),
        "low/value": float(values[starts].mean()),
        "low/value_excess": float((values[starts] - np.add.reduceat(rewards, starts)).mean()),
    }


def high_value_metrics(config: Config, high: TD3, networks: Networks, episode: Episode) -> dict[str, float]:
    """Compare the high level's value with its return.

    `high/value` is V at the episode's start; `high/return` is what it should be: the discounted, scaled rewards of the
    segments, plus the discounted V of the last state where values bootstrap from it.
    """
    segments = high_rows(config, episode)
    discounts = config.high.discount ** np.arange(len(segments.reward))
    ends = high_input(episode.observation[[0, -1]], episode.desired[[0, -1]])
    start_value, last_value = policy_value(high, networks, ends)
    after = (1.0 - segments.end[-1]) * config.high.discount ** len(segments.reward) * last_value
    return {
        "high/value": float(start_value),
        "high/return": float((config.high.reward_scale * segments.reward * discounts).sum() + after),
    }


def adjacency_metrics(
    config: AdjacencyConfig, network: MLP, matrix: CellMatrix, rng: np.random.Generator
) -> dict[str, float]:
    """Return the share of adjacent pairs of cells, and of other pairs, that the network classifies correctly."""
    first, second, adjacent = matrix.pairs(config.all_pairs_up_to, rng)
    embedding = mlp(network, matrix.points)
    distance = np.linalg.norm(embedding[first] - embedding[second], axis=1)
    near = distance < config.epsilon + config.delta / 2
    metrics = {}
    for name, group, right in (("adjacent", adjacent > 0, near), ("other", adjacent == 0, ~near)):
        if group.any():
            metrics[f"adjacency/{name}_right"] = float(right[group].mean())
    return metrics
