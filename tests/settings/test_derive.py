"""Settings derived from an environment and from the number of steps."""

import re
import tomllib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from support.reach import FallingReachEnv, ReachEnv, SilentReachEnv

from higl.envs.adapt import HideGoal, ObserveAchieved, wrap_goal
from higl.envs.make import make_env
from higl.settings.config import Config
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.flat import flat, flat_config
from higl.settings.layers import apply
from higl.settings.presets import preset
from higl.settings.probe import goal_notices, switches


def derived(env: gymnasium.Env, given: dict[str, Any] | None = None, **changes: Any) -> Config:
    given = given or {}
    return derive_settings(apply(preset("reach"), given | changes), given, env)[0]


class Stretched(ReachEnv):
    """Goals in which the second coordinate is smaller."""

    def __init__(self, factor: float = 0.001):
        super().__init__()
        self.factor = factor

    def _observe(self):
        observation = super()._observe()
        for part in ("achieved_goal", "desired_goal"):
            observation[part] = observation[part] * [1.0, self.factor]
        return observation


class Switched(ReachEnv):
    """Goals of which the third coordinate is 0 or 1; in random episodes it stays 0."""

    def __init__(self, scale: float = 1.0, values: int = 2):
        super().__init__(3)
        self.scale, self.values, self.wanted = scale, values, 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.wanted = float(self.np_random.integers(self.values))
        return self._observe(), {}

    def _observe(self):
        observation = super()._observe()
        for part in ("achieved_goal", "desired_goal"):
            observation[part] = observation[part] * self.scale
            observation[part][2] = self.wanted if part == "desired_goal" else 0.0
        return observation


def test_derived_settings_of_a_box():
    """Goals at 5 from the origin, so a region 10 wide; episodes of 40 steps."""
    config = derived(ReachEnv())
    assert config.goal_unit == (1.0,)
    assert config.high.period == 4
    assert config.high.subgoals == "relative"
    assert config.low.hidden_entries == (2, 3)
    assert config.low.angles == ()
    assert not config.observe_achieved
    assert config.time_limit == "bootstrap"
    assert len(config.high.subgoal_range) == 2
    assert all(9 <= size <= 11 for size in config.high.subgoal_range)


def test_networks_of_the_high_level_need_further_settings():
    config, found = derive_settings(apply(preset("reach"), {"landmarks.graph": "values"}), (), ReachEnv())
    assert config.adjacency.degree == 2
    assert config.high.reward_scale == pytest.approx(0.25)
    _, of_map = derive_settings(preset("reach"), (), ReachEnv())
    assert {value.name for value in found} - {value.name for value in of_map} == {
        "adjacency.degree",
        "high.reward_scale",
    }


def test_derived_settings_of_the_papers_maze_are_nearly_the_papers():
    ours, paper = derived(make_env("point-maze")), preset("point-maze", family="paper")
    assert ours.low.hidden_entries == paper.low.hidden_entries
    assert ours.time_limit == paper.time_limit
    assert ours.high.period == paper.high.period
    assert ours.goal_unit == pytest.approx((1.2,))


@pytest.mark.parametrize(
    ("task", "angles", "hidden", "added"),
    [
        ("point-maze", (2,), (0, 1), False),
        ("ant-maze-u", (), (0, 1), False),
        ("ant-maze-w", (), (0, 1), False),
        # The arm's observation leaves out where the hand is: three entries in front, so its joints 4 and 6 are 7 and 9.
        ("reacher", (7, 9), (0, 1, 2), True),
        ("pusher", (), (), False),
    ],
)
def test_what_the_low_level_sees_of_the_papers_tasks(task, angles, hidden, added):
    config, _ = derive_settings(preset(task), (), make_env(task))
    assert (config.low.angles, config.low.hidden_entries, config.observe_achieved) == (angles, hidden, added)


def test_given_angles_stay():
    assert derived(make_env("point-maze"), {"low.angles": ()}).low.angles == ()
    assert derived(make_env("reacher"), {"observe_achieved": False}).low.angles == (4, 6)


def test_an_angle_that_is_hidden_stays_hidden():
    assert derived(make_env("point-maze"), {"low.hidden_entries": (2,)}).low.angles == ()


