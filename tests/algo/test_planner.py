"""The planner: graph and selection against explicit graphs, the pseudo-landmark by hand."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from higl.algo import planner
from higl.algo.landmarks import Landmarks
from higl.settings.config import LandmarksConfig

# ---- weights ----------------------------------------------------------------------------------------------------

TOTAL, COVERAGE, BATCH, OBSERVATION, GOAL = 6, 4, 4, 3, 2


def distance(observation: jax.Array, achieved: jax.Array, target: jax.Array) -> jax.Array:
    """Return a distance that is not symmetric and depends on all its arguments."""
    straight = jnp.sqrt(jnp.sum(jnp.square(target - achieved), axis=-1))
    return straight + 0.1 * jnp.abs(observation[:, 2]) + 0.2 * jnp.maximum(target[:, 0] - achieved[:, 0], 0)


def rules(cutoff: float, within: float = 0.0) -> LandmarksConfig:
    """Return the planner's settings."""
    return LandmarksConfig(cutoff=cutoff, goal_within=within)


# More than any scene has landmarks.
ALL = 99


class Weights(NamedTuple):
    """All edge weights of a graph: [B, M], [M, M] and [M, B] (from, to), and [B]."""

    state_landmark: jax.Array
    landmark_landmark: jax.Array
    landmark_goal: jax.Array
    state_goal: jax.Array

    @property
    def endpoints(self) -> planner.EndpointEdges:
        return planner.EndpointEdges(self.state_landmark, self.landmark_goal, self.state_goal)


class Scene:
    """Random landmarks (some places may be empty), and a batch of states, each with its own goal."""

    def __init__(self, seed: int, present: np.ndarray, spread: float = 10.0):
        rng = np.random.default_rng(seed)
        self.landmark_observation = rng.uniform(-spread, spread, (TOTAL, OBSERVATION)).astype(np.float32)
        self.observation = rng.uniform(-spread, spread, (BATCH, OBSERVATION)).astype(np.float32)
        self.desired = rng.uniform(-spread, spread, (BATCH, GOAL)).astype(np.float32)
        self.present = present
        # An empty place holds zeros, as it does in the queue.
        self.landmark_observation[~present] = 0

    @property
    def landmarks(self) -> Landmarks:
        return Landmarks(
            jnp.asarray(self.landmark_observation),
            jnp.asarray(self.landmark_observation[:, :GOAL]),
            jnp.asarray(self.present),
            jnp.arange(TOTAL) >= COVERAGE,
        )

    def weigh(self, neighbours: int, cutoff: float = 10.0) -> Weights:
        state = jnp.asarray(self.observation)
        query = planner.Query(state, state[:, :GOAL], jnp.asarray(self.desired))
        return _weigh(rules(cutoff), self.landmarks, query, neighbours)

    def one(self, source: np.ndarray, target: np.ndarray) -> float:
        """Return the distance of one pair, from an observation to a point."""
        arrays = (jnp.asarray(x[None]) for x in (source, source[:GOAL], target[:GOAL]))
        return float(distance(*arrays)[0])


@partial(jax.jit, static_argnums=(0, 3))
def _weigh(config: LandmarksConfig, landmarks: Landmarks, query: planner.Query, neighbours: int) -> Weights:
    between = planner.landmark_edges(distance, landmarks)
    graph = planner.build_graph(config, distance, landmarks)
    ends = planner.endpoint_edges(config, distance, graph, query, neighbours)
    return Weights(ends.state_landmark, between, ends.landmark_goal, ends.state_goal)


SOME = np.array([True, True, False, True, False, True])
masks = st.lists(st.booleans(), min_size=TOTAL, max_size=TOTAL).map(np.array)


