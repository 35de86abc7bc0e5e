"""The policy in NumPy against the actors in JAX, its exploration, and the subgoal clock."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from support.toy import SPACES, PointEnv, changed, random_policy, tiny_config, untrained_policy

from higl.algo.forward import mlp
from higl.algo.policy import Policy, PolicyState, Spaces, goal_unit, subgoal_limit
from higl.algo.walked import WalkedMap, Walker
from higl.settings.config import Config

CONFIG = tiny_config()
ABSOLUTE = changed(CONFIG, high={"subgoals": "absolute"})


def test_spaces_are_read_from_the_environment():
    assert Spaces.of(PointEnv()) == Spaces(3, 2, (0.0, -3.0), (2.0, 1.0))
    assert SPACES.action == 2


def test_subgoal_range_is_one_number_for_all_axes_or_one_for_each():
    assert subgoal_limit(CONFIG, SPACES).tolist() == [3.0, 2.0]
    assert subgoal_limit(changed(CONFIG, high={"subgoal_range": (4.0,)}), SPACES).tolist() == [4.0, 4.0]


def test_the_policy_in_numpy_equals_the_actors_in_jax():
    """Both networks on one observation and on many at once; the goal coordinates hidden from the low level."""
    acting = random_policy(CONFIG)
    rng = np.random.default_rng(0)
    observation, goal = (rng.normal(size=(7, size)).astype(np.float32) for size in (3, 2))
    propose = jnp.tanh(mlp(acting.high_actor, jnp.hstack([observation, goal]))) * jnp.array([3.0, 2.0])
    hidden = observation * np.array([0, 0, 1], np.float32)
    act = jnp.tanh(mlp(acting.low_actor, jnp.hstack([hidden, goal])))
    np.testing.assert_allclose(acting.propose(observation, goal + 1, goal, None), propose, atol=1e-5)
    np.testing.assert_allclose(acting.act(observation, goal, None), act, atol=1e-5)
    np.testing.assert_allclose(acting.propose(observation[0], goal[0], goal[0], None), propose[0], atol=1e-5)
    np.testing.assert_allclose(acting.act(observation[0], goal[0], None), act[0], atol=1e-5)


def test_exploration_has_the_sigma_of_the_settings():
    """The low level's sigma is a share of half the action range: its actions are scaled to [-1, 1]."""
    acting = random_policy(changed(CONFIG, low={"exploration": 0.05}, high={"exploration": 0.1}))
    many, goals = np.zeros((20_000, 3), np.float32), np.zeros((20_000, 2), np.float32)
    rng = np.random.default_rng(0)
    low_noise = acting.act(many, goals, rng) - acting.act(many, goals, None)
    np.testing.assert_allclose(low_noise.std(0), [0.05, 0.05], rtol=0.05)
    high_noise = acting.propose(many, goals, goals, rng) - acting.propose(many, goals, goals, None)
    np.testing.assert_allclose(high_noise.std(0), [0.1, 0.1], rtol=0.05)
    np.testing.assert_allclose(low_noise.mean(0), 0, atol=2e-3)


def test_actions_and_subgoals_stay_in_their_ranges():
    acting = random_policy(changed(CONFIG, low={"exploration": 50.0}, high={"exploration": 50.0}))
    many, goals = np.zeros((500, 3), np.float32), np.zeros((500, 2), np.float32)
    rng = np.random.default_rng(0)
    assert np.abs(acting.act(many, goals, rng)).max() == 1.0
    np.testing.assert_array_equal(np.abs(acting.propose(many, goals, goals, rng)).max(0), [3.0, 2.0])


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
def test_random_subgoals_lie_around_the_achieved_point(config):
    acting = random_policy(changed(config, high={"random_sigma": 0.1}))
    achieved = np.tile(np.array([1.0, -0.5], np.float32), (20_000, 1))
    subgoals = acting.random_subgoal(achieved, np.random.default_rng(0))
    targets = subgoals + achieved if config.high.subgoals == "relative" else subgoals
    np.testing.assert_allclose(targets.mean(0), [1.0, -0.5], atol=0.01)
    np.testing.assert_allclose(targets.std(0), [0.1, 0.1], rtol=0.05)
    assert (np.abs(acting.random_subgoal(achieved * 100, np.random.default_rng(0))) <= [3.0, 2.0]).all()


