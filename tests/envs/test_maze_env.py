"""Bodies in mazes: walls, starts, observations, rewards, custom maps."""

import itertools
import math

import gymnasium
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from higl.envs import TASKS
from higl.envs.maps import W_SHAPE

MAZES = [task for task in TASKS if task.map is not None]
all_mazes = pytest.mark.parametrize("task", MAZES, ids=lambda task: task.name)
POINT, ANT, W = "higl/PointMaze-v0", "higl/AntMazeU-v0", "higl/AntMazeW-v0"


def make(name, **options):
    return gymnasium.make(name, **options).unwrapped


def put(env, x, y):
    """Move the body without any check, at rest."""
    env.data.qpos[:2] = x, y
    env.data.qvel[:] = 0


@all_mazes
def test_start(task):
    env = make(task.id)
    cells = set()
    for seed in range(200):
        observation = env.reset(seed=seed)[0]["observation"]
        cell = env.maze.cell_at(observation[0], observation[1])
        cells.add(cell)
        x, y = env.maze.centre(cell)
        assert abs(observation[0] - x) <= 0.1
        assert abs(observation[1] - y) <= 0.1
        assert not env.maze.in_wall(observation[0], observation[1])
        assert observation[-1] == 0.0
    assert cells <= set(env.maze.starts)
    assert len(cells) > 0.8 * len(env.maze.starts)


def test_w_never_starts_at_the_goals_cells():
    env = make(W)
    cells = {env.maze.cell_at(*env.reset(seed=seed)[0]["achieved_goal"]) for seed in range(1000)}
    free = {(i, j) for i, row in enumerate(W_SHAPE) for j, symbol in enumerate(row) if symbol != "#"}
    assert cells == free - {(4, 1), (5, 1)}


def test_ant_reset_noise():
    env = make(ANT)
    starts = np.array([env.reset(seed=seed)[0]["observation"] for seed in range(500)])
    # The quaternion is drawn around the identity and then normalised; everything else is drawn directly.
    plain = [0, 1, 2, *range(7, 15)]
    offsets = starts[:, plain] - env.model.qpos0[plain]
    assert (np.abs(offsets) <= 0.1).all()
    assert np.allclose(offsets.min(0), -0.1, atol=0.01)
    assert np.allclose(offsets.max(0), 0.1, atol=0.01)
    assert np.allclose(np.linalg.norm(starts[:, 3:7], axis=1), 1.0)
    assert (np.abs(starts[:, 4:7] / starts[:, 3:4]) <= 0.1 / 0.9).all()
    velocities = starts[:, 15:29]
    assert np.allclose(velocities.std(0), 0.1, atol=0.015)
    assert np.allclose(velocities.mean(0), 0.0, atol=0.02)


def test_point_reset_noise():
    env = make(POINT)
    starts = np.array([env.reset(seed=seed)[0]["observation"] for seed in range(500)])
    assert (np.abs(starts[:, :3]) <= 0.1).all()
    assert np.allclose(starts[:, 3:6].std(0), 0.1, atol=0.015)


@pytest.mark.parametrize("name", [POINT, ANT])
def test_observation_layout(name):
    env = make(name)
    env.reset(seed=0)
    nq, nv = env.model.nq, env.model.nv
    for step in range(1, 6):
        observation, *_ = env.step(env.action_space.sample())
        row = observation["observation"]
        assert len(row) == nq + nv + 1 == (7 if name == POINT else 30)
        assert np.array_equal(row[:nq], env.data.qpos)
        assert np.array_equal(row[nq:-1], env.data.qvel)
        assert row[-1] == pytest.approx(step * 0.001, abs=1e-15)
        assert np.array_equal(observation["achieved_goal"], row[:2])


def test_point_step_is_turn_then_move_then_one_simulation_step():
    env = make(POINT)
    env.reset(seed=0)
    put(env, 0.0, 0.0)
    env.data.qpos[2] = 0.25
    observation, *_ = env.step(np.array([0.5, 0.75]))
    x, y, heading = observation["observation"][:3]
    assert (x, y, heading) == pytest.approx((0.1 * math.cos(1.0), 0.1 * math.sin(1.0), 1.0))
    assert env.data.time == pytest.approx(0.02)


def test_ant_step_lasts_a_tenth_of_a_second():
    env = make(ANT)
    env.reset(seed=0)
    env.step(np.zeros(8))
    assert env.data.time == pytest.approx(0.1)


@all_mazes
def test_body_can_start_on_floor_but_not_in_a_wall(task):
    env = make(task.id)
    for cell in env.maze.free:
        where = env.maze.centre(cell)
        observation, _ = env.reset(seed=0, options={"start": where})
        assert observation["achieved_goal"].tolist() == list(where)
    state = env.get_state()
    for cell in env.maze.walls:
        with pytest.raises(ValueError, match="inside a wall"):
            env.reset(options={"start": env.maze.centre(cell)})
    with pytest.raises(ValueError, match="start has shape"):
        env.reset(options={"start": 3.0})
    assert np.array_equal(env.get_state()["physics"], state["physics"])


