"""Videos of a trained policy: episodes from above and from a tracking camera, with subgoal and landmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from higl.errors import VideoError
from higl.figures.maps import load_snapshots, projections
from higl.run.naming import algorithm_title, task_title
from higl.run.reading import Columns, Run

if TYPE_CHECKING:
    from higl.algo.episodes import Episode
    from higl.algo.policy import Policy
    from higl.figures.scene import Markers, Moment
    from higl.settings.config import Config

FRAMES_PER_SECOND = 25
# Frames that the first and the last picture of an episode stay.
_HOLD_FIRST, _HOLD_LAST = 8, 30
# An episode has at most about so many pictures: of a longer one not every step is drawn.
_MOST_PICTURES = 200
# Steps after the first success that are still shown.
_AFTER_SUCCESS = 15
_CAPTION = 44


@dataclass(frozen=True)
class Take:
    """An episode to show: its seed, and the steps that are shown."""

    seed: int
    episode: Episode
    length: int

    @property
    def reached(self) -> int | None:
        """The step at which the goal was reached first; None if it never was."""
        where = np.flatnonzero(self.episode.success)
        return int(where[0]) + 1 if len(where) else None

    @property
    def rank(self) -> tuple[bool, float, float]:
        """What the best episode has most of: success, haste, return."""
        return self.reached is not None, -float(self.reached or 0), float(self.episode.reward.sum())


def make_video(
    run: Run,
    path: Path,
    *,
    episodes: int = 1,
    seed: int = 0,
    best: int = 0,
    flat: bool | None = None,
    size: int = 480,
    whole: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> str:
    """Act out episodes of a run's policy and write them as one video.

    Args:
        run: whose policy acts.
        path: mp4 file to write.
        episodes: how many are shown.
        seed: of the episodes; the same as `higl eval` takes.
        best: act out so many episodes and show the best of them; 0: the first ones, whatever they come to.
        flat: True draws plans, which need no GL library; False insists on MuJoCo's renderer; None prefers it.
        size: height of the pictures, and width of each of the two, in pixels.
        whole: show whole episodes, also after the goal is reached.
        say: is told what goes on.

    Returns:
        One line that says what was made.

    Raises:
        VideoError: the run has no policy yet.
        RenderError: `flat=False`, and there is no usable GL library.
    """
    policy, config = _load_policy(run)
    env = _make_env(run, config, size)
    try:
        takes = _takes(env, policy, seed, max(best, episodes), whole)
        if best:
            takes = sorted(takes, key=lambda take: take.rank, reverse=True)
        takes = takes[:episodes]
        snapshot = _last_snapshot(run)
        painter = _painter(env, config, snapshot, flat, size, takes, say)
        try:
            _write(path, _frames(env, policy, config, takes, painter))
        finally:
            painter.close()
    finally:
        env.close()
    reached = sum(take.reached is not None for take in takes)
    how = "" if painter.name != "plan" else ", drawn as a plan"
    of = f", the best of {best}" if best else ""
    return f"{path}: {len(takes)} episode{'s' if len(takes) > 1 else ''}{of}, {reached} reached the goal{how}"


def _load_policy(run: Run) -> tuple[Policy, Config]:
    from higl.errors import PolicyFileError
    from higl.run.policy_file import load_policy

    if not run.policy.exists():
        raise VideoError(f"{run.path} has no policy yet: it is written with the first checkpoint")
    try:
        return load_policy(run.policy)
    except PolicyFileError as error:
        raise VideoError(str(error)) from None


def _make_env(run: Run, config: Config, size: int) -> Any:
    from higl.envs.make import hinting_at_load, is_own, make_env
    from higl.errors import TaskError

    make = partial(make_env, config.task, config.reward, "test", observe_achieved=config.observe_achieved)
    if is_own(config.task):
        return make(render_mode="rgb_array", width=size, height=size)
    with hinting_at_load(run.path, config.task, config.algo):
        try:
            return make(render_mode="rgb_array")
        except TaskError:  # it may be one that draws nothing, and takes no such option
            return make()


def _takes(env: Any, policy: Policy, seed: int, count: int, whole: bool) -> list[Take]:
    """Act out episodes without drawing anything."""
    from higl.algo.episodes import collect_episode
    from higl.run.seeds import MEASURING, episode_seed

    takes = []
    for index in range(count):
        own_seed = episode_seed(seed, MEASURING, index)
        episode = collect_episode(env, policy, own_seed, explore=False)
        reached = np.flatnonzero(episode.success)
        length = len(episode)
        if len(reached) and not whole:
            length = min(length, int(reached[0]) + 1 + _AFTER_SUCCESS)
        takes.append(Take(own_seed, episode, length))
    return takes


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
) -> Any:
    """Return what draws: MuJoCo if it can, else plans."""
    from higl.envs.base import GoalEnv
    from higl.errors import RenderError
    from higl.figures.scene import Markers, PlanPainter, ScenePainter

    markers: Markers = Markers.of(snapshot)
    if not flat:
        try:
            if isinstance(env.unwrapped, GoalEnv):
                return ScenePainter(env.unwrapped, markers)
            return PicturePainter(env)
        except RenderError as error:
            if flat is False:
                raise
            say(f"{error}. Drawing plans instead, which need none of it.")
    shown = projections(config.task, takes[0].episode.achieved.shape[1])
    scene = _plan_scene(env, snapshot, takes)
    return PlanPainter(scene, shown, size, markers)


def _plan_scene(env: Any, snapshot: Columns | None, takes: list[Take]) -> Columns:
    """Return what frames a plan: the snapshot's walls, else the environment's, and the episodes' own points."""
    from higl.envs.maps import Maze

    scene: Columns = dict(snapshot or {})
    scene.setdefault("visited", np.concatenate([take.episode.achieved for take in takes]))
    scene["eval_paths"] = np.concatenate([take.episode.achieved for take in takes])
    scene["goal"] = takes[0].episode.desired[0]
    task = getattr(env.unwrapped, "task", None)
    scene.setdefault("radius", np.asarray(getattr(task, "radius", np.nan)))
    maze = getattr(env.unwrapped, "maze", None)
    if isinstance(maze, Maze) and not len(scene.get("walls", ())):
        centres = np.array([maze.centre(cell) for cell in maze.walls])
        scene["walls"] = np.concatenate([centres - maze.cell / 2, centres + maze.cell / 2], axis=1)
    return scene


