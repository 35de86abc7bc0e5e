"""Random goals and goals in hindsight: where they are drawn from, and what they are worth."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from support import tiny
from support.toy import PointEnv

from higl.algo.adjacency import CellMatrix
from higl.envs.adapt import HideGoal, make_vector, wrap_goal
from higl.run.own_goals import OwnGoals, hindsight_rewards
from higl.settings.config import Config, LandmarksConfig

NO_GOAL = Config(algo="hrac", goal="none", goal_unit=(0.5,))


class Boxed(PointEnv):
    """A point in a square of side 16 that tells the reward for any goal."""

    def compute_reward(self, achieved, desired, info):
        return float(np.linalg.norm(achieved - desired) < 1.0) - 1.0


def visited(*points: tuple[float, float]) -> CellMatrix:
    cells = CellMatrix(1.0, 3, 2)
    cells.add_trajectory(np.reshape(points, (-1, 2)).astype(np.float32) / 0.5)
    return cells


def test_only_a_baseline_without_a_goal_draws_goals():
    env = Boxed()
    assert OwnGoals.of(Config(algo="hrac"), env, env) is None
    assert OwnGoals.of(Config(algo="higl", goal="none", landmarks=LandmarksConfig(graph="walked")), env, env) is None
    assert OwnGoals.of(NO_GOAL, env, env) is not None


def test_goals_come_from_the_declared_box():
    goals = OwnGoals(NO_GOAL, Boxed()).draw(visited((0.0, 0.0)), range(400))
    assert np.abs(goals).max() <= 8.0
    np.testing.assert_allclose(goals.mean(axis=0), 0.0, atol=1.0)
    np.testing.assert_allclose(goals.std(axis=0), 16 / np.sqrt(12), atol=0.5)


def test_goals_come_from_visited_cells_if_no_box_is_declared():
    """Each cell is as likely, however often it was visited; a cell is half a unit to each side of its centre."""
    own = OwnGoals(NO_GOAL, tiny.RewardingEnv())
    np.testing.assert_array_equal(own.draw(visited(), [5]), [[0.0, 0.0]])
    goals = own.draw(visited(*[(0.0, 0.0)] * 50, (2.0, 0.0)), range(400))
    far = goals[:, 0] > 1.0
    assert far.mean() == pytest.approx(0.5, abs=0.1)
    assert np.abs(goals[far] - [2.0, 0.0]).max() <= 0.25
    assert np.abs(goals[~far]).max() <= 0.25
    assert np.ptp(goals[~far], axis=0).min() > 0.4


def test_a_goal_depends_on_its_seed_alone():
    own = OwnGoals(NO_GOAL, Boxed())
    np.testing.assert_array_equal(own.draw(visited(), [3, 4])[1], own.draw(visited(), [4])[0])
    assert (own.draw(visited(), [3]) != own.draw(visited(), [4])).all()


@pytest.mark.parametrize("config", [NO_GOAL, Config(algo="hrac", preset="best", goal_unit=(0.5,))])
def test_rewards_are_those_of_the_environment_in_its_own_lengths(config):
    """Behind the wrapper that hides the task's; of several environments, the test environment tells them."""
    for env in (HideGoal(Boxed()), make_vector([Boxed, Boxed])):
        rewards = hindsight_rewards(config, env, Boxed())
        assert rewards is not None
        achieved = np.array([[0.0, 0.0], [1.9, 0.0], [2.1, 0.0]])  # in units of 0.5
        np.testing.assert_array_equal(rewards(achieved, np.zeros((3, 2))), [0.0, 0.0, -1.0])


@pytest.mark.parametrize(
    ("changes", "learns"),
    [
        ({"algo": "hrac", "preset": "best"}, True),
        ({"algo": "hiro", "preset": "best"}, True),
        ({"preset": "best", "landmarks": LandmarksConfig(graph="values")}, True),
        ({"preset": "best", "landmarks": LandmarksConfig(graph="walked")}, False),
        ({"algo": "hrac", "preset": "paper"}, False),
        ({"algo": "hrac", "preset": "paper", "goal": "none"}, True),
    ],
)
def test_networks_of_the_high_level_learn_in_hindsight_but_not_those_of_the_paper(changes, learns):
    config = Config(**changes)
    assert config.learns_in_hindsight == learns
    assert (hindsight_rewards(config, Boxed(), Boxed()) is not None) == learns


class NeedsInfo(Boxed):
    """Its reward depends on what the step says."""

    def compute_reward(self, achieved, desired, info):
        return -info["effort"]


@pytest.mark.parametrize("env", [PointEnv(), NeedsInfo()])
def test_an_environment_that_rewards_no_other_goals_is_learned_from_without(env):
    assert hindsight_rewards(Config(algo="hrac", preset="best"), env, env) is None


def test_a_wrapped_environment_rewards_any_goal():
    def wrapped(**options):
        return wrap_goal(gymnasium.make("Pendulum-v1"), lambda observation: observation[:2], **options)

    env = wrapped(radius=0.3)
    rewards = hindsight_rewards(Config(algo="hrac", preset="best"), env, env)
    assert rewards is not None
    np.testing.assert_array_equal(rewards(np.array([[0.0, 0.2], [0.0, 0.4]]), np.zeros((2, 2))), [0.0, -1.0])
    assert hindsight_rewards(Config(algo="hrac", preset="best"), wrapped(), wrapped()) is None
