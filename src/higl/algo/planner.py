"""The planner: graph, shortest paths, the selected landmark (section 4.2) and the pseudo-landmark (eq. 7).

The graph has three kinds of nodes: the batch's current states (sources: no edge leads to them), the landmarks, and the
batch's goals (sinks: no edge leaves them). Three blocks of edge weights are therefore enough: between landmarks
(`landmark_edges`, the same for every batch), and from states to landmarks and from landmarks to goals
(`endpoint_edges`), plus the direct edge from each state to its goal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from higl.algo.landmarks import Landmarks
from higl.algo.nets import safe_norm, squared_distance
from higl.algo.td3 import Info
from higl.settings.config import LandmarksConfig

# Penalty for an edge over the cut-off, in multiples of the cut-off: more than any path without such an edge costs.
_CUT_PENALTY = 1e3
# Cost of a pair whose weight was not computed: the last resort.
UNWEIGHED = 2.0**40
# Most promising landmarks connected to each state and goal: all of 20 + 20, as in the paper's complete graph. With 20,
# another landmark was selected for 9% of the states (docs/performance.md); 60 + 60 would cost three times as much.
NEIGHBOURS = 40

# (observation [P, O], achieved [P, G], target [P, G]) -> distance [P]
Distance = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


class Query(NamedTuple):
    """States to plan for, each with its own goal: observation [B, O], achieved [B, G], desired [B, G]."""

    observation: jax.Array
    achieved: jax.Array
    desired: jax.Array


class Graph(NamedTuple):
    """The landmarks, the edges between them after the cut [M, M], and the lengths of the shortest paths [M, M].

    `weight_per_distance` [] is the average weight of an edge within the cut-off per unit of the goal space.
    """

    landmarks: Landmarks
    edges: jax.Array
    lengths: jax.Array
    weight_per_distance: jax.Array


class EndpointEdges(NamedTuple):
    """Edges at both ends of a path: from states to landmarks [B, M], from landmarks to goals [M, B], and direct [B]."""

    state_landmark: jax.Array
    landmark_goal: jax.Array
    state_goal: jax.Array


class Selection(NamedTuple):
    """The selected landmark of each state: its index [B] (M: the goal itself) and its goal-space point [B, G].

    `path_exists` [B]: whether a path without an edge over the cut-off leads to the goal.
    """

    index: jax.Array
    point: jax.Array
    path_exists: jax.Array


def guide(config: LandmarksConfig, distance: Distance, graph: Graph, query: Query) -> tuple[jax.Array, Info]:
    """Return the pseudo-landmarks of states [B, G], and statistics of the selection."""
    selection = plan(config, distance, graph, query)
    coverage, total = config.coverage, config.coverage + config.novelty
    info = {
        "selected_coverage": jnp.mean(selection.index < coverage),
        "selected_novelty": jnp.mean((selection.index >= coverage) & (selection.index < total)),
        "selected_goal": jnp.mean(selection.index == total),
        "no_path": jnp.mean(~selection.path_exists),
        "landmarks": jnp.sum(graph.landmarks.present).astype(jnp.float32),
        "selected_distance": jnp.mean(jnp.sqrt(squared_distance(selection.point, query.achieved))),
    }
    return pseudo_landmark(config, query.achieved, selection.point), info


def plan(
    config: LandmarksConfig, distance: Distance, graph: Graph, query: Query, neighbours: int = NEIGHBOURS
) -> Selection:
    """Return the first landmark on the shortest path from each state to its goal."""
    return select(config, graph, endpoint_edges(config, distance, graph, query, neighbours), query.desired)


def pseudo_landmark(config: LandmarksConfig, achieved: jax.Array, selected: jax.Array) -> jax.Array:
    """Return the pseudo-landmarks, g_pseudo (eq. 7): [B, G].

    They lie at delta_pseudo (`landmarks.shift`) from the current states, g_cur = phi(s), towards the selected
    landmarks, g_sel. `capped`: not beyond the landmark. `automatic`: the shift is the batch's average distance to the
    selected landmarks (appendix). `raw`: the landmark itself. With a landmark at distance zero it is the current state.
    """
    if config.pseudo == "raw":
        return selected
    offset = selected - achieved
    distance = safe_norm(offset)[:, None]
    shift = {
        "fixed": config.shift,
        "capped": jnp.minimum(config.shift, distance),
        "automatic": jnp.mean(distance),
    }[config.pseudo]
    return achieved + shift * jnp.where(distance > 0, offset / jnp.where(distance > 0, distance, 1.0), 0.0)


# ---- the graph over landmarks ----------------------------------------------------------------------------------------


def build_graph(config: LandmarksConfig, distance: Distance, landmarks: Landmarks) -> Graph:
    """Weigh and cut the edges between landmarks, and find the shortest paths."""
    return connect(config, landmarks, landmark_edges(distance, landmarks))


def landmark_edges(distance: Distance, landmarks: Landmarks) -> jax.Array:
    """Weigh the edges between all landmarks, [M, M] (from, to); absent landmarks have none."""
    total = landmarks.present.shape[0]
    weights = distance(
        jnp.repeat(landmarks.observation, total, axis=0),
        jnp.repeat(landmarks.achieved, total, axis=0),
        jnp.tile(landmarks.achieved, (total, 1)),
    ).reshape(total, total)
    both_present = landmarks.present[:, None] & landmarks.present[None] & ~jnp.eye(total, dtype=bool)
    return jnp.where(both_present, weights, UNWEIGHED)


def connect(config: LandmarksConfig, landmarks: Landmarks, weights: jax.Array) -> Graph:
    """Return the graph for given weights [M, M] between landmarks; each landmark keeps its shortest incoming edge."""
    away = jnp.sqrt(squared_distance(landmarks.achieved[:, None], landmarks.achieved[None]))
    short = jnp.where((weights <= config.cutoff) & (away > 0), 1.0, 0.0)
    per_distance = jnp.sum(short * weights) / jnp.maximum(jnp.sum(short * away), 1e-6)
    edges = _cut(config, weights, keep_along=0)
    return Graph(landmarks, edges, path_lengths(edges), per_distance)


def path_lengths(edges: jax.Array) -> jax.Array:
    """Return the lengths of the shortest paths between all landmarks, [M, M] (Floyd-Warshall)."""
    total = edges.shape[0]
    start = jnp.where(jnp.eye(total, dtype=bool), 0.0, edges)

    def through(node: jax.Array, lengths: jax.Array) -> jax.Array:
        return jnp.minimum(lengths, lengths[:, node, None] + lengths[None, node, :])

    return jax.lax.fori_loop(0, total, through, start)


# ---- the edges of states and goals -----------------------------------------------------------------------------------


def endpoint_edges(
    config: LandmarksConfig, distance: Distance, graph: Graph, query: Query, neighbours: int = NEIGHBOURS
) -> EndpointEdges:
    """Weigh the edges that leave states and those that lead to goals, `neighbours` of each.

    Pairs that are not weighed cost `UNWEIGHED`.
    """
    landmark_goal, state_goal = _weigh_goals(distance, graph.landmarks, query, neighbours)
    outgoing = _promising(config, graph, query, landmark_goal, neighbours)
    state_landmark = _dense(graph.landmarks, outgoing, _weigh_states(distance, graph.landmarks, query, outgoing))
    return EndpointEdges(state_landmark, landmark_goal, state_goal)


def _weigh_goals(
    distance: Distance, landmarks: Landmarks, query: Query, neighbours: int
) -> tuple[jax.Array, jax.Array]:
    """Weigh the edges to each goal: from the landmarks near it [M, B], and directly from its state [B]."""
    incoming = _near_goals(landmarks, query.desired, neighbours)
    sources = incoming.ravel()
    weights = distance(
        jnp.concatenate([landmarks.observation[sources], query.observation]),
        jnp.concatenate([landmarks.achieved[sources], query.achieved]),
        jnp.concatenate([jnp.repeat(query.desired, incoming.shape[1], axis=0), query.desired]),
    )
    from_landmarks = weights[: incoming.size].reshape(incoming.shape)
    return _dense(landmarks, incoming, from_landmarks).T, weights[incoming.size :]


def _weigh_states(distance: Distance, landmarks: Landmarks, query: Query, outgoing: jax.Array) -> jax.Array:
    """Weigh the edges from each state to the landmarks `outgoing` [B, N]: [B, N]."""
    count = outgoing.shape[1]
    return distance(
        jnp.repeat(query.observation, count, axis=0),
        jnp.repeat(query.achieved, count, axis=0),
        landmarks.achieved[outgoing.ravel()],
    ).reshape(outgoing.shape)


def _dense(landmarks: Landmarks, places: jax.Array, weights: jax.Array) -> jax.Array:
    """Return a block [B, M] with the weights [B, N] of each row's places [B, N]; all other pairs are `UNWEIGHED`."""
    batch = places.shape[0]
    weights = jnp.where(landmarks.present[places], weights, UNWEIGHED)
    empty = jnp.full((batch, landmarks.present.shape[0]), UNWEIGHED)
    return empty.at[jnp.arange(batch)[:, None], places].set(weights)


