"""Pictures of one step of an episode with its subgoal and the landmarks: drawn by MuJoCo, or as plans.

All painters take the same `Moment`, so that a video can use any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import mujoco
import numpy as np
from PIL import Image, ImageDraw

from higl.envs.base import GoalEnv
from higl.envs.maze import MazeEnv
from higl.envs.render import OffscreenRenderer, camera_of, gl_context
from higl.errors import RenderError
from higl.figures import style
from higl.figures.goal_space import Frame, Projection, extent, points_of
from higl.run.reading import Columns

CAMERAS = ("top", "track")
# Sizes as shares of the width that the camera from above shows.
_LANDMARK, _SUBGOAL = 0.008, 0.014
_WALL_OPACITY = 0.25
_GLOW = 0.4
# Plans are drawn larger and scaled down, which smooths their edges.
_SUPERSAMPLED = 2
_GOAL_BODIES = ("goal_marker", "goal")


@dataclass(frozen=True)
class Moment:
    """What is drawn of one step: achieved goal, desired goal and subgoal [G], and the path so far [T, G]."""

    achieved: np.ndarray
    desired: np.ndarray
    subgoal: np.ndarray
    trail: np.ndarray


@dataclass(frozen=True)
class Markers:
    """Landmarks in every picture: [C, G] and [K, G]."""

    coverage: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    novelty: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))

    @property
    def coloured(self) -> list[tuple[np.ndarray, str]]:
        """Landmarks of each kind with their colour."""
        return [(self.coverage, style.COVERAGE), (self.novelty, style.NOVELTY)]

    @property
    def colours(self) -> dict[str, str]:
        """Meaning of the colours in a picture with these markers."""
        colours = {"goal": style.GOAL, "subgoal": style.SUBGOAL}
        colours |= {"coverage": style.COVERAGE} if len(self.coverage) else {}
        return colours | ({"novelty": style.NOVELTY} if len(self.novelty) else {})

    @classmethod
    def of(cls, snapshot: Columns | None) -> Markers:
        """Take the landmarks of a snapshot."""
        return cls() if not snapshot else cls(points_of(snapshot, "coverage"), points_of(snapshot, "novelty"))


class Painter(ABC):
    """Draws moments.

    Attributes:
        colours: meaning of the colours, for the caption.
        is_plan: whether the pictures are plans.
    """

    is_plan = False

    def __init__(self, colours: Mapping[str, str]):
        self.colours = colours

    @abstractmethod
    def paint(self, moment: Moment) -> np.ndarray:
        """Return a picture of the environment's current state and a moment, uint8 [H, W, 3]."""

    def close(self) -> None:  # noqa: B027 (most painters hold nothing)
        """Free what the painter holds."""


# --- MuJoCo ---------------------------------------------------------------------------------------------------------


class ScenePainter(Painter):
    """Draws moments with MuJoCo, from above and from behind the body, side by side, with markers in the scene.

    Raises:
        RenderError: there is no usable GL library.
    """

    def __init__(self, env: GoalEnv, markers: Markers):
        super().__init__(markers.colours)
        self._env, self._markers = env, markers
        with _no_antialiasing(env.model):
            self._renderer = OffscreenRenderer(env)
        self._cameras = {name: _camera(env, name) for name in CAMERAS}
        self._is_maze = isinstance(env, MazeEnv)
        low_x, _, high_x, _ = env.extent()
        self._unit = high_x - low_x

    def paint(self, moment: Moment) -> np.ndarray:
        """Return a picture of the environment's current state and a moment, uint8 [H, 2 W, 3]."""
        pictures = [
            self._renderer.draw(camera, partial(self._decorate, moment, see_through=self._is_maze and name == "track"))
            for name, camera in self._cameras.items()
        ]
        return np.concatenate(pictures, axis=1)

    def close(self) -> None:
        """Free the GL context."""
        self._renderer.close()

    def _decorate(self, moment: Moment, scene: mujoco.MjvScene, *, see_through: bool) -> None:
        """Recolour the goal as in the maps, make walls in front of the body transparent, and add the markers."""
        model = self._env.model
        for geom in scene.geoms[: scene.ngeom]:
            if geom.objtype != mujoco.mjtObj.mjOBJ_GEOM:
                continue
            owner = model.geom_bodyid[geom.objid]
            if model.body(owner).name in _GOAL_BODIES:
                geom.rgba[:3] = style.rgb(style.GOAL)
            elif see_through and owner == 0 and geom.type == mujoco.mjtGeom.mjGEOM_BOX:
                geom.rgba[3] = _WALL_OPACITY
        for points, colour in self._markers.coloured:
            for point in points:
                self._add_ball(scene, point[:3], _LANDMARK * self._unit, _rgba(colour, 0.9))
        self._add_subgoal(scene, moment.subgoal, _SUBGOAL * self._unit)

    def _add_subgoal(self, scene: mujoco.MjvScene, subgoal: np.ndarray, size: float) -> None:
        """Draw a subgoal in a maze as a pillar, which walls do not hide; of an arm, a ball for every three numbers."""
        colour = _rgba(style.SUBGOAL, 0.85)
        if not self._is_maze:
            for start in range(0, len(subgoal) - 2, 3):
                self._add_ball(scene, subgoal[start : start + 3], size, colour)
            return
        half = self._env.scene_height() / 2 + size
        place = np.array([subgoal[0], subgoal[1], half])
        _add_geom(scene, mujoco.mjtGeom.mjGEOM_CYLINDER, np.array([0.7 * size, half, 0.0]), place, colour)

    def _add_ball(self, scene: mujoco.MjvScene, point: np.ndarray, radius: float, colour: np.ndarray) -> None:
        """Draw a ball at a point: on the floor of a maze, in the air around an arm."""
        place = np.array([point[0], point[1], radius]) if self._is_maze else np.asarray(point, float)
        _add_geom(scene, mujoco.mjtGeom.mjGEOM_SPHERE, np.array([radius, 0.0, 0.0]), place, colour)


