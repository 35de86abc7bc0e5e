"""Settings derived from an environment and from the number of steps."""

import re
import tomllib
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from support.reach import ReachEnv, SilentReachEnv

from higl.envs.adapt import ObserveAchieved, wrap_goal
from higl.envs.make import make_env
from higl.settings.config import Config
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.flat import flat, flat_config
from higl.settings.layers import apply
from higl.settings.presets import preset
from higl.settings.probe import goal_notices


def derived(env: gymnasium.Env, given: dict[str, Any] | None = None, **changes: Any) -> Config:
    given = given or {}
    return derive_settings(apply(preset("reach"), given | changes), given, env)[0]


def test_derived_settings_of_a_box():
    """Goals at 5 from the origin, so a region 10 wide; 0.5 a step at most, so a segment of five reaches about 2."""
    config = derived(ReachEnv())
    assert config.high.period == 5
    assert config.high.subgoals == "relative"
    assert config.low.hidden_entries == (2, 3)
    assert not config.observe_achieved
    assert config.time_limit == "bootstrap"
    assert len(config.high.subgoal_range) == 2
    assert all(9 <= size <= 11 for size in config.high.subgoal_range)
    assert 0.75 <= config.adjacency.cell <= 0.9
    assert config.novelty.similarity == pytest.approx(config.adjacency.cell / 5, rel=0.1)
    assert 2.5 <= config.landmarks.shift <= 3.8
    assert config.adjacency.degree == 3
    assert config.landmarks.cutoff == pytest.approx(config.landmarks.shift / config.adjacency.cell / 0.05, rel=0.1)
    assert config.low.exploration == 0.1
    assert config.high.reward_scale == pytest.approx(0.2)


def test_derived_settings_of_the_papers_maze_are_nearly_the_papers():
    ours, paper = derived(make_env("point-maze")), preset("point-maze", family="paper")
    assert ours.low.hidden_entries == paper.low.hidden_entries
    assert ours.time_limit == paper.time_limit
    assert ours.high.period == paper.high.period
    for part, name in (("adjacency", "cell"), ("novelty", "similarity"), ("landmarks", "cutoff")):
        assert getattr(getattr(ours, part), name) == pytest.approx(getattr(getattr(paper, part), name), rel=0.2)


def test_a_setting_that_is_given_stays_and_others_follow_it():
    config = derived(ReachEnv(), {"adjacency.cell": 0.5, "low.hidden_entries": (0,)})
    assert config.adjacency.cell == 0.5
    assert config.novelty.similarity == 0.1
    assert config.low.reward_scale == 2.0
    assert config.low.hidden_entries == (0,)


def test_absolute_subgoals_cover_the_goal_region_and_hide_nothing():
    config = derived(ReachEnv(), {"high.subgoals": "absolute"})
    assert config.low.hidden_entries == ()
    assert all(4.5 <= size <= 5.5 for size in config.high.subgoal_range)


def test_a_goal_that_the_observation_leaves_out_is_prepended():
    env = ReachEnv(3, blind=True)
    config = derived(env)
    assert config.observe_achieved
    assert config.low.hidden_entries == (0, 1, 2)
    seen, _ = ObserveAchieved(env).reset(seed=0)
    np.testing.assert_allclose(seen["observation"][:3], seen["achieved_goal"], rtol=1e-6)
    assert ObserveAchieved(env).observation_space["observation"].shape == (6,)


def test_the_low_level_sees_where_it_is_if_that_matters():
    """Gravity pulls a car on a hill according to its place."""
    car = wrap_goal(gymnasium.make("MountainCarContinuous-v0"), lambda o: o[:1], desired=[0.45], radius=0.05)
    assert derived(car).low.hidden_entries == ()