def _every_landmark(landmarks: Landmarks, batch: int) -> jax.Array:
    total = landmarks.present.shape[0]
    return jnp.broadcast_to(jnp.arange(total), (batch, total))


def _near_goals(landmarks: Landmarks, desired: jax.Array, neighbours: int) -> jax.Array:
    """Return the indices of the landmarks near each goal [B, G]: [B, N].

    One third are the nearest novelty landmarks, the others the nearest coverage landmarks: novelty landmarks lie in
    clusters, and a cluster whose members were only connected to each other would be cut off from the rest. Where one
    kind has too few, the nearest of the other kind take their place (an index may then occur twice).
    """
    if neighbours >= landmarks.present.shape[0]:
        return _every_landmark(landmarks, desired.shape[0])
    by_novelty = neighbours // 3
    square = squared_distance(landmarks.achieved[None], desired[:, None])
    behind = jnp.where(landmarks.novel, 1.0 + jnp.max(square), 0.0)
    square = jnp.where(landmarks.present, square, jnp.inf)
    coverage = jax.lax.top_k(-(square + behind), neighbours - by_novelty)[1]
    novelty = jax.lax.top_k(behind - square, by_novelty)[1]
    return jnp.concatenate([coverage, novelty], axis=1)


def _promising(
    config: LandmarksConfig, graph: Graph, query: Query, landmark_goal: jax.Array, neighbours: int
) -> jax.Array:
    """Return the indices of the landmarks that promise the shortest paths from each state: [B, N].

    The promised length is that of the path from the landmark on, plus an estimate of the way there.
    """
    landmarks = graph.landmarks
    if neighbours >= landmarks.present.shape[0]:
        return _every_landmark(landmarks, query.achieved.shape[0])
    to_goal = _lengths_to_goals(graph, _cut(config, landmark_goal, keep_along=0))
    away = jnp.sqrt(squared_distance(landmarks.achieved[None], query.achieved[:, None]))
    length = _cut(config, graph.weight_per_distance * away, keep_along=None) + to_goal.T
    return jax.lax.top_k(-jnp.where(landmarks.present, length, jnp.inf), neighbours)[1]


