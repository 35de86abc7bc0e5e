"""Random goals: where they are drawn from, and what they are worth."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from support import tiny
from support.toy import PointEnv

from higl.algo.adjacency import CellMatrix
from higl.envs.adapt import HideGoal, make_vector, wrap_goal
from higl.errors import TaskError
from higl.run.own_goals import OwnGoals
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


def test_rewards_are_those_of_the_environment_in_its_own_lengths():
    """Behind the wrapper that hides the task's; of several environments, the test environment tells them."""
    vector = make_vector([Boxed, Boxed])
    for env in (HideGoal(Boxed()), vector):
        own = OwnGoals.of(NO_GOAL, env, Boxed())
        assert own is not None
        achieved = np.array([[0.0, 0.0], [1.9, 0.0], [2.1, 0.0]])  # in units of 0.5
        np.testing.assert_array_equal(own.rewards(achieved, np.zeros((3, 2))), [0.0, 0.0, -1.0])


class NeedsInfo(Boxed):
    """Its reward depends on what the step says."""

    def compute_reward(self, achieved, desired, info):
        return -info["effort"]


@pytest.mark.parametrize(
    ("env", "told"),
    [
        (PointEnv(), r"it has no compute_reward\(achieved_goal, desired_goal, info\)"),
        (NeedsInfo(), "compute_reward with an empty info raised KeyError: 'effort'"),
    ],
)
def test_goals_that_cannot_be_rewarded(env, told):
    with pytest.raises(TaskError, match=f"task 'ant-maze-u': {told}"):
        OwnGoals(NO_GOAL, env)


def test_a_wrapped_environment_rewards_any_goal():
    def wrapped(**options):
        return wrap_goal(gymnasium.make("Pendulum-v1"), lambda observation: observation[:2], **options)

    own = OwnGoals(Config(algo="hrac", goal="none"), wrapped(radius=0.3))
    np.testing.assert_array_equal(own.rewards(np.array([[0.0, 0.2], [0.0, 0.4]]), np.zeros((2, 2))), [0.0, -1.0])
    with pytest.raises(TaskError, match="it has no compute_reward"):
        OwnGoals(NO_GOAL, wrapped())
