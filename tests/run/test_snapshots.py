"""Snapshots: what they hold, and that taking one changes nothing."""

import dataclasses
from itertools import pairwise

import gymnasium
import jax
import numpy as np
import pytest
from support.toy import SPACES, PointEnv, tiny_config

import higl.envs
from higl.algo import planner
from higl.algo.episodes import collect_episode, in_units
from higl.algo.learner import Learner
from higl.algo.policy import Spaces
from higl.run.snapshots import VISITED, _program, take_snapshot
from higl.settings.config import Config, LandmarksConfig

SMALL = {"hidden": (16, 16), "batch_size": 8, "buffer_size": 3_000}


def small_config(**changes) -> Config:
    config = Config(task="point-maze", **SMALL, landmarks=LandmarksConfig(coverage=5, novelty=4))
    return dataclasses.replace(config, **changes)


def make(task: str, **changes):
    env = gymnasium.make(higl.envs.find_task(task).id, reward="sparse", mode="test")
    learner = Learner(small_config(task=task, **changes), Spaces.of(env))
    return learner, env


def lived_in(task: str, **changes):
    learner, env = make(task, **changes)
    episode = collect_episode(env, learner.policy, 1, explore=True)
    learner.remember(episode)
    learner.steps += len(episode)
    return learner, env, episode


def test_a_snapshot_holds_points_landmarks_and_the_graph():
    learner, env, episode = lived_in("point-maze")
    snapshot = take_snapshot(learner, env, episode)
    assert snapshot["visited"].shape == (500, 2)
    rows = {tuple(row) for row in episode.achieved}
    for name in ("visited", "coverage", "novelty"):
        assert {tuple(row) for row in snapshot[name]} <= rows
    assert len(snapshot["coverage"]) == 5
    assert len(snapshot["novelty"]) == len(snapshot["novelty_score"]) == 4
    assert snapshot["step"] == 500
    assert snapshot["radius"] == 2.5
    assert len(snapshot["walls"]) == 18
    assert snapshot["walls"][0].tolist() == [-6.0, -6.0, -2.0, -2.0]
    assert {value.dtype for value in snapshot.values()} <= {np.dtype("float32"), np.dtype("int32")}
    assert len(snapshot["subgoals"]) == 50
    np.testing.assert_array_equal(snapshot["subgoals"][0], snapshot["subgoal"])


def test_the_path_runs_from_the_state_over_the_selected_landmark_to_the_goal():
    learner, env, episode = lived_in(
        "point-maze", landmarks=LandmarksConfig(coverage=5, novelty=4, goal_within=-1.0, cutoff=0.05, shift=2.0)
    )
    snapshot = take_snapshot(learner, env, episode)
    nodes, path = snapshot["nodes"], snapshot["path"]
    np.testing.assert_array_equal(nodes[path[0]], snapshot["state"])
    np.testing.assert_array_equal(nodes[path[1]], snapshot["selected"])
    np.testing.assert_array_equal(nodes[path[-1]], snapshot["goal"])
    assert len(set(path.tolist())) == len(path)
    offset = snapshot["pseudo_landmark"] - snapshot["state"]
    assert np.linalg.norm(offset) == pytest.approx(2.0, abs=1e-4)
    assert (snapshot["edge_weights"] < planner.cut_penalty(0.05)).all()
    assert (snapshot["edges"][:, 0] != snapshot["edges"][:, 1]).all()


def test_taking_a_snapshot_changes_nothing_and_is_repeatable():
    learner, env, episode = lived_in("point-maze")
    before = jax.device_get((jax.random.key_data(learner.key), learner.state))
    rng = env.unwrapped.get_state()["rng"]
    first, second = (take_snapshot(learner, env, episode) for _ in range(2))
    after = jax.device_get((jax.random.key_data(learner.key), learner.state))
    assert jax.tree.all(jax.tree.map(np.array_equal, before, after))
    assert env.unwrapped.get_state()["rng"] == rng
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])


def test_one_program_serves_all_snapshots_of_a_learner():
    learner, env, episode = lived_in("point-maze")
    take_snapshot(learner, env, None)
    for seed in range(2, 7):
        learner.remember(collect_episode(env, learner.policy, seed, explore=True))
        assert len(take_snapshot(learner, env, episode)["visited"]) <= VISITED
    assert _program(learner.stages)._cache_size() == 1


