"""Landmarks: sampling them, the graph over them, and the first landmark on the shortest path (sections 4.1, 4.2).

The graph has three kinds of nodes: the batch's current states (sources: nothing leads to them), the landmarks, and
the batch's goals (sinks: nothing leads from them). So only three blocks of weights are needed: landmark to landmark
(`weigh_between`: the same for every batch), and state to landmark and landmark to goal (`weigh_ends`), with the direct
edge from each state to its goal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

# What an edge just over the cut-off costs on top of its weight, in cut-offs: more than any path without such an edge.
_CUT_PENALTY = 1e3
# What a pair costs that was not weighed, because it is not among the near ones: the last resort.
UNWEIGHED = 2.0**40

# (observation [P, O], achieved [P, G], target [P, G]) -> distance [P]
Distance = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


class Landmarks(NamedTuple):
    """Landmarks: observation [M, O], achieved [M, G], which of the M places hold one, and which are by novelty."""

    observation: jax.Array
    achieved: jax.Array
    present: jax.Array
    novel: jax.Array


class Ends(NamedTuple):
    """Weights of the edges at both ends of a path: from states [B, M], to goals [M, B], and directly [B].

    And which states are nearer to their goals than any landmark, in the goal space: [B].
    """

    state_landmark: jax.Array
    landmark_goal: jax.Array
    state_goal: jax.Array
    foremost: jax.Array


class Graph(NamedTuple):
    """Landmarks, the edges between them as they are cut [M, M], the lengths of the shortest paths [M, M].

    And what an edge weighs for its length in the goal space, a mean over those within the cut-off; and the
    `pose_factor` by which the edges that leave a landmark are divided [M].
    """

    landmarks: Landmarks
    edges: jax.Array
    lengths: jax.Array
    weight_per_distance: jax.Array
    pose: jax.Array


class Selection(NamedTuple):
    """The selected landmark of each state: its index (M: the goal itself), its point [B, G], and if a path existed."""

    index: jax.Array
    achieved: jax.Array
    path_exists: jax.Array


def farthest_points(points: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Choose `count` of the points [N, G] by farthest point sampling, starting with the first.

    Returns their indices [count], and which are real: when every remaining point coincides with a chosen one there
    is nothing left to choose.
    """

    def step(number: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        nearest, chosen, real = carry
        place = jnp.argmax(nearest)
        chosen, real = chosen.at[number].set(place), real.at[number].set(nearest[place] > 0)
        return jnp.minimum(nearest, _squares(points, points[place])), chosen, real

    if count == 0:
        return jnp.zeros(0, jnp.int32), jnp.zeros(0, bool)
    # The first point is the farthest from nothing.
    start = jnp.full(points.shape[0], jnp.inf).at[1:].set(jnp.finfo(points.dtype).max)
    carry = (start, jnp.zeros(count, jnp.int32), jnp.zeros(count, bool))
    _, chosen, real = jax.lax.fori_loop(0, count, step, carry)
    return chosen, real


def central_points(points: jax.Array, chosen: jax.Array) -> jax.Array:
    """Return for each chosen point [count] the one at the centre of those that are nearer to it than to the others.

    Farthest points lie on the rim of what was visited: along walls and in corners, where nobody should be led. This is
    one step of Lloyd's algorithm over the points [N, G], to points that exist: indices [count].
    """
    nearest = jnp.argmin(_squares(points[:, None], points[chosen][None]), axis=1)
    mine = nearest[None] == jnp.arange(len(chosen))[:, None]
    share = mine / jnp.maximum(jnp.sum(mine, axis=1, keepdims=True), 1)
    from_centre = _squares((share @ points)[:, None], points[None])
    central = jnp.argmin(jnp.where(mine, from_centre, jnp.inf), axis=1)
    # One that coincides with an earlier one has no points of its own.
    return jnp.where(jnp.any(mine, axis=1), central, chosen)


def _squares(first: jax.Array, second: jax.Array) -> jax.Array:
    """Return squared distances in the goal space: [..., G] -> [...]."""
    return jnp.sum(jnp.square(first - second), axis=-1)


def _nearest(landmarks: Landmarks, to: jax.Array, count: int) -> jax.Array:
    """Return the indices of `count` landmarks near to each of some points [N, G]: [N, count].

    One third are the nearest by novelty, the others the nearest by coverage: novelty landmarks lie in clusters, and a
    cluster whose members only had each other would be cut off from all the rest. Where one kind has too few, the
    nearest of the other kind stand in (the same may then be there twice).
    """
    by_novelty = count // 3
    square = _squares(landmarks.achieved[None], to[:, None])
    behind = jnp.where(landmarks.novel, 1.0 + jnp.max(square), 0.0)
    square = jnp.where(landmarks.present, square, jnp.inf)
    coverage = jax.lax.top_k(-(square + behind), count - by_novelty)[1]
    novelty = jax.lax.top_k(behind - square, by_novelty)[1]
    return jnp.concatenate([coverage, novelty], axis=1)


def weigh_between(distance: Distance, landmarks: Landmarks) -> jax.Array:
    """Weigh the edges between all landmarks, [M, M] (from, to); a landmark that is not there has none."""
    total = landmarks.present.shape[0]
    weights = distance(
        jnp.repeat(landmarks.observation, total, axis=0),
        jnp.repeat(landmarks.achieved, total, axis=0),
        jnp.tile(landmarks.achieved, (total, 1)),
    ).reshape(total, total)
    there = landmarks.present[:, None] & landmarks.present[None] & ~jnp.eye(total, dtype=bool)
    return jnp.where(there, weights, UNWEIGHED)


def weigh_ends(
    distance: Distance,
    graph: Graph,
    observation: jax.Array,
    achieved: jax.Array,
    desired: jax.Array,
    cutoff: float,
    neighbours: int,
    *,
    discount_pose: bool = False,
) -> Ends:
    """Weigh the edges that lead to goals and that leave states, `neighbours` of each (0: all).

    A goal's are those of the landmarks near to it. A state's are those that promise the shortest paths: by the lengths
    of the paths from each landmark on, and an estimate of the way there. Other pairs are `UNWEIGHED`. With
    `discount_pose` what leaves a state is divided by its `pose_factor`; what leaves a landmark is by the graph's.
    """
    landmarks = graph.landmarks
    total, batch = landmarks.present.shape[0], achieved.shape[0]

    def spread(x: jax.Array, places: jax.Array) -> jax.Array:
        return jnp.repeat(x, places.shape[1], axis=0)

    def scatter(places: jax.Array, values: jax.Array) -> jax.Array:
        """Return a dense [B, M] block with the values of each row's places, absent landmarks left out."""
        values = jnp.where(landmarks.present[places], values.reshape(places.shape), UNWEIGHED)
        return jnp.full((batch, total), UNWEIGHED).at[jnp.arange(batch)[:, None], places].set(values)

    everyone = jnp.broadcast_to(jnp.arange(total), (batch, total))
    few = 0 < neighbours < total
    incoming = _nearest(landmarks, desired, neighbours) if few else everyone
    weights = distance(
        jnp.concatenate([landmarks.observation[incoming.ravel()], observation]),
        jnp.concatenate([landmarks.achieved[incoming.ravel()], achieved]),
        jnp.concatenate([spread(desired, incoming), desired]),
    )
    landmark_goal = scatter(incoming, weights[: incoming.size] / graph.pose[incoming.ravel()]).T

    to_goal = _lengths_to_goals(graph, _cut(landmark_goal, cutoff, 0))
    outgoing = _promising(graph, achieved, to_goal, cutoff, neighbours) if few else everyone
    from_state = distance(
        spread(observation, outgoing), spread(achieved, outgoing), landmarks.achieved[outgoing.ravel()]
    )
    state_goal = weights[incoming.size :]
    if discount_pose:
        away = jnp.sqrt(_squares(landmarks.achieved[outgoing], achieved[:, None]))
        per_distance, there = graph.weight_per_distance, landmarks.present[outgoing]
        factor = pose_factor(per_distance, away, from_state.reshape(outgoing.shape), there)
        from_state, state_goal = from_state / jnp.repeat(factor, outgoing.shape[1]), state_goal / factor
    to_landmarks = jnp.where(landmarks.present, _squares(landmarks.achieved[None], desired[:, None]), jnp.inf)
    foremost = jnp.all(_squares(achieved, desired)[:, None] <= to_landmarks, axis=1)
    return Ends(scatter(outgoing, from_state), landmark_goal, state_goal, foremost)


def pose_factor(weight_per_distance: jax.Array, away: jax.Array, weights: jax.Array, present: jax.Array) -> jax.Array:
    """Return how many times farther everything is from a state than is usual, but at least 1: [B, N] -> [B].

    To a body that is stuck, or lies on its back, every landmark is far, and the edges that the cut-off leaves are those
    to landmarks right beside it. These are on no way to anywhere: their directions are random, and a high level that
    learns to follow them proposes no way at all, though the body may only have halted. A landmark where a body fell is
    a place like any other, too: with edges as long as from its back, paths would end there.
    """
    usual = weight_per_distance * away
    ratio = jnp.where(present & (usual > 0), weights / jnp.maximum(usual, 1e-6), jnp.inf)
    least = jnp.min(ratio, axis=1)
    return jnp.where(jnp.isfinite(least), jnp.maximum(1.0, least), 1.0)


def _promising(graph: Graph, achieved: jax.Array, to_goal: jax.Array, cutoff: float, count: int) -> jax.Array:
    """Return the landmarks that promise the shortest paths from each state [B, G] on, as `to_goal` [M, B] has them."""
    away = jnp.sqrt(_squares(graph.landmarks.achieved[None], achieved[:, None]))
    estimate = graph.weight_per_distance * away
    length = jnp.where(estimate <= cutoff, estimate, _cut_cost(estimate, cutoff)) + to_goal.T
    return jax.lax.top_k(-jnp.where(graph.landmarks.present, length, jnp.inf), count)[1]


def cut_penalty(cutoff: float) -> float:
    """Return the least that an edge over the cut-off costs: a path that costs as much does not exist."""
    return _CUT_PENALTY * cutoff


def _cut_cost(weight: jax.Array, cutoff: float) -> jax.Array:
    """Return what an edge over the cut-off costs, if there is no way without one.

    The penalty grows with the square: some gaps a little over the cut-off, along a corridor, rather than one leap over
    its wall, of which the low level's value knows nothing.
    """
    return jnp.minimum(weight + cut_penalty(cutoff) * jnp.square(weight / cutoff), UNWEIGHED)


def _cut(block: jax.Array, cutoff: float, keep_along: int) -> jax.Array:
    """Make edges over the cut-off cost more, but for the shortest one along an axis."""
    shortest = block <= jnp.min(block, axis=keep_along, keepdims=True)
    return jnp.where((block <= cutoff) | shortest, block, _cut_cost(block, cutoff))


def cut_between(weights: jax.Array, cutoff: float) -> jax.Array:
    """Cut the edges between landmarks, [M, M]; each landmark keeps its shortest incoming one."""
    return _cut(weights, cutoff, 0)


def cut_ends(ends: Ends, cutoff: float) -> Ends:
    """Cut the edges that leave states and lead to goals; each goal keeps its shortest incoming one.

    A state has no incoming edges; it keeps its shortest outgoing one. The direct edge of a state to its goal is kept
    too where no landmark is nearer to the goal, in the goal space: the low level's value of a far goal says little.
    """
    direct = jnp.where((ends.state_goal <= cutoff) | ends.foremost, ends.state_goal, _cut_cost(ends.state_goal, cutoff))
    return ends._replace(
        state_landmark=_cut(ends.state_landmark, cutoff, 1),
        landmark_goal=_cut(ends.landmark_goal, cutoff, 0),
        state_goal=direct,
    )


def shortest_distances(weights: jax.Array) -> jax.Array:
    """Return the lengths of the shortest paths between all landmarks, [M, M] (Floyd and Warshall)."""
    total = weights.shape[0]
    start = jnp.where(jnp.eye(total, dtype=bool), 0.0, weights)

    def through(node: jax.Array, distance: jax.Array) -> jax.Array:
        return jnp.minimum(distance, distance[:, node, None] + distance[None, node, :])

    return jax.lax.fori_loop(0, total, through, start)


def build_graph(distance: Distance, landmarks: Landmarks, cutoff: float, *, discount_pose: bool = False) -> Graph:
    """Weigh and cut the edges between landmarks, and find the shortest paths."""
    return graph_of(landmarks, weigh_between(distance, landmarks), cutoff, discount_pose=discount_pose)


def graph_of(landmarks: Landmarks, weights: jax.Array, cutoff: float, *, discount_pose: bool = False) -> Graph:
    """Return the graph of landmarks with given weights [M, M] between them.

    With `discount_pose` what leaves a landmark is divided by its `pose_factor`.
    """
    away = jnp.sqrt(_squares(landmarks.achieved[:, None], landmarks.achieved[None]))
    short = jnp.where((weights <= cutoff) & (away > 0), 1.0, 0.0)
    per_distance = jnp.sum(short * weights) / jnp.maximum(jnp.sum(short * away), 1e-6)
    pose = jnp.ones_like(landmarks.present, weights.dtype)
    if discount_pose:
        pose = pose_factor(per_distance, away, weights, landmarks.present[None])
        weights = jnp.where(weights < UNWEIGHED, weights / pose[:, None], UNWEIGHED)
    edges = cut_between(weights, cutoff)
    return Graph(landmarks, edges, shortest_distances(edges), per_distance, pose)


def _lengths_to_goals(graph: Graph, landmark_goal: jax.Array) -> jax.Array:
    """Return the lengths of the shortest paths from each landmark to each goal, [M, B], by its edges to goals."""
    return jnp.min(graph.lengths[:, :, None] + landmark_goal[None], axis=1)


def select(graph: Graph, ends: Ends, desired: jax.Array, cutoff: float, goal_within: float) -> Selection:
    """Return the first landmark on the shortest path from each state to its own goal [B, G].

    The goal itself is selected when it is within `goal_within`, when the direct edge is the shortest path, and
    when there is no landmark at all.
    """
    landmarks, edges = graph.landmarks, cut_ends(ends, cutoff)
    lengths = edges.state_landmark + _lengths_to_goals(graph, edges.landmark_goal).T
    first = jnp.argmin(lengths, axis=1)
    length = jnp.min(lengths, axis=1)
    directly = (ends.state_goal <= goal_within) | (edges.state_goal <= length) | ~jnp.any(landmarks.present)
    index = jnp.where(directly, landmarks.present.shape[0], first)
    point = jnp.where(directly[:, None], desired, landmarks.achieved[first])
    return Selection(index, point, jnp.minimum(length, edges.state_goal) < cut_penalty(cutoff))