def test_the_schedule_fits_the_number_of_steps():
    short, _ = derive_schedule(apply(preset("reach"), {"steps": 20_000}), ())
    assert short.adjacency.every == 2_000
    assert short.adjacency.epochs == 5
    assert short.landmarks.start == 2_000
    assert short.evaluation.every == 1_000
    assert short.low.actor_learning_rate == short.high.actor_learning_rate == 7.1e-4
    assert short.high.random_steps == 1_000
    long, _ = derive_schedule(apply(preset("reach"), {"steps": 1_000_000}), {"landmarks.start": 5})
    assert (long.adjacency.every, long.adjacency.epochs, long.high.random_steps) == (10_000, 25, 50_000)
    assert long.low.actor_learning_rate == 1e-4
    assert long.landmarks.start == preset("reach").landmarks.start


def test_hrac_keeps_subgoals_within_one_segment():
    config, _ = derive_settings(preset("reach", "hrac"), (), ReachEnv())
    assert config.adjacency.degree == config.high.period == 5


def test_what_is_derived_is_announced():
    said: list[str] = []
    given = {"adjacency.cell": 0.5}
    config, found = derive_settings(apply(preset("reach"), given), given, ReachEnv(), said.append)
    [text] = said
    assert text.startswith(
        "reach has no preset. Derived from its environment (each can be set):\n  high.period = 5  # "
    )
    assert "\n  low.hidden_entries = [2, 3]  # these entries equal the achieved goal\n" in text
    assert "adjacency.cell =" not in text
    assert len(text.splitlines()) == 1 + len(found)
    derive_schedule(config, given, said.append)
    assert said[1].startswith("Derived from the number of steps (each can be set):\n  adjacency.every = 10000  # ")


@pytest.mark.parametrize("task", ["point-maze", "reacher"])
def test_announced_lines_are_toml(task):
    """Pasted into a file of settings, they give the derived settings."""
    said: list[str] = []
    config, _ = derive_settings(replace(preset("reach"), steps=20_000), (), make_env(task), said.append)
    config, _ = derive_schedule(config, (), said.append)
    lines = [line for text in said for line in text.splitlines()[1:]]
    assert '  high.subgoals = "relative"  # offsets from the achieved goal' in lines
    assert any(re.match("  observe_achieved = (true|false)  # ", line) for line in lines)
    for line in lines:
        assert len(flat(tomllib.loads(line))) == 1
    assert apply(replace(preset("reach"), steps=20_000), flat(tomllib.loads("\n".join(lines)))) == config


def test_nothing_is_derived_where_every_setting_is_given():
    said: list[str] = []
    config = replace(preset("reach"), seed=3)
    assert derive_settings(config, flat_config(config), ReachEnv(), said.append) == (config, [])
    assert said == []


def test_an_environment_that_reports_no_success_is_noted():
    said: list[str] = []
    derive_settings(preset("reach"), (), SilentReachEnv(), said.append)
    assert said[1].startswith('No info["is_success"] in a random episode.')


def test_a_summary_says_what_matters_in_a_few_lines():
    said: list[str] = []
    config, found = derive_settings(preset("reach"), (), ReachEnv(), said.append, brief=True)
    assert found
    derive_schedule(replace(config, steps=20_000), (), said.append, brief=True)
    lines = "\n".join(said).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("  subgoals: offsets of up to [")
    assert lines[1].endswith("a new one every 5 steps")
    assert lines[2] == "  the low level sees the observation without entries [2, 3]"
    assert lines[3] == (
        "  schedule for 20,000 steps: random subgoals until step 1,000, planning from step 2,000, "
        "evaluations every 1,000"
    )


class Stretched(ReachEnv):
    """Goals in which the second coordinate is a thousand times smaller."""

    def _observe(self):
        observation = super()._observe()
        for part in ("achieved_goal", "desired_goal"):
            observation[part] = observation[part] * [1.0, 0.001]
        return observation


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Stretched(), "Goal coordinate 0 has a range of .* and coordinate 1 one of 0.01"),
        (ReachEnv(50), "The goal has 50 coordinates"),
    ],
)
def test_goal_spaces_that_are_hard_are_noted(env, words):
    said: list[str] = []
    derive_settings(preset("reach"), (), env, said.append)
    assert re.match(words, said[1])
    assert len(said) == 2


def test_a_goal_coordinate_that_never_changes_is_not_noted():
    assert goal_notices(np.array([0.0, 1.0]), np.array([5.0, 1.0])) == []
