"""Landmarks: sampling against brute force, the graph and the selection against scipy's shortest paths."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from higl import landmarks as lm

# ---- farthest point sampling -----------------------------------------------------------------------------------

_farthest = jax.jit(lm.farthest_points, static_argnums=1)


def brute_force_farthest(points: np.ndarray, count: int) -> list[int]:
    """Return the places chosen one after the other, each the farthest from all before it; no point twice."""
    chosen = [0]
    while len(chosen) < count:
        distances = [min(((point - points[place]) ** 2).sum() for place in chosen) for point in points]
        if max(distances) == 0:
            break
        chosen.append(int(np.argmax(distances)))
    return chosen


# Whole numbers, so that distances are exact and points coincide now and then.
@settings(max_examples=60)
@given(data=st.data(), number=st.sampled_from([1, 2, 9, 14]), count=st.sampled_from([1, 4, 12]))
def test_farthest_points_against_brute_force(data, number, count):
    points = data.draw(hnp.arrays(np.float32, (number, 2), elements=st.integers(-4, 4)))
    chosen, real = (np.asarray(x) for x in _farthest(jnp.asarray(points), count))
    assert chosen.shape == real.shape == (count,)
    expected = brute_force_farthest(points, count)
    assert chosen[real].tolist() == expected
    # The real ones come first, and there are as many as there are different points to choose.
    assert real.sum() == min(count, len(np.unique(points, axis=0)))
    assert real[: real.sum()].all()


def test_no_farthest_points_at_all():
    chosen, real = lm.farthest_points(jnp.zeros((3, 2)), 0)
    assert chosen.shape == real.shape == (0,)


# ---- weights ----------------------------------------------------------------------------------------------------

TOTAL, BATCH, OBSERVATION, GOAL = 6, 4, 3, 2


def distance(observation: jax.Array, achieved: jax.Array, target: jax.Array) -> jax.Array:
    """Return a distance that is not symmetric and depends on all that it is given."""
    straight = jnp.sqrt(jnp.sum(jnp.square(target - achieved), axis=-1))
    return straight + 0.1 * jnp.abs(observation[:, 2]) + 0.2 * jnp.maximum(target[:, 0] - achieved[:, 0], 0)


class Scene:
    """Random landmarks (some places may be empty), and a batch of states with a goal each."""

    def __init__(self, seed: int, present: np.ndarray, spread: float = 10.0):
        rng = np.random.default_rng(seed)
        self.landmark_observation = rng.uniform(-spread, spread, (TOTAL, OBSERVATION)).astype(np.float32)
        self.observation = rng.uniform(-spread, spread, (BATCH, OBSERVATION)).astype(np.float32)
        self.desired = rng.uniform(-spread, spread, (BATCH, GOAL)).astype(np.float32)
        self.present = present
        # An empty place holds zeros, as it does in the queue.
        self.landmark_observation[~present] = 0

    @property
    def landmarks(self) -> lm.Landmarks:
        return lm.Landmarks(
            jnp.asarray(self.landmark_observation),
            jnp.asarray(self.landmark_observation[:, :GOAL]),
            jnp.asarray(self.present),
            jnp.zeros(len(self.present), bool),
        )

    def weigh(self, neighbours: int) -> lm.Weights:
        state = jnp.asarray(self.observation)
        return _weigh(self.landmarks, state, state[:, :GOAL], jnp.asarray(self.desired), neighbours)

    def one(self, source: np.ndarray, target: np.ndarray) -> float:
        """Return the distance of one pair, from an observation to a point."""
        arrays = (jnp.asarray(x[None]) for x in (source, source[:GOAL], target[:GOAL]))
        return float(distance(*arrays)[0])


_weigh = jax.jit(lambda *arguments: lm.weigh(distance, *arguments), static_argnums=4)
SOME = np.array([True, True, False, True, False, True])
masks = st.lists(st.booleans(), min_size=TOTAL, max_size=TOTAL).map(np.array)


@pytest.mark.parametrize("present", [np.ones(TOTAL, bool), SOME], ids=["all present", "some absent"])
def test_all_pairs_are_weighed_from_the_right_end_to_the_right_end(present):
    scene = Scene(0, present)
    weights = scene.weigh(0)
    marks, states = scene.landmark_observation, scene.observation
    for i in range(TOTAL):
        for j in range(TOTAL):
            ours = float(weights.landmark_landmark[i, j])
            if i != j and present[i] and present[j]:
                assert ours == pytest.approx(scene.one(marks[i], marks[j]), abs=1e-4)
            else:
                assert ours >= lm.UNWEIGHED
        for b in range(BATCH):
            out, into = float(weights.state_landmark[b, i]), float(weights.landmark_goal[i, b])
            if present[i]:
                assert out == pytest.approx(scene.one(states[b], marks[i]), abs=1e-4)
                assert into == pytest.approx(scene.one(marks[i], scene.desired[b]), abs=1e-4)
            else:
                assert min(out, into) >= lm.UNWEIGHED
    for b in range(BATCH):
        assert float(weights.state_goal[b]) == pytest.approx(scene.one(states[b], scene.desired[b]), abs=1e-4)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), present=masks)
def test_as_many_neighbours_as_landmarks_give_the_full_graph(seed, present):
    scene = Scene(seed, present)
    for ours, full in zip(scene.weigh(TOTAL), scene.weigh(0), strict=True):
        np.testing.assert_allclose(ours, full, rtol=1e-5)
    for more, full in zip(scene.weigh(TOTAL + 5), scene.weigh(0), strict=True):
        np.testing.assert_allclose(more, full, rtol=1e-5)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), present=masks)
def test_with_few_neighbours_the_nearest_are_weighed_as_in_the_full_graph(seed, present):
    """Towards every landmark and goal the nearest present landmarks; from every state the nearest ones."""
    near = 2
    scene = Scene(seed, present)
    ours, full = scene.weigh(near), scene.weigh(0)
    places = scene.landmark_observation[:, :GOAL].astype(np.float64)

    def nearest(point: np.ndarray, but: int = -1) -> set[int]:
        there = [i for i in range(TOTAL) if present[i] and i != but]
        return set(sorted(there, key=lambda i: ((places[i] - point) ** 2).sum())[:near])

    def check(row: jax.Array, whole: jax.Array, expected: set[int]) -> None:
        row, whole = np.asarray(row), np.asarray(whole)
        assert set(np.flatnonzero(row < lm.UNWEIGHED)) == expected
        for place in expected:
            assert row[place] == pytest.approx(whole[place], rel=1e-5)

    for b in range(BATCH):
        check(ours.state_landmark[b], full.state_landmark[b], nearest(scene.observation[b, :GOAL]))
        check(ours.landmark_goal[:, b], full.landmark_goal[:, b], nearest(scene.desired[b]))
    for j in range(TOTAL):
        into = nearest(places[j], but=j) if present[j] else set()
        check(ours.landmark_landmark[:, j], full.landmark_landmark[:, j], into)
    np.testing.assert_allclose(ours.state_goal, full.state_goal, rtol=1e-6)


# ---- shortest paths and selection --------------------------------------------------------------------------------

CUTOFF = 10.0


@settings(max_examples=50)
@given(weights=hnp.arrays(np.float32, (5, 5), elements=st.floats(0.125, 100, width=16)))
def test_shortest_distances_against_scipy(weights):
    expected = dijkstra(csr_array(weights.astype(np.float64)))
    np.testing.assert_allclose(_shortest(jnp.asarray(weights)), expected, rtol=1e-5)


_shortest = jax.jit(lm.shortest_distances)
_select = jax.jit(lm.select, static_argnums=(3, 4))


def oracle(weights: lm.Weights, present: np.ndarray, b: int) -> tuple[float, np.ndarray, bool]:
    """Return, for one state, the shortest length to its goal, that of each first node, and if a path exists.

    An explicit graph of the state (node 0), the present landmarks and the goal (last node). Edges over the cut-off
    are missing, but for the shortest into each landmark (from landmarks) and into the goal, and the state's shortest
    to a landmark. Where that leaves no path, edges over the cut-off are used, as few as possible. First nodes are
    the landmarks, then the goal itself.
    """
    there = np.flatnonzero(present)
    goal = len(there) + 1
    full = np.full((goal + 1, goal + 1), np.inf)
    full[0, 1:goal] = np.asarray(weights.state_landmark)[b, there]
    full[1:goal, 1:goal] = np.asarray(weights.landmark_landmark)[np.ix_(there, there)]
    full[1:goal, goal] = np.asarray(weights.landmark_goal)[there, b]
    full[0, goal] = np.asarray(weights.state_goal)[b]
    np.fill_diagonal(full, np.inf)

    kept = full <= CUTOFF
    if len(there):
        kept[0, 1:goal] |= full[0, 1:goal] == full[0, 1:goal].min()
        for node in range(1, goal):
            kept[1:goal, node] |= full[1:goal, node] == full[1:goal, node].min()
        kept[1:goal, goal] |= full[1:goal, goal] == full[1:goal, goal].min()
        kept[0, goal] |= full[0, goal] <= full[1:goal, goal].min()
    else:
        kept[0, goal] = True

    def lengths(graph: np.ndarray) -> np.ndarray:
        """Return the length from the state to the goal by each first node: [landmarks, then goal]."""
        finite = np.where(np.isfinite(graph), graph, 0.0)
        after = dijkstra(csr_array(finite))[:, goal]
        return np.append(graph[0, 1:goal] + after[1:goal], graph[0, goal])

    by_first = lengths(np.where(kept, full, np.inf))
    exists = bool(np.isfinite(by_first).any())
    if not exists:
        by_first = lengths(full + np.where(kept, 0, 1e6))
    everything = np.full(TOTAL + 1, np.inf)
    everything[there], everything[TOTAL] = by_first[:-1], by_first[-1]
    return float(everything.min()), everything, exists


def random_weights(seed: int, present: np.ndarray, scale: float) -> lm.Weights:
    """Return random weights, from well connected (small scale) to hardly any edge within the cut-off."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.uniform(0.1, scale, shape).astype(np.float32)

    out, between, into = draw(BATCH, TOTAL), draw(TOTAL, TOTAL), draw(TOTAL, BATCH)
    out[:, ~present] = into[~present] = between[~present] = between[:, ~present] = lm.UNWEIGHED
    np.fill_diagonal(between, lm.UNWEIGHED)
    return lm.Weights(*(jnp.asarray(x) for x in (out, between, into, draw(BATCH) + 0.3 * scale)))