@pytest.mark.parametrize("present", [np.ones(TOTAL, bool), SOME], ids=["all present", "some absent"])
def test_all_pairs_are_weighed_from_the_right_end_to_the_right_end(present):
    scene = Scene(0, present)
    weights = scene.weigh(ALL)
    marks, states = scene.landmark_observation, scene.observation
    for i in range(TOTAL):
        for j in range(TOTAL):
            ours = float(weights.landmark_landmark[i, j])
            if i != j and present[i] and present[j]:
                assert ours == pytest.approx(scene.one(marks[i], marks[j]), abs=1e-4)
            else:
                assert ours >= planner.UNWEIGHED
        for b in range(BATCH):
            out, into = float(weights.state_landmark[b, i]), float(weights.landmark_goal[i, b])
            if present[i]:
                assert out == pytest.approx(scene.one(states[b], marks[i]), abs=1e-4)
                assert into == pytest.approx(scene.one(marks[i], scene.desired[b]), abs=1e-4)
            else:
                assert min(out, into) >= planner.UNWEIGHED
    for b in range(BATCH):
        assert float(weights.state_goal[b]) == pytest.approx(scene.one(states[b], scene.desired[b]), abs=1e-4)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), present=masks)
def test_as_many_neighbours_as_landmarks_give_the_full_graph(seed, present):
    scene = Scene(seed, present)
    for ours, full in zip(scene.weigh(TOTAL), scene.weigh(ALL), strict=True):
        np.testing.assert_allclose(ours, full, rtol=1e-5)
    for more, full in zip(scene.weigh(TOTAL + 5), scene.weigh(ALL), strict=True):
        np.testing.assert_allclose(more, full, rtol=1e-5)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), present=masks)
def test_with_few_neighbours_the_weights_equal_those_of_the_full_graph(seed, present):
    """To a goal: the nearest two by coverage and the nearest by novelty. From a state: three, if there are as many."""
    near = 3
    scene = Scene(seed, present)
    ours, full = scene.weigh(near), scene.weigh(ALL)
    places = scene.landmark_observation[:, :GOAL].astype(np.float64)

    def nearest(point: np.ndarray, kinds: tuple[bool, bool], count: int) -> set[int]:
        """Return the nearest landmarks of one kind, then those of the other."""
        away = ((places - point) ** 2).sum(1)
        order = [
            sorted((i for i in range(TOTAL) if present[i] and (i >= COVERAGE) == kind), key=away.__getitem__)
            for kind in kinds
        ]
        return set((order[0] + order[1])[:count])

    for b in range(BATCH):
        for row, whole in (
            (ours.state_landmark[b], full.state_landmark[b]),
            (ours.landmark_goal[:, b], full.landmark_goal[:, b]),
        ):
            weighed = np.flatnonzero(np.asarray(row) < planner.UNWEIGHED)
            np.testing.assert_allclose(np.asarray(row)[weighed], np.asarray(whole)[weighed], rtol=1e-5)
        towards = set(np.flatnonzero(np.asarray(ours.landmark_goal[:, b]) < planner.UNWEIGHED))
        by_coverage = nearest(scene.desired[b], (False, True), 2)
        assert towards == by_coverage | nearest(scene.desired[b], (True, False), 1)
        assert (np.asarray(ours.state_landmark[b]) < planner.UNWEIGHED).sum() == min(near, present.sum())
    np.testing.assert_array_equal(ours.landmark_landmark, full.landmark_landmark)
    np.testing.assert_allclose(ours.state_goal, full.state_goal, rtol=1e-6)


_graph = jax.jit(planner.build_graph, static_argnums=(0, 1))
_plan_in = jax.jit(planner.plan, static_argnums=(0, 1, 4))


@partial(jax.jit, static_argnums=(0, 1))
def _cut_ends(
    config: LandmarksConfig, distance: planner.Distance, graph: planner.Graph, query: planner.Query
) -> planner.EndpointEdges:
    return planner.cut_endpoints(config, planner.endpoint_edges(config, distance, graph, query, ALL))


