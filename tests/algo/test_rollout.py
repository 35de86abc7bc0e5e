"""Episodes: the policy in NumPy, the book-keeping of subgoals, and the rows cut from an episode against plain loops."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.toy import SPACES, PointEnv, changed, tiny_config

from higl.algo.nets import init_mlp, mlp
from higl.algo.rollout import (
    _EXPLORATION,
    Episode,
    Policy,
    Spaces,
    collect_episode,
    explores,
    high_rows,
    low_rows,
    subgoal_limit,
)

CONFIG = tiny_config(high={"relabel": True})
ABSOLUTE = changed(CONFIG, high={"subgoals": "absolute", "relabel": True})


def policy(config=CONFIG, seed: int = 0) -> Policy:
    low_key, high_key = jax.random.split(jax.random.key(seed))
    size = SPACES.observation + SPACES.goal
    low, high = init_mlp(low_key, (size, 16, SPACES.action)), init_mlp(high_key, (size, 16, SPACES.goal))
    return Policy(config, SPACES, *jax.device_get((low, high)))


def collect(config=CONFIG, *, steps: int = 23, seed: int = 3, explore: bool = True, **options) -> Episode:
    return collect_episode(PointEnv(steps=steps, **options), policy(config), seed, explore=explore)


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
    )


# ---- spaces and policy ---------------------------------------------------------------------------------------------


def test_spaces_are_read_off_the_environment():
    assert Spaces.of(PointEnv()) == Spaces(3, 2, (0.0, -3.0), (2.0, 1.0))
    assert SPACES.action == 2
    assert SPACES.action_range == (1.0, 2.0)


def test_subgoal_range_is_one_number_for_all_axes_or_one_for_each():
    assert subgoal_limit(CONFIG, SPACES).tolist() == [3.0, 2.0]
    assert subgoal_limit(changed(CONFIG, high={"subgoal_range": (4.0,)}), SPACES).tolist() == [4.0, 4.0]


def test_the_policy_in_numpy_is_the_actors_in_jax():
    """Both networks on one observation and on many at once; the goal coordinates hidden from the low level."""
    acting = policy()
    rng = np.random.default_rng(0)
    observation, goal = (rng.normal(size=(7, size)).astype(np.float32) for size in (3, 2))
    propose = jnp.tanh(mlp(acting.high_actor, jnp.hstack([observation, goal]))) * jnp.array([3.0, 2.0])
    hidden = observation * np.array([0, 0, 1], np.float32)
    act = jnp.tanh(mlp(acting.low_actor, jnp.hstack([hidden, goal])))
    np.testing.assert_allclose(acting.propose(observation, goal, None), propose, atol=1e-5)
    np.testing.assert_allclose(acting.act(observation, goal, None), act, atol=1e-5)
    np.testing.assert_allclose(acting.propose(observation[0], goal[0], None), propose[0], atol=1e-5)
    np.testing.assert_allclose(acting.act(observation[0], goal[0], None), act[0], atol=1e-5)


def test_exploration_has_the_sigma_of_the_settings_in_the_units_of_the_action():
    """The low level's sigma is in the environment's units, its actions are scaled to [-1, 1]."""
    acting = policy(changed(CONFIG, low={"exploration": 0.05}, high={"exploration": 0.1}))
    many, goals = np.zeros((20_000, 3), np.float32), np.zeros((20_000, 2), np.float32)
    rng = np.random.default_rng(0)
    low_noise = acting.act(many, goals, rng) - acting.act(many, goals, None)
    np.testing.assert_allclose(low_noise.std(0), [0.05 / 1.0, 0.05 / 2.0], rtol=0.05)
    high_noise = acting.propose(many, goals, rng) - acting.propose(many, goals, None)
    np.testing.assert_allclose(high_noise.std(0), [0.1, 0.1], rtol=0.05)
    np.testing.assert_allclose(low_noise.mean(0), 0, atol=2e-3)


def test_actions_and_subgoals_stay_in_their_ranges():
    acting = policy(changed(CONFIG, low={"exploration": 50.0}, high={"exploration": 50.0}))
    many, goals = np.zeros((500, 3), np.float32), np.zeros((500, 2), np.float32)
    rng = np.random.default_rng(0)
    assert np.abs(acting.act(many, goals, rng)).max() == 1.0
    np.testing.assert_array_equal(np.abs(acting.propose(many, goals, rng)).max(0), [3.0, 2.0])


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
def test_random_subgoals_lie_around_where_the_body_is(config):
    acting = policy(changed(config, high={"random_sigma": 0.1}))
    achieved = np.tile(np.array([1.0, -0.5], np.float32), (20_000, 1))
    subgoals = acting.random_subgoal(achieved, np.random.default_rng(0))
    targets = subgoals + achieved if config.high.subgoals == "relative" else subgoals
    np.testing.assert_allclose(targets.mean(0), [1.0, -0.5], atol=0.01)
    np.testing.assert_allclose(targets.std(0), [0.1, 0.1], rtol=0.05)
    assert (np.abs(acting.random_subgoal(achieved * 100, np.random.default_rng(0))) <= [3.0, 2.0]).all()


def test_random_subgoals_are_pursued_while_the_policy_says_so():
    acting = policy(CONFIG)
    acting.random_subgoals = True
    env = PointEnv(steps=23)
    exploring = collect_episode(env, acting, 3, explore=True)
    rng = np.random.default_rng([3, _EXPLORATION])
    np.testing.assert_array_equal(exploring.subgoal[0], acting.random_subgoal(exploring.achieved[0], rng))
    testing = collect_episode(env, acting, 3, explore=False)
    np.testing.assert_allclose(
        testing.subgoal[0], acting.propose(testing.observation[0], testing.desired[0], None), atol=1e-6
    )


def test_scaled_actions_span_the_range_of_the_environment():
    acting = policy()
    np.testing.assert_allclose(acting.environment_action(np.array([-1.0, -1.0])), [0.0, -3.0])
    np.testing.assert_allclose(acting.environment_action(np.array([1.0, 1.0])), [2.0, 1.0])
    np.testing.assert_allclose(acting.environment_action(np.array([0.0, 0.5])), [1.0, 0.0])


# ---- episodes ------------------------------------------------------------------------------------------------------


def test_an_episode_has_the_environments_own_rows():
    """Replaying the actions in the environment gives the same states, rewards and end."""
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
        observation, reward, *_, info = env.step(policy().environment_action(episode.action[step]))
        assert episode.reward[step] == reward
        assert episode.success[step] == info["is_success"]
    np.testing.assert_allclose(episode.observation[23], observation["observation"], atol=1e-6)


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
def test_a_new_subgoal_every_m_steps_and_its_transition_between(config):
    episode = collect(config, explore=False)
    acting = policy(config)
    for step in range(len(episode)):
        start = step - step % config.high.period
        proposed = acting.propose(episode.observation[start], episode.desired[start], None)
        expected = proposed
        if config.high.subgoals == "relative":
            expected = proposed + episode.achieved[start] - episode.achieved[step]
        np.testing.assert_allclose(episode.subgoal[step], expected, atol=1e-5)
        action = acting.act(episode.observation[step], episode.subgoal[step], None)
        np.testing.assert_allclose(episode.action[step], action, atol=1e-6)


def test_an_episode_depends_on_its_seed_alone():
    first, again, other = collect(seed=3), collect(seed=3), collect(seed=4)
    for name, array in vars(first).items():
        np.testing.assert_array_equal(array, getattr(again, name), err_msg=name)
    assert not np.array_equal(first.action, other.action)
    assert not np.array_equal(first.desired, other.desired)
    # Also after the environment has been used for something else.
    env = PointEnv(steps=23)
    collect_episode(env, policy(), 8, explore=True)
    np.testing.assert_array_equal(collect_episode(env, policy(), 3, explore=True).action, first.action)


def test_exploration_draws_nothing_that_the_environment_has_drawn():
    """Gymnasium's generator of a seed is NumPy's default one: the same stream would tie exploration to the goal."""
    drawn: list[float] = []

    class Recording(Policy):
        def act(self, observation, subgoal, rng):
            drawn.extend(rng.bit_generator.state["state"].values())
            return super().act(observation, subgoal, rng)

    acting = policy()
    recording = Recording(CONFIG, SPACES, acting.low_actor, acting.high_actor)
    env = PointEnv(steps=10)
    collect_episode(env, recording, 3, explore=True)
    assert env.np_random.bit_generator.state["state"]["inc"] not in drawn


def test_without_exploration_there_is_no_noise():
    env = PointEnv(steps=10)
    one = collect_episode(env, policy(), 3, explore=False)
    action = policy().act(one.observation[:-1], one.subgoal, None)
    np.testing.assert_allclose(one.action, action, atol=1e-6)


def test_the_share_of_greedy_episodes_is_that_of_the_settings():
    acting, seeds = policy(), range(4_000)
    for share in (0.0, 0.25, 1.0):
        config = replace(CONFIG, greedy=share)
        greedy = [not explores(config, acting, seed) for seed in seeds]
        assert np.mean(greedy) == pytest.approx(share, abs=0.03)
        assert greedy == [not explores(config, acting, seed) for seed in seeds]
    acting.random_subgoals = True
    assert all(explores(config, acting, seed) for seed in seeds)


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
def test_what_bootstraps_at_the_end(time_limit, terminated, last):
    """Time is observed, so its limit is an end like any other; where it is not, values go on beyond it."""
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
