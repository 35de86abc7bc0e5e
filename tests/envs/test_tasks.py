"""The table of tasks: every number of the paper's appendix."""

import numpy as np
import pytest

from higl.envs import TASKS, find_task, task_names
from higl.envs.tasks import FixedGoal, NormalGoal, UniformGoal

U, LARGE = UniformGoal((-2, -2), (10, 10)), UniformGoal((-4, -4), (20, 20))
TARGET = NormalGoal((0, 0.25, 0), 0.1)
DISC = FixedGoal((0.45, -0.05, -0.323) * 2)
# name, id, body, cell, training goal, test goal, radius, steps, ends on success, noise, penalty
EXPECTED = [
    ("point-maze", "PointMaze", "point", 4, U, FixedGoal((0, 8)), 2.5, 500, False, 0, 0),
    ("ant-maze-u", "AntMazeU", "ant", 4, U, FixedGoal((0, 8)), 2.5, 500, False, 0, 0),
    ("ant-maze-u-stochastic", "AntMazeUStochastic", "ant", 4, U, FixedGoal((0, 8)), 2.5, 500, False, 0.05, 0),
    ("ant-maze-u-large", "AntMazeULarge", "ant", 8, LARGE, FixedGoal((0, 16)), 5.0, 500, False, 0, 0),
    ("ant-maze-w", "AntMazeW", "ant", 2, FixedGoal((2, 9)), FixedGoal((2, 9)), 1.0, 500, True, 0, 0),
    ("reacher", "Reacher", "reacher", None, TARGET, TARGET, 0.25, 100, False, 0, 0.0001),
    ("pusher", "Pusher", "pusher", None, DISC, DISC, 0.25, 100, False, 0, 0.001),
]


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row[0])
def test_numbers(row):
    name, id_, body, cell, train, test, radius, steps, ends, noise, penalty = row
    task = find_task(name)
    assert task.id == f"higl/{id_}-v0"
    assert find_task(task.id) is task
    assert (task.body, task.train_goal, task.test_goal) == (body, train, test)
    assert (task.radius, task.max_steps, task.ends_on_success) == (radius, steps, ends)
    assert (task.position_noise, task.action_penalty) == (noise, penalty)
    assert (task.map is None) == (cell is None)
    if cell is not None:
        assert task.cell == cell


def test_names_and_ids_are_unique():
    assert task_names() == tuple(row[0] for row in EXPECTED)
    assert len({task.id for task in TASKS}) == 7


@pytest.mark.parametrize(
    ("wrong", "hint"), [("ant-maze-v", "did you mean ant-maze-[uw]"), ("higl/Pusher-v1", "higl/Pusher-v0")]
)
def test_unknown_task_suggests_the_nearest(wrong, hint):
    with pytest.raises(ValueError, match=hint):
        find_task(wrong)


def test_unknown_task_lists_all():
    with pytest.raises(ValueError, match=r"choose from point-maze, .*pusher"):
        find_task("zzz")


def test_goals_follow_their_distributions():
    rng = np.random.default_rng(0)
    uniform = np.array([U.sample(rng) for _ in range(4000)])
    assert (uniform >= -2).all()
    assert (uniform <= 10).all()
    assert np.allclose(uniform.mean(0), 4, atol=0.2)
    assert np.allclose(uniform.min(0), -2, atol=0.05)
    assert np.allclose(uniform.max(0), 10, atol=0.05)
    normal = np.array([TARGET.sample(rng) for _ in range(4000)])
    assert np.allclose(normal.mean(0), (0, 0.25, 0), atol=0.01)
    assert np.allclose(normal.std(0), 0.1, atol=0.01)
    assert FixedGoal((2, 9)).sample(rng).tolist() == [2.0, 9.0]
