"""Unknown environments: which are rejected, with which message, and `wrap_goal`."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
import support.tiny  # noqa: F401 (registers its ids)
from gymnasium.spaces import Box, Dict, Discrete
from support.reach import ReachEnv, SilentReachEnv

import higl
from higl.envs.adapt import EndsInInfo, make_vector, wrap_goal
from higl.envs.check import check_env
from higl.envs.make import make_env
from higl.errors import TaskError

GOAL = Box(-np.inf, np.inf, (2,), np.float64)


def box(*shape: int, dtype: Any = np.float64) -> Box:
    return Box(-np.inf, np.inf, shape, dtype) if np.issubdtype(dtype, np.floating) else Box(0, 9, shape, dtype)


def with_spaces(**changes: Any) -> ReachEnv:
    """Return the environment with other spaces declared."""
    env = ReachEnv()
    action = changes.pop("action", None)
    parts = dict(env.observation_space.spaces) | changes
    env.observation_space = Dict({name: part for name, part in parts.items() if part is not None})
    if action is not None:
        env.action_space = action
    return env


class Returning(ReachEnv):
    """Returns observations, rewards or infos other than declared."""

    def __init__(self, *, observation: Any = None, reward: Any = None, info: Any = None, tuple_size: int = 5):
        super().__init__()
        self.changes, self.reward, self.info, self.tuple_size = observation or {}, reward, info, tuple_size

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        changed = {name: value for name, value in (observation | self.changes).items() if value is not None}
        reward = reward if self.reward is None else self.reward
        return (changed, reward, terminated, truncated, info if self.info is None else self.info)[: self.tuple_size]


class OldReset(ReachEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class ResetWithoutSeed(ReachEnv):
    def reset(self):
        return super().reset()


class Painted(ReachEnv):
    def __init__(self):
        super().__init__()
        self.observation_space = Box(0, 255, (64, 64), np.uint8)


REJECTED = {
    "vector observation": (lambda: gymnasium.make("Pendulum-v1"), r"(?s)not goal-conditioned.*higl\.wrap_goal\(env"),
    "no desired goal": (lambda: with_spaces(desired_goal=None), "has no 'desired_goal'"),
    "no observation": (lambda: with_spaces(observation=None), "has no 'observation'"),
    "image": (lambda: with_spaces(observation=box(8, 8, 3)), "not from images.*use the environment's states"),
    "image alone": (lambda: Painted(), r"not from images.*TransformObservation"),
    "matrix": (lambda: with_spaces(observation=box(8, 3)), "observation must be a vector"),
    "empty": (lambda: with_spaces(observation=box(0)), "observation must be a vector"),
    "discrete goal": (lambda: with_spaces(achieved_goal=Discrete(4)), "achieved_goal must be a vector"),
    "whole numbers": (lambda: with_spaces(observation=box(4, dtype=np.int64)), "floating-point numbers.*int64"),
    "goals differ": (lambda: with_spaces(desired_goal=box(3)), r"differ in shape, \(2,\) and \(3,\)"),
    "discrete actions": (lambda: with_spaces(action=Discrete(3)), "continuous.*discrete.*ActionWrapper.*DQN"),
    "action matrix": (lambda: with_spaces(action=Box(-1.0, 1.0, (2, 2))), "actions must be a vector"),
    "whole actions": (lambda: with_spaces(action=Box(-3, 3, (2,), np.int32)), "floating-point numbers.*int32"),
    "infinite actions": (lambda: with_spaces(action=box(2)), "must be finite.*TransformAction"),
    "half infinite actions": (lambda: with_spaces(action=Box(0.0, np.inf, (2,))), "must be finite"),
    "empty actions": (lambda: with_spaces(action=Box(1.0, 1.0, (2,))), "empty range"),
    "observation shape": (lambda: with_spaces(observation=box(7)), r"shape \(4,\) instead of \(7,\)"),
    "goal shape": (lambda: with_spaces(achieved_goal=box(3), desired_goal=box(3)), r"\(2,\) instead of \(3,\)"),
    "missing in step": (lambda: Returning(observation={"achieved_goal": None}), "from step has no 'achieved_goal'"),
    "text": (lambda: Returning(observation={"observation": ["a", "b"]}), "not a vector of numbers"),
    "NaN": (lambda: Returning(observation={"observation": np.full(4, np.nan)}), "NaN or infinity in observation"),
    "reward array": (lambda: Returning(reward=np.zeros(1)), "reward must be a finite number"),
    "reward NaN": (lambda: Returning(reward=float("nan")), "reward must be a finite number"),
    "info": (lambda: Returning(info=[1]), "info must be a dict"),
    "four values": (lambda: Returning(tuple_size=4), "step must return"),
    "old reset": (OldReset, "reset must return"),
    "reset without a seed": (ResetWithoutSeed, r"reset\(seed=0\) raised TypeError.*'seed'"),
    "four values, wrapped": (
        lambda: gymnasium.wrappers.TimeLimit(Returning(tuple_size=4), 20),
        r"step raised ValueError.*step \(observation, reward, terminated, truncated, info\)",
    ),
    "nothing of it": (lambda: gymnasium.make("CartPole-v1"), "continuous.*discrete"),
    "wrapped with another goal": (
        lambda: pendulum(desired=lambda rng: rng.uniform(-1, 1, 2)),
        r"wrap_goal: desired has shape \(2,\), but goal_fn returns \(1,\)",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_rejected_before_training(case):
    make, message = REJECTED[case]
    with pytest.raises(TaskError, match=message):
        higl.HIGL(make(), verbose=False)


def test_a_sound_environment_is_accepted():
    env = ReachEnv()
    check_env(env, "reach")
    assert env.time == 1, "it was reset and stepped once"


def test_an_unknown_id_suggests_the_nearest():
    with pytest.raises(TaskError, match=r"did you mean higl/PointMaze-v0"):
        make_env("higl/PointMase-v0")


@pytest.mark.parametrize(
    ("task", "hint"),
    [
        ("Pendulm-v1", "did you mean Pendulum-v1?"),
        ("support.tiny:tests/Tyni-v0", "did you mean support.tiny:tests/Tiny-v0?"),
        ("Foo-v0", "`higl tasks` lists the built-in tasks"),
        ("Grid-v1", "`higl tasks` lists the built-in tasks"),
    ],
)
def test_only_close_names_are_suggested_and_the_module_stays(task, hint):
    own = "" if ":" in task else f" (for an environment of your own, name the module that registers it: module:{task})"
    with pytest.raises(TaskError, match=f"^{re.escape(f'unknown task {task!r}; {hint}{own}')}$"):
        make_env(task)


def test_a_package_that_an_environment_lacks_is_no_unknown_task(monkeypatch):
    def make(**options):
        raise gymnasium.error.DependencyNotInstalled('Box2D is not installed, run `pip install "gymnasium[box2d]"`')

    monkeypatch.setitem(gymnasium.registry, "Lander-v0", gymnasium.envs.registration.EnvSpec("Lander-v0", make))
    with pytest.raises(TaskError, match=r"^task 'Lander-v0' needs a package that is not installed: Box2D is not"):
        make_env("Lander-v0")


def test_an_exception_in_a_constructor_is_reported():
    with pytest.raises(TaskError, match=r"task 'Pendulum-v1': making it raised TypeError: .*'nonsense'"):
        make_env("Pendulum-v1", nonsense=1)


def test_objects_that_are_not_environments_are_rejected():
    for wrong in (lambda: 3, 3, [lambda: 3]):
        with pytest.raises(TypeError, match="expected a Gymnasium environment"):
            higl.HIGL(wrong)


def test_episodes_that_do_not_end_are_rejected(monkeypatch):
    monkeypatch.setattr("higl.settings.probe.LONGEST_EPISODE", 50)
    with pytest.raises(TaskError, match="TimeLimit"):
        higl.HIGL(ReachEnv(steps=1000), verbose=False)


class Failing(ReachEnv):
    def __init__(self, how: str):
        super().__init__()
        self.how, self.count = how, 0

    def step(self, action):
        self.count += 1
        observation, *rest = super().step(action)
        if self.count > 60:
            if self.how == "raises":
                raise ArithmeticError("the motor came off")
            observation["observation"] *= np.nan
        return observation, *rest


@pytest.mark.parametrize(("how", "message"), [("raises", "ArithmeticError.*motor"), ("NaN", "NaN or infinity")])
def test_an_environment_that_fails_is_rejected(how, message):
    with pytest.raises(TaskError, match=message):
        higl.HIGL(Failing(how), verbose=False)


def test_a_missing_report_of_success_is_announced(capsys):
    higl.HIGL(ReachEnv())
    assert "is_success" not in capsys.readouterr().out
    higl.HIGL(SilentReachEnv())
    assert 'No info["is_success"] in a random episode' in capsys.readouterr().out


# ---- wrapping ------------------------------------------------------------------------------------------------------


def pendulum(**options: Any) -> gymnasium.Env:
    settings = {"goal_fn": lambda o: np.arctan2(o[1], o[0]), "desired": 0.0, "radius": 0.2} | options
    return wrap_goal(gymnasium.make("Pendulum-v1"), **settings)


def test_wrap_goal_makes_a_goal_environment():
    env = pendulum()
    check_env(env, "pendulum")
    first, _ = env.reset(seed=3)
    assert first["achieved_goal"].shape == first["desired_goal"].shape == (1,)
    observation, reward, *_, info = env.step(np.zeros(1, np.float32))
    assert not np.shares_memory(observation["desired_goal"], first["desired_goal"])
    near = abs(observation["achieved_goal"][0]) < 0.2
    assert (info["is_success"], reward) == (near, 0.0 if near else -1.0)


def test_wrap_goal_takes_a_reward_and_draws_goals_from_the_seed():
    env = pendulum(desired=lambda rng: rng.uniform(-1, 1, 1), reward_fn=lambda a, d, info: -abs(a - d)[0])
    first = env.reset(seed=3)[0]["desired_goal"]
    assert first == env.reset(seed=3)[0]["desired_goal"]
    assert first != env.reset(seed=4)[0]["desired_goal"]
    observation, reward, *_ = env.step(np.zeros(1, np.float32))
    assert reward == pytest.approx(-abs(observation["achieved_goal"] - observation["desired_goal"])[0])


def test_wrap_goal_rejects_what_it_cannot_wrap():
    with pytest.raises(ValueError, match="reward_fn or radius"):
        pendulum(radius=None)
    with pytest.raises(ValueError, match=r"desired has shape \(3,\), but goal_fn returns \(1,\)"):
        pendulum(desired=[0.0, 0.0, 0.0])
    for radius in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=r"radius = .*greater than 0"):
            pendulum(radius=radius)
    with pytest.raises(ValueError, match="FlattenObservation"):
        wrap_goal(ReachEnv(), lambda o: o[:2], desired=[0.0, 0.0], radius=1.0)


# ---- several environments ------------------------------------------------------------------------------------------


def test_an_ended_episode_stands_still():
    env = EndsInInfo(ReachEnv(steps=2))
    env.reset(seed=0)
    results = [env.step(np.ones(2, np.float32)) for _ in range(4)]
    assert [info["truncated"] for *_, info in results] == [False, True, True, True]
    assert not any(terminated or truncated for _, _, terminated, truncated, _ in results)
    np.testing.assert_array_equal(results[1][0]["achieved_goal"], results[3][0]["achieved_goal"])


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_vector_environments_follow_their_own_seeds(processes):
    env = make_vector([ReachEnv, ReachEnv], processes=processes)
    together, _ = env.reset(seed=[5, 6])
    alone, _ = ReachEnv().reset(seed=6)
    env.close()
    np.testing.assert_array_equal(together["desired_goal"][1], alone["desired_goal"])
