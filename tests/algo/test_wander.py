"""Exploring without a goal: the choice of pseudo goals against plain Python, and wanderers in simulated worlds."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import numpy as np
import pytest

from algo.test_walked import PERIOD, WALL, WIDE, line, moved, shortest, walked
from higl.algo.walked import Chart
from higl.algo.wander import Wanderer, familiarity, pseudo_goal

STRAIGHT = line((0.0, 0.0), (6.0, 0.0))


def plain_familiarity(chart: Chart) -> list[float]:
    """Sum the visits around each landmark, one by one: the farther, the less."""
    points, visits = chart.points.tolist(), chart.visits.tolist()
    return [
        sum(count * math.exp(-(math.dist(place, point) ** 2)) for point, count in zip(points, visits, strict=True))
        for place in points
    ]


def plain_choice(chart: Chart, node: int, vain: list[float], noise: list[float]) -> int:
    """Return the pseudo goal of least price among the landmarks that can be reached, in plain Python."""
    familiar, (lengths, _) = plain_familiarity(chart), shortest(chart, node)
    prices = {
        place: (1 + familiar[place]) * (length + 12 * PERIOD) * (1 + vain[place] / 3) * math.exp(noise[place])
        for place, length in lengths.items()
    }
    return min(prices, key=lambda place: prices[place])


@pytest.mark.parametrize("seed", range(8))
def test_the_choice_of_a_pseudo_goal(seed):
    rng = np.random.default_rng(seed)
    grown = walked(*(line(*rng.uniform(-3, 3, (4, 2)).tolist()) for _ in range(3)))
    chart = grown.chart()
    vain = rng.exponential(2.0, len(chart.points)).astype(np.float32)
    node = int(rng.integers(len(chart.points)))
    lengths, _ = shortest(chart, node)
    way = np.array([lengths.get(place, np.inf) for place in range(len(chart.points))])
    np.testing.assert_allclose(familiarity(chart), plain_familiarity(chart), rtol=1e-3)
    noise = np.random.default_rng(seed).normal(0.0, 0.5, len(chart.points)).tolist()
    chosen = pseudo_goal(familiarity(chart), way, vain, 12 * PERIOD, np.random.default_rng(seed))
    assert chosen == plain_choice(chart, node, vain.tolist(), noise)


def test_few_visits_a_short_way_and_few_failures_are_preferred():
    same = np.full(3, 4.0)

    def share(familiar=same, way=same, vain=same) -> float:
        rng = np.random.default_rng(0)
        return float(np.mean([pseudo_goal(familiar, way, vain, 1.0, rng) == 0 for _ in range(400)]))

    other = np.array([1.0, 4.0, 4.0])
    assert share() == pytest.approx(1 / 3, abs=0.08)
    assert min(share(familiar=other), share(way=other), share(vain=3 * other)) > 0.6
    assert share(way=np.array([np.inf, 4.0, 4.0])) == 0.0, "there is no way to it"


def wander(chart: Chart, start: tuple[float, ...], seed: int, segments: int = 40, explore="frontier", walls=()):
    """Let a wanderer lead a point; return its trajectory [T, G] and the walkers of its segments."""
    walker, position = Wanderer(chart, PERIOD, explore), np.asarray(start, float)
    rng = np.random.default_rng(seed)
    positions, led = [position], []
    for step in range(segments * PERIOD):
        walker = walker.see(position)
        if step % PERIOD == 0:
            target, walker = walker.target(position, np.full(2, np.nan), rng)
            led.append(walker)
        position = moved(position, target, walls)
        positions.append(position)
    return np.asarray(positions), led


def test_it_goes_from_one_pseudo_goal_to_the_next_and_roams_beyond_the_map():
    """In one episode, and from a desired goal of NaN: it is not read."""
    _, led = wander(walked(STRAIGHT, STRAIGHT).chart(), (0.0, 0.0), 0, segments=80)
    assert sum(after.frontier >= 0 > before.frontier for before, after in pairwise(led)) >= 1
    assert sum(after.roaming > before.roaming for before, after in pairwise(led)) >= 3
    chart = walked(STRAIGHT, STRAIGHT).chart()
    paths = [wander(chart, (0.0, 0.0), seed)[0] for seed in range(4)]
    beyond = [np.linalg.norm(path[:, None] - chart.points[None], axis=-1).min(axis=1).max() for path in paths]
    assert min(beyond) > 2.0


def test_it_goes_along_the_map_and_the_baseline_straight():
    """The way leads around a wall; the least visited landmarks are at its end."""
    known = walked(*[line((-1.0, 0.0), (-1.0, 2.0))] * 6, WIDE)
    chart, end = known.chart(), np.array([1.0, 0.0])

    def near(explore) -> int:
        paths = [wander(chart, (-1.0, 0.0), seed, 30, explore, [WALL])[0] for seed in range(8)]
        return sum(np.linalg.norm(path - end, axis=1).min() < 0.7 for path in paths)

    assert near("frontier") >= 2
    assert near("straight") == 0


def test_the_uniform_baseline_chooses_any_landmark():
    chart = walked(STRAIGHT, *[line((0.0, 0.0), (3.0, 0.0))] * 30).chart()

    def places(explore) -> np.ndarray:
        led = [walker for seed in range(30) for walker in wander(chart, (0.0, 0.0), seed, 1, explore)[1]]
        return np.array([chart.points[walker.frontier, 0] for walker in led if walker.frontier >= 0])

    assert places("uniform").min() < 1.0
    assert (places("uniform") < 3.0).mean() > 0.3
    assert (places("frontier") > 3.0).mean() > 0.6


def test_it_gives_up_a_pseudo_goal_that_it_cannot_reach():
    chart = walked(STRAIGHT, STRAIGHT).chart()
    walker, here, found = Wanderer(chart, PERIOD, "frontier").see(np.zeros(2)), np.zeros(2), []
    rng = np.random.default_rng(0)
    for _ in range(200):  # the body does not move
        _, walker = walker.target(here, here, rng)
        found.append(walker.frontier)
    assert len(set(found) - {-1}) > 1
    assert walker.vain.sum() > chart.vain.sum()


def test_a_wanderer_is_never_changed_and_repeats_its_choices():
    seed, chart = 0, walked(WIDE).chart()
    first, led = wander(chart, (-1.0, 0.0), seed, walls=[WALL])
    np.testing.assert_array_equal(first, wander(chart, (-1.0, 0.0), seed, walls=[WALL])[0])
    for walker in led:
        before = copy.deepcopy(vars(walker))
        walker.see(np.ones(2)).target(np.ones(2), np.ones(2), np.random.default_rng(1))
        for name in ("vain", "frontier", "roaming", "heading", "left", "returning", "node"):
            np.testing.assert_equal(vars(walker)[name], before[name], err_msg=name)