def test_scaled_actions_span_the_range_of_the_environment():
    acting = random_policy(CONFIG)
    np.testing.assert_allclose(acting.environment_action(np.array([-1.0, -1.0])), [0.0, -3.0])
    np.testing.assert_allclose(acting.environment_action(np.array([1.0, 1.0])), [2.0, 1.0])
    np.testing.assert_allclose(acting.environment_action(np.array([0.0, 0.5])), [1.0, 0.0])


def test_scaled_actions_span_the_middle_of_the_range_if_only_a_share_is_used():
    acting = random_policy(changed(CONFIG, low={"action_share": 0.5}))
    np.testing.assert_allclose(acting.environment_action(np.array([-1.0, -1.0])), [0.5, -2.0])
    np.testing.assert_allclose(acting.environment_action(np.array([1.0, 2.0])), [1.5, 0.0])


def test_without_exploration_a_body_that_may_fall_acts_less_strongly():
    calm, strong = (random_policy(changed(CONFIG, low={"action_share": share})) for share in (0.5, 1.0))
    observation, goals = np.random.default_rng(0).normal(size=(2, 20, 3)).astype(np.float32)
    goals = goals[:, :2]
    np.testing.assert_allclose(calm.act(observation, goals, None), 0.8 * strong.act(observation, goals, None), 1e-6)
    noisy = [each.act(observation, goals, np.random.default_rng(0)) for each in (calm, strong)]
    np.testing.assert_array_equal(*noisy)


# ---- the subgoal clock ---------------------------------------------------------------------------------------------