@pytest.mark.parametrize(("limit", "share"), [(1.0, 0.7), (0.6, 0.35), (0.3, 0.17), (0.01, 1.0)])
def test_bodies_that_fall_over_get_a_part_of_the_safe_actions(limit, share):
    """Actions of up to 1, 0.5 and 0.25 are safe; the last body falls whatever it does, so nothing is gained."""
    assert derived(FallingReachEnv(limit)).low.action_share == share


def test_other_bodies_get_all_actions():
    assert derived(ReachEnv()).low.action_share == 1.0
    assert derived(FallingReachEnv(0.6), {"low.action_share": 0.9}).low.action_share == 0.9


def test_a_summary_says_that_a_body_is_restrained():
    told: list[str] = []
    derive_settings(preset("reach"), (), FallingReachEnv(1.0), told.append, brief=True)
    assert told[0].endswith("\n  the body may fall over: it uses 0.7 of the range of each action")
    told.clear()
    derive_settings(preset("reach"), (), ReachEnv(), told.append, brief=True)
    assert "fall over" not in "".join(told)


def test_the_ant_gets_a_part_of_its_torques():
    config, found = derive_settings(preset("ant-maze-u"), (), make_env("ant-maze-u"))
    assert config.low.action_share == 0.7
    [reason] = [value.reason for value in found if value.name == "low.action_share"]
    assert reason == "0.7 of the share with which random actions never turn the body over (1)"


@pytest.mark.parametrize(("goals", "hidden"), [(1, (1,)), (3, (3, 4, 5)), (4, ())])
def test_nothing_is_hidden_if_the_goal_is_about_several_things(goals, hidden):
    """More coordinates than space has."""
    assert derived(ReachEnv(goals)).low.hidden_entries == hidden
    if goals == 4:
        assert derived(ReachEnv(goals, blind=True)).low.hidden_entries == ()
        [reason] = [
            value.reason
            for value in derive_settings(preset("reach"), (), ReachEnv(goals))[1]
            if value.name == "low.hidden_entries"
        ]
        assert reason.startswith("more than one thing moves")


def test_subgoals_come_from_a_walked_map_unless_the_paper_is_asked_for():
    assert derived(ReachEnv()).walks_map
    assert not derived(ReachEnv(), {"landmarks.graph": "values"}).walks_map
    config, found = derive_settings(preset("reach", family="paper"), (), ReachEnv())
    assert not config.walks_map
    assert {"high.reward_scale", "adjacency.degree", "goal_unit"} <= {value.name for value in found}


@pytest.mark.parametrize(
    ("factor", "unit", "width"), [(0.5, (1.0,), 5.0), (0.04, (1.0,), 1.0), (0.01, (1.0, 0.01), 0.1)]
)
def test_dimensions_have_one_unit_unless_their_ranges_are_very_different(factor, unit, width):
    """A tenth of the width of the goal region; more than thirty times as wide is very different."""
    config = derived(Stretched(factor))
    assert config.goal_unit == pytest.approx(unit, rel=0.1)
    assert config.high.subgoal_range == pytest.approx((10.0, width), rel=0.1)


def test_a_dimension_that_never_changes_has_the_unit_of_the_others():
    config = derived(Stretched(0.0))
    assert config.goal_unit == pytest.approx((1.0,), rel=0.1)


@pytest.mark.parametrize(
    ("scale", "values", "unit"), [(0.5, 2, (0.56,)), (2.0, 2, (2.3, 2.3, 1.0)), (2.0, 3, (2.3,)), (2.0, 1, (2.3,))]
)
def test_a_switch_is_at_least_a_unit_wide(scale, values, unit):
    """Goals lie within 5 times the scale. A coordinate with three values, or with one, is no switch."""
    config, found = derive_settings(preset("reach"), (), Switched(scale, values))
    assert config.goal_unit == pytest.approx(unit, rel=0.1)
    [reason] = [value.reason for value in found if value.name == "goal_unit"]
    assert ("a switch at least a unit" in reason) == (len(unit) > 1)


def test_a_target_at_another_height_is_no_switch():
    """The Pusher's puck lies on the table, and its target always at another height."""
    assert derived(make_env("pusher")).goal_unit == pytest.approx((0.1,))


