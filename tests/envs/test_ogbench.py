"""OGBench's mazes: goals, success and time limit are OGBench's, and an episode is a function of its seed."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from support.tiny import flags, higl

from higl.envs import ogbench
from higl.envs.make import make_env
from higl.errors import TaskError
from higl.run.reading import read_evaluations

POINT, ANT, TELEPORT = "ogbench:pointmaze-medium", "ogbench:antmaze-medium", "ogbench:pointmaze-teleport"


def test_the_message_without_the_package_names_the_extra(monkeypatch):
    monkeypatch.setattr(ogbench.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TaskError, match=r"needs OGBench.*pip install 'higl\[ogbench\]'"):
        make_env(POINT)


@pytest.fixture(autouse=True)
def _package(request):
    if "without_the_package" not in request.node.name:
        pytest.importorskip("ogbench")


@pytest.mark.parametrize(("task", "size", "radius"), [(POINT, 2, 1.0), (ANT, 29, 0.5), (f"{ANT}-v0", 29, 0.5)])
def test_spaces_and_tolerance(task, size, radius):
    env = make_env(task)
    observation, _ = env.reset(seed=0)
    assert observation["observation"].shape == (size,)
    np.testing.assert_array_equal(observation["achieved_goal"], observation["observation"][:2])
    assert env.unwrapped.task.radius == radius
    goal = observation["desired_goal"]
    near, far = goal + np.array([radius, 0.0]), goal + np.array([radius + 0.01, 0.0])
    assert env.unwrapped.compute_reward(near, goal, {}) == 0.0
    np.testing.assert_array_equal(env.unwrapped.compute_reward(np.stack([goal, far]), goal, {}), [0.0, -1.0])


@pytest.mark.parametrize("task", [POINT, TELEPORT])
def test_gymnasium_accepts_it(task):
    check_env(make_env(task), skip_render_check=True)


@pytest.mark.parametrize("task", [POINT, ANT, TELEPORT])
@pytest.mark.parametrize("mode", ["train", "test"])
def test_an_episode_is_a_function_of_its_seed(task, mode):
    """Whatever NumPy's global generator holds, and without changing it."""
    paths = []
    for outside in (1, 2):
        env = make_env(task, mode=mode)
        env.reset(seed=outside)
        np.random.seed(outside)  # noqa: NPY002
        first, _ = env.reset(seed=7)
        actions = np.random.default_rng(3).uniform(-1, 1, (60, *env.action_space.shape)).astype(np.float32)
        steps = [env.step(action)[0] for action in actions]
        paths.append(
            np.concatenate([np.concatenate([step[part] for part in sorted(step)]) for step in [first, *steps]])
        )
        drawn = np.random.random()  # noqa: NPY002
        np.random.seed(outside)  # noqa: NPY002
        assert drawn == np.random.random()  # noqa: NPY002
    np.testing.assert_array_equal(*paths)


def test_test_goals_are_the_five_tasks():
    env = make_env(POINT, mode="test")
    inner = env.unwrapped._inner
    seen = set()
    for seed in range(40):
        observation, _ = env.reset(seed=seed)
        task = inner.task_infos[inner.cur_task_id - 1]
        seen.add(inner.cur_task_id)
        assert inner.xy_to_ij(observation["achieved_goal"]) == task["init_ij"]
        assert inner.xy_to_ij(observation["desired_goal"]) == task["goal_ij"]
    assert seen == {1, 2, 3, 4, 5}
    env.reset(seed=0, options={"task_id": 3})
    assert inner.cur_task_id == 3


def test_training_starts_anywhere_and_its_goals_are_no_corridor_cells():
    env = make_env(POINT)
    inner = env.unwrapped._inner
    starts, goals = set(), set()
    for seed in range(300):
        observation, _ = env.reset(seed=seed)
        starts.add(inner.xy_to_ij(observation["achieved_goal"]))
        goals.add(inner.xy_to_ij(observation["desired_goal"]))
    free = {(row, column) for row, column in np.argwhere(inner.maze_map == 0)}
    assert starts == free
    # Cells of the medium maze with walls on two opposite sides and none on the others.
    assert free - goals == {(3, 3), (4, 5), (5, 1), (5, 6), (6, 2)}


def test_success_ends_the_episode():
    env = make_env(POINT)
    observation, info = env.reset(seed=0, options={"task_info": {"init_ij": (1, 1), "goal_ij": (1, 2)}})
    assert not info["is_success"]
    for _ in range(100):
        towards = observation["desired_goal"] - observation["achieved_goal"]
        action = np.clip(5 * towards, -1, 1).astype(np.float32)
        observation, reward, terminated, _, info = env.step(action)
        assert (reward == 0.0) == info["is_success"] == terminated
        if terminated:
            break
    assert terminated
    assert np.linalg.norm(observation["desired_goal"] - observation["achieved_goal"]) <= 1.0


def test_the_time_limit_is_that_of_ogbench():
    env = make_env(POINT)
    env.reset(seed=0, options={"task_id": 1})
    still = np.zeros(2, np.float32)
    ends = [env.step(still)[3] for _ in range(1000)]
    assert ends == [False] * 999 + [True]


@pytest.mark.parametrize("name", ["pointmaze-medium", "antmaze-large", "antmaze-giant", "pointmaze-teleport"])
def test_figures_know_the_walls(name):
    env = make_env(f"ogbench:{name}")
    inner = env.unwrapped._inner
    boxes = np.array(env.unwrapped.maze.wall_boxes())

    def inside(x, y):
        return bool(np.any((boxes[:, 0] < x) & (x < boxes[:, 2]) & (boxes[:, 1] < y) & (y < boxes[:, 3])))

    for cell in np.ndindex(inner.maze_map.shape):
        assert inside(*inner.ij_to_xy(cell)) == bool(inner.maze_map[cell]), cell


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("antmaze-medum", r"did you mean ogbench:antmaze-medium\?$"),
        ("cube-single", "higl can learn in: antmaze-giant, "),
        ("visual-antmaze-medium", "higl can learn in: antmaze-giant, "),
    ],
)
def test_other_names_are_rejected(name, message):
    with pytest.raises(TaskError, match=message):
        make_env(f"ogbench:{name}")


@pytest.mark.slow
def test_training_runs(tmp_path):
    words = flags(task=POINT, steps=2000, evaluation__every=1000)
    assert higl("train", *words, "--out", tmp_path / "run").returncode == 0
    assert read_evaluations(tmp_path / "run").rows[-1]["step"] >= 2000
    measured = higl("eval", tmp_path / "run", "--episodes", 2)
    assert "of 2 episodes" in measured.stdout, measured.stderr
