"""Goals that are chosen for an episode: in our environments, in wrapped ones, and in those of users."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from support.toy import PointEnv

from higl.envs.adapt import wrap_goal
from higl.envs.goals import ChosenGoal, choosable
from higl.envs.make import make_env
from higl.errors import TaskError


class Sparse(PointEnv):
    """A user's environment, which computes its reward for any goal."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        return float(np.linalg.norm(achieved_goal - desired_goal) < self.success_radius) - 1.0


class Dense(PointEnv):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return -float(np.linalg.norm(achieved_goal - desired_goal))


class Plain(gymnasium.Env):
    """Without goals: a point on a line that moves by its action."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        assert options is None, "the goal is none of its business"
        self.place = np.zeros(1)
        return self.place.copy(), {}

    def step(self, action):
        self.place = self.place + action
        return self.place.copy(), 5.0, False, False, {}


def test_our_own_environments_take_goals_themselves():
    env = make_env("point-maze", observe_achieved=True)
    assert choosable(env, "point-maze") is env
    observation, _ = env.reset(seed=0, options={"goal": np.array([8.0, 4.0])})
    np.testing.assert_array_equal(observation["desired_goal"], [8.0, 4.0])


def test_a_users_environment_is_told_by_its_own_reward():
    env = choosable(Sparse(), "Mine-v0")
    assert isinstance(env, ChosenGoal)
    observation, _ = env.reset(seed=0, options={"goal": [1.6, 0.0]})
    found = []
    for _ in range(4):  # half a unit to the right
        np.testing.assert_array_equal(observation["desired_goal"], [1.6, 0.0])
        observation, reward, _, _, info = env.step(np.array([2.0, -1.0]))
        found.append((reward, info["is_success"]))
    assert found == [(-1.0, False), (0.0, True), (0.0, True), (0.0, True)]
    own, _ = env.reset(seed=0)
    np.testing.assert_array_equal(own["desired_goal"], Sparse().reset(seed=0)[0]["desired_goal"])


@pytest.mark.parametrize(("env", "told"), [(PointEnv(), "it has no compute_reward"), (Dense(), "its reward is dense")])
def test_goals_that_cannot_be_chosen(env, told):
    with pytest.raises(TaskError, match=told):
        choosable(env, "Mine-v0").reset(seed=0, options={"goal": [1.0, 0.0]})


def test_an_environment_without_any_goal():
    """What is desired is what there is; the environment's own reward is not used."""
    env = wrap_goal(Plain(), lambda observation: observation, radius=0.5)
    observation, _ = env.reset(seed=0)
    assert not env.get_wrapper_attr("has_goals")
    for _ in range(2):
        np.testing.assert_array_equal(observation["desired_goal"], observation["achieved_goal"])
        observation, reward, _, _, info = env.step(np.ones(1))
        assert (reward, info["is_success"]) == (0.0, False)


def test_a_goal_chosen_for_an_environment_without_any():
    env = choosable(wrap_goal(Plain(), lambda observation: observation, radius=0.5), "Mine-v0")
    observation, _ = env.reset(seed=0, options={"goal": [2.0]})
    assert observation["desired_goal"] == [2.0]
    assert [env.step(np.ones(1))[-1]["is_success"] for _ in range(3)] == [False, True, False]
    with pytest.raises(ValueError, match="desired has shape"):
        env.reset(options={"goal": [2.0, 3.0]})


def test_a_goal_needs_a_reward_or_a_radius():
    assert wrap_goal(Plain(), lambda observation: observation).reset(seed=0)
    with pytest.raises(ValueError, match="needs reward_fn or radius"):
        wrap_goal(Plain(), lambda observation: observation, desired=[1.0])
