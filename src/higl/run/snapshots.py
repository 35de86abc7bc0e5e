"""Snapshots: the visited states, landmarks and graph of a run at one moment, small enough to keep many.

The maps of `higl landmarks` and the report page are drawn from these. Taking one uses its own random keys and changes
neither the learner nor the environment.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import gymnasium
import jax
import numpy as np
from scipy.sparse.csgraph import dijkstra

from higl.algo import planner
from higl.algo.episodes import Episode
from higl.algo.frontier import familiarity
from higl.algo.learner import Learner, LearnerState, Stages
from higl.algo.policy import goal_unit
from higl.algo.subgoals import subgoal_target
from higl.algo.walked import Chart, Walker, last_or_source
from higl.envs.maps import Maze

VISITED = 2_000
"""Most visited states in a snapshot."""
# Without a goal, one in so many landmarks of a walked map is shown as its frontier.
_FRONTIER = 10
# Separates the keys of snapshots from those of the learner, which are folded with the number of an episode.
_OWN_KEY = 0x5EE

Snapshot = dict[str, np.ndarray]


def take_snapshot(learner: Learner, env: gymnasium.Env, episode: Episode | None) -> Snapshot:
    """Return everything that figures draw, as float32 and int32 arrays; parts that do not exist are empty.

    Always: `step` [], `visited` [N, G] (a sample of the goal-space points in the low level's buffer), `walls` [W, 4]
    (low x, low y, high x, high y of a maze's walls), `radius` [] (of success; NaN if unknown). With landmarks:
    `coverage` [C, G], `novelty` [K, G], `novelty_score` [K], `planning` [] (1 once the planner guides the high level).
    Of a walked map, all landmarks are `coverage`, and without a goal the least familiar ones `novelty`.

    Of the first state of an episode: `state` [G], `goal` [G], `subgoal` [G] (the point that the high level asks for);
    of the whole episode the points that it asked for, `subgoals` [S, G]. With landmarks also the graph: `nodes` [N, G]
    (state, coverage, novelty, goal), `edges` [E, 2] (from, to), `edge_weights` [E], `path` [L] (nodes of the shortest
    path to the goal), `selected` [G], `pseudo_landmark` [G].
    """
    goal_size = learner.spaces.goal
    size = int(learner.state.low_buffer.size)
    program = _program(learner.stages)
    places, count = _places(size, learner)
    key = jax.random.fold_in(jax.random.fold_in(learner.key, _OWN_KEY), learner.steps)
    found = jax.device_get(program(learner.state, key, places, *_first_state(learner, episode)))
    unit = goal_unit(learner.config, learner.spaces)
    snapshot = _empty(goal_size) | {"step": np.asarray(learner.steps), "visited": found["visited"][:count] * unit}
    snapshot |= _scene(env)
    if episode is not None:
        snapshot |= _of_episode(learner, episode)
    if learner.map is not None:
        chart = learner.map.chart()
        snapshot |= _walked(chart, snapshot, unit)
        if learner.config.explores_freely and len(chart.points):
            snapshot |= _frontier(chart, unit)
    elif learner.config.uses_landmarks:
        found |= {name: found[name] * unit for name in ("landmarks", "selected", "pseudo_landmark")}
        coverage, novelty = _split(learner, found)
        snapshot |= {"coverage": coverage, "novelty": novelty}
        snapshot["novelty_score"] = found["score"][found["present"][learner.config.landmarks.coverage :]]
        snapshot["planning"] = np.asarray(learner.before + learner.steps >= learner.config.landmarks.start)
        if episode is not None and size > 0:
            snapshot |= _graph(found, snapshot, learner.config.landmarks.cutoff)
    return {name: _plain(value) for name, value in snapshot.items()}


@lru_cache(maxsize=4)
def _program(stages: Stages) -> Any:
    """Return the compiled program for a learner's stages."""

    def program(
        state: LearnerState,
        key: jax.Array,
        places: jax.Array,
        observation: jax.Array,
        achieved: jax.Array,
        desired: jax.Array,
    ) -> dict[str, jax.Array]:
        found = {"visited": state.low_buffer.rows.achieved[places]}
        if not stages.config.uses_landmarks or stages.config.walks_map:
            return found
        config, queue = stages.config.landmarks, state.novelty.queue
        graph = stages.graph(state, key)
        query = planner.Query(observation, achieved, desired)
        weights = planner.endpoint_edges(config, stages.distance(state), graph, query)
        selection = planner.select(config, graph, weights, desired)
        edges = planner.cut_endpoints(config, weights)
        return found | {
            "landmarks": graph.landmarks.achieved,
            "present": graph.landmarks.present,
            "score": queue.score,
            "state_landmark": edges.state_landmark[0],
            "landmark_landmark": graph.edges,
            "landmark_goal": edges.landmark_goal[:, 0],
            "state_goal": edges.state_goal[0],
            "index": selection.index[0],
            "selected": selection.point[0],
            "pseudo_landmark": planner.pseudo_landmark(config, achieved, selection.point)[0],
        }

    return jax.jit(program)


def _places(size: int, learner: Learner) -> tuple[np.ndarray, int]:
    """Return `VISITED` rows to read from a buffer that holds `size` rows, and how many of them are valid."""
    rng = np.random.default_rng([_OWN_KEY, learner.config.seed, learner.steps])
    count = min(size, VISITED)
    places = np.zeros(VISITED, np.int32)
    places[:count] = np.arange(size) if size <= VISITED else rng.choice(size, VISITED, replace=False)
    return places, count


def _first_state(learner: Learner, episode: Episode | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an episode's first observation [1, O], achieved [1, G] and desired goal [1, G], or zeros."""
    if episode is None:
        goal = np.zeros((1, learner.spaces.goal), np.float32)
        return np.zeros((1, learner.spaces.observation), np.float32), goal, goal
    unit = goal_unit(learner.config, learner.spaces)
    return episode.observation[:1], episode.achieved[:1] / unit, episode.desired[:1] / unit


def _of_episode(learner: Learner, episode: Episode) -> Snapshot:
    """Return the first state, the goal, and the points that the high level asked for."""
    starts, _ = episode.segments
    targets = subgoal_target(learner.config.high.subgoals, episode.subgoal[starts], episode.achieved[starts])
    return {
        "state": episode.achieved[0],
        "goal": episode.desired[0],
        "subgoal": targets[0],
        "subgoals": targets,
    }


def _split(learner: Learner, found: Snapshot) -> tuple[np.ndarray, np.ndarray]:
    """Return the landmarks that are present: by coverage [C, G], by novelty [K, G]."""
    coverage = learner.config.landmarks.coverage
    points, present = found["landmarks"], found["present"].copy()
    if int(learner.state.low_buffer.size) == 0:
        present[:coverage] = False
    return points[:coverage][present[:coverage]], points[coverage:][present[coverage:]]


def _graph(found: Snapshot, snapshot: Snapshot, cutoff: float) -> Snapshot:
    """Return the graph of landmarks, first state and goal, cut as the planner cuts it, and the shortest path."""
    present = np.flatnonzero(found["present"])
    count = len(present)
    # Nodes: the state, the landmarks, the goal.
    weights = np.full((count + 2, count + 2), planner.UNWEIGHED, np.float32)
    weights[0, 1:-1] = found["state_landmark"][present]
    weights[1:-1, 1:-1] = found["landmark_landmark"][np.ix_(present, present)]
    weights[1:-1, -1] = found["landmark_goal"][present]
    weights[0, -1] = found["state_goal"]
    edges = np.argwhere(weights < planner.cut_penalty(cutoff))
    return {
        "nodes": np.concatenate(
            [snapshot["state"][None], snapshot["coverage"], snapshot["novelty"], snapshot["goal"][None]]
        ),
        "edges": edges,
        "edge_weights": weights[edges[:, 0], edges[:, 1]],
        "path": _shortest_path(weights, _node_of(int(found["index"]), present, count)),
        "selected": found["selected"],
        "pseudo_landmark": found["pseudo_landmark"],
    }


def _walked(chart: Chart, snapshot: Snapshot, unit: np.ndarray) -> Snapshot:
    """Return the landmarks of a walked map and, if there is a first state, the way from it to its goal.

    Nodes: the state, the landmarks, the goal.
    """
    points = chart.points * unit
    found = {"coverage": points, "planning": np.asarray(1)}
    if not len(points) or not snapshot["state"].size:
        return found
    walker = Walker(chart, 1).see(snapshot["state"] / unit)
    way, before = walker.roads.ways(walker.node)
    last, _ = last_or_source(chart, chart.vain, way, snapshot["goal"] / unit)
    path = [last]
    while before[path[-1]] >= 0:
        path.append(int(before[path[-1]]))
    return found | {
        "nodes": np.concatenate([snapshot["state"][None], points, snapshot["goal"][None]]),
        "edges": 1 + np.stack([chart.start, chart.end], axis=1),
        "edge_weights": chart.steps,
        "path": np.asarray([0, *(1 + node for node in reversed(path)), len(points) + 1]),
        "selected": points[path[-2] if len(path) > 1 else path[0]],
    }


def _frontier(chart: Chart, unit: np.ndarray) -> Snapshot:
    """Return the landmarks of a walked map that are least familiar, as novel ones, with their scores."""
    score = 1.0 / (1.0 + familiarity(chart.visits, chart.start, chart.end))
    novel = np.argsort(-score, kind="stable")[: -(-len(score) // _FRONTIER)]
    return {"novelty": chart.points[novel] * unit, "novelty_score": score[novel]}


def _node_of(index: int, present: np.ndarray, count: int) -> int:
    """Return the node of a selected landmark; the goal's, if the goal itself was selected."""
    where = np.flatnonzero(present == index)
    return 1 + int(where[0]) if len(where) else count + 1


def _shortest_path(weights: np.ndarray, first: int) -> np.ndarray:
    """Return the nodes from the state through the selected one to the goal: [L]."""
    goal = len(weights) - 1
    _, before = dijkstra(np.maximum(weights, 1e-6), indices=first, return_predecessors=True)
    path = [goal]
    while path[-1] != first:
        path.append(int(before[path[-1]]))
    return np.asarray([0, *reversed(path)])


def _scene(env: gymnasium.Env) -> Snapshot:
    """Return the walls and the success radius of an environment that has them."""
    inner: Any = env.unwrapped
    scene = {"radius": np.asarray(getattr(getattr(inner, "task", None), "radius", np.nan))}
    maze = getattr(inner, "maze", None)
    if isinstance(maze, Maze):
        scene["walls"] = np.asarray(maze.wall_boxes(), np.float32).reshape(-1, 4)
    return scene


def _empty(goal_size: int) -> Snapshot:
    """Return every part of a snapshot, empty."""
    points, point = np.zeros((0, goal_size), np.float32), np.zeros(0, np.float32)
    return {
        "visited": points, "coverage": points, "novelty": points, "subgoals": points, "nodes": points,
        "state": point, "goal": point, "subgoal": point, "selected": point, "pseudo_landmark": point,
        "novelty_score": point, "edge_weights": point, "walls": np.zeros((0, 4), np.float32),
        "edges": np.zeros((0, 2), np.int32), "path": np.zeros(0, np.int32), "planning": np.asarray(0, np.int32),
    }  # fmt: skip


def _plain(value: Any) -> np.ndarray:
    """Return a copy of a value as a float32 or int32 array."""
    kind = np.float32 if np.issubdtype(np.asarray(value).dtype, np.floating) else np.int32
    return np.array(value, kind)