def _add_geom(scene: mujoco.MjvScene, kind: Any, size: np.ndarray, place: np.ndarray, colour: np.ndarray) -> None:
    if scene.ngeom < scene.maxgeom:
        mujoco.mjv_initGeom(scene.geoms[scene.ngeom], kind, size, place, np.eye(3).ravel(), colour)
        scene.geoms[scene.ngeom].emission = _GLOW
        scene.ngeom += 1


def _rgba(colour: str, opacity: float) -> np.ndarray:
    return np.array([*style.rgb(colour), opacity], np.float32)


@contextmanager
def _no_antialiasing(model: mujoco.MjModel) -> Generator[None]:
    """Create GL contexts that do not smooth edges: three times as fast without a graphics card."""
    quality = model.vis.quality
    before = quality.offsamples
    quality.offsamples = 0
    try:
        yield
    finally:
        quality.offsamples = before


def _camera(env: GoalEnv, name: str) -> mujoco.MjvCamera:
    env.camera = name
    return camera_of(env)


# --- Other environments ---------------------------------------------------------------------------------------------


class EnvironmentPainter(Painter):
    """Draws moments with the environment's own `render`, without markers.

    Raises:
        RenderError: the environment cannot draw itself.
    """

    def __init__(self, env: Any):
        super().__init__({})
        self._env = env
        gl_context(8, 8).free()  # selects the GL library that Gymnasium then uses too
        try:
            env.reset()
            self._picture()
        except Exception as error:  # each renderer has its own errors
            reason = str(error) or type(error).__name__
            raise RenderError(f"{env.spec.id if env.spec else env} cannot draw itself ({reason})") from error

    def paint(self, moment: Moment) -> np.ndarray:
        """Return a picture of the environment's current state, uint8 [H, W, 3]."""
        return self._picture()

    def _picture(self) -> np.ndarray:
        return np.asarray(self._env.render(), np.uint8)


# --- Without GL -----------------------------------------------------------------------------------------------------


class PlanPainter(Painter):
    """Draws moments as plans of the goal space, one or two projections side by side: needs no GL library.

    Args:
        snapshot: walls, radius and points that determine what a plan shows.
        shown: projections of the goal space; the first and the last are drawn.
        size: pixels of a plan's side.
        markers: landmarks.
    """

    is_plan = True

    def __init__(self, snapshot: Columns, shown: Sequence[Projection], size: int, markers: Markers):
        super().__init__(markers.colours)
        self._size, self._markers = size, markers
        drawn = [shown[0], shown[-1]] if len(shown) > 1 else list(shown)
        self._side = _SUPERSAMPLED * size
        self._frames = [Frame(projection, extent([snapshot], projection), self._side - 1) for projection in drawn]
        self._radius = float(snapshot.get("radius", np.nan))
        self._walls = np.asarray(snapshot.get("walls", np.zeros((0, 4))))

    def paint(self, moment: Moment) -> np.ndarray:
        """Return a picture of a moment, uint8 [H, W, 3]."""
        return np.concatenate([self._plan(moment, frame) for frame in self._frames], axis=1)

    def _plan(self, moment: Moment, frame: Frame) -> np.ndarray:
        side = self._side
        picture = Image.new("RGB", (side, side), style.FLOOR)
        draw = ImageDraw.Draw(picture, "RGBA")
        self._draw_scene(draw, moment, frame)
        here, there = frame.places(moment.achieved), frame.places(moment.subgoal)
        trail = [tuple(point) for point in frame.places(moment.trail)]
        draw.line(trail, fill=style.STATE, width=max(1, side // 240), joint="curve")
        _dot(draw, frame.places(moment.desired), 0.016 * side, style.GOAL)
        draw.line([tuple(here), tuple(there)], fill=style.SUBGOAL, width=max(1, side // 200))
        _dot(draw, there, 0.014 * side, style.SUBGOAL)
        _dot(draw, here, 0.02 * side, style.STATE)
        title = frame.projection.title
        draw.text((0.015 * side, 0.985 * side), title, fill="#7A8490", anchor="ls", font_size=0.03 * side)
        return np.asarray(picture.resize((self._size, self._size), Image.Resampling.LANCZOS))

    def _draw_scene(self, draw: ImageDraw.ImageDraw, moment: Moment, frame: Frame) -> None:
        """Draw what lies below the path: walls, the goal's radius and the landmarks."""
        for box in frame.boxes(self._walls):
            draw.rectangle(box.tolist(), fill=style.WALL)
        if np.isfinite(self._radius) and frame.projection.decides:
            _dot(draw, frame.places(moment.desired), self._radius * frame.scale, style.GOAL + "30")
        for points, colour in self._markers.coloured:
            for place in frame.places(points) if len(points) else ():
                _dot(draw, place, 0.009 * self._side, colour)


def _dot(draw: ImageDraw.ImageDraw, place: np.ndarray, radius: float, colour: str) -> None:
    x, y = place
    draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colour)