@settings(max_examples=150)
@given(seed=st.integers(0, 10_000), present=masks, scale=st.sampled_from([4.0, 15.0, 40.0, 200.0]))
def test_selection_against_scipy(seed, present, scale):
    weights = random_weights(seed, present, scale)
    scene = Scene(seed, present)
    selection = _select(scene.landmarks, weights, jnp.asarray(scene.desired), CUTOFF, 0.0)
    for b in range(BATCH):
        shortest, by_first, exists = oracle(weights, present, b)
        index = int(selection.index[b])
        # The chosen first node lies on a shortest path (there may be two of one length).
        tolerance = 0.1 if not exists else 1e-3
        assert by_first[index] == pytest.approx(shortest, abs=tolerance)
        assert bool(selection.path_exists[b]) == exists
        point = scene.desired[b] if index == TOTAL else scene.landmark_observation[index, :GOAL]
        np.testing.assert_array_equal(selection.achieved[b], point)


def test_the_random_graphs_have_all_kinds():
    """Of the graphs of the test above some have a path and some none, some lead directly and some by landmarks."""
    kinds = set()
    for seed in range(60):
        for scale in (4.0, 15.0, 40.0, 200.0):
            present = np.random.default_rng(seed).random(TOTAL) < 0.7
            weights = random_weights(seed, present, scale)
            for b in range(BATCH):
                _, by_first, exists = oracle(weights, present, b)
                kinds.add((exists, bool(np.argmin(by_first) == TOTAL)))
    assert {(True, True), (True, False), (False, False)} <= kinds


