"""Points of the goal space and their places in a picture."""

import numpy as np
import pytest

from higl.figures.goal_space import Frame, Projection, extent, points_of, projections


@pytest.mark.parametrize(
    ("task", "size", "expected"),
    [
        ("x", 2, [(0, 1)]),
        ("reacher", 3, [(0, 1), (0, 2)]),
        ("pusher", 6, [(0, 1), (0, 2), (3, 4)]),
        ("own", 1, [(0, 0)]),
        ("own", 4, [(0, 1), (2, 3)]),
        ("own", 5, [(0, 1), (2, 3), (4, 4)]),
    ],
)
def test_projections_of_any_goal_space(task, size, expected):
    assert [(shown.across, shown.up) for shown in projections(task, size)] == expected
    points = np.arange(3.0 * size).reshape(3, size)
    assert extent([{"visited": points}], projections(task, size)[0])[0] < points[0, 0]


def test_points_that_are_missing_or_not_finite_are_left_out():
    snapshot = {"visited": np.array([[0.0, 1.0], [np.nan, 2.0]]), "goal": np.array([3.0, 4.0])}
    assert points_of(snapshot, "visited").tolist() == [[0, 1]]
    assert points_of(snapshot, "goal").tolist() == [[3, 4]]
    assert points_of(snapshot, "coverage").shape == (0, 2)


def test_a_frame_turns_the_vertical_axis_around():
    frame = Frame(Projection(0, 2, ("x", "z")), (-2.0, 2.0, 0.0, 2.0), 100)
    assert frame.shape == (100, 50)
    np.testing.assert_allclose(
        frame.places(np.array([[-2.0, 9, 2], [2, 9, 0], [0, 9, 1]])), [[0, 0], [100, 50], [50, 25]]
    )
    np.testing.assert_allclose(frame.boxes(np.array([[-2.0, 0, 0, 1]])), [[0, 25, 50, 50]])
    assert frame.boxes(np.zeros((0, 4))).shape == (0, 4)


def test_the_extent_of_a_maze_cuts_off_most_of_its_outer_walls():
    walls = np.array([[-4.0, -4, 4, 4], [20, 20, 28, 28]])
    assert extent([{"walls": walls}], projections("x", 2)[0]) == pytest.approx((0.8, 23.2, 0.8, 23.2))
