"""Subgoals: their transition, their targets, and what the low level sees."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from higl.algo import subgoals
from higl.settings.config import LowConfig

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


def test_hidden_entries_do_not_reach_the_low_level():
    visible = subgoals.visible_entries(LowConfig(hidden_entries=(0, 2)), 4)
    np.testing.assert_array_equal(visible, [0, 1, 0, 1])
    seen = subgoals.low_input(visible, np.array([[9.0, 8.0, 7.0, 6.0]]), np.array([[5.0, 4.0]]))
    np.testing.assert_array_equal(seen, [[0, 8, 0, 6, 5, 4]])
    np.testing.assert_array_equal(subgoals.visible_entries(LowConfig(hidden_entries=()), 3), [1, 1, 1])