@pytest.mark.parametrize("neighbours", [0, 2, TOTAL])
@pytest.mark.parametrize("cutoff", [3.0, 10.0, 1000.0])
def test_the_whole_plan_against_scipy(neighbours, cutoff, monkeypatch):
    """From points to selection: weigh, cut, search."""
    monkeypatch.setattr(f"{__name__}.CUTOFF", cutoff)
    for seed in range(5):
        scene = Scene(seed, SOME)
        weights = scene.weigh(neighbours)
        selection = _select(scene.landmarks, weights, jnp.asarray(scene.desired), cutoff, 0.0)
        for b in range(BATCH):
            shortest, by_first, exists = oracle(weights, SOME, b)
            assert by_first[int(selection.index[b])] == pytest.approx(shortest, rel=1e-5, abs=2e-3 if exists else 1.0)
            assert bool(selection.path_exists[b]) == exists


def line_scene(
    marks: list[float], states: list[float], goals: list[float], novel: list[bool] | None = None
) -> tuple[Any, ...]:
    """Return landmarks, observations, achieved points and goals on a line (their other coordinates are zero)."""

    def points(places: list[float], size: int) -> jax.Array:
        return jnp.zeros((len(places), size)).at[:, 0].set(jnp.asarray(places))

    there = jnp.ones(len(marks), bool)
    landmarks = lm.Landmarks(points(marks, OBSERVATION), points(marks, GOAL), there, jnp.asarray(novel or ~there))
    return landmarks, points(states, OBSERVATION), points(states, GOAL), points(goals, GOAL)