@all_mazes
def test_a_step_that_ends_in_a_wall_is_undone(task):
    env = make(task.id)
    env.reset(seed=0, options={"start": (0.0, 0.0)})
    env.data.qvel[0] = -1e3  # through the border in one step
    observation, *_ = env.step(np.zeros(env.action_space.shape))
    assert observation["achieved_goal"].tolist() == [0.0, 0.0]
    assert np.array_equal(env.data.qpos[:2], [0.0, 0.0])


def test_noise_is_part_of_the_step_that_is_undone():
    env = make("higl/AntMazeUStochastic-v0", position_noise=50.0)
    env.reset(seed=0, options={"start": (0.0, 0.0)})
    stays = [env.step(np.zeros(8))[0]["achieved_goal"] for _ in range(10)]
    assert all(not env.maze.in_wall(x, y) for x, y in stays)
    assert sum(np.array_equal(one, other) for one, other in itertools.pairwise(stays)) > 0


def test_stochastic_noise_has_sigma_0_05_on_x_and_y_only():
    noisy, calm = make("higl/AntMazeUStochastic-v0"), make(ANT)
    noisy.reset(seed=0)
    calm.reset(seed=0)
    offsets = []
    for _ in range(400):
        state = noisy.get_state()
        calm.set_state(state)
        action = noisy.action_space.sample() * 0.1
        there, here = noisy.step(action)[0]["observation"], calm.step(action)[0]["observation"]
        assert np.array_equal(there[2:], here[2:])
        offsets.append(there[:2] - here[:2])
    offsets = np.array(offsets)
    assert np.allclose(offsets.std(0), 0.05, atol=0.006)
    assert np.allclose(offsets.mean(0), 0.0, atol=0.01)
    assert abs(np.corrcoef(offsets.T)[0, 1]) < 0.15


@pytest.mark.parametrize(("name", "steps"), [(POINT, 10_000), (W, 4_000), ("higl/AntMazeUStochastic-v0", 6_000)])
def test_strong_random_actions_never_end_in_a_wall(name, steps):
    """Repeat extreme actions, which are the most likely to tunnel; 10,000 steps of the ant in total."""
    env = make(name)
    rng = np.random.default_rng(0)
    done = True
    action = env.action_space.low
    for _ in range(steps):
        if done:
            observation, _ = env.reset(seed=int(rng.integers(2**31)))
        if rng.random() < 0.1:
            action = rng.choice((-1.0, 1.0), env.action_space.shape) * env.action_space.high
            if name == POINT:
                action[1] *= rng.random() * (rng.random() < 0.3)
        observation, reward, terminated, truncated, _ = env.step(action)
        x, y = observation["achieved_goal"]
        assert not env.maze.in_wall(x, y)
        assert np.isfinite(observation["observation"]).all()
        assert np.isfinite(reward)
        done = terminated or truncated
    assert not any(warning.number for warning in env.data.warning)  # MuJoCo did not restart a diverging simulation


def test_pushing_straight_at_every_wall_does_not_enter_it():
    env = make(POINT)
    for cell in env.maze.free:
        for heading in (0.0, math.pi / 2, math.pi, -math.pi / 2):
            env.reset(seed=0, options={"start": env.maze.centre(cell)})
            env.data.qpos[2] = heading
            env.data.qvel[:] = 0
            for _ in range(25):
                x, y = env.step(np.array([1.0, 0.0]))[0]["achieved_goal"]
                assert not env.maze.in_wall(x, y)


@all_mazes
@pytest.mark.parametrize("reward", ["dense", "sparse"])
def test_reward_and_success_at_the_boundary(task, reward):
    env = make(task.id, reward=reward)
    env.reset(seed=0)
    radius = task.radius
    for distance, success in (
        (0.0, True),
        (np.nextafter(radius, 0), True),
        (radius, True),
        (np.nextafter(radius, 9), False),
        (radius + 1, False),
    ):
        goal, achieved = np.zeros(2), np.array([distance, 0.0])
        expected = -distance if reward == "dense" else (0.0 if success else -1.0)
        assert env.compute_reward(achieved, goal, {}) == expected
        assert bool(env.is_success(achieved, goal)) is success


@all_mazes
@pytest.mark.parametrize("reward", ["dense", "sparse"])
def test_success_is_rewarded_and_ends_only_the_w_shape(task, reward):
    env = make(task.id, reward=reward)
    start = env.maze.centre(env.maze.starts[0])
    env.reset(seed=0, options={"start": start, "goal": start})
    observation, value, terminated, truncated, info = env.step(np.zeros(env.action_space.shape))
    distance = math.dist(observation["achieved_goal"], start)
    assert info["is_success"] is True
    assert value == pytest.approx(0.0 if reward == "sparse" else -distance)
    assert terminated is (task.name == "ant-maze-w")
    assert truncated is False
    far = (start[0] + 2 * task.radius, start[1])
    env.reset(seed=0, options={"start": start, "goal": far})
    _, value, terminated, _, info = env.step(np.zeros(env.action_space.shape))
    assert info["is_success"] is False
    assert terminated is False
    assert value == -1.0 if reward == "sparse" else value < -task.radius


