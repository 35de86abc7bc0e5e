"""What random episodes show of an environment."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict
from support.reach import FallingReachEnv, ReachEnv, SilentReachEnv

from higl.envs.adapt import wrap_goal
from higl.envs.make import make_env
from higl.errors import TaskError
from higl.settings.probe import (
    declared_region,
    episode_steps,
    goal_region,
    matching_entries,
    place_matters,
    random_traces,
    reports_success,
    time_entry,
    turned_over,
    turning_angles,
)


def with_goal_space(space: Box) -> ReachEnv:
    """Return the environment with another goal space declared."""
    env = ReachEnv()
    env.observation_space = Dict(dict(env.observation_space.spaces) | {"achieved_goal": space})
    return env


def test_goals_outside_the_declared_box_are_believed():
    """A declared box that does not overlap with what was seen is ignored; one that overlaps cuts the region."""
    traces = random_traces(ReachEnv(), 5)
    low, high = goal_region(ReachEnv(), traces)
    declared = with_goal_space(Box(high + 1, high + 2, dtype=np.float64))
    assert [end.tolist() for end in goal_region(declared, traces)] == [low.tolist(), high.tolist()]
    declared = with_goal_space(Box(low, (low + high) / 2, dtype=np.float64))
    np.testing.assert_allclose(goal_region(declared, traces)[1], (low + high) / 2)


def test_a_goal_coordinate_that_never_changes_hides_nothing():
    traces = random_traces(ReachEnv(), 5)
    still = [replace(trace, observation=trace.observation * 0, achieved=trace.achieved * 0) for trace in traces]
    assert matching_entries(traces) == [[2], [3]]
    assert matching_entries(still) == [[], []]


def test_place_matters_on_a_hill_but_not_in_a_box_or_a_maze():
    car = wrap_goal(gymnasium.make("MountainCarContinuous-v0"), lambda o: o[:1], desired=[0.45], radius=0.05)
    assert place_matters(random_traces(car, 10), [0])
    assert not place_matters(random_traces(ReachEnv(), 5), [2, 3])
    assert not place_matters(random_traces(make_env("point-maze"), 10), [0, 1])


def test_time_in_the_observation_is_found():
    assert time_entry(random_traces(make_env("point-maze"), 10)) == 6
    assert time_entry(random_traces(ReachEnv(), 5)) is None


def test_the_length_of_an_episode():
    assert episode_steps(ReachEnv(steps=33)) == 33
    assert episode_steps(gymnasium.wrappers.TimeLimit(ReachEnv(), 20)) == 20
    assert episode_steps(gymnasium.make("Pendulum-v1")) == 200


def test_every_second_stretch_holds_its_action():
    for trace in random_traces(ReachEnv(), 5)[:3]:
        assert (trace.action[0:5] == trace.action[0]).all()
        assert len(np.unique(trace.action[5:10, 0])) == 5


@pytest.mark.parametrize(
    ("task", "entries"), [("point-maze", [2]), ("reacher", [4, 6]), ("pusher", []), ("ant-maze-u", [])]
)
def test_angles_of_joints_that_turn_without_limits_are_found(task, entries):
    """The heading of the point; two rolls of the arm. The pusher's and the ant's joints have limits."""
    assert turning_angles(make_env(task)) == entries


def test_without_mujoco_no_angle_is_found():
    assert turning_angles(ReachEnv()) == []
    assert turning_angles(gymnasium.make("Pendulum-v1")) == []


def test_bodies_that_random_actions_turn_over():
    """Of 600 numbers up to 1, one is nearly always beyond 0.8; of those up to 0.5, none is."""
    assert turned_over(FallingReachEnv(0.8), 1.0) == 1.0
    assert turned_over(FallingReachEnv(0.8), 0.5) == 0.0
    assert turned_over(gymnasium.Wrapper(FallingReachEnv(0.8)), 1.0) == 1.0


def test_a_simulation_inside_an_environment_is_found():
    """As in gymnasium-robotics, whose mazes hold an ant with a simulation of its own."""

    class Holder(ReachEnv):
        def __init__(self):
            super().__init__(steps=1_000)
            self.body = FallingReachEnv(0.8)

        def reset(self, *, seed=None, options=None):
            return self.body.reset(seed=seed)

        def step(self, action):
            return self.body.step(action)

    assert turned_over(Holder(), 1.0) == 1.0


@pytest.mark.parametrize("env", [ReachEnv(), FallingReachEnv(0.8, motor=False), make_env("pusher")])
def test_only_bodies_that_move_freely_by_motors_can_turn_over(env):
    """The pusher's arm is fixed, and nothing moves the joints of a body without motors."""
    assert turned_over(env, 1.0) is None


@pytest.mark.parametrize(("env", "reports"), [(ReachEnv(), True), (SilentReachEnv(), False)])
def test_whether_success_is_reported(env, reports):
    assert reports_success(env) is reports


@pytest.mark.parametrize("part", ["observation", "achieved_goal", "desired_goal", "reward"])
def test_a_value_that_is_not_finite_is_named(part):
    class Broken(ReachEnv):
        def step(self, action):
            observation, reward, *rest = super().step(action)
            if self.time == 5 and part == "reward":
                reward = float("nan")
            elif self.time == 5:
                observation[part] = observation[part] * np.nan
            return observation, reward, *rest

    with pytest.raises(TaskError, match=f"NaN or infinity in '{part}' in a random episode"):
        random_traces(Broken(), 10)


def test_a_declared_box_of_goals_counts_where_it_is_finite():
    low, high = np.array([-1.0, -2.0]), np.array([1.0, 2.0])
    env = ReachEnv()
    assert [end.tolist() for end in declared_region(env, low, high)] == [low.tolist(), high.tolist()]
    box = gymnasium.spaces.Box(np.array([-8.0, -np.inf]), np.array([8.0, 3.0]), dtype=np.float64)
    env.observation_space = gymnasium.spaces.Dict({**env.observation_space.spaces, "achieved_goal": box})
    assert [end.tolist() for end in declared_region(env, low, high)] == [[-8.0, -2.0], [8.0, 2.0]]
