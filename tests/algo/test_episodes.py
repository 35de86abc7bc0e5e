"""Episodes: what collecting them records, and the rows cut from them against plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.toy import SPACES, PointEnv, changed, random_policy, tiny_config

from higl.algo.episodes import (
    _EXPLORATION,
    Episode,
    collect_episode,
    collect_episodes,
    high_rows,
    in_units,
    low_rows,
)
from higl.algo.policy import Policy
from higl.algo.walked import WalkedMap
from higl.envs.adapt import make_vector

CONFIG = tiny_config(high={"relabel": True})
ABSOLUTE = changed(CONFIG, high={"subgoals": "absolute", "relabel": True})


def collect(config=CONFIG, *, steps: int = 23, seed: int = 3, explore: bool = True, **options) -> Episode:
    return collect_episode(PointEnv(steps=steps, **options), random_policy(config), seed, explore=explore)


def with_success(*success: bool) -> Episode:
    return replace(random_episode(len(success)), success=np.array(success))


def test_steps_to_success_count_to_the_first_one():
    episode = with_success(False, True, False, True)
    assert (episode.succeeded, episode.steps_to_success) == (True, 2)
    episode = with_success(False, False)
    assert (episode.succeeded, episode.steps_to_success) == (False, None)


@pytest.mark.parametrize(
    ("starts", "stops"), [([0, 10, 20], [10, 20, 23]), ([0, 3, 13, 22], [3, 13, 22, 23]), ([0], [23])]
)
def test_segments_cover_an_episode(starts, stops):
    """They may end early, and the last one with the episode."""
    begins = np.isin(np.arange(23), starts)
    found = replace(random_episode(23), begins=begins).segments
    assert [ends.tolist() for ends in found] == [starts, stops]


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
def test_without_a_map_a_segment_begins_every_m_steps(config):
    for explore in (True, False):
        episode = collect(config, explore=explore)
        assert (episode.begins.dtype, episode.begins.shape) == (np.dtype(bool), (23,))
        assert np.flatnonzero(episode.begins).tolist() == [0, 5, 10, 15, 20]


def random_episode(steps: int, *, terminated: bool = False, seed: int = 0) -> Episode:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    return Episode(
        observation=draw(steps + 1, 3),
        achieved=draw(steps + 1, 2),
        desired=draw(steps + 1, 2),
        subgoal=draw(steps, 2),
        action=draw(steps, 2),
        reward=draw(steps),
        success=rng.random(steps) < 0.1,
        terminated=terminated,
        truncated=not terminated,
        begins=np.arange(steps) % CONFIG.high.period == 0,
    )


# ---- episodes ------------------------------------------------------------------------------------------------------


def test_replaying_the_actions_gives_the_same_episode():
    episode = collect()
    assert len(episode) == 23
    assert len(episode.observation) == len(episode.achieved) == len(episode.desired) == 24
    assert (episode.terminated, episode.truncated) == (False, True)
    env = PointEnv(steps=23)
    observation, _ = env.reset(seed=3)
    for step in range(23):
        np.testing.assert_allclose(episode.observation[step], observation["observation"], atol=1e-6)
        np.testing.assert_allclose(episode.achieved[step], observation["achieved_goal"], atol=1e-6)
        np.testing.assert_allclose(episode.desired[step], observation["desired_goal"], atol=1e-6)
        observation, reward, *_, info = env.step(random_policy(CONFIG).environment_action(episode.action[step]))
        assert episode.reward[step] == reward
        assert episode.success[step] == info["is_success"]
    np.testing.assert_allclose(episode.observation[23], observation["observation"], atol=1e-6)


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
def test_episodes_record_the_subgoals_of_the_clock(config):
    episode = collect(config, explore=False)
    acting = random_policy(config)
    for step in range(len(episode)):
        start = step - step % config.high.period
        proposed = acting.propose(episode.observation[start], episode.achieved[start], episode.desired[start], None)
        expected = proposed
        if config.high.subgoals == "relative":
            expected = proposed + episode.achieved[start] - episode.achieved[step]
        np.testing.assert_allclose(episode.subgoal[step], expected, atol=1e-5)
        action = acting.act(episode.observation[step], episode.subgoal[step], None)
        np.testing.assert_allclose(episode.action[step], action, atol=1e-6)


def test_random_subgoals_only_while_exploring():
    acting = random_policy(CONFIG)
    acting.random_subgoals = True
    env = PointEnv(steps=23)
    exploring = collect_episode(env, acting, 3, explore=True)
    rng = np.random.default_rng([3, _EXPLORATION])
    np.testing.assert_array_equal(exploring.subgoal[0], acting.random_subgoal(exploring.achieved[0], rng))
    testing = collect_episode(env, acting, 3, explore=False)
    proposed = acting.propose(testing.observation[0], testing.achieved[0], testing.desired[0], None)
    np.testing.assert_allclose(testing.subgoal[0], proposed, atol=1e-6)


def test_an_episode_depends_on_its_seed_alone():
    first, again, other = collect(seed=3), collect(seed=3), collect(seed=4)
    for name, array in vars(first).items():
        np.testing.assert_array_equal(array, getattr(again, name), err_msg=name)
    assert not np.array_equal(first.action, other.action)
    assert not np.array_equal(first.desired, other.desired)
    # Also after the environment has been used for something else.
    env = PointEnv(steps=23)
    collect_episode(env, random_policy(CONFIG), 8, explore=True)
    np.testing.assert_array_equal(collect_episode(env, random_policy(CONFIG), 3, explore=True).action, first.action)


def test_exploration_and_environment_draw_from_different_streams():
    """Gymnasium seeds NumPy's default generator: with the same stream, exploration would depend on the goal."""
    drawn: list[float] = []

    class Recording(Policy):
        def act(self, observation, subgoal, rng):
            drawn.extend(rng.bit_generator.state["state"].values())
            return super().act(observation, subgoal, rng)

    acting = random_policy(CONFIG)
    recording = Recording(CONFIG, SPACES, acting.low_actor, acting.high_actor)
    env = PointEnv(steps=10)
    collect_episode(env, recording, 3, explore=True)
    assert env.np_random.bit_generator.state["state"]["inc"] not in drawn