def test_few_edges_find_nearly_the_shortest_paths():
    """Forty landmarks in a square; weights depend on the direction by a fifth, which the estimate ignores."""
    rng = np.random.default_rng(0)
    observation = jnp.asarray(rng.uniform(0, 10, (40, OBSERVATION)), jnp.float32)
    there, novel = jnp.ones(40, bool), jnp.arange(40) >= 30
    landmarks = Landmarks(observation, observation[:, :GOAL], there, novel)
    graph = _graph(rules(CUTOFF / 3), distance, landmarks)
    states = jnp.asarray(rng.uniform(0, 10, (200, OBSERVATION)), jnp.float32)
    goals = jnp.asarray(rng.uniform(0, 10, (200, GOAL)), jnp.float32)
    query = planner.Query(states, states[:, :GOAL], goals)

    # The length of the shortest path by each first node, with all edges.
    full = _cut_ends(rules(CUTOFF / 3), distance, graph, query)
    on = np.min(np.asarray(graph.lengths)[:, :, None] + np.asarray(full.landmark_goal)[None], axis=1)
    by_first = np.column_stack([np.asarray(full.state_landmark) + on.T, full.state_goal])
    shortest = by_first.min(1)
    for neighbours, longer in ((4, 1.2), (8, 1.1)):
        chosen = _plan_in(rules(CUTOFF / 3), distance, graph, query, neighbours).index
        near_enough = by_first[np.arange(200), chosen] <= longer * shortest
        assert near_enough.mean() > 0.95, neighbours


def test_a_cluster_of_novelty_landmarks_is_not_cut_off():
    """Novelty landmarks close together beside the goal, coverage landmarks on the way there."""
    marks = [1, 2, 3, 4, 4.9, 4.92, 4.94, 4.96, 4.98, 5]
    scene = line_scene(marks, [0], [5], [mark > 4 for mark in marks])
    selection = plan(scene, cutoff=2.0, neighbours=3)
    assert bool(selection.path_exists[0])
    assert selection.index.tolist() == [0]


# ---- shortest paths and selection --------------------------------------------------------------------------------

CUTOFF = 10.0


@settings(max_examples=50)
@given(weights=hnp.arrays(np.float32, (5, 5), elements=st.floats(0.125, 100, width=16)))
def test_path_lengths_against_scipy(weights):
    expected = dijkstra(csr_array(weights.astype(np.float64)))
    np.testing.assert_allclose(_shortest(jnp.asarray(weights)), expected, rtol=1e-5)


_shortest = jax.jit(planner.path_lengths)


@partial(jax.jit, static_argnums=0)
def _select(config: LandmarksConfig, landmarks: Landmarks, weights: Weights, desired: jax.Array) -> planner.Selection:
    graph = planner.connect(config, landmarks, weights.landmark_landmark)
    return planner.select(config, graph, weights.endpoints, desired)


Cost = tuple[int, float]


