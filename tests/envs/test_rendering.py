"""Images from MuJoCo if there is a GL library; plans without one."""

import os
import subprocess
import sys

import gymnasium
import imageio.v3 as iio
import numpy as np
import pytest

from higl.envs import TASKS, render
from higl.envs.show import draw_task, print_tasks, tasks_table

all_tasks = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


@pytest.fixture(scope="module")
def gl():
    """Skip with the reason if MuJoCo cannot draw."""
    try:
        render.gl_context(16, 16).free()
    except render.RenderError as error:
        pytest.skip(f"NOTHING IS RENDERED IN THIS TEST RUN: {error}")


@all_tasks
@pytest.mark.parametrize("camera", ["top", "track"])
def test_rgb_array(gl, task, camera):
    env = gymnasium.make(task.id, render_mode="rgb_array", camera=camera, width=160, height=120, mode="test")
    try:
        env.reset(seed=0)
        first = env.render()
        assert first.shape == (120, 160, 3)
        assert first.dtype == np.uint8
        assert len(np.unique(first.reshape(-1, 3), axis=0)) > 20
        for _ in range(10):
            env.step(env.action_space.high)
        assert not np.array_equal(env.render(), first)
    finally:
        env.close()


@all_tasks
def test_goal_is_drawn_where_it_is(gl, task):
    env = gymnasium.make(task.id, render_mode="rgb_array", width=200, height=200).unwrapped

    def red_centre(goal):
        env.reset(seed=0, options={"goal": goal})
        picture = env.render().astype(int)
        red = (picture[..., 0] > 120) & (picture[..., 1] < 70) & (picture[..., 2] < 70)
        assert red.sum() > 5
        rows, columns = np.nonzero(red)
        return columns.mean(), rows.mean()

    try:
        env.reset(seed=0)
        low_x, low_y, high_x, high_y = env.extent()
        z = [] if task.map else [-0.323]
        near = [(low_x + 3 * high_x) / 4, (low_y + 3 * high_y) / 4, *z]
        right = [(low_x + 4 * high_x) / 5, (low_y + 3 * high_y) / 4, *z]
        up = [(low_x + 3 * high_x) / 4, (low_y + 4 * high_y) / 5, *z]
        copies = 2 if task.body == "pusher" else 1
        base, to_right, to_up = (red_centre(goal * copies) for goal in (near, right, up))
        assert to_right[0] > base[0] + 2
        assert to_up[1] < base[1] - 2  # row 0 of a picture is its top
        assert abs(to_right[1] - base[1]) < 2
        assert abs(to_up[0] - base[0]) < 2
    finally:
        env.close()


def test_rendering_does_not_change_the_trajectory(gl):
    seen = []
    for drawn in (False, True):
        env = gymnasium.make("higl/AntMazeUStochastic-v0", render_mode="rgb_array", width=64, height=64)
        env.reset(seed=0)
        rng = np.random.default_rng(0)
        for _ in range(20):
            observation, *_ = env.step(rng.uniform(env.action_space.low, env.action_space.high))
            if drawn:
                env.render()
        seen.append(observation["observation"])
        env.close()
    assert np.array_equal(*seen)


def test_without_a_gl_library_the_error_names_the_packages(monkeypatch, tmp_path):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(render, "_loads", lambda library: False)
    env = gymnasium.make("higl/AntMazeU-v0", render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(render.RenderError, match=r"apt-get install libegl1 libgl1.*libosmesa6"):
        env.render()
    env.step(env.action_space.sample())  # everything else works
    env.close()

    with pytest.raises(render.RenderError, match="libegl1"):
        draw_task("ant-maze-u", tmp_path / "picture.png", flat=False)
    said = draw_task("ant-maze-u", tmp_path / "picture.png")
    assert "plan" in said
    assert "libegl1" in said
    assert iio.imread(tmp_path / "picture.png").shape[:2] == (800, 800)


def test_a_broken_gl_library_is_reported():
    code = (
        "import sys, gymnasium, higl.envs, higl.envs.render as r\n"
        "sys.modules['mujoco.egl'] = None\n"
        "r._loads = lambda library: 'EGL' in library\n"
        "env = gymnasium.make('higl/AntMazeU-v0', render_mode='rgb_array'); env.reset()\n"
        "try: env.render()\n"
        "except r.RenderError as error: print(error)"
    )
    bare = {"PATH": "/usr/bin:/bin"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=bare)
    assert "cannot draw with the GL library egl" in ran.stdout
    assert "libegl1" in ran.stdout


def test_human_without_a_display_says_so(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    env = gymnasium.make("higl/PointMaze-v0", render_mode="human")
    with pytest.raises(render.RenderError, match="needs a display"):
        env.reset(seed=0)


@pytest.mark.skipif(not os.environ.get("DISPLAY"), reason="no display for a window; `xvfb-run pytest ...` makes one")
def test_window_beside_an_offscreen_renderer(gl):
    window = gymnasium.make("higl/PointMaze-v0", render_mode="human", width=100, height=100)
    offscreen = gymnasium.make("higl/PointMaze-v0", render_mode="rgb_array", width=100, height=100)
    for env in (window, offscreen):
        env.reset(seed=0)
    for _ in range(3):
        window.step(window.action_space.sample())
        assert offscreen.render().std() > 0
    window.close()
    window.reset(seed=1)  # opens a new one
    window.close()
    offscreen.close()


def test_render_without_a_mode_warns():
    env = gymnasium.make("higl/PointMaze-v0")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.unwrapped.render() is None


@all_tasks
def test_plan(task, tmp_path):
    said = draw_task(task.name, tmp_path / "new folder" / "plan.png", flat=True)
    assert task.id in said
    picture = iio.imread(tmp_path / "new folder" / "plan.png")
    assert picture.shape[:2] == (800, 800)
    assert len(np.unique(picture[::8, ::8].reshape(-1, picture.shape[-1]), axis=0)) > 5


def test_draw_task_through_mujoco(gl, tmp_path):
    assert "camera 'track'" in draw_task("pusher", tmp_path / "pusher.png", camera="track")
    assert iio.imread(tmp_path / "pusher.png").shape == (800, 800, 3)


def test_draw_unknown_task(tmp_path):
    with pytest.raises(ValueError, match="did you mean reacher"):
        draw_task("reecher", tmp_path / "x.png")


def test_print_tasks(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_tasks()
    printed = capsys.readouterr().out
    assert all(len(line) <= 80 for line in printed.splitlines())
    for task in TASKS:
        assert task.name in printed
        assert task.id in printed
    assert "U(-2, 10) per axis" in printed
    assert len(tasks_table(120).columns) == len(tasks_table(80).columns) + 1
