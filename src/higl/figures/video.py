"""Videos of a trained policy: episodes from above and from a tracking camera, with subgoal and landmarks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from higl.errors import RenderError, TaskError
from higl.figures.goal_space import load_snapshots, projections
from higl.run.files import replacing
from higl.run.naming import algorithm_title, task_title
from higl.run.reading import Columns, Run, policy_path, tested_in
from higl.text import counted

if TYPE_CHECKING:
    from higl.algo.episodes import Episode
    from higl.algo.policy import Policy
    from higl.figures.scene import Painter
    from higl.settings.config import Config

FRAMES_PER_SECOND = 25
# Number of frames that show the first and the last picture of an episode.
_HOLD_FIRST, _HOLD_LAST = 8, 30
# Approximate number of pictures of an episode: longer ones skip steps.
_MAX_PICTURES = 200
# Steps shown after the first success.
_AFTER_SUCCESS = 15
# Height of the caption in pixels, for a picture 960 pixels wide.
_CAPTION = 44
_WHITE, _GREEN, _GREY, _DARK = "#FFFFFF", "#3DDC97", "#C9D1DA", "#14181D"


@dataclass(frozen=True)
class Take:
    """An episode to show; unless `whole`, it ends some steps after the first success."""

    seed: int
    episode: Episode
    whole: bool = False

    @property
    def length(self) -> int:
        """Number of steps to show."""
        steps, reached = len(self.episode), self.episode.steps_to_success
        return steps if self.whole or reached is None else min(steps, reached + _AFTER_SUCCESS)

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Key that orders episodes from worst to best: by success, then speed, then return."""
        episode = self.episode
        return episode.succeeded, -float(episode.steps_to_success or 0), episode.total_reward