def plain_model(weights: Weights, present: np.ndarray, b: int) -> dict[int, Cost]:
    """Return, for one state, the least cost to its goal by each first landmark, by relaxing edges one by one.

    A cost is the number of edges over the cut-off, then the sum of the weights. An edge into a landmark or into the
    goal does not count as over the cut-off if it is the shortest of those that come from landmarks. The state has no
    edge to the goal.
    """
    there = [int(i) for i in np.flatnonzero(present)]
    between, into = np.asarray(weights.landmark_landmark), np.asarray(weights.landmark_goal)[:, b]

    def cost(weight: float, others: list[float]) -> Cost:
        return int(weight > CUTOFF and weight > min(others)), float(weight)

    def plus(first: Cost, second: Cost) -> Cost:
        return first[0] + second[0], first[1] + second[1]

    on = {i: cost(into[i], [into[other] for other in there]) for i in there}
    for _ in there:
        for i in there:
            for j in there:
                if i != j:
                    edge = cost(between[i, j], [between[other, j] for other in there if other != j])
                    on[i] = min(on[i], plus(edge, on[j]))
    out = np.asarray(weights.state_landmark)[b]
    return {i: plus((int(out[i] > CUTOFF), float(out[i])), on[i]) for i in there}


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10_000),
    present=masks,
    scale=st.sampled_from([4.0, 15.0, 40.0, 200.0]),
    within=st.sampled_from([0.0, 3.0, 20.0]),
)
def test_selection_against_a_plain_model(seed, present, scale, within):
    """Within `within` the goal; otherwise the first landmark of the least cost, whether there is a path or not."""
    weights = random_weights(seed, present, scale)
    scene = Scene(seed, present)
    config = rules(CUTOFF, within=within)
    selection = _select(config, scene.landmarks, weights, jnp.asarray(scene.desired))
    for b in range(BATCH):
        by_first, index = plain_model(weights, present, b), int(selection.index[b])
        directly = float(weights.state_goal[b]) <= within
        exists = directly or any(long == 0 for long, _ in by_first.values())
        assert bool(selection.path_exists[b]) == exists
        if directly or not present.any():
            assert index == TOTAL
            continue
        # The chosen landmark has the least cost (there may be two of one cost).
        least = min(by_first.values())
        assert by_first[index][0] == least[0]
        assert by_first[index][1] == pytest.approx(least[1], abs=0.05)
        np.testing.assert_array_equal(selection.point[b], scene.landmark_observation[index, :GOAL])


