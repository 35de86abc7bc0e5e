"""The walked map: landmarks joined by edges that somebody has walked (`landmarks.graph = "walked"`; not in the paper).

Values of the low level know no walls, so a graph whose edges are values leads through them. Here an edge i -> j exists
because a trajectory went from landmark i to landmark j. It respects walls, one-way passages and prerequisites (a key
before a door), and needs no cut-off. The length of an edge is the time that a good segment needs for it: less where
bodies were faster than on the median edge, more where they were slower, where few walked it, or where they got stuck
before it.

    WalkedMap   grows with every episode of a run
    Chart       what acting reads of it: small, and stored with a policy
    Walker      leads one episode along a chart: the high level of such a run, in place of a network

A trajectory belongs to a landmark until another is clearly nearer: a joined one within the radius, or any within a
third of the radius. Where it leaves the radius and meets none, it makes a new one. So points on either side of a wall
that is thicker than a third of the radius rarely share a landmark; thinner walls show where bodies get stuck. When all
places are taken, the radius grows and landmarks that are joined by short edges are merged, as are landmarks without
any edge that are as close. In this way the map covers whatever has been visited with the same number of landmarks.

Trajectories that pass side by side leave chains of landmarks that nobody crossed between. So the map guesses edges
between landmarks within the radius of each other. They are longer than walked ones, and like those the more so where
segments got stuck before them.

All lengths are in units of the goal space (`goal_unit`). Imports no JAX, so that a policy acts without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from higl.algo.frontier import STRAIGHT, familiarity, pseudo_goal, roaming_step
from higl.algo.plans import Plan, choose_plan, no_tries, with_try

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Factor on the radius when the map is full, and the share of places that merging must leave free.
_GROWTH, _ROOM = 1.25, 0.2
# Joined landmarks closer than this share of the radius are merged.
_CLOSE = 0.7
# The first radius, in multiples of the length of a good segment, or of a unit if that is shorter.
_FIRST_RADIUS = 0.3
# Segments from which the speed is estimated, the quantile of their lengths that counts as a good one, and the segments
# that show whether the body goes where it is asked to.
_RECENT, _GOOD, _LATEST = 2_000, 0.9, 200
# Points over which the position of a landmark is averaged: centres lie away from walls.
_CENTRE = 50.0
# A body belongs to a joined landmark once that one is nearer by this factor than its own.
_NEARER = 0.8
# A body meets a landmark to which no edge leads within this share of the radius.
_REUNION = 0.35
# Factor on the length of an edge that is guessed, not walked.
_GUESS = 3.0
# A segment is stuck if it got closer to its target by less than this share of its way (at most of a good segment, or of
# a unit if that is shorter); ways shorter than the second share of those are not judged.
_STUCK, _SHORT = 0.2, 0.3
# Edges are before a stuck body, within one radius of it, if their middles are within so many radii of its line and the
# cosine of the angle is larger.
_BEFORE, _ALIGNED = 1.0, 0.5
# Stops are at least so far away, in units, or in lengths of a good segment if that is longer than a unit: a body that
# is only asked for what it reaches already does not get faster. It counts as two units at the most: with stops far
# along the path a body cuts corners, or passes a key.
_AHEAD, _FAR = 0.7, 2.0
# A segment ends early, but not within so many steps, when the body is this close to its stop (measured alike).
_SOON, _THERE = 2, 0.25
# It ends the earlier, up to this factor, if this share of the time left is not enough for the way left: then the body
# does not slow down at its stops.
_HURRY, _IN_TIME = 2.0, 2 / 3
# Stops may be this many times as far where the path is straight, that is, within so many units of a line, and no more
# than so many segments got stuck along it of late. So may pieces of the straight rest to a goal.
_LEAP, _BEND, _SMOOTH = 3.0, 0.2, 0.5
# Stops are nearer if the path leaves the line to them by more than this, in units.
_CORNER = 0.5
# Share of what is remembered of stuck segments at the next one, and how much longer an edge is that was blocked as
# often as it was free (two more count as free): the factor grows with the square of those odds.
_MEMORY, _STUCK_FACTOR = 0.98, 10.0
# Share of the difference by which a faster and a slower crossing change the pace of an edge, and the largest factor by
# which an edge may take more or less time than one with the median pace.
_FASTER, _SLOWER, _UNEVEN = 0.3, 0.1, 3.0
# Factor on the straight rest of the way to a goal that was never reached, and stuck segments that double the rest.
_DETOUR, _DOUBT = 3.0, 3.0
# Landmarks so many units from a line count as on it.
_ASIDE = 0.7
# Within an episode a stuck segment counts this often, and multiplies the edge that it could not walk.
_IMPATIENCE, _REFUSAL = 5.0, 2.0
# After this many segments without getting closer to the goal, stops are noisy in tests too.
_PATIENCE = 4
# Exploration: noise on stops in multiples of their least distance, segments of roaming, the share of directions that
# are the goal's, the share of frontiers that are chosen without regard to the goal, the familiarity that doubles the
# rest of the way, the spread in choosing a frontier.
_NOISE, _ROAMING, _GOALWARD, _GOALLESS, _FAMILIAR, _SPREAD = 0.4, 12, 0.3, 0.5, 10.0, 0.7
# Goals that were reached: the latest so many are remembered.
_GOALS = 1_000
# A goal with more coordinates than space has is about several things, and a map has too few landmarks for it: its rim
# is everywhere, and exploring it kept the Pusher from learning (docs/notes.md).
_SPACE = 3
# Up to so many dimensions, distances are summed dimension by dimension.
_FEW = 4
# The landmarks to which an edge leads from no landmark.
_NONE = np.zeros(0, np.int32)


class Chart(NamedTuple):
    """What acting reads of a map: landmarks [N, G], segments spent there [N], and those that were stuck there [N].

    The walked edges: `start` [E], `end` [E], `steps` [E] (time of a good segment), and the guessed ones: `guesses`
    [K, 2], `guess_steps` [K]. `speed` []: distance per step of a good segment. `radius` []: the radius of a landmark.
    `horizon` []: steps of the longest episode. `goals` [K, G]: goals that were reached, and `sources` [K]: the
    landmarks at which they were. `tries` [L, 2 G + 2]: episodes that acted as tests do (`plans.py`).
    """

    points: np.ndarray
    visits: np.ndarray
    vain: np.ndarray
    start: np.ndarray
    end: np.ndarray
    steps: np.ndarray
    guesses: np.ndarray
    guess_steps: np.ndarray
    speed: np.ndarray
    radius: np.ndarray
    horizon: np.ndarray
    goals: np.ndarray
    sources: np.ndarray
    tries: np.ndarray


class WalkedMap:
    """The landmarks and the walked edges of a run; grows with every episode."""

    def __init__(self, places: int, goal_size: int, period: int):
        self.period = period
        self.points = np.zeros((places, goal_size), np.float32)
        self.present = np.zeros(places, bool)
        self.visits = np.zeros(places, np.float32)
        self.vain = np.zeros(places, np.float32)
        self.crossings = np.zeros((places, places), np.float32)
        self.attempts = np.zeros((places, places), np.float32)
        self.stuck = np.zeros((places, places), np.float32)
        self.paces = np.zeros((places, places), np.float32)
        self.moves = np.zeros(0, np.float32)
        self.gains = np.zeros(0, np.float32)
        self.radius = np.zeros((), np.float32)
        self.horizon = np.zeros((), np.float32)
        self.goals = np.zeros((0, goal_size), np.float32)
        self.sources = np.zeros(0, np.int32)
        self.tries = no_tries(goal_size)

    def __len__(self) -> int:
        return int(self.present.sum())

    @property
    def speed(self) -> float:
        """Return the distance that a good segment covers in one step."""
        return max(float(np.quantile(self.moves, _GOOD)), 1e-6) if len(self.moves) else 1e-6

    @property
    def progress(self) -> float:
        """Return how much closer to its target a segment leads of late, on average."""
        return float(self.gains.mean()) if len(self.gains) else 0.0

    def chart(self) -> Chart:
        """Return what acting reads: the landmarks that are present, renumbered, and the edges between them."""
        number = np.cumsum(self.present) - 1
        start, end = _pairs(self.crossings > 0)
        steps = self._steps(start, end) * self._slowness(start, end) * (1 + 1 / self.crossings[start, end])
        first, second = _pairs(self._side_by_side() & (self.crossings == 0))
        guessed = _GUESS * self._steps(first, second) * (1 + self.vain[first])
        return Chart(
            self.points[self.present],
            self.visits[self.present],
            self.vain[self.present],
            number[start].astype(np.int32),
            number[end].astype(np.int32),
            np.maximum(steps, 1e-3).astype(np.float32),
            np.stack([number[first], number[second]], axis=1).astype(np.int32),
            np.maximum(guessed, 1e-3).astype(np.float32),
            np.asarray(self.speed, np.float32),
            self.radius.copy(),
            self.horizon.copy(),
            self.goals,
            number[self.sources].astype(np.int32),
            self.tries,
        )

    def _steps(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return the time of good segments along edges [E], longer where bodies got stuck before them: [E]."""
        away = np.linalg.norm(self.points[start] - self.points[end], axis=1)
        stuck = self.stuck[start, end]
        odds = stuck / (self.attempts[start, end] - stuck + 2)
        return away / self.speed * (1 + _STUCK_FACTOR * np.square(odds))

    def _side_by_side(self) -> np.ndarray:
        """Return which landmarks lie within the radius of each other [N, N]."""
        near = _squared_distances(self.points) <= np.square(self.radius)
        near &= self.present & self.present[:, None]
        np.fill_diagonal(near, False)
        return near

    # --- Growing ---

    def add_episode(
        self,
        achieved: np.ndarray,
        targets: np.ndarray,
        ends: np.ndarray,
        reached: tuple[int, np.ndarray] | None = None,
    ) -> None:
        """Add a trajectory [T + 1, G], the points that its segments were asked for [S, G], and their ends [S + 1].

        A segment leads from one of the ends to the next; they are places in the trajectory. `reached` is where in the
        trajectory a goal [G] was first reached, and that goal.
        """
        lengths = np.linalg.norm(np.diff(achieved[ends], axis=0), axis=1) / np.maximum(np.diff(ends), 1)
        self.moves = np.concatenate([self.moves, lengths.astype(np.float32)])[-_RECENT:]
        before, after = (np.linalg.norm(targets - achieved[places], axis=1) for places in (ends[:-1], ends[1:]))
        self.gains = np.concatenate([self.gains, (before - after).astype(np.float32)])[-_LATEST:]
        if self.radius == 0.0:
            self.radius = np.asarray(_FIRST_RADIUS * min(self.speed * self.period, 1.0), np.float32)
        self.horizon = np.maximum(self.horizon, np.float32(len(achieved) - 1))
        nodes = self._track(achieved)
        self._pace(nodes, achieved)
        self._judge(nodes, achieved, targets, ends)
        if reached is not None:
            place, goal = reached
            self.goals = np.concatenate([self.goals, goal[None]])[-_GOALS:].astype(np.float32)
            self.sources = np.append(self.sources, nodes[place])[-_GOALS:].astype(np.int32)

    def _track(self, achieved: np.ndarray) -> np.ndarray:
        """Find or make the landmark of each point of a trajectory [T + 1, G]: [T + 1]. Count edges and visits."""
        nodes, node = np.empty(len(achieved), np.int64), -1
        for place, point in enumerate(achieved):
            entered = self._follow(node, point)
            if entered < 0 and self.present.all():
                moved = self._make_room()
                nodes[:place] = moved[nodes[:place]]
                node = int(moved[node]) if node >= 0 else -1
                entered = self._follow(node, point)
            if entered < 0:
                entered = int(np.argmin(self.present))
                self.points[entered], self.present[entered] = point, True
            if entered != node and node >= 0:
                self.crossings[node, entered] += 1
            self.visits[entered] += 1 / self.period
            self.points[entered] += (point - self.points[entered]) / _CENTRE
            nodes[place] = node = entered
        return nodes

    def _follow(self, node: int, point: np.ndarray) -> int:
        distance = np.where(self.present, _distances(self.points, point), np.inf)
        return follow(node, distance, np.flatnonzero(self.crossings[node]), float(self.radius))

    def _pace(self, nodes: np.ndarray, achieved: np.ndarray) -> None:
        """Note how fast the body was, in distance per step, where it crossed edges: nodes [T + 1], achieved [T + 1, G].

        Faster crossings count more: the body was on its way then.
        """
        half = max(self.period // 2, 1)
        for place in np.flatnonzero(nodes[1:] != nodes[:-1]):
            edge = nodes[place], nodes[place + 1]
            first, last = max(place - half, 0), min(place + half, len(achieved) - 1)
            more = float(np.linalg.norm(achieved[last] - achieved[first])) / (last - first) - self.paces[edge]
            share = 1.0 if self.paces[edge] == 0.0 else _FASTER if more > 0.0 else _SLOWER
            self.paces[edge] += share * more

    def _slowness(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return how much slower bodies were on edges [E] than on the median one: a factor on their time [E]."""
        paces = self.paces[start, end]
        typical = np.median(paces) if len(paces) else 1.0
        return np.clip(typical / np.maximum(paces, 1e-6), 1 / _UNEVEN, _UNEVEN)

    def _judge(self, nodes: np.ndarray, achieved: np.ndarray, targets: np.ndarray, ends: np.ndarray) -> None:
        """Note which segments were stuck: nodes [T + 1], achieved [T + 1, G], where segments were to lead [S, G], ends.

        A stuck segment counts for its landmark, and against the edges that lie before the body; whatever edge the body
        crossed counts as free. In an episode each edge counts once, as stuck if it ever was: a body that has fallen
        over gets stuck many times at one place, and one at a thin wall may seem to be behind it. The first segment does
        not count: many bodies have to get going first.
        """
        reach = min(self.speed * self.period, 1.0)
        crossed = np.zeros(self.crossings.shape, bool)
        crossed[nodes[:-1], nodes[1:]] = True
        joined = self.crossings > 0
        edges = Edges(*_pairs(joined if self.points.shape[1] > _SPACE else joined | self._side_by_side()))
        blocked, free = np.zeros(len(edges.start), bool), crossed[edges.start, edges.end]
        for start, end, target in zip(ends[1:-1], ends[2:], targets[1:], strict=True):
            stuck = is_stuck(achieved[start], achieved[end], target, reach)
            self.vain[nodes[start]] = _MEMORY * self.vain[nodes[start]] + stuck
            if stuck:
                blocked |= edges.before(self.points, achieved[end], target, float(self.radius))
        tried = blocked | free
        start, end = edges.start[tried], edges.end[tried]
        self.attempts[start, end] = _MEMORY * self.attempts[start, end] + 1
        self.stuck[start, end] = _MEMORY * self.stuck[start, end] + blocked[tried]

    def add_try(self, start: np.ndarray, goal: np.ndarray, plan: Plan, reached: bool) -> None:
        """Note whether an episode from `start` [G] reached its goal [G], if it acted as in a test."""
        self.tries = with_try(self.tries, start, goal, plan, reached)

    # --- Merging ---

    def _make_room(self) -> np.ndarray:
        """Let the radius grow and merge landmarks until enough places are free; return where each went [N]."""
        moved = np.arange(len(self.present))
        while len(self) > (1 - _ROOM) * len(self.present):
            self.radius = np.asarray(self.radius * _GROWTH, np.float32)
            moved = self._merge()[moved]
        self.sources = moved[self.sources].astype(np.int32)
        return moved

    def _merge(self) -> np.ndarray:
        """Merge pairs of landmarks that are close, and joined or both without edges; return where each went [N]."""
        moved = np.arange(len(self.present))
        joined = (self.crossings + self.crossings.T) > 0
        alone = self.present & ~joined.any(axis=1)
        first, second = np.nonzero(np.triu(joined | np.outer(alone, alone), 1))
        distance = np.linalg.norm(self.points[first] - self.points[second], axis=1)
        merged = np.zeros(len(self.present), bool)
        for pair in np.argsort(distance, kind="stable"):
            kept, gone = int(first[pair]), int(second[pair])
            if distance[pair] > _CLOSE * self.radius:
                break
            if not (merged[kept] or merged[gone]):
                merged[kept] = merged[gone] = True
                moved[gone] = kept
                self._merge_pair(kept, gone)
        return moved

    def _merge_pair(self, kept: int, gone: int) -> None:
        share = self.visits[gone] / max(self.visits[kept] + self.visits[gone], 1e-6)
        self.points[kept] += share * (self.points[gone] - self.points[kept])
        for counts in (self.visits, self.vain):
            counts[kept], counts[gone] = counts[kept] + counts[gone], 0
        self.paces[kept] = np.maximum(self.paces[kept], self.paces[gone])
        self.paces[:, kept] = np.maximum(self.paces[:, kept], self.paces[:, gone])
        self.paces[kept, kept], self.paces[gone], self.paces[:, gone] = 0, 0, 0
        for table in (self.crossings, self.attempts, self.stuck):
            table[kept] += table[gone]
            table[:, kept] += table[:, gone]
            table[kept, kept], table[gone], table[:, gone] = 0, 0, 0
        self.present[gone] = False

    # --- Saving ---

    _SAVED = (
        "points", "present", "visits", "vain", "crossings", "attempts", "stuck", "paces", "moves", "gains", "radius",
        "horizon", "goals", "sources", "tries",
    )  # fmt: skip

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the contents of the map, for saving."""
        return {name: np.asarray(getattr(self, name)) for name in self._SAVED}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the contents that `arrays` returned."""
        for name in self._SAVED:
            setattr(self, name, arrays[name].copy())


def follow(node: int, distance: np.ndarray, joined: np.ndarray, radius: float) -> int:
    """Return the landmark of a point whose predecessor belongs to `node` (-1: none); -1 if no landmark holds it.

    Args:
        node: The landmark so far.
        distance: From the point to each landmark [N].
        joined: The landmarks to which an edge leads from `node`, in ascending order.
        radius: Radius of a landmark.
    """
    nearest = int(np.argmin(distance))
    if node < 0:
        return nearest if distance[nearest] <= radius else -1
    if distance[nearest] <= min(_REUNION * radius, _NEARER * distance[node]):
        return nearest
    if len(joined):
        near = joined[np.argmin(distance[joined])]
        if distance[near] <= min(radius, _NEARER * distance[node]):
            return int(near)
    return node if distance[node] <= radius else -1


def is_stuck(start: np.ndarray, end: np.ndarray, target: np.ndarray, reach: float) -> bool:
    """Return whether a segment got too little closer to its target, given what a good one reaches.

    How far it moved does not matter: an ant that runs against a wall moves, too.
    """
    way = np.linalg.norm(target - start)
    return bool(way > _SHORT * reach and way - np.linalg.norm(target - end) < _STUCK * min(way, reach))


class Edges(NamedTuple):
    """Edges of a map, by the landmarks in which they start [E] and end [E]."""

    start: np.ndarray
    end: np.ndarray

    def before(self, points: np.ndarray, body: np.ndarray, target: np.ndarray, radius: float) -> np.ndarray:
        """Return which edges lie right before a body [G] on its way to a target [G], and lead the same way: [E].

        If the body is stuck, something blocks them. The landmarks are at `points` [N, G].
        """
        way, offset = points[self.end] - points[self.start], target - body
        left = max(float(np.linalg.norm(offset)), 1e-6)
        ahead = offset / left
        same = way @ ahead > _ALIGNED * np.linalg.norm(way, axis=1)
        middle = (points[self.start] + points[self.end]) / 2
        near = _distances_to_line(middle, body, body + min(left, radius) * ahead) < _BEFORE * radius
        return same & near


def last_landmark(
    chart: Chart, vain: np.ndarray, way: np.ndarray, desired: np.ndarray, nearness: Nearness | None = None
) -> tuple[int, bool]:
    """Return the landmark from which to go straight to a goal [G], and whether the goal is known.

    `way` [N] holds the lengths of the ways to all landmarks. A goal is known if a landmark that can be reached lies
    within the radius; the one with the least sum of way and rest is chosen. A goal that is not known is approached from
    wherever that sum is least, with the straight rest counting more. The rest also counts the more, the more segments
    were stuck at the landmark (`vain` [N]), for an unknown goal also at those nearby: along a wall there are many.
    `nearness` is the one of the chart, if there is one already.
    """
    away = _distances(chart.points, desired)
    within = (away <= chart.radius) & np.isfinite(way)
    if within.any():
        rest = away / chart.speed * (1.0 + vain / _DOUBT)
        return int(np.argmin(np.where(within, way + rest, np.inf))), True
    nearness = nearness or Nearness(chart.points)
    rest = away / chart.speed * (1.0 + nearness.with_nearby(vain) / _DOUBT)
    return int(np.argmin(way + _DETOUR * rest)), False


def last_or_source(
    chart: Chart, vain: np.ndarray, way: np.ndarray, desired: np.ndarray, nearness: Nearness | None = None
) -> tuple[int, bool]:
    """Return what `last_landmark` does, but for a goal [G] that was reached before, where it was: of several the best.

    Such a goal may have no landmark within the radius: it lies in a wall, or episodes end before they get closer.
    """
    last, known = last_landmark(chart, vain, way, desired, nearness)
    sources = np.unique(chart.sources[_distances(chart.goals, desired) <= chart.radius])
    if known or not np.isfinite(way[sources]).any():
        return last, known
    rest = _distances(chart.points[sources], desired) / chart.speed
    return int(sources[np.argmin(way[sources] + rest)]), True


FindLast = Callable[["Chart", np.ndarray, np.ndarray, np.ndarray, "Nearness | None"], tuple[int, bool]]
"""`last_landmark` or `last_or_source`."""


class Route(NamedTuple):
    """How to go to a goal: along the map to the landmark `last`, then straight.

    `way` [N] and `before` [N] are what `Roads.ways` returns. `known`: whether the goal is. `price`: steps to the goal.
    """

    way: np.ndarray
    before: np.ndarray
    last: int
    known: bool
    price: float


class Nearness:
    """How near the landmarks of a chart [N, G] are to each other; computed when it is first needed."""

    def __init__(self, points: np.ndarray):
        self._points = points

    @cached_property
    def _shares(self) -> np.ndarray:
        squares = _squared_distances(self._points)
        return np.exp(np.negative(squares, out=squares), out=squares)

    def with_nearby(self, counts: np.ndarray) -> np.ndarray:
        """Return the counts of landmarks [N] plus those of others within about a unit, the farther the less: [N]."""
        return self._shares @ counts


class Roads:
    """The edges by which walkers go [N, N], and the shortest ways along them, each computed once.

    Walkers share them, of all episodes with the same chart. A walker that is stuck gets its own.
    """

    def __init__(self, edges: csr_array):
        self.edges = edges
        self._ways: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def ways(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the lengths of the shortest ways from a landmark [N], and the landmark before each on its way [N]."""
        from scipy.sparse.csgraph import dijkstra

        if node not in self._ways:
            self._ways[node] = dijkstra(self.edges, indices=node, return_predecessors=True)
        return self._ways[node]

    def refusing(self, blocked: np.ndarray) -> Roads:
        """Return roads on which some edges [E] are longer."""
        edges = self.edges.copy()
        edges.data[blocked] *= _REFUSAL
        return Roads(edges)


class Walker:
    """Leads one episode along a chart: to its goal if that is known, otherwise straight on from the best landmark.

    It notices when it is stuck: edges that could not be walked are longer for the rest of the episode. Where the
    record of the straight line is better than that of the map (`plans.py`), it goes straight. An exploring episode with
    an unknown goal, or with a goal that it has reached, goes to a frontier, a landmark where little time was spent, and
    roams from there. Walkers are never changed: each step returns a new one. So the episodes with a chart may all begin
    with the same one.
    """

    def __init__(self, chart: Chart, period: int):
        from scipy.sparse import csr_array

        size = len(chart.points)
        self.chart, self.period = chart, period
        reach = float(chart.speed) * period
        self.judged, self.scale = min(reach, 1.0), min(max(reach, 1.0), _FAR)
        """How far a segment should lead, and the scale of the distance to the next stop."""
        self.walked = csr_array((chart.steps.astype(np.float64), (chart.start, chart.end)), shape=(size, size))
        guessed = csr_array((chart.guess_steps.astype(np.float64), tuple(chart.guesses.T)), shape=(size, size))
        self.roads = Roads(self.walked + guessed)
        self.nearness = Nearness(chart.points)
        self.vain = chart.vain
        self.least, self.idle = np.inf, 0
        """The shortest way to the goal so far, and the segments since then."""
        self.cautious = False
        """Whether a segment was stuck in this episode: then no straight line across the map is tried."""
        self.node = self.frontier = -1
        self.roaming, self.heading = 0, np.zeros(0)
        self.plan: Plan | None = None
        self.attempt: tuple[int, int, np.ndarray, np.ndarray] | None = None
        """Landmark, next landmark on the path (-1: none), start and target of the segment under way."""
        self.steps = 0
        """Steps of that segment so far."""
        self.clock, self.hurry = -1, 1.0
        """Steps of the episode so far, and the factor on the distance at which a stop counts as reached."""

    def _copy(self) -> Self:
        """Return a shallow copy; `copy.copy` takes several times as long."""
        walker = object.__new__(type(self))
        walker.__dict__.update(self.__dict__)
        return walker

    def see(self, achieved: np.ndarray) -> Walker:
        """Follow the body to its landmark; to be called at every step."""
        walker = self._copy()
        walker.steps += 1
        walker.clock += 1
        distance = _distances(self.chart.points, achieved)
        joined = self.walked.indices[_row(self.walked, self.node)] if self.node >= 0 else _NONE
        found = follow(self.node, distance, joined, float(self.chart.radius))
        walker.node = found if found >= 0 else self.node if self.node >= 0 else int(np.argmin(distance))
        return walker

    def is_due(self, achieved: np.ndarray) -> bool:
        """Return whether a segment begins: none is under way, its time is over, or the body is there."""
        if self.attempt is None or self.steps >= self.period:
            return True
        near = _THERE * self.scale * self.hurry
        return self.steps >= _SOON and bool(np.linalg.norm(self.attempt[3] - achieved) < near)

    def target(
        self, achieved: np.ndarray, desired: np.ndarray, rng: np.random.Generator | None
    ) -> tuple[np.ndarray, Walker]:
        """Return where the next segment should lead [G], and the walker then; with a generator it may explore."""
        walker = self._having_noticed(achieved)
        hop, target = walker._choose(achieved, desired, rng)
        walker.attempt, walker.steps = (walker.node, hop, achieved, target), 0
        return target, walker

    def _having_noticed(self, achieved: np.ndarray) -> Walker:
        """Return a walker that knows whether the last segment was stuck; in the first one a body has to get going."""
        walker = self._copy()
        if self.attempt is None or self.clock == self.steps:
            return walker
        if not is_stuck(self.attempt[2], achieved, self.attempt[3], self.judged):
            return walker
        node, hop, _, _ = self.attempt
        if not self.cautious:  # from now on along the map: what was close on a straight line may be far
            walker.cautious, walker.least, walker.idle = True, np.inf, 0
        elif not self._is_near(achieved):  # stuck again, off the map: go on from the nearest landmark
            walker.node = int(np.argmin(_distances(self.chart.points, achieved)))
        walker.vain = self.vain.copy()
        walker.vain[node] += _IMPATIENCE
        walker.roads = self.roads.refusing(self._blocked(node, hop, achieved, self.attempt[3]))
        return walker

    def _blocked(self, node: int, hop: int, achieved: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return which edges could not be walked: from a landmark to the next, and those before the body: [E]."""
        edges = self.roads.edges
        blocked = _edges(edges).before(self.chart.points, achieved, target, float(self.chart.radius))
        ends = _row(edges, node)
        blocked[ends] |= edges.indices[ends] == hop
        return blocked

    def _is_near(self, achieved: np.ndarray) -> bool:
        """Return whether the body is within the radius of its landmark, or no other is clearly nearer."""
        distance = _distances(self.chart.points, achieved)
        return bool(distance[self.node] <= max(float(self.chart.radius), distance.min() / _NEARER))

    def _choose(
        self, achieved: np.ndarray, desired: np.ndarray, rng: np.random.Generator | None
    ) -> tuple[int, np.ndarray]:
        """Return the next landmark on the way (-1: none) and the target of the next segment [G]."""
        if self.plan is None:
            self.plan = choose_plan(self.chart.tries, achieved, desired, rng)
        if self.plan != Plan.EXPLORE:
            rng = None
        find = last_or_source if rng is None else last_landmark  # an exploring episode looks for other ways
        way, before, last, known, _ = self._route(achieved, desired, find)
        if self.plan == Plan.STRAIGHT or (known and not self.cautious and self._in_sight(achieved, desired, way[last])):
            last = self.node
        self._consult_clock(way[last] + np.linalg.norm(desired - self.chart.points[last]) / self.chart.speed)
        if rng is None:
            hop, target = self._stop(achieved, desired, last, before)
            away = float(np.linalg.norm(desired - achieved))
            return hop, target + (self._jitter(way[last] + away / self.chart.speed) if away > _THERE else 0.0)
        self._choose_frontier(achieved, desired, way, known, rng)
        if self.roaming:
            return -1, self._roam(achieved, desired, rng)
        if self.frontier >= 0:
            last, desired = self.frontier, self.chart.points[self.frontier]
        hop, target = self._stop(achieved, desired, last, before)
        return hop, target + rng.normal(0.0, _NOISE * _AHEAD * self.scale, achieved.shape)

    def _route(self, achieved: np.ndarray, desired: np.ndarray, find: FindLast) -> Route:
        """Return how to go on to a goal [G]: from the landmark of the body, or from one that it has come across.

        A body off the map keeps the landmark that it left. If the way from the nearest one is shorter, although going
        there is a guess, it belongs to that one from now on.
        """
        own, away = self._route_from(self.node, desired, find), _distances(self.chart.points, achieved)
        nearest = int(np.argmin(away))
        if not away[nearest] <= self.chart.radius < away[self.node]:
            return own
        other = self._route_from(nearest, desired, find)
        back, across = away[self.node], _GUESS * away[nearest] * (1.0 + self.vain[self.node])
        if back / self.chart.speed + own.price <= across / self.chart.speed + other.price:
            return own
        self.node = nearest
        return other

    def _route_from(self, node: int, desired: np.ndarray, find: FindLast) -> Route:
        way, before = self.roads.ways(node)
        last, known = find(self.chart, self.vain, way, desired, self.nearness)
        rest = float(np.linalg.norm(desired - self.chart.points[last])) / float(self.chart.speed)
        return Route(way, before, last, known, float(way[last]) + (rest if known else _DETOUR * rest))

    def _consult_clock(self, way: float) -> None:
        """Hurry if the steps of a good body for the `way` left would take too much of the time left."""
        left = max(float(self.chart.horizon) - self.clock, 1.0)
        self.hurry = float(np.clip(way / (_IN_TIME * left), 1.0, _HURRY))

    def _in_sight(self, achieved: np.ndarray, desired: np.ndarray, way: float) -> bool:
        """Return whether the straight line to a goal is shorter than a way along the map, and nothing seems in between.

        Of late, no segment was stuck at any landmark close to the line.
        """
        away = float(np.linalg.norm(desired - achieved))
        close = _distances_to_line(self.chart.points, achieved, desired) < _ASIDE
        return away / float(self.chart.speed) < way and not (self.vain[close] > _SMOOTH).any()

    def _stop(self, achieved: np.ndarray, goal: np.ndarray, last: int, before: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the next landmark on the path to `last` (-1: none), and where the next segment should lead [G].

        That is as far along the path as it is straight, and at least as far as `_AHEAD` says. `before` [N] is the
        landmark before each on its shortest path.
        """
        path = []
        while last >= 0 and last != self.node:
            path.append(last)
            last = int(before[last])
        path.reverse()
        rest = goal - achieved
        piece = achieved + rest / max(float(np.linalg.norm(rest)) / (_LEAP * _AHEAD * self.scale), 1.0)
        path = self._ahead(achieved, path, piece)
        points = np.concatenate([self.chart.points[path], piece[None]])
        rough = self.vain[[self.node, *path]] > _SMOOTH
        return path[0] if path else -1, points[self._farthest_straight(achieved, points, rough)]

    def _ahead(self, achieved: np.ndarray, path: list[int], piece: np.ndarray) -> list[int]:
        """Return the part of a path that a body off the map has yet to go; from its end a `piece` [G] leads on.

        Such a body keeps the landmark that it left, so its path begins there: without this, it would turn back.
        """
        if not path or np.linalg.norm(self.chart.points[self.node] - achieved) <= self.chart.radius:
            return path
        points = np.concatenate([self.chart.points[path], piece[None]])
        passed = 0
        while passed < len(path) and _is_beside(achieved, points[passed], points[passed + 1]):
            passed += 1
        return path[passed:]

    def _farthest_straight(self, achieved: np.ndarray, points: np.ndarray, rough: np.ndarray) -> int:
        """Return the last of some points [P, G] to which the way along the ones before is straight and smooth.

        `rough` [P] says where the landmarks before the points got segments stuck.
        """
        away = _distances(points, achieved)
        least = _AHEAD * self.scale
        chosen = next((place for place, far in enumerate(away) if far >= least), len(points) - 1)
        while chosen and _distances_to_line(points[:chosen], achieved, points[chosen]).max() > _CORNER:
            chosen -= 1  # a straight line would cut the corner
        for place in range(chosen + 1, len(points)):
            if away[place] > _LEAP * least or rough[: place + 1].any():
                break
            if _distances_to_line(points[:place], achieved, points[place]).max() > _BEND:
                break
            chosen = place
        return chosen

    def _jitter(self, left: float) -> Any:
        """Return noise for a stop [G] if the way that is `left` has not become shorter for a while, else 0.

        It shakes a body loose that keeps running into a corner. It depends on the walker alone: tests are repeatable.
        """
        self.least, self.idle = (left, 0) if left < self.least - 1e-3 else (self.least, self.idle + 1)
        if self.idle < _PATIENCE:
            return 0.0
        rng = np.random.default_rng([self.idle, self.node])
        return rng.normal(0.0, _NOISE * _AHEAD * self.scale, self.chart.points.shape[1])

    # --- Exploration ---

    def _choose_frontier(
        self, achieved: np.ndarray, desired: np.ndarray, way: np.ndarray, known: bool, rng: np.random.Generator
    ) -> None:
        """Begin to go to a frontier, or to roam once it is reached."""
        arrived = np.linalg.norm(achieved - desired) < 0.5 * self.chart.radius
        if self.roaming == 0 and self.frontier < 0 and (arrived or not known):
            self.frontier = self._frontier(desired, way, rng)
        if self.frontier >= 0 and self.node == self.frontier:
            self.frontier, self.roaming = -1, _ROAMING

    def _frontier(self, desired: np.ndarray, way: np.ndarray, rng: np.random.Generator) -> int:
        """Draw a landmark from which to explore: near the goal, and where little time was spent."""
        if self.chart.points.shape[1] > _SPACE:
            familiar = self.chart.visits
        else:
            familiar = familiarity(self.chart.visits, self.chart.start, self.chart.end)
            if rng.random() < _GOALLESS:
                return pseudo_goal(familiar, way, self.vain, _ROAMING * self.period, rng)
        rest = _distances(self.chart.points, desired) / self.chart.speed * (1.0 + familiar / _FAMILIAR)
        score = (way + _DETOUR * rest) * np.exp(rng.normal(0.0, _SPREAD, len(rest)))
        return int(np.argmin(score))

    def _roam(
        self, achieved: np.ndarray, desired: np.ndarray | None, rng: np.random.Generator, goalward: float = _GOALWARD
    ) -> np.ndarray:
        """Return a point in a direction that is kept for some segments, or until it is blocked."""
        blocked = self.attempt is not None and is_stuck(self.attempt[2], achieved, self.attempt[3], self.judged)
        if desired is not None and self.chart.points.shape[1] > _SPACE:
            if self.roaming % STRAIGHT == 0:
                self.heading = roaming_step(achieved, None, desired, goalward, rng)
        elif self.roaming % STRAIGHT == 0 or blocked:
            self.heading = roaming_step(achieved, self.chart.points, desired, goalward, rng)
        self.roaming -= 1
        return achieved + self.heading


def _pairs(flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the columns of what is true in a matrix [N, N]; `np.nonzero` takes ten times as long."""
    return np.divmod(np.flatnonzero(flags), max(len(flags), 1))


def _row(matrix: Any, row: int) -> slice:
    """Return where a sparse matrix keeps the entries of a row."""
    return slice(matrix.indptr[row], matrix.indptr[row + 1])


def _edges(matrix: Any) -> Edges:
    """Return the edges that a sparse matrix holds, in the order of its entries."""
    return Edges(np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices)


def _distances(points: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the distances from points [N, G] to one point [G]: [N]."""
    size = points.shape[1]
    if not 0 < size <= _FEW:
        return np.sqrt(np.square(points - point).sum(axis=1))
    # The same sum in the same order: NumPy takes longer to sum many short rows than a few long columns.
    total = np.square(points[:, 0] - point[0])
    for place in range(1, size):
        total += np.square(points[:, place] - point[place])
    return np.sqrt(total, out=total)


def _is_beside(body: np.ndarray, start: np.ndarray, end: np.ndarray) -> bool:
    """Return whether a body [G] is past the start of a line [G] and close to it."""
    return bool((body - start) @ (end - start) > 0.0 and _distances_to_line(body[None], start, end)[0] < _ASIDE)


def _distances_to_line(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the distances from points [N, G] to the line between two points [G]: [N]."""
    length = max(float(np.linalg.norm(end - start)), 1e-6)
    direction = (end - start) / length
    along = np.clip((points - start) @ direction, 0.0, length)
    return _distances(points - along[:, None] * direction, start)


def _squared_distances(points: np.ndarray) -> np.ndarray:
    """Return the squared distances between points [N, G]: [N, N]."""
    square = np.square(points).sum(axis=1)
    found = square[:, None] + square
    found -= 2.0 * points @ points.T
    return np.maximum(found, 0.0, out=found)
