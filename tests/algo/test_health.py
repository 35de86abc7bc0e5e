"""The health of a run, by hand."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from support.toy import SPACES, tiny_config

from higl.algo import td3
from higl.algo.adjacency import CellMatrix
from higl.algo.episodes import Episode
from higl.algo.forward import Layer
from higl.algo.health import (
    ValueWatch,
    adjacency_metrics,
    episode_metrics,
    high_value_metrics,
    low_value_metrics,
    segment_metrics,
)
from higl.algo.subgoals import low_view, no_statistics
from higl.settings.config import AdjacencyConfig

SMOOTHING = td3.Smoothing(sigma=0.2, limit=0.5)
CONFIG = tiny_config(high={"period": 2, "discount": 0.5, "reward_scale": 0.1}, low={"discount": 0.5})
LOW = td3.TD3(CONFIG.low, SMOOTHING, CONFIG.hidden, 5, (1.0, 1.0))
HIGH = td3.TD3(CONFIG.high, SMOOTHING, CONFIG.hidden, 5, (3.0, 2.0))
VIEW = low_view(CONFIG.low, no_statistics(SPACES.observation))
# With a discount of 0.5, values between -6 and 2 are possible.
REWARDS = td3.RewardRange(np.float32(-3.0), np.float32(1.0))


def walk() -> Episode:
    """Return five steps on a line, in segments of two: along the subgoal, across it, and one step back."""
    achieved = np.array([[0, 0], [1, 0], [2, 0], [2, 1], [2, 2], [1, 2]], np.float32)
    proposed = np.repeat(np.array([[4, 0], [3, 0], [3, 4]], np.float32), 2, axis=0)[:5]
    starts = np.array([0, 0, 2, 2, 4])
    return Episode(
        observation=np.hstack([achieved, np.zeros((6, 1), np.float32)]),
        achieved=achieved,
        desired=np.ones((6, 2), np.float32),
        subgoal=proposed + achieved[starts] - achieved[:-1],
        action=np.array([[1, 0], [1, -1], [0.5, 0], [0, 0], [0, -0.995]], np.float32),
        reward=np.array([-1, -1, -1, 0, -1], np.float32),
        success=np.array([False, False, False, True, False]),
        terminated=False,
        truncated=True,
        begins=np.array([True, False, True, False, True]),
    )


def test_progress_by_hand():
    """Segments: 2 of the way along a subgoal of 4; across one of 3; away from one of 5."""
    metrics = segment_metrics(walk(), "relative")
    assert metrics["low/subgoal_distance"] == pytest.approx((4 + 3 + 5) / 3)
    assert metrics["low/progress"] == pytest.approx((2 + 0 - 3 / 5) / 3)
    left = [2, np.hypot(3, 2), np.hypot(4, 4)]
    shares = [(whole - rest) / whole for whole, rest in zip([4, 3, 5], left, strict=True)]
    assert metrics["low/progress_share"] == pytest.approx(np.mean(shares))


def test_segments_that_hardly_move_are_still():
    episode = walk()
    assert segment_metrics(episode, "relative")["low/still"] == 0
    fallen = episode.achieved.copy()
    fallen[3:] = fallen[2] + 0.01
    assert segment_metrics(replace(episode, achieved=fallen), "relative")["low/still"] == pytest.approx(2 / 3)


def test_segments_of_any_length_count_once():
    """One of a step, which leads one of four units far, and one of four steps, away from its target."""
    begins = np.array([True, True, False, False, False])
    subgoal = walk().subgoal.copy()
    subgoal[1:] = [-1.0, 0.0] + walk().achieved[1] - walk().achieved[1:-1]
    metrics = segment_metrics(replace(walk(), begins=begins, subgoal=subgoal), "relative")
    assert metrics["low/subgoal_distance"] == pytest.approx((4 + 1) / 2)
    assert metrics["low/progress"] == pytest.approx((1 + 0) / 2)


def test_progress_towards_absolute_subgoals():
    episode = walk()
    starts = np.array([0, 0, 2, 2, 4])
    # The same targets, as points of the goal space.
    points = episode.achieved[starts] + episode.subgoal[starts]
    assert segment_metrics(replace(episode, subgoal=points), "absolute") == pytest.approx(
        segment_metrics(episode, "relative")
    )


def test_a_subgoal_at_distance_zero_does_not_divide_by_zero():
    episode = replace(walk(), subgoal=np.zeros((5, 2), np.float32))
    assert all(np.isfinite(value) for value in segment_metrics(episode, "relative").values())


def test_episode_by_hand():
    metrics = episode_metrics(CONFIG, walk())
    assert metrics["episode/success"] == 1.0
    assert metrics["episode/return"] == -4.0
    assert metrics["episode/length"] == 5.0
    assert metrics["low/progress"] == segment_metrics(walk(), "relative")["low/progress"]


def constant_networks(value: float, actions: int) -> td3.Networks:
    """Return networks of one layer; the critics return the same value everywhere."""

    def layer(outputs: int, bias: float) -> tuple[Layer]:
        return (
            Layer(np.zeros((5 + (outputs == 1) * actions, outputs), np.float32), np.full(outputs, bias, np.float32)),
        )

    return td3.Networks(layer(actions, 0.0), (layer(1, value), layer(1, value + 1)))


def test_values_against_returns_by_hand():
    low = LOW
    high = HIGH
    metrics = low_value_metrics(CONFIG, low, constant_networks(-4.0, SPACES.action), REWARDS, VIEW, walk())
    metrics |= high_value_metrics(CONFIG, high, constant_networks(-7.0, SPACES.goal), REWARDS, None, walk())
    assert metrics["low/value"] == pytest.approx(-4.0)
    assert metrics["low/saturated"] == 0.0
    # Segments of two steps: the first step's reward, then half the value at the second; of one step: its value.
    first = -np.array([3.0, np.hypot(3, 1)]) + 0.5 * -4.0
    assert metrics["low/value_excess"] == pytest.approx(np.mean([*(-4.0 - first), 0.0]))
    assert metrics["high/value"] == pytest.approx(-7.0)
    # Rewards of the segments: -2, -1, -1; a tenth of them, discounted by half each.
    assert metrics["high/return"] == pytest.approx(0.1 * (-2 - 0.5 - 0.25))


def test_the_discount_of_the_low_level_begins_anew_with_each_segment():
    """Segments of one, three and one steps: in the second, two rewards and then a quarter of the value."""
    low = LOW
    episode = replace(walk(), begins=np.array([True, True, False, False, True]))
    metrics = low_value_metrics(CONFIG, low, constant_networks(-4.0, SPACES.action), REWARDS, VIEW, episode)
    rewards = [-np.linalg.norm(episode.subgoal[i] + episode.achieved[i] - episode.achieved[i + 1]) for i in (1, 2)]
    expected = rewards[0] + 0.5 * rewards[1] + 0.25 * -4.0
    assert metrics["low/value_excess"] == pytest.approx(np.mean([0.0, -4.0 - expected, 0.0]))


def test_a_time_limit_that_bootstraps_adds_the_last_value_to_the_return():
    high = HIGH
    config = replace(CONFIG, time_limit="bootstrap")
    metrics = high_value_metrics(config, high, constant_networks(-7.0, SPACES.goal), REWARDS, None, walk())
    assert metrics["high/return"] == pytest.approx(0.1 * (-2 - 0.5 - 0.25) - 7.0 / 8)


def test_adjacency_accuracy_by_hand():
    """Embedding = the point itself: cells one apart are classified as adjacent, all others not."""
    identity = (Layer(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)),)
    config = AdjacencyConfig(degree=3, delta=0.2)
    matrix = CellMatrix(1.0, 3, 2)
    matrix.add_trajectory(np.array([[0, 0], [1, 0], [2, 0]], np.float32))
    matrix.add_trajectory(np.array([[0, 1]], np.float32))
    metrics = adjacency_metrics(config, identity, matrix, np.random.default_rng(0))
    # Adjacent: 0-1, 1-2, 0-2, of which the last is 2 apart. Others: (0,1) with each, one of them at distance 1.
    assert metrics["adjacency/adjacent_right"] == pytest.approx(2 / 3)
    assert metrics["adjacency/other_right"] == pytest.approx(2 / 3)


def test_a_single_cell_gives_no_adjacency_metrics():
    matrix = CellMatrix(1.0, 3, 2)
    matrix.add_trajectory(np.zeros((4, 2), np.float32))
    identity = (Layer(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)),)
    assert adjacency_metrics(AdjacencyConfig(), identity, matrix, np.random.default_rng(0)) == {}


def test_values_are_the_same_in_numpy_and_jax():
    """The metrics run the networks in NumPy."""
    low = LOW
    networks = td3.init(low, jax.random.key(0)).networks
    x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    in_numpy = td3.policy_value(low, jax.device_get(networks), x)
    np.testing.assert_allclose(in_numpy, td3.policy_value(low, networks, jax.numpy.asarray(x)), atol=1e-5)


def test_saturated_are_the_actors_own_actions():
    low = LOW
    networks = constant_networks(-4.0, SPACES.action)
    actor = (Layer(networks.actor[0].weight, np.array([9.0, 0.0], np.float32)),)
    episode = replace(walk(), action=np.ones((5, 2), np.float32))  # with exploration
    told = low_value_metrics(CONFIG, low, networks._replace(actor=actor), REWARDS, VIEW, episode)
    assert told["low/saturated"] == pytest.approx(1 / 2)


@pytest.mark.parametrize(("value", "share"), [(-6.7, 0), (-6.9, 1), (1.9, 0), (2.7, 0), (2.9, 1)])
def test_values_more_than_a_tenth_outside_the_possible_range_are_impossible(value, share):
    low, high = (
        LOW,
        HIGH,
    )
    metrics = low_value_metrics(CONFIG, low, constant_networks(value, SPACES.action), REWARDS, VIEW, walk())
    metrics |= high_value_metrics(CONFIG, high, constant_networks(value, SPACES.goal), REWARDS, None, walk())
    for level in ("low", "high"):
        assert (metrics[f"{level}/possible_low"], metrics[f"{level}/possible_high"]) == (-6.0, 2.0)
        assert metrics[f"{level}/impossible"] == share


def test_nothing_is_impossible_before_the_first_reward():
    high = HIGH
    rewards = td3.RewardRange(np.float32(0.0), np.float32(0.0))
    metrics = high_value_metrics(CONFIG, high, constant_networks(-7.0, SPACES.goal), rewards, None, walk())
    assert metrics["high/impossible"] == 0.0


def test_impossible_values_are_reported_once_and_again_when_they_have_doubled():
    watch = ValueWatch()
    counts = []
    for share in (0.05, 0.2, 0.3, 0.4, 0.1):
        for level in ("low", "high"):
            names = {"impossible": share * (level == "high"), "possible_low": -64, "possible_high": 0, "value": -433.2}
            watch.see({f"{level}/{name}": value for name, value in names.items()})
        found = watch.warnings()
        counts.append(len(found))
        if found:
            assert found[0].startswith(f"{share:.0%} of the high level's values are impossible: ")
            assert "rewards allow -64 to 0, high/value is -433.2" in found[0]
    assert counts == [0, 1, 0, 1, 0]
    assert watch.warnings() == []
