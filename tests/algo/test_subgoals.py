"""Subgoals: their transition, their targets, and what each level sees."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from higl.algo import subgoals
from higl.settings.config import Config, LandmarksConfig, LowConfig

points = hnp.arrays(np.float64, (6, 2), elements=st.floats(-50, 50, width=32))


@settings(max_examples=50)
@given(trajectory=points, subgoal=hnp.arrays(np.float64, 2, elements=st.floats(-10, 10, width=32)))
def test_a_relative_subgoal_keeps_its_target_over_a_segment(trajectory, subgoal):
    first = subgoal
    for before, after in pairwise(trajectory):
        subgoal = subgoals.goal_transition("relative", subgoal, before, after)
        np.testing.assert_allclose(after + subgoal, trajectory[0] + first, atol=1e-9)
        np.testing.assert_allclose(
            subgoals.subgoal_target("relative", subgoal, after), trajectory[0] + first, atol=1e-9
        )


@settings(max_examples=20)
@given(trajectory=points)
def test_an_absolute_subgoal_does_not_change(trajectory):
    subgoal = np.array([3.0, -4.0])
    for before, after in pairwise(trajectory):
        np.testing.assert_array_equal(subgoals.goal_transition("absolute", subgoal, before, after), subgoal)
    np.testing.assert_array_equal(subgoals.subgoal_target("absolute", subgoal, trajectory[0]), subgoal)


@pytest.mark.parametrize(("scheme", "subgoal"), [("relative", [4.0, 5.0]), ("absolute", [5.0, 7.0])])
def test_the_subgoal_towards_a_point_asks_for_it(scheme, subgoal):
    achieved, target = np.array([1.0, 2.0]), np.array([5.0, 7.0])
    np.testing.assert_array_equal(subgoals.subgoal_towards(scheme, target, achieved), subgoal)
    np.testing.assert_array_equal(subgoals.subgoal_target(scheme, np.array(subgoal), achieved), target)


# --- What the low level sees ----------------------------------------------------------------------------------------

OBSERVED = np.array([[9.0, 8.0, 7.0, 6.0]], np.float32)
SUBGOAL = np.array([[5.0, 4.0]], np.float32)


def test_hidden_entries_do_not_reach_the_low_level():
    view = subgoals.low_view(LowConfig(hidden_entries=(0, 2)), subgoals.no_statistics(4))
    np.testing.assert_array_equal(subgoals.low_input(view, OBSERVED, SUBGOAL), [[0, 8, 0, 6, 5, 4]])
    view = subgoals.low_view(LowConfig(hidden_entries=()), subgoals.no_statistics(4))
    np.testing.assert_array_equal(subgoals.low_input(view, 1e6 * OBSERVED, SUBGOAL)[0, :4], 1e6 * OBSERVED[0])


@pytest.mark.parametrize("normalise", [False, True])
def test_of_an_angle_the_low_level_sees_sine_and_cosine(normalise):
    """Of entries 0 and 2; they are not normalised, and the numbers themselves are not seen."""
    states = np.array([[0.0, 1.0, 0.0, 2.0], [400.0, 3.0, 1.0, 4.0]], np.float32)
    config = LowConfig(hidden_entries=(1,), angles=(0, 2), normalise=normalise)
    view = subgoals.low_view(config, statistics_of(states))
    observed = np.array([[np.pi / 6, 9.0, 100 * np.pi, 4.0]], np.float32)
    last = 1.0 if normalise else 4.0
    seen = subgoals.low_input(view, observed, SUBGOAL)
    np.testing.assert_allclose(seen, [[0, 0, 0, last, 0.5, 0, 3**0.5 / 2, 1, 5, 4]], atol=1e-4)
    assert seen.shape[1] == subgoals.low_input_size(config, 4, 2) == 10
    # One observation, and several at once in JAX.
    np.testing.assert_allclose(subgoals.low_input(view, observed[0], SUBGOAL[0]), seen[0], atol=1e-6)
    several = [jnp.tile(jnp.asarray(array), (3, 2, 1)) for array in (observed, SUBGOAL)]
    np.testing.assert_allclose(subgoals.low_input(view, *several), np.tile(seen, (3, 2, 1)), atol=1e-4)


def statistics_of(*parts: np.ndarray) -> subgoals.Statistics:
    statistics = subgoals.no_statistics(parts[0].shape[1])
    for part in parts:
        statistics = subgoals.updated_statistics(statistics, part)
    return statistics


def test_statistics_are_those_of_all_states_together():
    """Parts of different lengths, places and scales; the last column stands still in the first parts."""
    rng = np.random.default_rng(0)
    parts = [
        (rng.normal(size=(length, 4)) * [1, 100, 1e-3, 0] + [0, 1000 + length, length, 5]).astype(np.float32)
        for length in (7, 200, 1, 31)
    ]
    parts.append((rng.normal(size=(50, 4)) * 1e-2 + 5).astype(np.float32))
    found, everything = statistics_of(*parts), np.concatenate(parts).astype(np.float64)
    assert found.count == len(everything)
    np.testing.assert_allclose(found.mean, everything.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.std, everything.std(axis=0), rtol=1e-4)
    assert {array.dtype for array in found} == {np.dtype("float32")}


def test_the_low_level_sees_normalised_entries_within_ten_deviations():
    states = np.array([[0.0, 100.0, 3.0, -1.0], [2.0, 300.0, 3.0, 1.0]], np.float32)  # means 1, 200, 3, 0
    view = subgoals.low_view(LowConfig(normalise=True, hidden_entries=(3,)), statistics_of(states))
    observed = np.array([[4.0, 100.0, 3.5, 9.0], [1e6, -1e6, 3.0, -1e6]], np.float32)
    seen = subgoals.low_input(view, observed, np.array([[50.0, 0.0], [0.0, -50.0]], np.float32))
    # The third entry has not varied, so it keeps its unit; the last is hidden; the subgoal is not normalised.
    np.testing.assert_allclose(seen, [[3, -1, 0.5, 0, 50, 0], [10, -10, 0, 0, 0, -50]], rtol=1e-6)


def test_an_entry_that_stands_still_is_seen_as_zero():
    """Also if it is large: rounding must not count as variation."""
    states = np.full((1000, 1), 1000.1, np.float32)
    view = subgoals.low_view(LowConfig(normalise=True, hidden_entries=()), statistics_of(states, states[:333], states))
    assert view.factor == 1.0
    np.testing.assert_array_equal(subgoals.low_input(view, states[:1], np.zeros((1, 0), np.float32)), [[0.0]])


def test_the_view_in_jax_equals_the_view_in_numpy():
    states = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32) * [1, 2, 0, 3]
    statistics, config = statistics_of(states), LowConfig(normalise=True, hidden_entries=(1,), angles=(3,))
    in_jax = subgoals.low_view(config, jax.tree.map(jnp.asarray, statistics))
    for ours, expected in zip(in_jax, subgoals.low_view(config, statistics), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


# --- What the high level sees ---------------------------------------------------------------------------------------

ACHIEVED, DESIRED = np.array([[2.0, -3.0]], np.float32), np.array([[6.0, 997.0]], np.float32)


@pytest.mark.parametrize("algo", ["higl", "hrac", "hiro"])
def test_the_high_level_sees_all_entries_normalised_and_how_far_off_the_goal_is(algo):
    """Entry 2 is an angle; entry 0 is hidden from the low level only; offsets are in tens of units, at most ten."""
    states = np.array([[0.0, 100.0, 0.0, 3.0], [2.0, 300.0, 400.0, 3.0]], np.float32)  # means 1, 200, 200, 3
    config = Config(algo=algo, low=LowConfig(normalise=True, hidden_entries=(0,), angles=(2,)))
    view = subgoals.high_view(config, statistics_of(states))
    observed = np.array([[4.0, -1e6, 100 * np.pi + np.pi / 6, 3.5]], np.float32)
    seen = subgoals.high_input(view, observed, ACHIEVED, DESIRED)
    np.testing.assert_allclose(seen, [[3, -10, 0, 0.5, 0.5, 3**0.5 / 2, 0.4, 10]], atol=1e-4)
    assert seen.shape[1] == subgoals.high_input_size(config, 4, 2) == 8
    one = subgoals.high_input(view, observed[0], ACHIEVED[0], DESIRED[0])
    np.testing.assert_allclose(one, seen[0], atol=1e-6)
    several = [jnp.tile(jnp.asarray(array), (3, 2, 1)) for array in (observed, ACHIEVED, DESIRED)]
    in_jax = subgoals.high_view(config, jax.tree.map(jnp.asarray, statistics_of(states)))
    np.testing.assert_allclose(subgoals.high_input(in_jax, *several), np.tile(seen, (3, 2, 1)), atol=1e-4)


@pytest.mark.parametrize(
    "config",
    [
        Config(low=LowConfig(angles=(2,))),
        Config(low=LowConfig(normalise=True, angles=(2,)), landmarks=LandmarksConfig(graph="walked")),
    ],
    ids=["not normalised", "a walked map"],
)
def test_otherwise_the_high_level_sees_the_observation_and_the_goal_as_they_are(config):
    """Without normalisation, as in the paper; and of a walked map, whose high level is no network."""
    view = subgoals.high_view(config, statistics_of(OBSERVED, 2 * OBSERVED))
    seen = subgoals.high_input(view, OBSERVED, ACHIEVED, DESIRED)
    np.testing.assert_array_equal(seen, np.hstack([OBSERVED, DESIRED]))
    assert seen.shape[1] == subgoals.high_input_size(config, 4, 2)
