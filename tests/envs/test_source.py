"""Environments from names, objects and functions."""

import gymnasium
import pytest
from support.reach import ReachEnv

from higl.envs.source import Source, environment_name
from higl.errors import SettingsError


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