def make_video(
    run: Run,
    path: Path,
    *,
    task: str | None = None,
    episodes: int = 1,
    seed: int = 0,
    best: int = 0,
    flat: bool | None = None,
    size: int = 480,
    whole: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> str:
    """Run episodes with a run's policy and write them as one video.

    Args:
        run: the run whose policy acts.
        path: mp4 file to write.
        task: task whose environment to make, its module imported; None: the one that the run was tested in.
        episodes: number of episodes to show.
        seed: seed of the episodes, the same as that of `higl eval`.
        best: run this many episodes and show the best of them; 0 shows the first ones.
        flat: True draws plans, which need no GL library; False requires MuJoCo's renderer; None prefers it.
        size: height of the pictures, and width of each of the two, in pixels.
        whole: show whole episodes, also after the goal is reached.
        say: receives messages for the user.

    Returns:
        One line that describes the video.

    Raises:
        RunFolderError: the run has no policy yet.
        PolicyFileError: its policy is damaged, or has another format.
        RenderError: `flat=False`, and there is no usable GL library.
    """
    from higl.run.policy_file import load_policy

    policy, config = load_policy(policy_path(run.path))
    env = _make_env(run, config, task or tested_in(run.path, config), size)
    try:
        takes = _takes(env, policy, seed, max(best, episodes), whole)
        if best:
            takes = sorted(takes, key=lambda take: take.rank, reverse=True)
        takes = takes[:episodes]
        painter = _painter(env, config, _last_snapshot(run), flat, size, takes, say)
        try:
            _write(path, _frames(env, policy, config, takes, painter))
        finally:
            painter.close()
    finally:
        env.close()
    reached = sum(take.episode.succeeded for take in takes)
    of = f", the best of {best}" if best else ""
    how = ", drawn as a plan" if painter.is_plan else ""
    return f"{path}: {counted(len(takes), 'episode')}{of}, {reached} reached the goal{how}"


def _make_env(run: Run, config: Config, task: str, size: int) -> Any:
    from higl.envs.make import hinting_at_load, is_own
    from higl.run.measure import make_test_env

    if is_own(task):
        return make_test_env(config, task, render_mode="rgb_array", width=size, height=size)
    with hinting_at_load(run.path, task, config.algo):
        try:
            with warnings.catch_warnings():  # Gymnasium's, if the environment does not list this mode
                warnings.filterwarnings("ignore", ".*render_mode")
                return make_test_env(config, task, render_mode="rgb_array")
        except TaskError:  # the environment may draw nothing and have no such option
            return make_test_env(config, task)


def _takes(env: Any, policy: Policy, seed: int, count: int, whole: bool) -> list[Take]:
    """Run episodes without drawing anything."""
    from higl.run.measure import greedy_episodes, measuring_seeds

    seeds = measuring_seeds(seed, range(count))
    episodes = greedy_episodes(env, policy, seeds)
    return [Take(own, episode, whole) for own, episode in zip(seeds, episodes, strict=True)]


def _last_snapshot(run: Run) -> Columns | None:
    found = load_snapshots(run.snapshots[-1:])
    return found[0] if found else None


def _painter(
    env: Any,
    config: Config,
    snapshot: Columns | None,
    flat: bool | None,
    size: int,
    takes: list[Take],
    say: Callable[[str], None],
) -> Painter:
    """Return a painter that uses MuJoCo or the environment's own `render` if possible, and draws plans otherwise."""
    from higl.envs.base import GoalEnv
    from higl.figures.scene import EnvironmentPainter, Markers, PlanPainter, ScenePainter

    markers = Markers.of(snapshot)
    if not flat:
        try:
            inner = env.unwrapped
            return ScenePainter(inner, markers) if isinstance(inner, GoalEnv) else EnvironmentPainter(env)
        except RenderError as error:
            if flat is False:
                raise
            say(f"{error}. Drawing plans instead.")
    shown = projections(config.task, takes[0].episode.achieved.shape[1])
    return PlanPainter(_plan_scene(env, snapshot, takes), shown, size, markers)


def _plan_scene(env: Any, snapshot: Columns | None, takes: list[Take]) -> Columns:
    """Return what a plan must show: the walls of the snapshot or else of the environment, and the episodes' points."""
    from higl.envs.maps import Maze

    scene: Columns = dict(snapshot or {})
    points = np.concatenate([take.episode.achieved for take in takes])
    scene.setdefault("visited", points)
    scene["eval_paths"] = points
    scene["goal"] = takes[0].episode.desired[0]
    task = getattr(env.unwrapped, "task", None)
    scene.setdefault("radius", np.asarray(getattr(task, "radius", np.nan)))
    maze = getattr(env.unwrapped, "maze", None)
    if isinstance(maze, Maze) and not len(scene.get("walls", ())):
        scene["walls"] = np.array(maze.wall_boxes())
    return scene


# --- Frames ---------------------------------------------------------------------------------------------------------


def _frames(env: Any, policy: Policy, config: Config, takes: list[Take], painter: Painter) -> Iterator[np.ndarray]:
    """Replay the episodes action by action, and yield every picture with its caption."""
    from higl.algo.subgoals import subgoal_target
    from higl.figures.scene import Moment

    for number, take in enumerate(takes, 1):
        episode = take.episode
        env.reset(seed=take.seed)
        every = max(1, round(take.length / _MAX_PICTURES))
        for step in range(take.length + 1):
            if step > 0:
                env.step(policy.environment_action(episode.action[step - 1], env.action_space.dtype))
            if step % every and step < take.length:
                continue
            acting = min(step, len(episode) - 1)  # the last state has no subgoal of its own
            target = subgoal_target(policy.scheme, episode.subgoal[acting], episode.achieved[acting])
            moment = Moment(episode.achieved[step], episode.desired[step], target, episode.achieved[: step + 1])
            words = _caption(config, take, step, f"episode {number} of {len(takes)}" if len(takes) > 1 else "")
            frame = captioned(painter.paint(moment), *words, painter.colours)
            hold = _HOLD_FIRST if step == 0 else _HOLD_LAST if step == take.length else 1
            yield from [frame] * hold


def _caption(config: Config, take: Take, step: int, which: str) -> tuple[str, str, bool]:
    """Return the left and the right text of the caption, and whether the goal has been reached."""
    name = f"{algorithm_title(config.algo)}, {task_title(config.task, config.reward)}"
    first = take.episode.steps_to_success
    reached = first is not None and step >= first
    over = step == take.length and first is None
    state = f"goal reached at step {first}" if reached else "goal not reached" if over else "on the way"
    return ", ".join(filter(None, [name, which])), f"step {step}   {state}", reached


def captioned(picture: np.ndarray, left: str, right: str, reached: bool, colours: Mapping[str, str]) -> np.ndarray:
    """Return a picture above a strip that names the run, the colours and the state of the episode.

    Width and height are even, as the video format requires.
    """
    from PIL import Image, ImageDraw

    height, width = picture.shape[:2]
    strip = max(_CAPTION * width // 960, min(30, height // 8))
    strip += (height + strip) % 2
    frame = Image.new("RGB", (width + width % 2, height + strip), _DARK)
    frame.paste(Image.fromarray(picture), (0, 0))
    draw = ImageDraw.Draw(frame)
    font = _font(max(7, round(min(0.36 * strip, width / 44))))
    middle = height + strip / 2
    draw.text((0.012 * width, middle), left, font=font, fill=_WHITE, anchor="lm")
    draw.text((0.988 * width, middle), right, font=font, fill=_GREEN if reached else _WHITE, anchor="rm")
    x = 0.04 * width + draw.textlength(left, font=font)
    last = 0.96 * width - draw.textlength(right, font=font)
    radius = 0.14 * strip
    for word, colour in colours.items():
        start = x + 2 * radius
        end = start + draw.textlength(word, font=font)
        if end > last:
            break
        draw.ellipse([x - radius, middle - radius, x + radius, middle + radius], fill=colour)
        draw.text((start, middle), word, font=font, fill=_GREY, anchor="lm")
        x = end + 3 * radius
    if reached:
        draw.rectangle([0, 0, frame.width - 1, height - 1], outline=_GREEN, width=max(2, width // 240))
    return np.asarray(frame)


def _font(size: int) -> Any:
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)


def _write(path: Path, frames: Iterator[np.ndarray]) -> None:
    """Write frames as H.264; the file appears under its name once it is complete."""
    import imageio.v2 as imageio

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as beside, imageio.get_writer(
        beside, format="FFMPEG", fps=FRAMES_PER_SECOND, codec="libx264", macro_block_size=2,
        ffmpeg_log_level="error", output_params=["-crf", "25", "-preset", "fast", "-movflags", "+faststart"],
    ) as writer:  # fmt: skip
        for frame in frames:
            cast(Any, writer).append_data(frame)
