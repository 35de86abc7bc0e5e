"""Videos: drawn by MuJoCo and as plans; captions; the best episodes; messages about what is missing."""

import imageio.v2 as imageio
import numpy as np
import pytest
from support.policies import give_policy
from support.synthetic import synthetic_run
from support.tiny import TASK

from higl.algo.episodes import Episode
from higl.envs import render
from higl.errors import PolicyFileError, RenderError, RunFolderError
from higl.figures import video
from higl.figures.video import Take, captioned, make_video
from higl.run.reading import read_run
from higl.settings.config import Config


@pytest.fixture(scope="module")
def reacher(tmp_path_factory):
    folder = synthetic_run(tmp_path_factory.mktemp("video") / "reacher", task="reacher", snapshots=1)
    give_policy(folder)
    return read_run(folder)


def frames_of(path):
    with imageio.get_reader(path) as reader:
        return [np.asarray(frame) for frame in reader]


def has_gl() -> bool:
    try:
        context = render.gl_context(8, 8)
    except RenderError:
        return False
    context.free()
    return True


def test_a_plan_of_an_episode(reacher, tmp_path):
    said = make_video(reacher, tmp_path / "new" / "plan.mp4", flat=True, size=96, episodes=2)
    assert "2 episodes" in said
    assert said.endswith("drawn as a plan")
    frames = frames_of(tmp_path / "new" / "plan.mp4")
    assert frames[0].shape == (108, 192, 3)
    assert len(frames) > 100
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / "plan.mp4"]
    # Something moves.
    assert np.abs(frames[0].astype(int) - frames[60]).max() > 60


def test_mujoco_draws_both_cameras_with_markers(reacher, tmp_path):
    if not has_gl():
        pytest.skip("NO GL LIBRARY: videos through MuJoCo were NOT drawn (apt-get install libegl1 libgl1)")
    make_video(reacher, tmp_path / "video.mp4", flat=False, size=96)
    frames = frames_of(tmp_path / "video.mp4")
    assert frames[0].shape == (108, 192, 3)
    top, track = frames[30][:96, :96], frames[30][:96, 96:]
    assert np.abs(top.astype(int) - track).mean() > 3
    blue = (frames[0][:96, :, 2].astype(int) - frames[0][:96, :, 0]) > 90
    assert blue.sum() > 10, "coverage landmarks should be visible"


def test_without_gl_plans_are_drawn_and_a_message_names_the_packages(reacher, tmp_path, monkeypatch):
    def refuse(*_):
        raise RenderError(f"cannot draw: no GL library was found; {render.INSTALL_HINT}")

    monkeypatch.setattr(render, "gl_context", refuse)
    told = []
    said = make_video(reacher, tmp_path / "video.mp4", size=64, say=told.append)
    assert said.endswith("drawn as a plan")
    assert "libegl1" in told[0]
    with pytest.raises(RenderError, match="libegl1"):
        make_video(reacher, tmp_path / "video.mp4", size=64, flat=False)


def episode(success_at: int | None, length: int = 20) -> Episode:
    success = np.zeros(length, bool)
    if success_at is not None:
        success[success_at:] = True
    states = [np.zeros((length + 1, 2), np.float32)] * 3
    steps = np.zeros((length, 2))
    return Episode(*states, steps, steps, success - 1.0, success, False, True, np.arange(length) % 10 == 0)


def test_the_best_episode_is_the_one_that_reached_the_goal_soonest():
    takes = [Take(0, episode(None)), Take(1, episode(9)), Take(2, episode(4))]
    assert max(takes, key=lambda take: take.rank).seed == 2


def test_an_episode_is_cut_some_steps_after_success():
    assert Take(0, episode(4, length=400)).length == 5 + video._AFTER_SUCCESS
    assert Take(0, episode(4, length=10)).length == 10
    assert Take(0, episode(4, length=400), whole=True).length == 400
    assert Take(0, episode(None, length=400)).length == 400


def test_the_caption_marks_success():
    grey = np.full((120, 240, 3), 128, np.uint8)
    on_the_way, reached = (captioned(grey, "HIGL", "step 3", done, {}) for done in (False, True))
    assert (on_the_way[:120] == 128).all()
    green = reached[0, 0].astype(int)
    assert green[1] > 150 > green[0]
    assert on_the_way.shape[0] % 2 == on_the_way.shape[1] % 2 == 0


def test_a_foreign_environment_draws_itself_or_is_drawn_as_a_plan(reacher, tmp_path, monkeypatch):
    class Stranger:
        """Draws itself and hides what it wraps."""

        spec = None

        def __init__(self, env):
            self._env = env

        def __getattr__(self, name):
            return getattr(self._env, name)

        @property
        def unwrapped(self):
            return self

        def render(self):
            return np.full((50, 71, 3), 200, np.uint8)

    made = video._make_env
    monkeypatch.setattr(video, "_make_env", lambda *given: Stranger(made(*given)))
    if has_gl():
        assert not make_video(reacher, tmp_path / "own.mp4", size=64).endswith("plan")
        assert frames_of(tmp_path / "own.mp4")[0].shape[1] == 72
    monkeypatch.setattr(Stranger, "render", lambda self: 1 / 0)
    told = []
    assert make_video(reacher, tmp_path / "plan.mp4", size=64, say=told.append).endswith("plan")
    assert told


def test_an_environment_that_cannot_render_is_made_without_a_render_mode(reacher, recwarn):
    env = video._make_env(reacher, Config(task=TASK), TASK, 64)
    assert env.render_mode is None
    assert [str(warning.message) for warning in recwarn if "render_mode" in str(warning.message)] == []


def test_a_run_without_a_policy(run_folder, tmp_path):
    with pytest.raises(RunFolderError, match="no policy yet"):
        make_video(read_run(run_folder), tmp_path / "video.mp4")
    (run_folder / "policy.safetensors").write_bytes(b"no")
    with pytest.raises(PolicyFileError, match="is a text file"):
        make_video(read_run(run_folder), tmp_path / "video.mp4")