def test_success_in_the_last_step_terminates_and_truncates():
    env = make(W, max_steps=1)
    env.reset(seed=0, options={"start": (2.0, 8.5)})
    _, _, terminated, truncated, info = env.step(np.zeros(8))
    assert (terminated, truncated, info["is_success"]) == (True, True, True)


def test_reset_reports_success_too():
    env = make(ANT)
    assert env.reset(seed=0, options={"goal": (0.0, 0.0)})[1]["is_success"] is True
    assert env.reset(seed=0, options={"goal": (0.0, 8.0)})[1]["is_success"] is False


# --- Custom maps ---------------------------------------------------------------------------------------------------


def test_custom_map():
    env = make("higl/AntMaze-v0", map=["S.", "#.", "G."], cell=4.0)
    observation, _ = env.reset(seed=0)
    assert observation["desired_goal"].tolist() == [0.0, 8.0]
    assert env.task.radius == 2.5
    assert env.task.max_steps == 500
    env.step(env.action_space.sample())


def test_custom_map_with_all_arguments():
    env = make(
        "higl/AntMaze-v0",
        body="point",
        map="SS..\n",
        cell=2.0,
        goal=(4.0, 0.0),
        goal_range=((0.0, -1.0), (6.0, 1.0)),
        radius=0.5,
        max_steps=7,
        ends_on_success=True,
        position_noise=0.01,
    )
    goals = np.array([env.reset(seed=seed)[0]["desired_goal"] for seed in range(50)])
    assert (goals >= (0, -1)).all()
    assert (goals <= (6, 1)).all()
    assert np.ptp(goals[:, 0]) > 3
    test = make("higl/AntMaze-v0", map="SS..", cell=2.0, goal=(4.0, 0.0), mode="test")
    assert test.reset(seed=0)[0]["desired_goal"].tolist() == [4.0, 0.0]
    flags = [env.step(np.zeros(2))[3] for _ in range(7)]
    assert flags == [False] * 6 + [True]


def test_one_value_of_a_task_can_be_changed():
    env = make(POINT, max_steps=3)
    assert (env.task.map, env.task.radius, env.task.max_steps) == (MAZES[0].map, 2.5, 3)
    env = make(POINT, goal=(8.0, 8.0), mode="test")
    assert env.reset(seed=0)[0]["desired_goal"].tolist() == [8.0, 8.0]
    env = make(POINT, map=["S.G"])
    assert env.reset(seed=0)[0]["desired_goal"].tolist() == [8.0, 0.0]


BAD = [
    ({}, "needs a map"),
    ({"map": ["..."]}, "no start"),
    ({"map": ["S.."]}, "no goal"),
    ({"map": ["S#G"]}, "no way from the start"),
    ({"map": ["S.", "S"]}, "row 1 has 1 cells"),
    ({"map": ["S?G"]}, r"'\?' at row 0, column 1"),
    ({"map": ["S.G"], "cell": -1}, "side of a cell"),
    ({"map": ["S.G"], "radius": 0}, "radius must be a positive"),
    ({"map": ["S.G"], "max_steps": 0}, "max_steps must be a positive"),
    ({"map": ["S.G"], "position_noise": -1}, "position_noise"),
    ({"map": ["S.G"], "position_noise": math.nan}, "position_noise"),
    ({"map": ["S.G"], "body": "worm"}, "unknown body 'worm'; choose from 'ant' or 'point'"),
    ({"map": ["S.G"], "goal": (1, 2, 3)}, r"goal must be two finite numbers"),
    ({"map": ["S.G"], "goal": (0, math.inf)}, r"goal must be two finite numbers"),
    ({"map": ["S.G"], "goal": (400, 0)}, "no way"),
    ({"map": ["S.G"], "goal_range": ((0, 0), (1, -1))}, "beyond its high end"),
    ({"map": ["S.G"], "goal_range": ((0, 0),)}, "goal_range must be"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_errors_in_mazes_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        make("higl/AntMaze-v0", **options)


def paths():
    """Winding corridors: every other row is open at one end only."""
    return st.lists(st.booleans(), min_size=1, max_size=3).map(
        lambda turns: ["S..", *(row for right in turns for row in ("##." if right else ".##", "..."))]
    )


@settings(max_examples=15)
@given(rows=paths(), cell=st.floats(1.5, 8.0), seed=st.integers(0, 2**31))
def test_any_custom_maze_keeps_its_body_on_its_floor(rows, cell, seed):
    env = make("higl/AntMaze-v0", body="point", map=rows, cell=cell, goal=(cell, 0.0))
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(60):
        x, y = env.step(rng.uniform((0.5, -0.3), (1.0, 0.3)))[0]["achieved_goal"]
        assert not env.maze.in_wall(x, y)
    walls = {
        env.maze.cell_at(*env.model.geom_pos[geom][:2])
        for geom in range(env.model.ngeom)
        if env.model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX and env.model.geom_bodyid[geom] == 0
    }
    assert walls == set(env.maze.walls)