def squared(observation: jax.Array, achieved: jax.Array, target: jax.Array) -> jax.Array:
    """Return squared distances: many small steps are shorter than one large one."""
    return jnp.sum(jnp.square(target - achieved), axis=-1)


def plan(scene, *, cutoff=1e3, within=0.0, neighbours=0, unreached: lm.Unreached = "nearest") -> lm.Selection:
    return _plan(*scene, cutoff, within, neighbours, unreached)


@partial(jax.jit, static_argnums=(6, 7))
def _plan(landmarks, observation, achieved, desired, cutoff, within, neighbours, unreached) -> lm.Selection:
    weights = lm.weigh(squared, landmarks, observation, achieved, desired, neighbours)
    return lm.select(landmarks, weights, desired, cutoff, within, unreached)


def test_the_first_landmark_towards_ones_own_goal():
    scene = line_scene([1, 2, 3, -1], [0, 0, 2.4, 0], [4, -2, -2, 0.1])
    # To the right by 1, to the left by -1, back by 2, and the goal itself where it is nearest.
    assert plan(scene).index.tolist() == [0, 3, 1, 4]
    assert plan(scene).achieved[:, 0].tolist() == pytest.approx([1, -1, 2, 0.1])


def test_the_goal_itself_when_it_is_near_enough():
    scene = line_scene([1, 2, 3], [0, 0], [2, 4])
    assert plan(scene, within=3.9).index.tolist() == [0, 0]
    # The value says 4 to the nearer goal and 16 to the farther.
    assert plan(scene, within=4.0).index.tolist() == [3, 0]
    assert plan(scene, within=16.0).index.tolist() == [3, 3]


def test_without_any_landmark_the_goal_is_selected():
    landmarks, *rest = line_scene([0, 0], [0, 0], [50, 1])
    scene = (landmarks._replace(present=jnp.zeros(2, bool)), *rest)
    for neighbours in (0, 1):
        selection = plan(scene, cutoff=5.0, neighbours=neighbours)
        assert selection.index.tolist() == [2, 2]
        np.testing.assert_array_equal(selection.achieved, scene[3])


def test_when_everything_is_beyond_the_cutoff_the_least_bad_landmark():
    """No landmark near the state: it keeps its shortest edge, and the goal the shortest into it."""
    scene = line_scene([20, 30], [0], [31])
    selection = plan(scene, cutoff=50.0)
    assert selection.index.tolist() == [0]
    assert bool(selection.path_exists[0])


