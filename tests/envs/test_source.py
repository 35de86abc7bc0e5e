"""Environments from names, objects and functions."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from support.reach import ReachEnv

from higl.envs.source import Source, environment_name
from higl.errors import SettingsError, TaskError


def make() -> ReachEnv:
    return ReachEnv(2, steps=20)


def test_a_name_makes_the_tasks_training_and_test_environments():
    source = Source("point-maze", reward="dense")
    assert (source.task, source.has_name, source.reward) == ("point-maze", True, "dense")
    assert source.first.spec.id == "higl/PointMaze-v0"
    assert source.first.spec.kwargs["mode"] == "train"
    assert source.test_env(observe_achieved=False).spec.kwargs["mode"] == "test"
    assert source.first.unwrapped.reward_type == "dense"


def test_an_environment_object_is_its_own_test_environment():
    env = make()
    source = Source(env)
    assert (source.task, source.has_name) == ("ReachEnv", False)
    assert source.first is env
    assert source.test_env(observe_achieved=False) is env


def test_a_function_makes_a_new_environment_each_time():
    source = Source(make)
    assert source.test_env(observe_achieved=False) is not source.first


def test_a_given_environment_keeps_the_reward_that_it_was_made_with():
    assert Source(gymnasium.make("higl/PointMaze-v0", reward="dense"), reward="sparse").reward == "dense"


@pytest.mark.parametrize("env", ["support.tiny:tests/Tiny-v0", make, make()])
def test_each_environment_is_checked_once(env, monkeypatch):
    checked = []
    for module in ("make", "source"):
        monkeypatch.setattr(f"higl.envs.{module}.check_env", lambda env, name: checked.append(env))
    source = Source(env, test_env=env)
    source.training_env(num_envs=1, observe_achieved=False, processes=False)
    assert len(checked) == 1
    source.test_env(observe_achieved=False)
    assert len(checked) == 2


def test_several_environments():
    vector = Source(make).training_env(num_envs=3, observe_achieved=True, processes=False)
    assert vector.num_envs == 3
    with pytest.raises(SettingsError, match="one environment cannot be copied"):
        Source(make()).training_env(num_envs=3, observe_achieved=False, processes=False)


def test_something_that_is_not_an_environment():
    with pytest.raises(TypeError, match="expected a Gymnasium environment"):
        Source(lambda: 3)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "higl/PointMaze-v0"),
        ({"reward": "dense", "render_mode": "rgb_array"}, "higl/PointMaze-v0"),
        ({"max_episode_steps": 50}, "higl/PointMaze-v0+max_episode_steps"),
    ],
)
def test_names(options, name):
    assert environment_name(gymnasium.make("higl/PointMaze-v0", **options)) == name


# ---- several environments ------------------------------------------------------------------------------------------


def reach(steps: int = 20) -> ReachEnv:
    return ReachEnv(2, steps=steps)


@pytest.mark.parametrize("kind", [list, SyncVectorEnv, AsyncVectorEnv])
def test_functions_in_a_list_or_a_vector_environment(kind):
    """A list of functions, or what Gymnasium made of one: each makes one of the training environments."""
    given = kind([reach, partial(reach, 30)])
    source = Source(given)
    assert source.count == 2
    assert source.task == "ReachEnv"
    env = source.training_env(num_envs=2, observe_achieved=False, processes=False)
    assert isinstance(env, AsyncVectorEnv if kind is AsyncVectorEnv else SyncVectorEnv)
    assert env.get_attr("steps") == (20, 30)
    assert source.test_env(observe_achieved=False).get_wrapper_attr("steps") == 20
    with pytest.raises(SettingsError, match="num_envs = 3, but 2 environments were given"):
        source.training_env(num_envs=3, observe_achieved=False, processes=False)
    for vector in (env, given):
        if isinstance(vector, VectorEnv):
            vector.close()


def test_what_make_vec_returns():
    source = Source(gymnasium.make_vec("higl/PointMaze-v0", num_envs=3, vectorization_mode="sync"))
    assert (source.count, source.task) == (3, "higl/PointMaze-v0")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "must hold functions"),
        ([reach()], "must hold functions that each make one"),
        (["point-maze"], "must hold functions that each make one"),
        (lambda: gymnasium.make_vec("CartPole-v1", num_envs=2), "CartPoleVectorEnv cannot be taken apart.*num_envs=2"),
    ],
)
def test_other_lists_and_vectors_are_rejected(given, message):
    with pytest.raises(TaskError, match=message):
        Source(given() if callable(given) else given)


@pytest.mark.parametrize("env", ["ant-maze-w", make])
def test_a_hidden_goal(env):
    """Training sees the achieved goal, no reward and no success; tests see the task's own."""
    source = Source(env, hide_goal=True)
    assert source.task == Source(env).task
    hidden = source.training_env(num_envs=1, observe_achieved=False, processes=False)
    hidden.reset(seed=0)
    for _ in range(3):
        observation, reward, _, _, info = hidden.step(hidden.action_space.sample())
        np.testing.assert_array_equal(observation["desired_goal"], observation["achieved_goal"])
        assert reward == 0.0
        assert not {"is_success", "success"} & set(info)
    test = source.test_env(observe_achieved=False)
    observation, _ = test.reset(seed=0)
    assert not np.array_equal(observation["desired_goal"], observation["achieved_goal"])
    assert "is_success" in test.step(test.action_space.sample())[-1]


def test_success_does_not_end_an_episode_without_a_goal():
    """It would tell where the goal is."""
    assert Source("ant-maze-w").first.unwrapped.task.ends_on_success
    assert not Source("ant-maze-w", hide_goal=True).first.unwrapped.task.ends_on_success
    assert Source("ant-maze-w", hide_goal=True).test_env(observe_achieved=False).unwrapped.task.ends_on_success


def test_an_observation_that_shows_the_goal_is_refused():
    with pytest.raises(TaskError, match="of the observation is the desired goal"):
        _ = Source("reacher", hide_goal=True).first