@pytest.mark.parametrize("algo", ["hrac", "hiro"])
def test_without_landmarks_there_are_visited_states_only(algo):
    learner, env, episode = lived_in("point-maze", algo=algo)
    snapshot = take_snapshot(learner, env, episode)
    assert len(snapshot["visited"]) == 500
    for name in ("coverage", "novelty", "nodes", "edges", "path", "selected", "pseudo_landmark"):
        assert snapshot[name].size == 0
    assert snapshot["subgoal"].shape == (2,)


def test_a_goal_space_of_six_dimensions():
    learner, env, episode = lived_in("pusher")
    snapshot = take_snapshot(learner, env, episode)
    assert snapshot["visited"].shape == (100, 6)
    assert snapshot["nodes"].shape[1] == 6
    assert snapshot["walls"].shape == (0, 4)


def test_before_anything_was_seen():
    learner, env = make("point-maze")
    episode = collect_episode(env, learner.policy, 1, explore=False)
    for given in (None, episode):
        snapshot = take_snapshot(learner, env, given)
        assert snapshot["visited"].shape == (0, 2)
        assert snapshot["coverage"].shape == (0, 2)
        assert snapshot["path"].size == 0


def test_a_walked_map_in_the_units_of_the_environment():
    config = tiny_config(goal_unit=(2.0, 0.5), landmarks={"graph": "walked", "coverage": 80})
    learner, env, unit = Learner(config, SPACES), PointEnv(steps=40), np.array([2.0, 0.5], np.float32)
    assert take_snapshot(learner, env, None)["coverage"].shape == (0, 2)
    for seed in range(3):
        episode = collect_episode(env, learner.policy, seed, explore=True)
        learner.remember(in_units(episode, unit))
        learner.steps += len(episode)
    snapshot, chart = take_snapshot(learner, env, episode), learner.map.chart()
    np.testing.assert_allclose(snapshot["visited"][-40:], episode.achieved[:-1], atol=1e-5)
    np.testing.assert_allclose(snapshot["coverage"], chart.points * unit, rtol=1e-6)
    assert len(snapshot["coverage"]) > 10
    nodes, edges, path = snapshot["nodes"], snapshot["edges"], snapshot["path"].tolist()
    np.testing.assert_array_equal(nodes[[0, -1]], [episode.achieved[0], episode.desired[0]])
    np.testing.assert_array_equal(nodes[1:-1], snapshot["coverage"])
    assert len(edges) == len(snapshot["edge_weights"]) == len(chart.start)
    assert set(edges.ravel().tolist()) <= set(range(1, len(nodes) - 1))
    # The path runs along walked or guessed edges, from the state by way of landmarks to the goal.
    assert (path[0], path[-1]) == (0, len(nodes) - 1)
    assert {*pairwise(path[1:-1])} <= {(int(a), int(b)) for a, b in [*edges, *(1 + chart.guesses)]}
    nearest = np.linalg.norm((snapshot["coverage"] - snapshot["state"]) / unit, axis=1).argmin()
    assert path[1] == 1 + nearest
    assert snapshot["selected"].tolist() in nodes[path[1:-1]].tolist()
    assert snapshot["planning"] == 1
    assert snapshot["novelty"].size == 0


def test_the_frontier_of_a_map_without_a_goal():
    """The landmarks around which little time was spent, in the environment's units."""
    config = tiny_config(goal="none", goal_unit=(0.5,), landmarks={"graph": "walked", "coverage": 60})
    learner = Learner(config, SPACES)
    assert learner.map is not None
    known, new = (np.stack([np.linspace(*ends, 60), np.zeros(60)], 1) for ends in ((0.0, 6.0), (6.0, 12.0)))
    for trajectory in (known, known, known, new):
        learner.map.add_episode(trajectory.astype(np.float32), trajectory[5::5], np.arange(0, 60, 5))
    snapshot = take_snapshot(learner, PointEnv(), None)
    assert 1 <= len(snapshot["novelty"]) == len(snapshot["novelty_score"]) <= 1 + len(snapshot["coverage"]) // 10
    assert snapshot["novelty"][:, 0].min() > 3.0
    assert snapshot["novelty"][:, 0].max() <= 6.0
    assert {tuple(point) for point in snapshot["novelty"]} <= {tuple(point) for point in snapshot["coverage"]}
    learner.config = tiny_config(landmarks={"graph": "walked", "coverage": 60})
    assert len(take_snapshot(learner, PointEnv(), None)["novelty"]) == 0