def test_without_exploration_there_is_no_noise():
    env = PointEnv(steps=10)
    one = collect_episode(env, random_policy(CONFIG), 3, explore=False)
    action = random_policy(CONFIG).act(one.observation[:-1], one.subgoal, None)
    np.testing.assert_allclose(one.action, action, atol=1e-6)


def test_the_end_of_the_task_ends_the_episode():
    episode = collect(steps=400, end_at_success=True, distance=1.2, seed=1)
    assert (episode.terminated, episode.truncated) == (True, False)
    assert episode.success.tolist() == [False] * (len(episode) - 1) + [True]
    assert len(episode) < 400


# ---- rows ----------------------------------------------------------------------------------------------------------

ends = pytest.mark.parametrize(
    ("time_limit", "terminated", "last"),
    [("terminal", False, 1), ("terminal", True, 1), ("bootstrap", False, 0), ("bootstrap", True, 1)],
)


@ends
def test_values_bootstrap_at_a_time_limit_by_setting(time_limit, terminated, last):
    """An observed time limit is terminal; values bootstrap from one that is not observed."""
    config = changed(CONFIG, time_limit=time_limit)
    for cut in (low_rows, high_rows):
        end = cut(config, random_episode(12, terminated=terminated)).end
        assert end[-1] == last
        assert not end[:-1].any()


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
def test_low_rows_against_a_loop(config):
    episode = random_episode(12)
    rows = low_rows(config, episode)
    assert len(rows.end) == 12
    for step in range(12):
        here, there = episode.achieved[step], episode.achieved[step + 1]
        np.testing.assert_array_equal(rows.observation[step], episode.observation[step])
        np.testing.assert_array_equal(rows.next_observation[step], episode.observation[step + 1])
        np.testing.assert_array_equal(rows.achieved[step], here)
        np.testing.assert_array_equal(rows.next_achieved[step], there)
        np.testing.assert_array_equal(rows.subgoal[step], episode.subgoal[step])
        np.testing.assert_array_equal(rows.action[step], episode.action[step])


@pytest.mark.parametrize("steps", [1, 4, 5, 6, 10, 13])
def test_high_rows_against_a_loop(steps):
    """Segments of five steps; the last may be shorter, and its reward is the sum over the steps it has."""
    episode = random_episode(steps)
    rows = high_rows(CONFIG, episode)
    starts = list(range(0, steps, 5))
    assert len(rows.reward) == len(starts)
    for number, start in enumerate(starts):
        stop = min(start + 5, steps)
        np.testing.assert_array_equal(rows.observation[number], episode.observation[start])
        np.testing.assert_array_equal(rows.achieved[number], episode.achieved[start])
        np.testing.assert_array_equal(rows.desired[number], episode.desired[start])
        np.testing.assert_array_equal(rows.subgoal[number], episode.subgoal[start])
        np.testing.assert_array_equal(rows.next_observation[number], episode.observation[stop])
        np.testing.assert_array_equal(rows.next_achieved[number], episode.achieved[stop])
        np.testing.assert_array_equal(rows.next_desired[number], episode.desired[stop])
        assert rows.reward[number] == pytest.approx(sum(episode.reward[start:stop]), rel=1e-5)
        segment = rows.segment
        assert segment is not None
        assert segment.took_place[number].tolist() == [1.0] * (stop - start) + [0.0] * (start + 5 - stop)
        for offset in range(stop - start):
            np.testing.assert_array_equal(segment.observation[number, offset], episode.observation[start + offset])
            np.testing.assert_array_equal(segment.achieved[number, offset], episode.achieved[start + offset])
            np.testing.assert_array_equal(segment.action[number, offset], episode.action[start + offset])


def test_segments_are_stored_only_for_relabelling():
    assert high_rows(changed(CONFIG, high={"relabel": False}), random_episode(12)).segment is None


# ---- units of the goal space ---------------------------------------------------------------------------------------


class Scaled(PointEnv):
    """The point with goals in other units than its observation."""

    def _observe(self):
        observation = super()._observe()
        return observation | {part: 1000 * observation[part] for part in ("achieved_goal", "desired_goal")}