def test_a_gap_between_landmarks_is_seen_and_crossed():
    """Two groups farther apart than the cut-off: there is no path, and still a landmark on the way is chosen."""
    # Each landmark's shortest incoming edge comes from its own group.
    scene = line_scene([1, 2, 20, 21], [0], [22])
    selection = plan(scene, cutoff=5.0)
    assert not bool(selection.path_exists[0])
    assert selection.index.tolist() == [0]


def test_absent_landmarks_are_never_selected():
    landmarks, *rest = line_scene([1, 1.5, 2, 3], [0], [4])
    present = jnp.array([False, False, True, False])
    for neighbours in (0, 1, 3):
        assert plan((landmarks._replace(present=present), *rest), neighbours=neighbours).index.tolist() == [2]


def test_path_to_unreached_goal_leads_over_novel_landmark() -> None:
    """A wall lies between x = 0 and the goal at x = 6; the way round it is known as far as (4, 4), a novel state."""
    at = jnp.asarray([[2.0, 0.0], [0.0, 2.0], [2.0, 4.0], [4.0, 4.0]])
    novel = jnp.asarray([False, False, False, True])
    landmarks = lm.Landmarks(at, at, jnp.ones(4, bool), novel)
    states, goals = jnp.asarray([[0.0, 0.0], [4.0, 3.9]]), jnp.asarray([[6.0, 0.0], [6.0, 0.0]])

    def distance(observation: jax.Array, achieved: jax.Array, target: jax.Array) -> jax.Array:
        return jnp.linalg.norm(achieved - target, axis=-1)

    weights = lm.weigh(distance, landmarks, states, states, goals, 0)
    straight = lm.select(landmarks, weights, goals, cutoff=3.0, goal_within=0.5)
    round_the_wall = lm.select(landmarks, weights, goals, cutoff=3.0, goal_within=0.5, unreached="novel")
    assert straight.index[0] == 0  # the landmark nearest to the goal, though the wall is behind it
    assert round_the_wall.index[0] == 1
    assert round_the_wall.index[1] == 4  # at the frontier: on to the goal itself
    near = jnp.asarray([[0.0, 4.0], [0.0, 4.0]])
    weights = lm.weigh(distance, landmarks, states, states, near, 0)
    same = [lm.select(landmarks, weights, near, 3.0, 0.5, kind).index for kind in ("nearest", "novel")]
    np.testing.assert_array_equal(*same)  # a goal that landmarks are near to is none the different


def test_a_goal_that_nothing_is_near_to_may_be_left_to_the_frontier():
    """Landmarks to both sides; the goal looks nearest from the coverage landmark at 6, the novel ones are at -2, -4."""
    novel = [False, False, False, True, True]
    scene = line_scene([2, 4, 6, -2, -4], [0, 0, -3.5], [20, 5, 20], novel)
    # Nothing is within 50 of the goal at 20: towards the landmark at 6, by 2 ...
    assert plan(scene, cutoff=50.0).index.tolist() == [0, 0, 3]
    # ... or to the novel one nearest to it, -2. The goal at 5 is reached: nothing changes for it.
    assert plan(scene, cutoff=50.0, unreached="novel").index.tolist() == [3, 0, 3]
    # A state that has come to the frontier (here within 3) goes on to the goal itself.
    assert plan(scene, cutoff=50.0, within=3.0, unreached="novel").index.tolist() == [3, 0, 5]
    # Once something is near enough to the goal, all is as before.
    assert plan(scene, cutoff=200.0, unreached="novel").index.tolist() == [0, 0, 3]


def test_without_novel_landmarks_there_is_no_frontier():
    landmarks, *rest = line_scene([2, 4, -2], [0], [20], [False, False, True])
    absent = landmarks._replace(present=jnp.array([True, True, False]))
    for marks in (absent, landmarks._replace(novel=jnp.zeros(3, bool))):
        scene = (marks, *rest)
        ours, plain = plan(scene, cutoff=50.0, unreached="novel"), plan(scene, cutoff=50.0)
        assert ours.index.tolist() == plain.index.tolist() == [0]