@pytest.mark.parametrize(
    ("desired", "achieved", "switch"),
    [
        ([0, 1, 0], [0, 0, 0], True),
        ([1, 1, 1], [0, 0, 0], True),
        ([-1, 1, -1], [-1, -1, -1], True),
        ([2, 2, 2], [0, 2, 0], True),
        ([2, 2, 2], [0, 0, 0], False),
        ([0, 1, 2], [0, 0, 0], False),
        ([1, 1, 1], [1, 1, 1], False),
    ],
)
def test_what_is_a_switch(desired, achieved, switch):
    parts = (np.array(values, float)[:, None] for values in (desired, achieved))
    trace = SimpleNamespace(**dict(zip(("desired", "achieved"), parts, strict=True)))
    assert switches([trace]).tolist() == [switch]


@pytest.mark.parametrize(("steps", "period"), [(5, 2), (29, 2), (30, 3), (40, 4), (70, 7), (100, 10), (400, 10)])
def test_a_segment_takes_a_tenth_of_an_episode_between_two_and_ten_steps(steps, period):
    assert derived(ReachEnv(steps=steps)).high.period == period


def test_the_period_does_not_depend_on_the_unit():
    for unit in (0.01, 1.0, 100.0):
        assert derived(ReachEnv(), {"goal_unit": (unit,)}).high.period == 4


def test_a_setting_that_is_given_stays_and_others_follow_it():
    config = derived(ReachEnv(steps=400), {"goal_unit": (50.0,), "low.hidden_entries": (0,)})
    assert config.goal_unit == (50.0,)
    assert config.high.subgoal_range == (50.0, 50.0)  # at least a unit
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
    values = {"landmarks.graph": "values"}
    short, _ = derive_schedule(apply(preset("reach"), values | {"steps": 20_000}), ())
    assert short.adjacency.every == 2_000
    assert short.adjacency.epochs == 5
    assert short.landmarks.start == 2_000
    assert short.evaluation.every == 1_000
    assert short.high.random_steps == 1_000
    long, _ = derive_schedule(apply(preset("reach"), values | {"steps": 1_000_000}), {"landmarks.start": 5})
    assert (long.adjacency.every, long.adjacency.epochs, long.high.random_steps) == (10_000, 25, 50_000)
    assert long.landmarks.start == preset("reach").landmarks.start


def test_a_walked_map_needs_no_schedule():
    """Its random phase ends by itself; only evaluations are planned."""
    before = apply(preset("reach"), {"steps": 20_000})
    after, found = derive_schedule(before, ())
    assert [value.name for value in found] == ["evaluation.every"]
    assert after == apply(before, {"evaluation.every": 1_000})


