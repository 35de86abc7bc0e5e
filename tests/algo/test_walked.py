"""The walked map: its landmarks and edges against plain searches, and walkers in small simulated worlds."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra
from support.arrays import differing

from higl.algo.walked import (
    Chart,
    Edges,
    Nearness,
    WalkedMap,
    Walker,
    _distances,
    follow,
    is_stuck,
    last_landmark,
    last_or_source,
)

# All worlds: 0.1 per step, so that a segment of ten steps leads one unit far, and the first radius is 0.3.
STEP, PERIOD = 0.1, 10


def line(*corners: tuple[float, ...]) -> np.ndarray:
    """Return a trajectory along straight lines between corners, in steps of 0.1: [T + 1, G]."""
    points = [np.asarray(corners[0], float)]
    for start, end in pairwise(np.asarray(corner, float) for corner in corners):
        count = round(float(np.linalg.norm(end - start)) / STEP)
        points += [start + (end - start) * number / count for number in range(1, count + 1)]
    return np.asarray(points, np.float32)


def walked(*trajectories: np.ndarray, places: int = 400) -> WalkedMap:
    """Return the map of trajectories whose segments were asked for where they went."""
    grown = WalkedMap(places, trajectories[0].shape[1], PERIOD)
    for trajectory in trajectories:
        add(grown, trajectory)
    return grown


def add(grown: WalkedMap, trajectory: np.ndarray, targets: np.ndarray | None = None) -> None:
    """Add a trajectory whose segments of ten steps were asked for where they went, or for other targets."""
    targets = trajectory[PERIOD::PERIOD] if targets is None else targets
    ends = np.minimum(np.arange(len(targets) + 1) * PERIOD, len(trajectory) - 1)
    grown.add_episode(trajectory, targets, ends)


def nearest(chart: Chart, *point: float) -> int:
    return int(np.argmin(np.linalg.norm(chart.points - np.asarray(point), axis=1)))


def shortest(chart: Chart, start: int) -> tuple[dict[int, float], dict[int, int]]:
    """Return the lengths of the shortest ways from a landmark, and the one before each: relaxation in plain Python."""
    lengths, before = {start: 0.0}, {}
    for _ in range(len(chart.points)):
        for first, second, steps in zip(chart.start.tolist(), chart.end.tolist(), chart.steps.tolist(), strict=True):
            if first in lengths and lengths[first] + steps < lengths.get(second, np.inf):
                lengths[second], before[second] = lengths[first] + steps, first
    return lengths, before


def path(chart: Chart, start: int, end: int) -> np.ndarray:
    """Return the points of the shortest path: [L, G]."""
    _, before = shortest(chart, start)
    places = [end]
    while places[-1] != start:
        places.append(before[places[-1]])
    return chart.points[places[::-1]]


def crosses(first: np.ndarray, second: np.ndarray, wall: tuple[float, float, float]) -> bool:
    """Return whether the way between two points crosses the wall at x, from y to y."""
    x, low, high = wall
    if (first[0] - x) * (second[0] - x) >= 0:
        return False
    share = (x - first[0]) / (second[0] - first[0])
    return bool(low <= first[1] + share * (second[1] - first[1]) <= high)


# --- Edges ----------------------------------------------------------------------------------------------------------

WALL = (0.0, -9.0, 3.0)
WIDE = line((-1.0, 0.0), (-1.0, 4.0), (1.0, 4.0), (1.0, 0.0))
AROUND = ((-0.12, 0.0), (-0.12, 4.0), (0.12, 4.0), (0.12, 0.0))


def test_edges_do_not_cross_a_wall_that_is_thinner_than_the_radius():
    """Both sides are 0.24 apart; the way around has a length of about 8."""
    way = line(*AROUND)
    grown = walked(way, way[::-1], way)
    assert 0.24 < grown.radius < 0.31
    chart = grown.chart()
    assert len(chart.start) > 20
    for first, second in zip(chart.points[chart.start], chart.points[chart.end], strict=True):
        assert not crosses(first, second, WALL)
    start, end = nearest(chart, -0.12, 0.0), nearest(chart, 0.12, 0.0)
    assert start != end
    found = path(chart, start, end)
    assert found[:, 1].max() > 3.0
    assert 6.5 < np.linalg.norm(np.diff(found, axis=0), axis=1).sum() < 8.3
    # Breadth-first: the way around also has the fewest edges, many.
    reached, edge = {start}, {start}
    rounds = 0
    while end not in reached:
        edge = {int(e) for s, e in zip(chart.start, chart.end, strict=True) if int(s) in edge} - reached
        reached, rounds = reached | edge, rounds + 1
    assert rounds > 15


def test_a_passage_has_edges_only_in_the_direction_in_which_it_was_walked():
    way = line((0.0, 0.0), (5.0, 0.0))
    chart = walked(way, way, way).chart()
    assert (chart.points[chart.end, 0] > chart.points[chart.start, 0]).all()
    left, right = nearest(chart, 0.0, 0.0), nearest(chart, 5.0, 0.0)
    assert right in shortest(chart, left)[0]
    assert left not in shortest(chart, right)[0]
    both = walked(way, way[::-1]).chart()
    assert nearest(both, 0.0, 0.0) in shortest(both, nearest(both, 5.0, 0.0))[0]


def test_the_way_through_a_door_leads_by_way_of_its_key():
    """The third coordinate is 1 once the key at x = 3 is taken; without it the door at x = -1 stays shut."""
    vain = line((0.0, 0.0, 0.0), (-0.9, 0.0, 0.0), (0.0, 0.0, 0.0))
    fetch = line((0.0, 0.0, 0.0), (3.0, 0.0, 0.0))
    through = line((3.0, 0.0, 1.0), (-3.0, 0.0, 1.0))
    chart = walked(vain, np.concatenate([fetch, through]), vain).chart()
    start, end = nearest(chart, 0.0, 0.0, 0.0), nearest(chart, -3.0, 0.0, 1.0)
    found = path(chart, start, end)
    assert found[:, 0].max() > 2.7
    before_door = found[found[:, 0] > -1.0]
    assert before_door[-1, 2] > 0.9
    assert len(found[found[:, 2] < 0.1]) > 8


def test_edges_take_the_time_of_a_good_segment_and_longer_if_walked_once_or_stuck():
    way = line((0.0, 0.0), (5.0, 0.0))
    once, often = walked(way).chart(), walked(*[way] * 20).chart()
    length = np.linalg.norm(once.points[once.start] - once.points[once.end], axis=1)
    np.testing.assert_allclose(once.steps, 2 * length / STEP, rtol=1e-3)
    length = np.linalg.norm(often.points[often.start] - often.points[often.end], axis=1)
    assert (np.abs(often.steps / (length / STEP) - 1.05) < 0.01).all()
    grown = walked(*[way] * 20)
    still = np.tile(way[:1], (101, 1))
    for _ in range(20):
        add(grown, still, np.tile(np.float32([1.0, 0.0]), (10, 1)))
    chart = grown.chart()
    ratio = chart.steps / (np.linalg.norm(chart.points[chart.start] - chart.points[chart.end], axis=1) / grown.speed)
    first = chart.start == nearest(chart, 0.0, 0.0)
    assert ratio[first].max() > 5
    far = (chart.points[chart.start] + chart.points[chart.end])[:, 0] / 2 > 2 * grown.radius
    assert ratio[far].max() < 1.2
    assert chart.vain[nearest(chart, 0.0, 0.0)] > 25
    assert chart.vain[nearest(chart, 2.0, 0.0)] < 1e-6


def test_edges_on_which_bodies_are_slow_take_longer():
    """A body that is four times as slow on the last third of its way; the length of an edge grows by three at most."""
    fast, slow = line((0.0, 0.0), (10.0, 0.0)), line((10.0, 0.0), (15.0, 0.0))
    places = np.arange(4 * len(slow)) // 4
    chart = walked(*[np.concatenate([fast, slow[places]])] * 20).chart()
    middle = (chart.points[chart.start] + chart.points[chart.end])[:, 0] / 2
    ratio = chart.steps / np.abs(chart.points[chart.start] - chart.points[chart.end])[:, 0]
    assert ratio[middle > 11].mean() == pytest.approx(3 * ratio[middle < 9].mean(), rel=0.1)


def test_a_crossing_counts_more_the_faster_it_was():
    """By three tenths of what it was faster, or a tenth of what it was slower."""
    grown, nodes = WalkedMap(4, 2, PERIOD), np.repeat([0, 1], 6)
    expected = 0.0
    for pace in (0.1, 0.2, 0.05, 0.15):
        grown._pace(nodes, np.arange(12.0)[:, None] * [pace, 0.0])
        share = 1.0 if expected == 0.0 else 0.3 if pace > expected else 0.1
        expected += share * (pace - expected)
        assert grown.paces[0, 1] == pytest.approx(expected, rel=1e-5)
    assert np.count_nonzero(grown.paces) == 1


POINTS = np.float32([[0.0, 0.0], [0.3, 0.0], [0.6, 0.0], [0.3, 0.3], [-0.3, 0.0], [0.0, 1.0], [0.3, 1.0]])
LINKS = [(0, 1), (1, 2), (1, 0), (0, 3), (4, 0), (5, 6), (0, 5)]


@pytest.mark.parametrize(
    ("body", "target", "expected"),
    [
        ((0.0, 0.0), (2.0, 0.0), {(0, 1), (1, 2), (0, 3), (4, 0)}),  # ahead within a radius, and leading there
        ((0.0, 0.0), (-2.0, 0.0), {(1, 0)}),
        ((0.0, 0.0), (0.0, 2.0), {(0, 3), (0, 5)}),
        ((0.0, -0.4), (0.0, 2.0), {(0, 3)}),  # the middle of (0, 5) is too far away
        ((0.0, 1.0), (2.0, 1.0), {(5, 6)}),
    ],
)
def test_edges_before_a_stuck_body_lead_where_it_cannot_go(body, target, expected):
    edges = Edges(*np.transpose(LINKS))
    found = edges.before(POINTS, np.float32(body), np.float32(target), 0.3)
    assert {link for link, blocked in zip(LINKS, found, strict=True) if blocked} == expected


def longest_edge(grown: WalkedMap) -> float:
    """Return how many times as long as its way the longest edge is."""
    chart = grown.chart()
    away = np.linalg.norm(chart.points[chart.start] - chart.points[chart.end], axis=1)
    return float((chart.steps / (away / chart.speed)).max())


def test_the_first_segment_of_an_episode_is_not_judged():
    """A body that needs ten steps to get going is not stuck, but one that does not move after them is."""
    way = line((0.0, 0.0), (5.0, 0.0))
    still = np.tile(way[:1], (PERIOD, 1))
    ahead = np.tile(np.float32([3.0, 0.0]), (2, 1))
    starting, stuck = walked(*[way] * 5), walked(*[way] * 5)
    for _ in range(50):
        add(starting, np.concatenate([still, way]), np.concatenate([ahead[:1], way[PERIOD::PERIOD]]))
        add(stuck, np.concatenate([still, still, way[:1]]), ahead)
    assert starting.vain.max() == 0.0
    assert longest_edge(starting) < 2.0, "it is slower there, but not stuck"
    assert stuck.vain.max() > 20
    assert longest_edge(stuck) > 100


def test_edges_that_are_crossed_outweigh_a_few_stuck_segments():
    """Of a slow body no segment leads most of its way, and it falls over in one episode of ten."""
    way = line((0.0, 0.0), (5.0, 0.0))
    far = np.tile(np.float32([9.0, 0.0]), (6, 1))
    fallen = np.concatenate([way[:31], np.tile(way[30], (30, 1))])
    grown = walked(way)
    for episode in range(60):
        add(grown, fallen if episode % 10 == 0 else np.concatenate([way, way[-1:].repeat(10, axis=0)]), far)
    assert grown.stuck.max() > 3
    before_the_end = grown.chart()
    place = before_the_end.points[before_the_end.end, 0]
    away = np.linalg.norm(
        before_the_end.points[before_the_end.start] - before_the_end.points[before_the_end.end], axis=1
    )
    ratio = before_the_end.steps / (away / before_the_end.speed)
    assert ratio[place < 4.0].max() < 2.0, "only at the end of the way every episode is stuck"


def test_a_map_learns_that_an_edge_through_a_thin_wall_cannot_be_walked():
    """Trajectories close to a wall without thickness, on either side of it, meet at the same landmarks."""
    visits = [line((x, 0.0), (x / 25, 0.0), (x / 25, 0.4), (x, 0.4)) for x in (-1.0, 1.0)]
    grown = walked(WIDE, *visits, *(visit[::-1] for visit in visits))

    def straight() -> bool:
        chart = grown.chart()
        return path(chart, nearest(chart, -1.0, 0.0), nearest(chart, 1.0, 0.0))[:, 1].max() < 3.0

    assert straight(), "the map mistakes one side of the wall for the other"
    for y in np.linspace(-0.1, 0.5, 25):
        pushing = np.tile(np.float32([-0.04, y]), (2 * PERIOD + 1, 1))
        add(grown, pushing, pushing[-2:] + np.float32([1.0, 0.0]))
    assert not straight()


# --- Merging --------------------------------------------------------------------------------------------------------


def random_walk(seed: int, steps: int = 400) -> np.ndarray:
    rng = np.random.default_rng(seed)
    turns = np.cumsum(rng.normal(0, 0.3, steps)) + rng.uniform(0, 6)
    moves = STEP * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return np.concatenate([np.zeros((1, 2)), np.cumsum(moves, axis=0)]).astype(np.float32)


def test_a_full_map_merges_and_keeps_covering_what_was_visited():
    grown, points = WalkedMap(30, 2, PERIOD), 0
    walks = [random_walk(seed) for seed in range(8)]
    for walk in walks:
        add(grown, walk)
        points += len(walk)
        assert len(grown) <= 30
        assert grown.visits.sum() == pytest.approx(points / PERIOD, rel=1e-4)
        assert not grown.crossings.diagonal().any()
        for table in (grown.crossings, grown.attempts, grown.stuck):
            assert not table[~grown.present].any()
            assert not table[:, ~grown.present].any()
    assert grown.radius > 0.5
    chart = grown.chart()
    distance = np.linalg.norm(np.concatenate(walks)[:, None] - chart.points[None], axis=-1).min(axis=1)
    assert (distance < 1.5 * grown.radius).all()
    assert set(chart.start) | set(chart.end) <= set(range(len(chart.points)))


def test_merging_adds_up_the_edges_between_what_was_merged():
    grown = walked(random_walk(0), random_walk(1))
    rng = np.random.default_rng(0)
    grown.attempts = rng.random(grown.attempts.shape).astype(np.float32) * np.outer(grown.present, grown.present)
    np.fill_diagonal(grown.attempts, 0)
    before = {name: array.copy() for name, array in grown.arrays().items()}
    grown.radius = np.asarray(3 * grown.radius, np.float32)
    moved = grown._merge()
    assert (moved != np.arange(len(moved))).sum() > 10
    assert len(grown) == len(set(moved[before["present"]].tolist()))
    for name in ("crossings", "attempts"):
        expected: dict[tuple[int, int], float] = {}
        for first, second in np.argwhere(before[name]).tolist():
            pair = int(moved[first]), int(moved[second])
            if pair[0] != pair[1]:
                expected[pair] = expected.get(pair, 0.0) + float(before[name][first, second])
        table = getattr(grown, name)
        found = {(a, b): float(table[a, b]) for a, b in np.argwhere(table).tolist()}
        assert found == pytest.approx(expected, rel=1e-4)
    for place in np.flatnonzero(grown.present):
        parts = before["present"] & (moved == place)
        assert grown.visits[place] == pytest.approx(before["visits"][parts].sum(), rel=1e-4)
        centre = np.average(before["points"][parts], axis=0, weights=before["visits"][parts])
        np.testing.assert_allclose(grown.points[place], centre, atol=1e-4)


def test_an_episode_that_begins_elsewhere_when_the_map_is_full_leaves_no_edge_there():
    grown = walked(line((0.0, 0.0), (20.0, 0.0)), places=30)
    while len(grown) < 30:
        add(grown, line((0.0, float(len(grown))), (0.5, float(len(grown)))))
    add(grown, line((50.0, 50.0), (52.0, 50.0)))
    chart = grown.chart()
    away = chart.points[:, 0] > 40
    assert away.any()
    assert (away[chart.start] == away[chart.end]).all()


@pytest.mark.timeout(30)
def test_a_map_of_starts_from_which_nothing_moves_does_not_fill_up():
    """Such as an object that is placed at random and has not been touched yet."""
    grown, rng = WalkedMap(20, 2, PERIOD), np.random.default_rng(0)
    for _ in range(60):
        still = np.tile(rng.uniform(0, 5, (1, 2)).astype(np.float32), (21, 1))
        add(grown, still, still[PERIOD::PERIOD])
    assert 0 < len(grown) <= 20
    assert grown.visits.sum() == pytest.approx(60 * 21 / PERIOD, rel=1e-4)
    assert not grown.crossings.any()


def test_a_restored_map_grows_as_the_original():
    grown, other = walked(random_walk(0), random_walk(1), places=40), WalkedMap(40, 2, PERIOD)
    saved = copy.deepcopy(grown.arrays())
    other.restore(saved)
    assert not differing(grown.arrays(), other.arrays())
    for seed in (2, 3):
        add(grown, random_walk(seed))
        add(other, random_walk(seed))
    assert not differing(grown.arrays(), other.arrays())
    assert not differing(grown.chart()._asdict(), other.chart()._asdict())
    assert differing(grown.arrays(), saved)


# --- Which landmark a point belongs to ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "distance", "joined", "expected"),
    [
        (-1, [0.9, 0.5, 2.0], [], 1),  # the first point belongs to the nearest landmark
        (-1, [1.1, 1.5, 2.0], [], -1),  # if that is within the radius
        (0, [0.9, 0.4, 2.0], [], 0),  # it stays within the radius
        (0, [0.9, 0.8, 2.0], [1], 0),  # until a joined one is clearly nearer
        (0, [0.9, 0.7, 0.4], [1], 1),  # and one that is not joined does not count
        (0, [0.9, 0.7, 0.3], [1], 2),  # unless it is very near
        (0, [0.3, 0.7, 0.25], [1], 0),  # and clearly nearer
        (0, [0.9, 0.7, 0.6], [1, 2], 2),
        (0, [1.1, 0.34, 2.0], [], 1),  # beyond the radius it meets a landmark that is very near
        (0, [1.1, 0.36, 2.0], [], -1),  # and no other
        (0, [2.0, 1.1, 3.0], [1], -1),  # a joined one must hold it, too
        (0, [2.0, 1.0, 3.0], [1], 1),
    ],
)
def test_the_landmark_of_a_point(node, distance, joined, expected):
    assert follow(node, np.array(distance), np.array(joined, int), 1.0) == expected


@pytest.mark.parametrize(
    ("end", "target", "stuck"),
    [
        (0.0, 5.0, True),
        (0.39, 5.0, True),  # a fifth of what a good segment reaches
        (0.41, 5.0, False),
        (0.0, 0.59, False),  # ways this short are not judged
        (0.13, 0.7, True),  # a fifth of the way
        (0.15, 0.7, False),
        (-1.0, 5.0, True),  # it moved, but not closer
    ],
)
def test_a_segment_is_stuck_if_it_hardly_gets_closer(end, target, stuck):
    start, end, target = (np.array([1.0 + x, 1.0]) for x in (0.0, end, target))
    assert is_stuck(start, end, target, 2.0) is stuck


# --- Walking --------------------------------------------------------------------------------------------------------


def moved(position: np.ndarray, target: np.ndarray, walls: Iterable[tuple[float, float, float]]) -> np.ndarray:
    """Return where one step of a point leads that goes straight to its target, and stops at walls."""
    offset = target - position
    step = offset * min(1.0, STEP / max(float(np.linalg.norm(offset)), 1e-9))
    return position if any(crosses(position, position + step, wall) for wall in walls) else position + step


def exploring(number: int) -> np.random.Generator:
    """Return a generator with which an episode explores, instead of acting as in a test; each number has its own."""
    seeds = (seed for seed in range(1_000) if np.random.default_rng(seed).random() < 0.5)
    return np.random.default_rng(list(islice(seeds, number + 1))[-1])


def walk(
    chart: Chart,
    start: tuple[float, ...],
    goal: tuple[float, ...],
    walls: Iterable[tuple[float, float, float]] = (),
    *,
    segments: int = 40,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """Let a walker lead a point, until it is at the goal; return its trajectory [T, G]."""
    walker, position, desired = Walker(chart, PERIOD), np.asarray(start, float), np.asarray(goal, float)
    positions = [position]
    for step in range(segments * PERIOD):
        walker = walker.see(position)
        if step % PERIOD == 0:
            target, walker = walker.target(position, desired, rng)
        position = moved(position, target, walls)
        positions.append(position)
        if rng is None and np.linalg.norm(position - desired) < 0.2:
            break
    return np.asarray(positions)


def test_a_walker_leads_around_a_wall_to_a_goal_that_it_knows():
    """It tries the straight line once, unless segments got stuck there before."""
    grown = walked(WIDE, WIDE)
    optimist = walk(grown.chart(), (-1.0, 0.0), (1.0, 0.0), [WALL])
    assert np.linalg.norm(optimist[-1] - [1.0, 0.0]) < 0.2
    assert optimist[:20, 0].max() > -0.2
    assert len(optimist) < 2 * len(WIDE)
    stuck = np.concatenate([line((-1.0, 0.0), (-0.1, 0.0)), np.full((3 * PERIOD, 2), (-0.1, 0.0), np.float32)])
    add(grown, stuck, np.full((3, 2), (1.0, 0.0), np.float32))
    trajectory = walk(grown.chart(), (-1.0, 0.0), (1.0, 0.0), [WALL])
    assert np.linalg.norm(trajectory[-1] - [1.0, 0.0]) < 0.2
    assert trajectory[:20, 0].max() < -0.8, "where segments got stuck, it does not try"
    assert len(trajectory) < 1.5 * len(WIDE)


def test_a_segment_ends_on_arrival_or_when_its_time_is_over():
    walker = Walker(walked(WIDE, WIDE).chart(), PERIOD)
    here, goal = np.array([-1.0, 0.0]), np.array([1.0, 0.0])
    walker = walker.see(here)
    assert walker.is_due(here), "no segment is under way"
    target, walker = walker.target(here, goal, None)
    there = target - [0.0, 0.2]
    for step in range(1, PERIOD):
        walker = walker.see(here)
        assert not walker.is_due(here)
        assert walker.is_due(there) == (step >= 2), "not at once: planning takes longer than a step"
    assert walker.see(here).is_due(here)


def test_a_segment_ends_earlier_when_time_is_short():
    """Its way takes 100 steps, as long as the longest episode: two thirds of the time are not enough."""
    walker = Walker(walked(*[WIDE] * 50).chart(), PERIOD).see(np.array([-1.0, 0.0]))
    walker.cautious = True  # along the map
    _, early = walker.target(np.array([-1.0, 0.0]), np.array([1.0, 0.0]), None)
    assert early.hurry == pytest.approx(1.5, abs=0.2)
    late = copy.copy(walker)
    late.clock = 80
    _, late = late.target(np.array([-1.0, 0.0]), np.array([1.0, 0.0]), None)
    assert late.hurry == 2.0
    _, idle = walker.target(np.array([-1.0, 0.0]), np.array([-1.0, 1.0]), None)
    assert idle.hurry == 1.0
    for walker, reach in ((idle, 0.25), (late, 0.5)):
        assert walker.attempt is not None
        walker.steps = 2
        assert walker.is_due(walker.attempt[3] + [0.0, reach - 0.01])
        assert not walker.is_due(walker.attempt[3] + [0.0, reach + 0.01])


def guesses(chart: Chart) -> dict[tuple[int, int], float]:
    """Return the lengths of guessed edges, by their landmarks."""
    return dict(zip(map(tuple, chart.guesses.tolist()), chart.guess_steps.tolist(), strict=True))


def test_edges_are_guessed_between_landmarks_side_by_side():
    """Two parallel ways, closer than the radius: nobody crossed between them, and yet there is a way across."""
    grown = walked(line((0.0, 0.0), (5.0, 0.0)), line((0.0, 0.7), (0.5, 0.15), (5.0, 0.15)))
    chart = grown.chart()
    lengths = guesses(chart)
    walked_pairs = set(zip(chart.start.tolist(), chart.end.tolist(), strict=True))
    for first, point in enumerate(chart.points):
        for second, other in enumerate(chart.points):
            away = float(np.linalg.norm(point - other))
            guess = first != second and away <= chart.radius and (first, second) not in walked_pairs
            expected = 3 * away / chart.speed * (1 + chart.vain[first]) if guess else None
            assert lengths.get((first, second)) == (pytest.approx(expected, rel=1e-3) if guess else None)
    start, upper = nearest(chart, 0.0, 0.0), nearest(chart, 5.0, 0.15)
    assert upper not in shortest(chart, start)[0]
    assert np.isfinite(Walker(chart, PERIOD).roads.ways(start)[0][upper])
    grown.vain[:] = 4.0
    assert guesses(grown.chart()) == pytest.approx({pair: 5 * steps for pair, steps in lengths.items()}, rel=1e-4)


def test_guessed_edges_are_longer_where_bodies_got_stuck_before_them():
    """Two ways on either side of a thin wall. A body that runs against it from below shows that there is no way up."""
    grown = walked(line((0.0, 0.0), (5.0, 0.0)), line((0.0, 0.7), (0.5, 0.15), (5.0, 0.15)))
    before = guesses(grown.chart())
    stuck = np.concatenate([line((0.0, 0.0), (3.0, 0.0)), np.tile([3.0, 0.0], (3 * PERIOD, 1))]).astype(np.float32)
    targets = np.concatenate([stuck[PERIOD : 3 * PERIOD + 1 : PERIOD], np.tile([3.0, 1.0], (3, 1))]).astype(np.float32)
    for _ in range(3):
        add(grown, stuck, targets)
    chart = grown.chart()
    longer: dict[tuple[bool, bool], list[float]] = {}
    for (first, second), steps in guesses(chart).items():
        place, way = chart.points[first], chart.points[second] - chart.points[first]
        if (first, second) in before and abs(way[1]) > abs(way[0]):
            factor = steps / before[first, second] / (1 + chart.vain[first])
            longer.setdefault((bool(abs(place[0] - 3.0) < 0.3), bool(way[1] > 0)), []).append(factor)
    assert min(longer[True, True]) > 10
    assert longer[True, False] == pytest.approx([1.0] * len(longer[True, False]), rel=0.1), "the way down is free"
    assert longer[False, True] == pytest.approx([1.0] * len(longer[False, True]), rel=0.1), "so is the one elsewhere"


@pytest.mark.parametrize(("speed", "least"), [(0.15, 1.05), (0.2, 1.4), (0.6, 1.4)])
def test_stops_are_as_far_away_as_a_good_segment_leads(speed, least):
    """Up to two units: a body that covers six in a segment would cut corners."""
    grown = walked(*[line((0.0, 0.0), (9.0, 0.0), (9.0, 9.0))] * 2)
    slow = Walker(grown.chart(), PERIOD).see(np.zeros(2))
    fast = Walker(grown.chart()._replace(speed=np.float32(speed)), PERIOD).see(np.zeros(2))
    goal = np.array([9.0, 9.0])
    fast.vain = slow.vain = np.ones_like(slow.vain)  # no longer stops on straight ways
    distances = [float(np.linalg.norm(walker.target(np.zeros(2), goal, None)[0])) for walker in (slow, fast)]
    assert 0.7 <= distances[0] < 1.1
    assert least <= distances[1] < least + 0.4


def test_without_the_map_the_wall_stops_it():
    """The simulated world itself: going straight does not reach the goal."""
    position = np.array([-1.0, 0.0])
    for _ in range(200):
        position = moved(position, np.array([1.0, 0.0]), [WALL])
    assert position[0] < 0


def test_a_walker_that_is_stuck_off_the_map_goes_on_from_the_nearest_landmark():
    """A hand that left its puck behind is still, by its landmark, where both arrived."""
    chart = walked(*[line((0.0, 0.0), (4.0, 0.0))] * 3).chart()
    off, end = np.array([1.0, 2.0]), nearest(chart, 4.0, 0.0)
    walker = Walker(chart, PERIOD).see(np.array([4.0, 0.0]))
    _, walker = walker.target(np.array([4.0, 0.0]), np.array([4.0, 5.0]), None)
    assert walker.see(off).node == end, "as long as it moves it is taken to be near its landmark"
    walker.attempt, walker.cautious = (end, -1, off, np.array([4.0, 5.0])), True
    _, first = walker.see(off).target(off, np.array([4.0, 5.0]), None)
    assert first.node == end, "in its first segment a body has to get going"
    walker.clock = 3 * PERIOD
    _, walker = walker.see(off).target(off, np.array([4.0, 5.0]), None)
    assert walker.node == nearest(chart, *off)


def test_a_body_that_has_left_the_map_does_not_turn_back():
    """It left the map on its way to an unknown goal and is halfway there: its path still begins where it left."""
    chart = walked(*[line((0.0, 0.0), (4.0, 0.0))] * 3).chart()
    goal = np.array([7.0, 0.0])
    walker = Walker(chart, PERIOD).see(np.array([3.6, 0.0]))
    walker.cautious = True  # no straight line: it follows its path
    before, end = walker.node, nearest(chart, 4.0, 0.0)
    assert before != end
    for off, beside in ((np.array([5.5, 0.3]), True), (np.array([5.5, 2.0]), False)):
        body = walker.see(off)
        assert body.node == before
        hop, target = body._stop(off, goal, end, body.roads.ways(before)[1])
        assert (hop == -1) == beside, "far to the side it goes back to its path"
        assert (target[0] > off[0]) == beside


def test_a_body_off_the_map_goes_on_from_the_nearest_landmark_if_that_is_shorter():
    """It left a long way at its start and comes across it again, much farther on; a wall in between is not known."""
    long = line((0.0, 0.0), (0.0, 6.0), (2.0, 6.0), (2.0, 0.0))
    chart = walked(*[long] * 3).chart()
    goal, off = np.array([2.0, 0.0]), np.array([1.75, 0.0])
    begun = Walker(chart, PERIOD).see(np.array([0.0, 0.0]))
    _, walker = begun.target(np.array([0.0, 0.0]), goal, None)
    walker = walker.see(off)
    assert walker.node == begun.node, "the landmarks there are not joined to its own"
    target, walker = walker.target(off, goal, None)
    assert walker.node == nearest(chart, *off)
    np.testing.assert_allclose(target, goal, atol=0.2)
    back = np.array([0.0, -0.2])
    assert begun.see(back).target(back, goal, None)[1].node == begun.node, "within the radius of its own"
    stuck = begun.see(off)
    stuck.vain = np.full_like(stuck.vain, 1_000.0)
    assert stuck.target(off, goal, None)[1].node == begun.node, "where segments got stuck, guesses are long"


def test_stops_of_a_fast_body_do_not_cut_corners():
    """Its stops are 1.4 units away, but the end of the wall is nearer."""
    way = line((-0.4, 0.0), (-0.4, 3.3), (0.4, 3.3), (0.4, 0.0))
    chart = walked(way, way, way).chart()._replace(speed=np.float32(0.3))
    start, goal = np.float32([-0.4, 2.0]), np.float32([0.4, 0.0])
    walker = Walker(chart, PERIOD)
    assert walker.scale == 2.0
    walker.cautious = True
    target, _ = walker.see(start).target(start, goal, None)
    assert not crosses(start, target, WALL)
    assert np.linalg.norm(target - start) > 0.5


def test_a_walker_that_is_stuck_takes_another_way():
    """The straight way has been walked often, in both directions; now it is shut."""
    straight = line((-1.0, 0.0), (1.0, 0.0))
    chart = walked(*[straight, straight[::-1]] * 3, *[WIDE] * 2).chart()
    open_world = walk(chart, (-1.0, 0.0), (1.0, 0.0))
    assert open_world[:, 1].max() < 0.3
    shut = walk(chart, (-1.0, 0.0), (1.0, 0.0), [WALL], segments=60)
    assert shut[:30, 0].max() > -0.2, "it tries the straight way first"
    assert shut[:, 1].max() > 3.0
    assert np.linalg.norm(shut[-1] - [1.0, 0.0]) < 0.2


def test_stuck_segments_count_for_landmarks_nearby():
    points = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    counts = np.arange(30.0)
    for point, sum_of_counts in zip(points, Nearness(points).with_nearby(counts), strict=True):
        shares = [np.exp(-float(np.sum((other - point) ** 2))) for other in points]
        assert sum_of_counts == pytest.approx(sum(share * count for share, count in zip(shares, counts, strict=True)))


def test_a_walker_that_is_stuck_on_its_way_to_an_unknown_goal_tries_far_from_there():
    """The goal lies behind a wall along which landmarks are close together; segments got stuck at four of them."""
    there = line((0.0, 0.0), (0.0, 6.0))
    grown = walked(*[there, there[::-1]] * 3)
    assert path_to_unknown(grown, (3.0, 0.0))[1] < 1.0
    for place in (0.0, 0.3, 0.6, 0.9):
        against = np.full((PERIOD * 4 + 1, 2), (0.0, place), np.float32)
        add(grown, against, np.full((4, 2), (3.0, 0.0), np.float32))
    assert path_to_unknown(grown, (3.0, 0.0))[1] > 2.0


def path_to_unknown(grown: WalkedMap, goal: tuple[float, ...]) -> np.ndarray:
    """Return the landmark from which a walker that starts at the origin goes straight to a goal."""
    chart = grown.chart()
    lengths, _ = shortest(chart, nearest(chart, 0.0, 0.0))
    way = np.array([lengths.get(place, np.inf) for place in range(len(chart.points))])
    last, known = last_landmark(chart, chart.vain, way, np.asarray(goal, np.float32))
    assert not known
    return chart.points[last]


def test_progress_is_how_much_closer_the_latest_segments_led():
    grown = WalkedMap(400, 2, PERIOD)
    assert grown.progress == 0.0
    trajectory = line((0.0, 0.0), (4.0, 0.0))
    add(grown, trajectory)
    assert grown.progress == pytest.approx(1.0, abs=1e-5)
    add(grown, trajectory, np.tile([0.0, 3.0], (4, 1)))
    away = np.hypot(np.arange(5.0), 3.0)
    assert grown.progress == pytest.approx((4 + np.sum(away[:-1] - away[1:])) / 8, abs=1e-5)
    for _ in range(60):
        add(grown, trajectory)
    assert grown.progress == pytest.approx(1.0, abs=1e-5)


def test_a_walker_leaves_the_map_towards_an_unknown_goal():
    """From the landmark that is best placed, not straight from the start: there is a wall."""
    chart = walked(*[line((-1.0, 0.0), (-1.0, 4.0), (0.5, 4.0))] * 3).chart()
    trajectory = walk(chart, (-1.0, 0.0), (4.0, 4.0), [(0.0, -9.0, 3.5)])
    assert np.linalg.norm(trajectory[-1] - [4.0, 4.0]) < 0.2
    assert len(trajectory) < 1.3 * 10 * (4 + 5)


def contents(walker: Walker) -> dict[str, Any]:
    """Return what a walker knows, without what it only keeps so as not to compute it again."""
    tables = {"roads": walker.roads.edges, "walked": walker.walked}
    tables = {name: (table.data, table.indices, table.indptr) for name, table in tables.items()}
    return vars(walker) | tables | {"nearness": None}


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_a_walker_is_never_changed(seed):
    """Also not by being stuck, by going to a frontier, or by roaming."""
    walker = Walker(walked(WIDE).chart(), PERIOD)
    rng = None if seed is None else exploring(seed)
    position, desired, kinds = np.array([-1.0, 0.0]), np.array([9.0, 9.0]), set()
    for step in range(60):
        before = copy.deepcopy(contents(walker))
        seen = walker.see(position)
        target, led = seen.target(position, desired, copy.deepcopy(rng))
        again, _ = seen.target(position, desired, copy.deepcopy(rng))
        np.testing.assert_array_equal(target, again)
        after = contents(walker)
        for name, value in before.items():
            np.testing.assert_equal(after[name], value, err_msg=name)
        kinds |= {"stuck"} if led.vain.sum() > seen.vain.sum() else set()
        kinds |= {"roams"} if led.roaming else set()
        kinds |= {"frontier"} if led.frontier >= 0 else set()
        if rng is not None:
            rng.random()
        for _ in range(0 if step % 7 == 6 else PERIOD):
            position = moved(position, target, [WALL])
        walker = led
    assert "stuck" in kinds
    assert seed is not None or kinds == {"stuck"}


def led(walker: Walker, start: np.ndarray, goal: np.ndarray) -> tuple[list[np.ndarray], Walker]:
    """Return the targets of an episode that often gets stuck, and the walker in the end."""
    position, targets, rng = start, [], np.random.default_rng(0)
    for step in range(80):
        walker = walker.see(position)
        if walker.is_due(position):
            target, walker = walker.target(position, goal, None)
            targets.append(target)
        position = position if step % 40 > 20 else moved(position, targets[-1] + rng.normal(0.0, 0.2, 2), [WALL])
    return targets, walker


def test_episodes_that_begin_with_the_same_walker_go_as_if_each_had_its_own():
    """Also for an episode after one that refused edges: the shortest ways that walkers share are not changed."""
    chart = walked(WIDE, WIDE[::-1]).chart()
    first = Walker(chart, PERIOD)
    refused = 0
    for start in chart.points[::5]:
        for goal in (chart.points[-1], np.float32([9.0, 9.0])):
            (shared, last), (own, _) = led(first, start, goal), led(Walker(chart, PERIOD), start, goal)
            np.testing.assert_array_equal(np.stack(shared), np.stack(own))
            refused += last.roads is not first.roads
            way, before = last.roads.ways(last.node)
            found = dijkstra(last.roads.edges, indices=last.node, return_predecessors=True)
            np.testing.assert_array_equal(way, found[0])
            np.testing.assert_array_equal(before, found[1])
    assert refused > 5


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 20])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_distances_have_the_bits_of_a_plain_sum(size, kind):
    """They decide which landmark is nearest, so rounding must not depend on how they are computed."""
    rng = np.random.default_rng(size)
    for count in (0, 1, 7, 300):
        points, point = rng.normal(size=(count, size)).astype(np.float32), rng.normal(size=size).astype(kind)
        found, plain = _distances(points, point), np.sqrt(np.square(points - point).sum(axis=1))
        assert found.dtype == plain.dtype
        np.testing.assert_array_equal(found, plain)


def test_a_walker_that_gets_nowhere_is_shaken_loose_and_repeats_it():
    """Its body stays at the start of a straight way; the way on is the same each time until it loses patience."""
    chart = walked(line((0, 0), (6, 0)), line((0, 0), (6, 0))).chart()
    here, goal = np.zeros(2), np.array([6.0, 0.0])

    def targets() -> np.ndarray:
        walker, found = Walker(chart, PERIOD).see(here), []
        for _ in range(8):
            target, walker = walker.target(here, goal, None)
            found.append(target)
        return np.stack(found)

    found = targets()
    assert np.ptp(found[:4, 1]) == pytest.approx(0, abs=1e-6), "along the way at first"
    assert (np.abs(np.diff(found[4:, 1])) > 0.01).all(), "then to either side of it"
    np.testing.assert_array_equal(found, targets())


def test_only_a_walker_with_a_generator_explores():
    chart = walked(WIDE, WIDE).chart()
    for goal in ((1.0, 0.0), (9.0, 9.0)):
        first, second = (walk(chart, (-1.0, 0.0), goal, [WALL]) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        noisy = [walk(chart, (-1.0, 0.0), goal, [WALL], rng=exploring(seed)) for seed in (0, 0, 1)]
        np.testing.assert_array_equal(noisy[0], noisy[1])
        assert not np.array_equal(noisy[0], noisy[2])
        assert not np.array_equal(noisy[0][: len(first)], first[: len(noisy[0])])


def test_exploring_episodes_see_more_than_the_map():
    """Without walls: some roam away from the known way."""
    chart = walked(WIDE, WIDE).chart()
    visited = [walk(chart, (-1.0, 0.0), (9.0, 9.0), rng=exploring(seed), segments=30) for seed in range(6)]
    beyond = [np.linalg.norm(one[:, None] - chart.points[None], axis=-1).min(axis=1).max() for one in visited]
    assert max(beyond) > 2.0


def test_a_map_without_landmarks_has_an_empty_chart():
    chart = WalkedMap(10, 3, PERIOD).chart()
    assert chart.points.shape == (0, 3)
    assert len(chart.start) == len(chart.end) == len(chart.steps) == len(chart.visits) == 0
    assert chart.speed > 0


# --- Goals that were reached ------------------------------------------------------------------------------------------

# A long way from above a wall to below it, and a goal in the wall, to which the start of the way is closer.
DETOUR = line((0.0, 2.2), (6.0, 2.2), (6.0, 0.0), (0.0, 0.0))
IN_WALL = np.array([0.0, 1.2], np.float32)


def around(*, reached: bool, places: int = 400, times: int = 1) -> WalkedMap:
    """Return a map of the way, at whose end the goal was reached or not."""
    grown, targets = WalkedMap(places, 2, PERIOD), DETOUR[PERIOD::PERIOD]
    for _ in range(times):
        goal = (len(DETOUR) - 1, IN_WALL) if reached else None
        grown.add_episode(DETOUR, targets, np.arange(len(targets) + 1) * PERIOD, goal)
    return grown


def found_from_start(chart: Chart, goal: np.ndarray, find: Any = last_or_source) -> tuple[np.ndarray, bool]:
    """Return the landmark from which to go straight to a goal, for a body at the start, and whether it is known."""
    lengths, _ = shortest(chart, nearest(chart, 0.0, 2.2))
    way = np.array([lengths.get(node, np.inf) for node in range(len(chart.points))])
    last, known = find(chart, chart.vain, way, goal)
    return chart.points[last], known


def test_a_goal_off_the_map_is_known_where_it_was_reached():
    point, known = found_from_start(around(reached=False).chart(), IN_WALL)
    assert not known
    assert point[1] > 2.0
    chart = around(reached=True).chart()
    point, known = found_from_start(chart, IN_WALL)
    assert known
    assert np.linalg.norm(point) < 0.3


def test_a_goal_is_not_known_because_one_far_from_it_was_reached():
    chart = around(reached=True).chart()
    assert not found_from_start(chart, IN_WALL + 1.1 * chart.radius)[1]


def test_only_tests_go_to_where_a_goal_was_reached(monkeypatch):
    walker = Walker(around(reached=True).chart(), PERIOD).see(DETOUR[0])
    walker.cautious = True  # no straight line is tried any more
    target, _ = walker.target(DETOUR[0], IN_WALL, None)
    assert target[0] > 0.5  # along the way, and not down into the wall
    monkeypatch.setattr("higl.algo.walked.last_or_source", None)  # an exploring episode would fail if it called it
    walker.target(DETOUR[0], IN_WALL, exploring(0))


def test_landmarks_of_reached_goals_follow_merging():
    grown = around(reached=True, places=24, times=3)
    assert grown.radius > 0.3  # it was full
    assert grown.present[grown.sources].all()
    chart = grown.chart()
    assert np.linalg.norm(chart.points[chart.sources], axis=1).max() <= 1.5 * chart.radius


def test_goals_about_several_things_are_explored_by_the_old_rules():
    """More than three coordinates: stuck bodies do not count against guesses, frontiers are always near the goal."""
    ways = [line((0.0, 0.0), (5.0, 0.0)), line((0.0, 0.7), (0.5, 0.15), (5.0, 0.15))]
    stuck = np.concatenate([line((0.0, 0.0), (3.0, 0.0)), np.tile([3.0, 0.0], (3 * PERIOD, 1))]).astype(np.float32)
    targets = np.concatenate([stuck[PERIOD : 3 * PERIOD + 1 : PERIOD], np.tile([3.0, 1.0], (3, 1))]).astype(np.float32)
    blocked, far = {}, {}
    for more in (0, 2):
        wide = [np.pad(each, ((0, 0), (0, more))) for each in (*ways, stuck, targets)]
        grown = walked(*wide[:2])
        for _ in range(3):
            add(grown, *wide[2:])
        guessed = grown.chart().guesses
        present = np.flatnonzero(grown.present)[guessed]
        blocked[more] = float(grown.stuck[present[:, 0], present[:, 1]].sum())
        walker, rng = Walker(grown.chart(), PERIOD).see(wide[0][0]), np.random.default_rng(0)
        way, _ = walker.roads.ways(walker.node)
        goal = np.pad([-1.0, 0.0], (0, more))
        chosen = [walker.chart.points[walker._frontier(goal, way, rng), 0] for _ in range(200)]
        far[more] = float(np.mean(np.array(chosen) > 3.0))
    assert blocked[0] > 0.0 == blocked[2]
    assert far[0] > 2 * far[2]