# ---- the cut-off -----------------------------------------------------------------------------------------------------


def cut_penalty(cutoff: float) -> float:
    """Return the least cost of an edge over the cut-off: a path that costs this much or more counts as none."""
    return _CUT_PENALTY * cutoff


def _cut(config: LandmarksConfig, weights: jax.Array, *, keep_along: int | None) -> jax.Array:
    """Penalise the edges over the cut-off, gamma_dist, except the shortest one along an axis (None: no exception).

    The paper removes such edges. Here they remain as a last resort, with the same penalty for each, as in the authors'
    value iteration: without a path, the way with the fewest such edges is the shortest, and among those the one with
    the least sum of weights.
    """
    kept = weights <= config.cutoff
    if keep_along is not None:
        kept |= weights <= jnp.min(weights, axis=keep_along, keepdims=True)
    return jnp.where(kept, weights, jnp.minimum(weights + cut_penalty(config.cutoff), UNWEIGHED))


def cut_endpoints(config: LandmarksConfig, edges: EndpointEdges) -> EndpointEdges:
    """Penalise long edges of states and goals; each goal keeps its shortest incoming edge as it is.

    A state has no incoming edges, and all its outgoing edges over the cut-off are penalised. Its direct edge to the
    goal exists only within `goal_within`.
    """
    return EndpointEdges(
        state_landmark=_cut(config, edges.state_landmark, keep_along=None),
        landmark_goal=_cut(config, edges.landmark_goal, keep_along=0),
        state_goal=jnp.where(edges.state_goal <= config.goal_within, edges.state_goal, UNWEIGHED),
    )


# ---- selection -------------------------------------------------------------------------------------------------------


def select(config: LandmarksConfig, graph: Graph, edges: EndpointEdges, desired: jax.Array) -> Selection:
    """Return the first landmark on the shortest path from each state to its goal [B, G].

    The goal itself is selected when it is within `goal_within`, and when there is no landmark at all. Without a path,
    the least cost decides (see `_cut`).
    """
    landmarks, cut = graph.landmarks, cut_endpoints(config, edges)
    lengths = cut.state_landmark + _lengths_to_goals(graph, cut.landmark_goal).T
    first = jnp.argmin(lengths, axis=1)
    length = jnp.min(lengths, axis=1)
    directly = (edges.state_goal <= config.goal_within) | ~jnp.any(landmarks.present)
    index = jnp.where(directly, landmarks.present.shape[0], first)
    point = jnp.where(directly[:, None], desired, landmarks.achieved[first])
    return Selection(index, point, jnp.minimum(length, cut.state_goal) < cut_penalty(config.cutoff))


def _lengths_to_goals(graph: Graph, landmark_goal: jax.Array) -> jax.Array:
    """Return the lengths of the shortest paths from landmarks to goals [M, B], given the last edges [M, B]."""
    return jnp.min(graph.lengths[:, :, None] + landmark_goal[None], axis=1)