class Slow(ReachEnv):
    """Each step takes some seconds by the clock of the tests, and now and then one takes much longer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float, steps: int = 500):
        super().__init__(steps=steps)
        self.seconds, self.now, self.count = seconds, 0.0, 0
        monkeypatch.setattr("higl.settings.probe._clock", lambda: self.now)

    def step(self, action):
        self.count += 1
        self.now += self.seconds + (self.count % 10 == 0)
        return super().step(action)


@pytest.mark.parametrize(
    ("seconds", "steps", "given", "every"),
    [
        (0.0004, 500, {}, 5_000),
        (0.0019, 500, {}, 5_000),
        (0.0021, 500, {}, 25_000),  # 2,500 steps of evaluation are a tenth
        (1.0, 500, {"evaluation.episodes": 2}, 10_000),
        (1.0, 40, {}, 5_000),  # already less than a tenth
        (1.0, 40, {"steps": 10_000}, 2_000),  # not so in a short run, which would have one every 500 steps
        (1.0, 500, {"evaluation.every": 4_000}, 4_000),
    ],
)
def test_evaluations_are_rare_in_a_slow_environment(monkeypatch, seconds, steps, given, every):
    said: list[str] = []
    given = {"steps": 300_000} | given
    config = apply(preset("reach"), given)
    config, found = derive_settings(config, given, Slow(monkeypatch, seconds, steps), said.append)
    config, scheduled = derive_schedule(config, given, said.append, found=found)
    assert config.evaluation.every == every
    slow = seconds > 0.002 and "evaluation.every" not in given
    assert any("`evaluation.every`" in text for text in said) == slow
    lines = [line for text in said for line in text.splitlines() if line.startswith("  evaluation.every = ")]
    assert [f" = {every}  # " in line for line in lines] == [True] * ("evaluation.every" not in given)
    reasons = [value.reason for value in scheduled if value.name == "evaluation.every"]
    assert any("slow" in reason for reason in reasons) == (slow and every != 5_000)


def test_a_short_run_in_a_slow_environment_is_evaluated_at_its_end(monkeypatch):
    config, found = derive_settings(preset("reach"), (), Slow(monkeypatch, 1.0))
    assert derive_schedule(replace(config, steps=2_000), (), found=found)[0].evaluation.every == 25_000


def test_hrac_keeps_subgoals_within_one_segment():
    config, _ = derive_settings(preset("reach", "hrac"), (), ReachEnv())
    assert config.adjacency.degree == config.high.period == 4


class Costly(ReachEnv):
    """Tells the reward for any goal: 8 times as much as steps say."""

    def compute_reward(self, achieved, desired, info):
        return -8.0


@pytest.mark.parametrize(("env", "scale"), [(ReachEnv(), 0.25), (Costly(), 0.031)])
def test_the_scale_of_rewards_that_are_recomputed(env, scale):
    """Segments of 4 steps; without a goal, steps have no reward that shows how large rewards will be."""
    config, _ = derive_settings(preset("reach", "hrac", goal="none"), (), HideGoal(env))
    assert config.high.reward_scale == scale


def test_what_is_derived_is_announced():
    said: list[str] = []
    given = {"high.period": 5}
    config, found = derive_settings(apply(preset("reach"), given), given, ReachEnv(), said.append)
    [text] = said
    assert text.startswith("reach: derived from its environment (each can be set):\n  goal_unit = [1.0]  # ")
    assert "\n  low.hidden_entries = [2, 3]  # these entries equal the achieved goal\n" in text
    assert "high.period =" not in text
    assert len(text.splitlines()) == 1 + len(found)
    derive_schedule(config, given, said.append)
    assert said[1].startswith("Derived from the number of steps (each can be set):\n  evaluation.every = ")


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


class RewardedReachEnv(ReachEnv):
    def compute_reward(self, achieved, desired, info):
        return -float(np.linalg.norm(achieved - desired) > 1.0)


class EffortReachEnv(ReachEnv):
    def compute_reward(self, achieved, desired, info):
        return -info["effort"]


@pytest.mark.parametrize(
    ("algo", "env", "noted"),
    [
        ("hrac", ReachEnv(), True),
        ("hrac", EffortReachEnv(), True),
        ("hrac", RewardedReachEnv(), False),
        ("higl", ReachEnv(), False),
    ],
)
def test_an_environment_that_rewards_no_other_goals_is_noted_where_hindsight_needs_them(algo, env, noted):
    said: list[str] = []
    derive_settings(preset("reach", algo=algo), (), env, said.append)
    assert any(line.startswith("No compute_reward(") for line in said) == noted


def test_a_summary_says_what_matters_in_a_few_lines():
    said: list[str] = []
    config, found = derive_settings(preset("reach"), (), ReachEnv(), said.append, brief=True)
    assert found
    derive_schedule(replace(config, steps=20_000), (), said.append, brief=True)
    lines = "\n".join(said).splitlines()
    assert len(lines) == 5
    assert lines[1] == "  the goal space is measured in units of [1]"
    assert lines[2].startswith("  subgoals: offsets of up to [")
    assert lines[2].endswith("a new one every 4 steps")
    assert lines[3] == "  the low level sees the observation without entries [2, 3]"
    assert lines[4] == "  20,000 steps: random subgoals until the low level moves, evaluations every 1,000"
    said.clear()
    values = apply(config, {"steps": 20_000, "landmarks.graph": "values"})
    derive_schedule(values, (), said.append, brief=True)
    assert said == [
        "  schedule for 20,000 steps: random subgoals until step 1,000, planning from step 2,000, "
        "evaluations every 1,000"
    ]


def test_a_goal_space_of_many_dimensions_is_noted():
    said: list[str] = []
    derive_settings(preset("reach"), (), ReachEnv(50), said.append)
    assert said[1].startswith("The goal has 50 coordinates")
    assert len(said) == 2


def test_goal_spaces_of_few_dimensions_are_not_noted():
    assert goal_notices(np.array([0.0, 1.0]), np.array([5.0, 1.0])) == []
    assert goal_notices(np.zeros(11), np.logspace(-5, 5, 11)) == []