def walk(steps: int, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random observations [T, N, 3], achieved [T, N, 2] and desired goals [T, N, 2]."""
    rng = np.random.default_rng(seed)
    observation, achieved, desired = (rng.normal(size=(steps, rows, size)).astype(np.float32) for size in (3, 2, 2))
    return observation, achieved, desired


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
def test_a_new_subgoal_every_m_steps_and_the_goal_transition_in_between(config):
    acting = random_policy(config)
    observation, achieved, desired = (column[:, 0] for column in walk(12, 1))
    state, target = acting.begin(), np.zeros(2)
    for step in range(12):
        action, state = acting.step(observation[step], achieved[step], desired[step], state, None)
        if step % 5 == 0:
            proposed = acting.propose(observation[step], achieved[step], desired[step], None)
            target = proposed + achieved[step] if config.high.subgoals == "relative" else proposed
        expected = target - achieved[step] if config.high.subgoals == "relative" else target
        np.testing.assert_allclose(state.subgoal, expected, atol=1e-5)
        np.testing.assert_array_equal(action, acting.act(observation[step], state.subgoal, None))
        assert state.clock == step + 1
        assert state.begins == (step % 5 == 0)


def test_rows_of_a_batch_have_clocks_of_their_own():
    """Three rows that began 0, 2 and 3 steps ago act as they would alone."""
    acting = random_policy(CONFIG)
    observation, achieved, desired = walk(9, 3)
    alone = []
    for row, began in enumerate((0, 2, 3)):
        state = acting.begin()
        for step in range(began, 9):
            action, state = acting.step(observation[step, row], achieved[step, row], desired[step, row], state, None)
        alone.append((action, state.subgoal))
    together = acting.begin(3)
    for step in range(9):
        clock = np.where(np.array([0, 2, 3]) == step, 0, together.clock)
        together = PolicyState(together.subgoal, together.achieved, clock)
        actions, together = acting.step(observation[step], achieved[step], desired[step], together, None)
    np.testing.assert_allclose(actions, [action for action, _ in alone], atol=1e-5)
    np.testing.assert_allclose(together.subgoal, [subgoal for _, subgoal in alone], atol=1e-5)
    assert together.clock.tolist() == [9, 7, 6]


# ---- units of the goal space ---------------------------------------------------------------------------------------


def test_the_unit_is_one_number_for_all_axes_or_one_for_each():
    assert goal_unit(changed(CONFIG, goal_unit=(2.0,)), SPACES).tolist() == [2.0, 2.0]
    each = changed(CONFIG, goal_unit=(2.0, 0.5))
    assert goal_unit(each, SPACES).tolist() == [2.0, 0.5]
    assert subgoal_limit(each, SPACES).tolist() == [1.5, 4.0]


@pytest.mark.parametrize("config", [CONFIG, ABSOLUTE], ids=["relative", "absolute"])
@pytest.mark.parametrize("explore", [False, True])
def test_goals_in_another_unit_lead_to_the_same_actions(config, explore):
    unit = np.array([1000.0, 8.0], np.float32)
    scaled = changed(config, goal_unit=(1000.0, 8.0), high={"subgoal_range": (3000.0, 16.0)})
    ours, other = random_policy(config), random_policy(scaled)
    states, rngs = [ours.begin(4), other.begin(4)], [np.random.default_rng(0) if explore else None for _ in range(2)]
    for observation, achieved, desired in zip(*walk(12, 4), strict=True):
        action, states[0] = ours.step(observation, achieved, desired, states[0], rngs[0])
        again, states[1] = other.step(observation, achieved * unit, desired * unit, states[1], rngs[1])
        np.testing.assert_allclose(again, action, atol=1e-5)


# ---- with a walked map ---------------------------------------------------------------------------------------------

WALKED = changed(CONFIG, landmarks={"graph": "walked"})


def walking(config: Config = WALKED, *, known: bool = True) -> Policy:
    """Return a policy with a map of the x axis from 0 to 5, in units."""
    grown = WalkedMap(50, 2, config.high.period)
    if known:
        axis = np.stack([np.linspace(0, 5, 51), np.zeros(51)], axis=1).astype(np.float32)
        for _ in range(3):
            grown.add_episode(axis, axis[5::5], np.arange(0, 51, 5))
    acting = random_policy(config)
    return Policy(config, SPACES, acting.low_actor, acting.high_actor, None, grown.chart())


@pytest.mark.parametrize("unit", [1.0, 10.0])
@pytest.mark.parametrize("subgoals", ["relative", "absolute"])
def test_subgoals_lead_along_the_map(subgoals, unit):
    """From x = 2 to a goal at x = 5: to a point of the way ahead, or the goal once it is near."""
    limits = {"subgoals": subgoals, "subgoal_range": (100.0,)}
    acting = walking(changed(WALKED, goal_unit=(unit,), high=limits))
    for start in (2.0, 4.6):
        here, goal = np.float32([start * unit, 0.0]), np.float32([5.0 * unit, 0.0])
        _, state = acting.step(np.zeros(3, np.float32), here, goal, acting.begin(), None)
        target = state.subgoal + np.float32([start, 0.0]) if subgoals == "relative" else state.subgoal
        if start == 2.0:
            assert 2.7 <= target[0] <= 4.2
            assert abs(target[1]) < 1e-5
        else:
            np.testing.assert_allclose(target, [5.0, 0.0], atol=1e-5)


def test_subgoals_on_a_map_stay_in_their_range():
    acting = walking(changed(WALKED, high={"subgoal_range": (0.5, 2.0)}))
    zeros = np.zeros(3, np.float32)
    _, state = acting.step(zeros, np.float32([0.0, 0.0]), np.float32([5.0, 0.0]), acting.begin(), None)
    assert state.subgoal[0] == 0.5


def test_an_empty_map_leaves_the_subgoals_to_the_network():
    acting, plain = walking(known=False), random_policy(CONFIG)
    observation, achieved, desired = (column[0] for column in walk(1, 3))
    action, state = acting.step(observation, achieved, desired, acting.begin(3), None)
    expected, _ = plain.step(observation, achieved, desired, plain.begin(3), None)
    np.testing.assert_array_equal(action, expected)
    assert state.walkers == ()


def test_rows_of_a_batch_walk_as_they_would_alone():
    """Three rows that began 0, 2 and 3 steps ago, each with a walker of its own."""
    acting = walking()
    observation, achieved, desired = walk(14, 3)
    alone = []
    for row, began in enumerate((0, 2, 3)):
        state = acting.begin()
        for step in range(began, 14):
            action, state = acting.step(observation[step, row], achieved[step, row], desired[step, row], state, None)
        alone.append((action, state.subgoal))
    together = acting.begin(3)
    for step in range(14):
        clock = np.where(np.array([0, 2, 3]) == step, 0, together.clock)
        actions, together = acting.step(
            observation[step], achieved[step], desired[step], replace(together, clock=clock), None
        )
    np.testing.assert_allclose(actions, [action for action, _ in alone], atol=1e-5)
    np.testing.assert_allclose(together.subgoal, [subgoal for _, subgoal in alone], atol=1e-5)


def test_a_segment_begins_when_the_body_is_there_or_its_time_is_over():
    """Rows at x = 0, 1 and 2 that pursue a goal at x = 5: one stands, one arrives after two steps, one after three."""
    acting = walking(changed(WALKED, high={"subgoal_range": (100.0,)}))
    here, goal = np.float32([[0, 0], [1, 0], [2, 0]]), np.float32([[5, 0]] * 3)
    zeros = np.zeros((3, 3), np.float32)
    _, state = acting.step(zeros, here, goal, acting.begin(3), None)
    assert state.begins.tolist() == [True, True, True]
    targets = here + state.subgoal
    begun = []
    for step in range(1, 6):
        arrived = np.array([False, step >= 2, step >= 3])[:, None]
        _, state = acting.step(zeros, np.where(arrived, targets, here), goal, state, None)
        begun.append(state.begins.tolist())
    # The time of the first is over after five steps; those that arrived have begun another segment.
    assert [row[0] for row in begun] == [False, False, False, False, True]
    assert [row[1] for row in begun][:2] == [False, True]
    assert [row[2] for row in begun][:3] == [False, False, True]


def test_a_walker_that_arrives_at_once_still_takes_two_steps():
    acting = walking()
    walker = Walker(acting.chart, 5).see(np.zeros(2))
    assert walker.is_due(np.zeros(2))  # no segment is under way
    target, walker = walker.target(np.zeros(2), np.float32([5, 0]), None)
    assert not walker.is_due(target)
    assert not walker.see(target).is_due(target)
    assert walker.see(target).see(target).is_due(target)
    far = target + np.float32([0.5, 0.0])
    assert not walker.see(far).see(far).is_due(far)
    for _ in range(5):
        walker = walker.see(far)
    assert walker.is_due(far)


# ---- angles --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalise", [False, True])
def test_a_full_turn_changes_no_action(normalise):
    """The third entry is an angle: two inputs more, and no difference after a turn.

    The high level sees it so, too, if observations are normalised; otherwise it sees the angle itself.
    """
    config = changed(CONFIG, low={"angles": (2,), "normalise": normalise})
    acting = untrained_policy(config)
    assert acting.low_actor[0].weight.shape[0] == SPACES.observation + 2 + SPACES.goal
    assert acting.high_actor[0].weight.shape[0] == SPACES.observation + 2 * normalise + SPACES.goal
    observation, subgoal = np.float32([1.0, -1.0, 0.3]), np.float32([1.0, 2.0])
    turned = observation + np.float32([0.0, 0.0, 2 * np.pi])
    action = acting.act(observation, subgoal, None)
    np.testing.assert_allclose(acting.act(turned, subgoal, None), action, atol=1e-5)
    half = observation + np.float32([0.0, 0.0, np.pi])
    assert np.abs(acting.act(half, subgoal, None) - action).max() > 1e-3
    goals = np.float32([[1.0, -1.0], [3.0, 2.0]])
    proposed, again, other = (acting.propose(seen, *goals, None) for seen in (observation, turned, half))
    assert np.allclose(again, proposed, atol=1e-5) == normalise
    assert np.abs(other - proposed).max() > 1e-3
