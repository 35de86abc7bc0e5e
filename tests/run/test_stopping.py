"""Stopping at a success: the mean of several evaluations in a row."""

from __future__ import annotations

import pytest

from higl.errors import SettingsError
from higl.run.stopping import StopAtSuccess


def answers(stop: StopAtSuccess, *successes: float) -> list[bool]:
    return [stop({"step": 1, "evaluation/success": success}) for success in successes]


def test_it_stops_at_the_mean_of_the_last_ones():
    stop = StopAtSuccess(0.95, evaluations=3)
    assert answers(stop, 1.0, 1.0) == [True, True]
    assert stop({"step": 1, "episode/success": 0.0})
    assert answers(stop, 0.8, 1.0, 1.0) == [True, True, True]
    assert answers(stop, 0.9) == [False]
    assert stop.reached
    assert answers(stop, 0.0) == [True]


def test_earlier_evaluations_count():
    stop = StopAtSuccess(1.0)
    answers(stop, *[1.0] * 5)
    stop.restart([0.0, 1.0, 1.0, 1.0, 1.0])
    assert not stop.reached
    assert answers(stop, 1.0) == [False]


@pytest.mark.parametrize("arguments", [(0.0,), (1.1,), (-1,), (float("nan"),), (0.5, 0)])
def test_ranges(arguments):
    with pytest.raises(SettingsError, match="expected"):
        StopAtSuccess(*arguments)
