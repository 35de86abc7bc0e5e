"""Plans: what tries count, against a plain Python model, and which way an episode then goes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from higl.algo.plans import Plan, choose_plan, no_tries, outcomes, straight_share, with_try

START, GOAL = np.zeros(2, np.float32), np.array([5.0, 0.0], np.float32)


def tried(*rows: tuple[np.ndarray, np.ndarray, Plan, bool]) -> np.ndarray:
    """Return the table of episodes: start, goal, plan and whether the goal was reached."""
    tries = no_tries(2)
    for row in rows:
        tries = with_try(tries, *row)
    return tries


def always(plan: Plan, reached: bool, times: int = 30, goal: np.ndarray = GOAL) -> list:
    return [(START, goal, plan, reached)] * times


def plain_outcomes(tries: np.ndarray, here: list[float], straight: bool) -> tuple[float, float]:
    """Return what `outcomes` should, one try at a time."""
    squares = [sum((a - b) ** 2 for a, b in zip(row, here, strict=False)) for row in tries.tolist()]
    width = max(sorted(squares)[:20][-1], 1.0)
    reached, failed, later = (1.0, 2.0, 0.0) if straight else (2.0, 1.0, 0.0)
    for row, square in reversed(list(zip(tries.tolist(), squares, strict=True))):
        if bool(row[4]) == straight:
            near = math.exp(-square / width)
            weight = near * 0.95**later
            later += near
            reached, failed = reached + weight * row[5], failed + weight * (1.0 - row[5])
    return reached, failed


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("count", [0, 1, 5, 200])
def test_what_tries_count(count, straight):
    rng = np.random.default_rng(count)
    tries = np.concatenate([rng.normal(size=(count, 4)) * 3, rng.random((count, 2)) < 0.5], axis=1).astype(np.float32)
    here = rng.normal(size=4)
    expected = plain_outcomes(tries, here.tolist(), straight) if count else ((1.0, 2.0) if straight else (2.0, 1.0))
    assert outcomes(tries, here[:2], here[2:], straight) == pytest.approx(expected, rel=1e-4)


def test_episodes_that_explore_are_no_tries():
    tries = tried((START, GOAL, Plan.EXPLORE, True), (START, GOAL, Plan.STRAIGHT, False))
    assert tries.tolist() == [[0.0, 0.0, 5.0, 0.0, 1.0, 0.0]]


def test_the_share_of_the_latest_tries_that_went_straight():
    assert straight_share(no_tries(2)) == 0.0
    tries = tried(*always(Plan.STRAIGHT, True, 60), *always(Plan.MAP, True, 40))
    assert straight_share(tries) == pytest.approx(0.2)


def test_only_the_latest_tries_are_remembered():
    tries = tried(*always(Plan.MAP, False, 10), *always(Plan.STRAIGHT, True, 1_000))
    assert len(tries) == 1_000
    assert tries[:, -2].all()


def test_the_map_leads_until_it_has_failed_often_or_the_straight_line_is_better():
    assert choose_plan(no_tries(2), START, GOAL, None) == Plan.MAP
    elsewhere = (START, GOAL + 50.0, Plan.MAP, True)
    assert choose_plan(tried(elsewhere, *always(Plan.MAP, False, 2)), START, GOAL, None) == Plan.MAP
    assert choose_plan(tried(elsewhere, *always(Plan.MAP, False)), START, GOAL, None) == Plan.STRAIGHT
    both = always(Plan.MAP, True) + always(Plan.STRAIGHT, True)
    assert choose_plan(tried(*both), START, GOAL, None) == Plan.MAP
    better = always(Plan.MAP, False) + always(Plan.STRAIGHT, True)
    assert choose_plan(tried(*better), START, GOAL, None) == Plan.STRAIGHT


def test_without_any_success_tests_follow_the_map():
    """An environment that never reports success has no record that could tell."""
    tries = tried(*always(Plan.MAP, False))
    assert choose_plan(tries, START, GOAL, None) == Plan.MAP
    rng = np.random.default_rng(0)
    assert Plan.STRAIGHT in {choose_plan(tries, START, GOAL, rng) for _ in range(20)}


def test_what_counts_happened_nearby_and_of_late():
    far = np.array([50.0, 0.0], np.float32)
    near_and_far = always(Plan.MAP, False) + always(Plan.MAP, True, goal=far)
    near_and_far += always(Plan.STRAIGHT, True) + always(Plan.STRAIGHT, False, goal=far)
    assert choose_plan(tried(*near_and_far), START, GOAL, None) == Plan.STRAIGHT
    assert choose_plan(tried(*near_and_far), START, far, None) == Plan.MAP
    before = always(Plan.STRAIGHT, True, 100) + always(Plan.MAP, False, 100)
    assert choose_plan(tried(*before), START, GOAL, None) == Plan.STRAIGHT
    since = always(Plan.STRAIGHT, False, 100) + always(Plan.MAP, True, 100)
    assert choose_plan(tried(*before, *since), START, GOAL, None) == Plan.MAP


def test_training_explores_half_the_time_and_else_draws_the_better_way_more_often():
    tries = tried(*always(Plan.MAP, False, 4), *always(Plan.STRAIGHT, True, 4))
    rng = np.random.default_rng(0)
    drawn = [choose_plan(tries, START, GOAL, rng) for _ in range(600)]
    counts = {plan: drawn.count(plan) for plan in Plan}
    assert counts[Plan.EXPLORE] == pytest.approx(300, abs=50)
    assert counts[Plan.STRAIGHT] > 2 * counts[Plan.MAP] > 0