class PicturePainter:
    """Draws moments as an environment that is not ours draws itself, with nothing added."""

    name = "environment"
    colours: dict[str, str] = {}  # noqa: RUF012 (never written to)

    def __init__(self, env: Any):
        from higl.envs.render import gl_context
        from higl.errors import RenderError

        self._env = env
        gl_context(8, 8).free()  # chooses the GL library that Gymnasium then takes too
        try:
            env.reset()
            self.paint(None)
        except Exception as error:  # whatever it draws with has errors of its own
            reason = str(error) or type(error).__name__
            raise RenderError(f"{env.spec.id if env.spec else env} cannot draw itself ({reason})") from error

    def paint(self, moment: Moment | None) -> np.ndarray:
        """Return a picture, uint8 [H, W, 3]."""
        return np.asarray(self._env.render(), np.uint8)

    def close(self) -> None:
        """Nothing is held."""


def _frames(env: Any, policy: Policy, config: Config, takes: list[Take], painter: Any) -> Iterator[np.ndarray]:
    """Act out the episodes again, action by action, and yield every picture with its caption."""
    from higl.algo.low import subgoal_target
    from higl.figures.scene import Moment

    for number, take in enumerate(takes):
        episode = take.episode
        env.reset(seed=take.seed)
        every = max(1, round(take.length / _MOST_PICTURES))
        for step in range(take.length + 1):
            if step > 0:
                env.step(policy.environment_action(episode.action[step - 1], env.action_space.dtype))
            if step % every and step < take.length:
                continue
            pursued = min(step, len(episode) - 1)
            target = subgoal_target(policy.scheme, episode.subgoal[pursued], episode.achieved[pursued])
            moment = Moment(episode.achieved[step], episode.desired[step], target, episode.achieved[: step + 1])
            words = _words(config, take, step, f"episode {number + 1} of {len(takes)}" if len(takes) > 1 else "")
            frame = captioned(painter.paint(moment), *words, painter.colours)
            hold = _HOLD_FIRST if step == 0 else _HOLD_LAST if step == take.length else 1
            yield from [frame] * hold


def _words(config: Config, take: Take, step: int, which: str) -> tuple[str, str, bool]:
    """Return what the caption says on the left and on the right, and whether the goal has been reached."""
    name = f"{algorithm_title(config.algo)}, {task_title(config.task, config.reward)}"
    reached = take.reached is not None and step >= take.reached
    over = step == take.length and take.reached is None
    state = f"goal reached at step {take.reached}" if reached else "goal not reached" if over else "on the way"
    return ", ".join(filter(None, [name, which])), f"step {step}   {state}", reached


def captioned(picture: np.ndarray, left: str, right: str, reached: bool, colours: Mapping[str, str]) -> np.ndarray:
    """Return a picture over a strip that names the run, what the colours mean, and the state of the episode."""
    from PIL import Image, ImageDraw

    height, width = picture.shape[:2]
    strip = max(_CAPTION * width // 960, min(30, height // 8))
    strip += (height + strip) % 2
    frame = Image.new("RGB", (width + width % 2, height + strip), "#14181D")
    frame.paste(Image.fromarray(picture), (0, 0))
    draw = ImageDraw.Draw(frame)
    font = _font(max(7, round(min(0.36 * strip, width / 44))))
    middle = height + strip / 2
    draw.text((0.012 * width, middle), left, font=font, fill="#FFFFFF", anchor="lm")
    colour = "#3DDC97" if reached else "#FFFFFF"
    draw.text((width * 0.988, middle), right, font=font, fill=colour, anchor="rm")
    x = 0.02 * width + draw.textlength(left, font=font) + 0.02 * width
    for word, dot in colours.items():
        end = x + 0.016 * width + draw.textlength(word, font=font)
        if end > width * 0.98 - draw.textlength(right, font=font) - 0.02 * width:
            break
        radius = 0.14 * strip
        draw.ellipse([x - radius, middle - radius, x + radius, middle + radius], fill=dot)
        draw.text((x + 0.012 * width, middle), word, font=font, fill="#C9D1DA", anchor="lm")
        x = end + 0.014 * width
    if reached:
        draw.rectangle([0, 0, frame.width - 1, height - 1], outline="#3DDC97", width=max(2, width // 240))
    return np.asarray(frame)


def _font(size: int) -> Any:
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)


def _write(path: Path, frames: Iterator[np.ndarray]) -> None:
    """Write frames as H.264; the file appears under its name when it is complete."""
    import imageio.v2 as imageio

    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".new-{path.name}")
    try:
        with imageio.get_writer(
            beside, format="FFMPEG", fps=FRAMES_PER_SECOND, codec="libx264", macro_block_size=2,
            ffmpeg_log_level="error", output_params=["-crf", "25", "-preset", "fast", "-movflags", "+faststart"],
        ) as writer:  # fmt: skip
            for frame in frames:
                cast(Any, writer).append_data(frame)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