def test_goals_are_measured_in_units():
    episode = random_episode(12)
    assert in_units(episode, np.ones(2, np.float32)) is episode
    scaled = in_units(episode, np.array([2.0, 0.5], np.float32))
    for name in ("achieved", "desired", "subgoal"):
        np.testing.assert_array_equal(getattr(scaled, name), getattr(episode, name) * [0.5, 2.0])
    for name in ("observation", "action", "reward", "success"):
        assert getattr(scaled, name) is getattr(episode, name)


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
def test_subgoals_are_recorded_in_the_units_of_the_environment(config):
    plain = collect(config)
    scaled = changed(config, goal_unit=(1000.0,), high={"subgoal_range": (3000.0, 2000.0)})
    episode = collect_episode(Scaled(steps=23), random_policy(scaled), 3, explore=True)
    np.testing.assert_allclose(episode.action, plain.action, atol=1e-4)
    np.testing.assert_allclose(episode.subgoal, 1000 * plain.subgoal, atol=1)
    np.testing.assert_allclose(episode.achieved, 1000 * plain.achieved, atol=1)
    for name in ("achieved", "desired", "subgoal"):
        back = getattr(in_units(episode, np.full(2, 1000.0, np.float32)), name)
        np.testing.assert_allclose(back, getattr(plain, name), atol=1e-3)


# ---- several environments on a map ---------------------------------------------------------------------------------


class Obedient(Policy):
    """A policy whose low level goes where its subgoal is, as far as a step leads."""

    def act(self, observation, subgoal, rng):
        return np.clip(np.asarray(subgoal) * self.unit / PointEnv.reach, -1.0, 1.0).astype(np.float32)


WALKED = changed(CONFIG, landmarks={"graph": "walked"}, goal_unit=(0.5,), high={"exploration": 0.5})


def with_map(config, kind: type[Policy] = Policy) -> Policy:
    """Return a policy with a map of some random episodes."""
    grown, unit = WalkedMap(60, 2, config.high.period), np.full(2, config.goal_unit[0], np.float32)
    for seed in range(4):
        seen = in_units(collect(config, steps=40, seed=seed), unit)
        starts, _ = seen.segments
        grown.add_episode(seen.achieved, (seen.achieved[:-1] + seen.subgoal)[starts], np.append(starts, len(seen)))
    plain = random_policy(config)
    chart = grown.chart()
    assert len(chart.points) > 10
    return kind(config, SPACES, plain.low_actor, plain.high_actor, None, chart)


@pytest.mark.parametrize("explore", [True, False])
def test_with_a_map_a_segment_ends_when_the_body_is_there(explore):
    """A subgoal keeps its target over a segment; the body arrives after two or three steps, of five at the most."""
    config = changed(WALKED, goal_unit=(1.0,), high={"subgoal_range": (100.0,)})
    policy = with_map(config, Obedient)
    assert policy.chart is not None
    near = 0.25 * max(1.0, policy.period * float(policy.chart.speed)) * 2.0  # at the most: if time is short
    episode = collect_episode(PointEnv(steps=60), policy, 4, explore=explore)
    starts, stops = episode.segments
    assert starts[0] == 0
    lengths = stops - starts
    assert (lengths[:-1] >= 2).all()
    assert lengths.max() <= 5
    assert (lengths[:-1] < 5).sum() >= 3
    targets = episode.achieved[:-1] + episode.subgoal
    for start, stop in zip(starts, stops, strict=True):
        np.testing.assert_allclose(targets[start:stop], targets[[start] * (stop - start)], atol=1e-4)
        left = np.linalg.norm(targets[start] - episode.achieved[stop])
        assert left < near or stop - start == 5 or stop == len(episode)


def test_random_subgoals_keep_their_time_also_with_a_map():
    acting = with_map(changed(WALKED, goal_unit=(1.0,)), Obedient)
    acting.random_subgoals = True
    episode = collect_episode(PointEnv(steps=23), acting, 4, explore=True)
    assert np.flatnonzero(episode.begins).tolist() == [0, 5, 10, 15, 20]


@pytest.mark.parametrize("kind", [Policy, Obedient])
@pytest.mark.parametrize("explore", [[True, True], [True, False], [False, False]])
def test_episodes_at_once_walk_a_map_as_they_would_one_by_one(explore, kind):
    acting = with_map(WALKED, kind)
    lengths = (30, 17)
    env = make_vector([lambda: PointEnv(steps=30), lambda: PointEnv(steps=17)])
    together = collect_episodes(env, acting, [4, 5])
    assert [len(episode) for episode in together] == [30, 17]
    for seed, steps, batched in zip((4, 5), lengths, together, strict=True):
        alone = collect_episode(PointEnv(steps=steps), acting, seed, explore=True)
        for name in ("observation", "achieved", "desired", "subgoal", "action", "reward", "success"):
            np.testing.assert_allclose(getattr(batched, name), getattr(alone, name), atol=1e-4, err_msg=name)
        np.testing.assert_array_equal(batched.begins, alone.begins)
        assert len(batched.begins) == steps
