"""Landmarks: sampling them, the graph over them, and the first landmark on the shortest path (sections 4.1, 4.2).

The graph has three kinds of nodes: the batch's current states (sources: nothing leads to them), the landmarks, and
the batch's goals (sinks: nothing leads from them). So only three blocks of weights are needed: state to landmark,
landmark to landmark, landmark to goal; and the direct edge from each state to its goal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

# What an edge over the cut-off costs on top of its weight: such an edge is taken only if there is no other way.
CUT_PENALTY = 1e4
# What a pair costs that was not weighed, because it is not among the near ones: the last resort.
UNWEIGHED = 1e7

# (observation [P, O], achieved [P, G], target [P, G]) -> distance [P]
Distance = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


# Where the path to a goal ends that no landmark is near to.
Unreached = Literal["nearest", "novel"]


class Landmarks(NamedTuple):
    """Landmarks: observation [M, O], achieved [M, G], which of the M places hold one, and which are by novelty."""

    observation: jax.Array
    achieved: jax.Array
    present: jax.Array
    novel: jax.Array


class Weights(NamedTuple):
    """Edge weights: [B, M] and [M, M] and [M, B] (from, to); [B] for each state's direct edge to its goal."""

    state_landmark: jax.Array
    landmark_landmark: jax.Array
    landmark_goal: jax.Array
    state_goal: jax.Array


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
        distance = jnp.sum(jnp.square(points - points[place]), axis=-1)
        return jnp.minimum(nearest, distance), chosen, real

    if count == 0:
        return jnp.zeros(0, jnp.int32), jnp.zeros(0, bool)
    # The first point is the farthest from nothing.
    start = jnp.full(points.shape[0], jnp.inf).at[1:].set(jnp.finfo(points.dtype).max)
    carry = (start, jnp.zeros(count, jnp.int32), jnp.zeros(count, bool))
    _, chosen, real = jax.lax.fori_loop(0, count, step, carry)
    return chosen, real


def _nearest(points: jax.Array, present: jax.Array, to: jax.Array, count: int) -> jax.Array:
    """Return the indices of the `count` present points [M, G] nearest to each of some others [N, G]: [N, count]."""
    square = jnp.sum(jnp.square(points[None] - to[:, None]), axis=-1)
    return jax.lax.top_k(-jnp.where(present, square, jnp.inf), count)[1]


def weigh(
    distance: Distance,
    landmarks: Landmarks,
    observation: jax.Array,
    achieved: jax.Array,
    desired: jax.Array,
    neighbours: int,
) -> Weights:
    """Weigh the edges, each node's `neighbours` nearest landmarks only (0: all); other pairs are `UNWEIGHED`.

    All weights come from one call of `distance`, so that its networks see one large batch.
    """
    total, batch = landmarks.present.shape[0], achieved.shape[0]
    near = total if neighbours == 0 else min(neighbours, total)
    # One more towards a landmark: the nearest is itself.
    near_inner = min(near + 1, total)
    inner = _nearest(landmarks.achieved, landmarks.present, landmarks.achieved, near_inner)
    outgoing = _nearest(landmarks.achieved, landmarks.present, achieved, near)
    incoming = _nearest(landmarks.achieved, landmarks.present, desired, near)

    def spread(x: jax.Array, count: int) -> jax.Array:
        return jnp.repeat(x, count, axis=0)

    sources = (
        (landmarks.observation[inner.ravel()], landmarks.achieved[inner.ravel()]),
        (spread(observation, near), spread(achieved, near)),
        (landmarks.observation[incoming.ravel()], landmarks.achieved[incoming.ravel()]),
        (observation, achieved),
    )
    targets = (
        spread(landmarks.achieved, near_inner),
        landmarks.achieved[outgoing.ravel()],
        spread(desired, near),
        desired,
    )
    weights = distance(
        jnp.concatenate([source[0] for source in sources]),
        jnp.concatenate([source[1] for source in sources]),
        jnp.concatenate(targets),
    )
    ends = (total * near_inner, total * near_inner + batch * near, total * near_inner + 2 * batch * near)
    to_landmark, from_state, to_goal, direct = jnp.split(weights, ends)

    def scatter(places: jax.Array, values: jax.Array) -> jax.Array:
        """Return a dense [N, M] block with the values of each row's places, absent landmarks left out."""
        rows = jnp.arange(places.shape[0])[:, None]
        values = jnp.where(landmarks.present[places], values.reshape(places.shape), UNWEIGHED)
        return jnp.full((places.shape[0], total), UNWEIGHED).at[rows, places].set(values)

    between = scatter(inner, to_landmark).T
    between = jnp.where(landmarks.present[None, :], between, UNWEIGHED)
    between = jnp.where(jnp.eye(total, dtype=bool), UNWEIGHED, between)
    return Weights(scatter(outgoing, from_state), between, scatter(incoming, to_goal).T, direct)


