"""Exploring without a goal: the choice of pseudo goals against plain Python, and wanderers in simulated worlds."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import numpy as np
import pytest

from algo.test_walked import PERIOD, WALL, WIDE, line, moved, shortest, walked
from higl.algo.frontier import familiarity, pseudo_goal, roaming_step
from higl.algo.walked import Chart
from higl.algo.wander import Wanderer

STRAIGHT = line((0.0, 0.0), (6.0, 0.0))


def plain_familiarity(chart: Chart) -> list[float]:
    """Sum the visits at the ends of all ways of up to four walked edges from each landmark, one way at a time."""
    joined: dict[int, set[int]] = {place: set() for place in range(len(chart.points))}
    for first, second in zip(chart.start.tolist(), chart.end.tolist(), strict=True):
        joined[first].add(second)
        joined[second].add(first)

    def around(place: int, edges: int) -> float:
        return float(chart.visits[place]) + sum(around(other, edges - 1) for other in joined[place] if edges)

    return [around(place, 4) for place in range(len(chart.points))]


def graph_familiarity(chart: Chart) -> np.ndarray:
    return familiarity(chart.visits, chart.start, chart.end)


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
    np.testing.assert_allclose(graph_familiarity(chart), plain_familiarity(chart), rtol=1e-4)
    noise = np.random.default_rng(seed).normal(0.0, 0.5, len(chart.points)).tolist()
    chosen = pseudo_goal(graph_familiarity(chart), way, vain, 12 * PERIOD, np.random.default_rng(seed))
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


def test_what_lies_behind_a_wall_is_not_familiar():
    """Two ways side by side that nobody crossed between: visits of one make only that one familiar."""
    chart = walked(*[STRAIGHT] * 20, line((0.0, 1.0), (6.0, 1.0))).chart()
    familiar = graph_familiarity(chart)
    far = chart.points[:, 1] > 0.5
    assert familiar[~far].min() > 5 * familiar[far].max()
    inner = ~far & (np.abs(chart.points[:, 0] - 3.0) < 1.0)
    assert familiar[inner].min() > 1.5 * familiar[~far].min(), "the ends are less familiar than the middle"


def test_directions_of_roaming():
    """Landmarks on the left, the goal on the right: a share of directions is the goal's, some lead away from them."""
    points, goal, rng = np.array([[-2.0, 0.0], [-1.0, 0.0]]), np.array([5.0, 0.0]), np.random.default_rng(0)
    steps = np.array([roaming_step(np.zeros(2), points, goal, 0.3, rng) for _ in range(600)])
    assert ((np.linalg.norm(steps, axis=1) > 0.7 - 1e-9) & (np.linalg.norm(steps, axis=1) < 1.5)).all()
    assert (steps[:, 1] == 0.0).mean() == pytest.approx(0.3, abs=0.06)
    others = steps[steps[:, 1] != 0.0]
    assert (others[:, 0] > 0).mean() == pytest.approx(0.75, abs=0.08)  # outward half of the time, anywhere else
    free = np.array([roaming_step(np.zeros(2), points, None, 0.3, rng) for _ in range(300)])
    assert (free[:, 1] != 0.0).all()


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