def random_weights(seed: int, present: np.ndarray, scale: float) -> Weights:
    """Return random weights, from well connected (small scale) to hardly any edge within the cut-off."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.uniform(0.1, scale, shape).astype(np.float32)

    out, between, into = draw(BATCH, TOTAL), draw(TOTAL, TOTAL), draw(TOTAL, BATCH)
    out[:, ~present] = into[~present] = between[~present] = between[:, ~present] = planner.UNWEIGHED
    np.fill_diagonal(between, planner.UNWEIGHED)
    direct = draw(BATCH) + 0.3 * scale
    return Weights(*(jnp.asarray(x) for x in (out, between, into, direct)))


def test_the_random_graphs_have_all_kinds():
    """The graphs of the test above include ones with and without a path."""
    kinds = set()
    for seed in range(60):
        for scale in (4.0, 15.0, 40.0, 200.0):
            present = np.random.default_rng(seed).random(TOTAL) < 0.7
            weights = random_weights(seed, present, scale)
            for b in range(BATCH):
                kinds |= {min(cost)[0] for cost in [plain_model(weights, present, b).values()] if cost}
    # A path, or one edge over the cut-off: one leap leads from the state to where the goal's kept edge starts.
    assert kinds == {0, 1}


@pytest.mark.parametrize("neighbours", [ALL, 2, TOTAL])
@pytest.mark.parametrize("cutoff", [3.0, 10.0, 1000.0])
def test_the_whole_plan_against_a_plain_model(neighbours, cutoff, monkeypatch):
    """From points to selection; with few neighbours, pairs that are not weighed are the last resort."""
    monkeypatch.setattr(f"{__name__}.CUTOFF", cutoff)
    config = rules(cutoff)
    for seed in range(5):
        scene = Scene(seed, SOME)
        state = jnp.asarray(scene.observation)
        query = planner.Query(state, state[:, :GOAL], jnp.asarray(scene.desired))
        weights = _weigh(config, scene.landmarks, query, neighbours)
        selection = _plan(config, distance, scene.landmarks, query, neighbours)
        for b in range(BATCH):
            by_first, index = plain_model(weights, SOME, b), int(selection.index[b])
            weighed = {i: cost for i, cost in by_first.items() if cost[1] < planner.UNWEIGHED}
            assert weighed[index][0] == min(weighed.values())[0]
            assert weighed[index][1] == pytest.approx(min(weighed.values())[1], rel=1e-4, abs=0.05)


def line_scene(
    marks: list[float], states: list[float], goals: list[float], novel: list[bool] | None = None
) -> tuple[Any, ...]:
    """Return landmarks, observations, achieved points and goals on a line (their other coordinates are zero)."""

    def points(places: list[float], size: int) -> jax.Array:
        return jnp.zeros((len(places), size)).at[:, 0].set(jnp.asarray(places))

    there = jnp.ones(len(marks), bool)
    landmarks = Landmarks(points(marks, OBSERVATION), points(marks, GOAL), there, jnp.asarray(novel or ~there))
    return landmarks, points(states, OBSERVATION), points(states, GOAL), points(goals, GOAL)


def squared(observation: jax.Array, achieved: jax.Array, target: jax.Array) -> jax.Array:
    """Return squared distances: many small steps are shorter than one large one."""
    return jnp.sum(jnp.square(target - achieved), axis=-1)


def plan(scene, *, cutoff=1e3, within=0.0, neighbours=ALL, distance=squared) -> planner.Selection:
    landmarks, *query = scene
    return _plan(rules(cutoff, within), distance, landmarks, planner.Query(*query), neighbours)


@partial(jax.jit, static_argnums=(0, 1, 4))
def _plan(
    config: LandmarksConfig, distance: planner.Distance, landmarks: Landmarks, query: planner.Query, neighbours: int
) -> planner.Selection:
    return planner.plan(config, distance, planner.build_graph(config, distance, landmarks), query, neighbours)


def test_each_state_gets_the_first_landmark_towards_its_own_goal():
    scene = line_scene([1, 2, 3, -1], [0, 0, 2.4, 0], [4, -2, -2, 0.1])
    # To the right by 1, to the left by -1, back by 2, and the goal itself where it is near.
    assert plan(scene, within=0.05).index.tolist() == [0, 3, 1, 4]
    assert plan(scene, within=0.05).point[:, 0].tolist() == pytest.approx([1, -1, 2, 0.1])


def test_the_goal_itself_when_it_is_near_enough():
    scene = line_scene([1, 2, 3], [0, 0], [2, 4])
    assert plan(scene, within=3.9).index.tolist() == [0, 0]
    # The value says 4 to the nearer goal and 16 to the farther.
    assert plan(scene, within=4.0).index.tolist() == [3, 0]
    assert plan(scene, within=16.0).index.tolist() == [3, 3]


def test_without_any_landmark_the_goal_is_selected():
    landmarks, *rest = line_scene([0, 0], [0, 0], [50, 1])
    scene = (landmarks._replace(present=jnp.zeros(2, bool)), *rest)
    for neighbours in (ALL, 1):
        selection = plan(scene, cutoff=5.0, neighbours=neighbours)
        assert selection.index.tolist() == [2, 2]
        np.testing.assert_array_equal(selection.point, scene[3])


def test_when_everything_is_beyond_the_cutoff_the_shortest_edges_remain():
    """No landmark near the state: there is no path, and the goal keeps its shortest incoming edge."""
    selection = plan(line_scene([20, 30], [0], [31]), cutoff=50.0)
    assert selection.index.tolist() == [0]
    assert not bool(selection.path_exists[0])


def test_without_a_path_the_fewest_edges_over_the_cutoff_decide():
    """Pairs of landmarks, each pair a little too far from the next, lead around to a goal that lies straight across."""
    places = [(2, 0), (2.1, 0), (4.3, 0), (4.4, 0), (4.4, 2.2), (4.4, 2.3), (4.4, 4.5), (4.4, 4.6), (2.3, 6), (2.2, 6)]
    landmarks, observation, achieved, desired = line_scene([x for x, _ in places], [0, 2.15], [0, 0])
    landmarks = landmarks._replace(achieved=landmarks.achieved.at[:, 1].set(jnp.asarray([y for _, y in places])))
    # The leap from this side to the goal is one edge over the cut-off, the way around has four.
    selection = plan((landmarks, observation, achieved, desired.at[:, 1].set(6.0)), cutoff=4.0)
    assert selection.path_exists.tolist() == [False, False]
    assert selection.index.tolist() == [0, 1]


def test_a_state_in_front_of_all_landmarks_goes_back_to_the_last():
    """From there the goal's kept edge leads on."""
    assert plan(line_scene([1, 2, 3], [4, 2.5], [20, 20]), cutoff=5.0).index.tolist() == [2, 2]