def cut(weights: Weights, cutoff: float) -> Weights:
    """Make edges over the cut-off cost `CUT_PENALTY` more, but for each node's shortest incoming one.

    A state has no incoming edges; it keeps its shortest outgoing one. The direct edge of a state to its goal is kept
    too where no landmark is nearer to the goal.
    """

    def penalise(block: jax.Array, axis: int) -> jax.Array:
        shortest = block <= jnp.min(block, axis=axis, keepdims=True)
        return jnp.where((block <= cutoff) | shortest, block, block + CUT_PENALTY)

    kept = (weights.state_goal <= cutoff) | (weights.state_goal <= jnp.min(weights.landmark_goal, axis=0))
    direct = jnp.where(kept, weights.state_goal, weights.state_goal + CUT_PENALTY)
    return Weights(
        penalise(weights.state_landmark, 1),
        penalise(weights.landmark_landmark, 0),
        penalise(weights.landmark_goal, 0),
        direct,
    )


def shortest_distances(weights: jax.Array) -> jax.Array:
    """Return the lengths of the shortest paths between all landmarks, [M, M] (Floyd and Warshall)."""
    total = weights.shape[0]
    start = jnp.where(jnp.eye(total, dtype=bool), 0.0, weights)

    def through(node: jax.Array, distance: jax.Array) -> jax.Array:
        return jnp.minimum(distance, distance[:, node, None] + distance[None, node, :])

    return jax.lax.fori_loop(0, total, through, start)


def lead_to_frontier(
    landmarks: Landmarks, weights: Weights, edges: Weights, desired: jax.Array, cutoff: float, goal_within: float
) -> Weights:
    """Let the path to a goal that no landmark is near to lead over the novelty landmark nearest to that goal.

    The low level's value knows no walls, so the landmark from which an unreached goal looks nearest may lie just
    across one, and a state that heads for it pushes against the wall for ever. Novelty landmarks lie at the frontier
    of what has been visited: from the one that is nearest to the goal there is something to be found. A state that
    has come to it goes on to the goal itself.
    """
    novel = landmarks.present & landmarks.novel
    unreached = (jnp.min(weights.landmark_goal, axis=0) > cutoff) & jnp.any(novel)
    square = jnp.sum(jnp.square(landmarks.achieved[:, None] - desired[None]), axis=-1)
    frontier = jnp.argmin(jnp.where(novel[:, None], square, jnp.inf), axis=0)
    is_frontier = jnp.arange(novel.shape[0])[:, None] == frontier[None]
    to_goal = jnp.where(is_frontier, cutoff, weights.landmark_goal + CUT_PENALTY)
    there = jnp.take_along_axis(weights.state_landmark, frontier[:, None], axis=1)[:, 0] <= goal_within
    direct = jnp.where(there, 0.0, weights.state_goal + CUT_PENALTY)
    return edges._replace(
        landmark_goal=jnp.where(unreached, to_goal, edges.landmark_goal),
        state_goal=jnp.where(unreached, direct, edges.state_goal),
    )


def planned_edges(
    landmarks: Landmarks,
    weights: Weights,
    desired: jax.Array,
    cutoff: float,
    goal_within: float,
    unreached: Unreached = "nearest",
) -> Weights:
    """Return what each edge costs the planner."""
    edges = cut(weights, cutoff)
    if unreached == "novel":
        edges = lead_to_frontier(landmarks, weights, edges, desired, cutoff, goal_within)
    return edges


def select(
    landmarks: Landmarks,
    weights: Weights,
    desired: jax.Array,
    cutoff: float,
    goal_within: float,
    unreached: Unreached = "nearest",
) -> Selection:
    """Return the first landmark on the shortest path from each state to its own goal [B, G].

    The goal itself is selected when it is within `goal_within`, when the direct edge is the shortest path, and
    when there is no landmark at all. With `unreached` "novel", see `lead_to_frontier`.
    """
    edges = planned_edges(landmarks, weights, desired, cutoff, goal_within, unreached)
    between = shortest_distances(edges.landmark_landmark)
    # From each landmark to each goal: [M, B].
    to_goal = jnp.min(between[:, :, None] + edges.landmark_goal[None], axis=1)
    lengths = edges.state_landmark + to_goal.T
    first = jnp.argmin(lengths, axis=1)
    length = jnp.min(lengths, axis=1)
    directly = (weights.state_goal <= goal_within) | (edges.state_goal <= length) | ~jnp.any(landmarks.present)
    index = jnp.where(directly, landmarks.present.shape[0], first)
    point = jnp.where(directly[:, None], desired, landmarks.achieved[first])
    return Selection(index, point, jnp.minimum(length, edges.state_goal) < CUT_PENALTY)