def test_a_gap_between_landmarks_is_seen_and_crossed():
    """Two groups farther apart than the cut-off: no path exists, but a landmark on the way is still selected."""
    # Each landmark's shortest incoming edge comes from its own group.
    scene = line_scene([1, 2, 20, 21], [0], [22])
    selection = plan(scene, cutoff=5.0)
    assert not bool(selection.path_exists[0])
    assert selection.index.tolist() == [0]


def test_absent_landmarks_are_never_selected():
    landmarks, *rest = line_scene([1, 1.5, 2, 3], [0], [4])
    present = jnp.array([False, False, True, False])
    for neighbours in (ALL, 1, 3):
        assert plan((landmarks._replace(present=present), *rest), neighbours=neighbours).index.tolist() == [2]


# ---- the pseudo-landmark ---------------------------------------------------------------------------------------------


def test_pseudo_landmark_by_hand():
    """Equation 7: from the current state, `shift` towards the landmark; a nearer landmark is passed."""
    achieved = jnp.array([[1.0, 1.0], [0.0, 0.0], [2.0, 3.0]])
    selected = jnp.array([[4.0, 5.0], [0.0, 1.0], [2.0, 3.0]])
    pseudo = planner.pseudo_landmark(LandmarksConfig(pseudo="fixed", shift=2.0), achieved, selected)
    np.testing.assert_allclose(pseudo, [[2.2, 2.6], [0.0, 2.0], [2.0, 3.0]], rtol=1e-6)


def test_raw_pseudo_landmark_is_the_landmark():
    achieved, selected = jnp.zeros((2, 2)), jnp.array([[4.0, 5.0], [0.0, 0.0]])
    np.testing.assert_array_equal(planner.pseudo_landmark(LandmarksConfig(pseudo="raw"), achieved, selected), selected)


def test_automatic_shift_is_the_average_distance_of_the_selected_landmarks():
    achieved = jnp.array([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]])
    selected = jnp.array([[3.0, 4.0], [1.0, 2.0], [5.0, 5.0]])
    shift = (5 + 1 + 0) / 3
    pseudo = planner.pseudo_landmark(LandmarksConfig(pseudo="automatic", shift=99.0), achieved, selected)
    np.testing.assert_allclose(pseudo, [[0.6 * shift, 0.8 * shift], [1.0, 1.0 + shift], [5.0, 5.0]], rtol=1e-6)


def test_capped_pseudo_landmark_does_not_pass_the_landmark():
    achieved = jnp.array([[1.0, 1.0], [0.0, 0.0]])
    selected = jnp.array([[4.0, 5.0], [0.0, 1.0]])
    pseudo = planner.pseudo_landmark(LandmarksConfig(pseudo="capped", shift=2.0), achieved, selected)
    np.testing.assert_allclose(pseudo, [[2.2, 2.6], [0.0, 1.0]], rtol=1e-6)


@pytest.mark.parametrize("mode", ["fixed", "capped", "automatic", "raw"])
def test_a_landmark_at_distance_zero_gives_the_current_state(mode):
    achieved = jnp.array([[1.0, -2.0], [0.0, 0.0]])
    pseudo = planner.pseudo_landmark(LandmarksConfig(pseudo=mode), achieved, achieved)
    np.testing.assert_array_equal(pseudo, achieved)
