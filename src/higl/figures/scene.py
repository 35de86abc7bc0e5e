"""Pictures of a moment of an episode with its subgoal and the landmarks drawn in: MuJoCo's, or plain plans.

Both painters take the same `Moment` and give pictures of the same height, so a video does not care which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from PIL import Image, ImageDraw

from higl.envs.base import GoalEnv
from higl.envs.maze import MazeEnv
from higl.envs.render import camera_of, gl_context
from higl.figures import style
from higl.figures.maps import Projection, extent, points_of
from higl.run.reading import Columns

CAMERAS = ("top", "track")
# Sizes as shares of what the camera from above shows.
_LANDMARK, _SUBGOAL = 0.008, 0.014
_WALL_OPACITY = 0.25
_GLOW = 0.4
# Plans are drawn larger and shrunk, which smooths their edges.
_SUPERSAMPLED = 2
_MOST_GEOMS = 2_000
_GOAL_BODIES = ("goal_marker", "goal")


@dataclass(frozen=True)
class Moment:
    """What is drawn of one step: achieved, desired and subgoal's point [G], and the way so far [T, G]."""

    achieved: np.ndarray
    desired: np.ndarray
    subgoal: np.ndarray
    trail: np.ndarray


@dataclass(frozen=True)
class Markers:
    """Landmarks that are drawn in every picture: [C, G] and [K, G]."""

    coverage: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    novelty: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))

    @property
    def colours(self) -> dict[str, str]:
        """What the colours of a picture with these markers mean."""
        colours = {"goal": style.GOAL, "subgoal": style.SUBGOAL}
        colours |= {"coverage": style.COVERAGE} if len(self.coverage) else {}
        return colours | ({"novelty": style.NOVELTY} if len(self.novelty) else {})

    @classmethod
    def of(cls, snapshot: Columns | None) -> Markers:
        """Take the landmarks of a snapshot."""
        return cls() if not snapshot else cls(points_of(snapshot, "coverage"), points_of(snapshot, "novelty"))


def rgba(colour: str, opacity: float = 1.0) -> np.ndarray:
    """Return '#RRGGBB' as MuJoCo takes it."""
    return np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)] + [opacity], np.float32)


# --- MuJoCo ---------------------------------------------------------------------------------------------------------


class ScenePainter:
    """Draws moments through MuJoCo, from above and from behind the body, side by side, with markers in the scene.

    Raises:
        RenderError: there is no usable GL library.
    """

    name = "MuJoCo"

    def __init__(self, env: GoalEnv, markers: Markers):
        self._env, self._markers = env, markers
        self.colours = markers.colours
        self._gl = gl_context(env.width, env.height)
        self._gl.make_current()
        self._context = _context(env.model)
        mujoco.mjr_resizeOffscreen(env.width, env.height, self._context)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(env.model, _MOST_GEOMS)
        # A software renderer draws several times faster without them.
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._cameras = {name: _camera(env, name) for name in CAMERAS}
        self._is_maze = isinstance(env, MazeEnv)
        low_x, _, high_x, _ = env.extent()
        self._unit = high_x - low_x

    def paint(self, moment: Moment) -> np.ndarray:
        """Return a picture of the environment's present state and a moment, uint8 [H, 2 W, 3]."""
        model, data = self._env.model, self._env.data
        self._gl.make_current()
        # Steps leave cartesian positions behind the joints'; drawing brings them up to date and changes nothing else.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        return np.concatenate([self._picture(name, moment) for name in CAMERAS], axis=1)

    def close(self) -> None:
        """Free the GL context."""
        self._gl.make_current()
        self._context.free()
        self._gl.free()

    def _picture(self, camera: str, moment: Moment) -> np.ndarray:
        env, scene = self._env, self._scene
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(env.model, env.data, mujoco.MjvOption(), None, self._cameras[camera], everything, scene)
        self._repaint(see_through=self._is_maze and camera == "track")
        self._add_markers(moment)
        rectangle = mujoco.MjrRect(0, 0, env.width, env.height)
        mujoco.mjr_render(rectangle, scene, self._context)
        picture = np.empty((env.height, env.width, 3), np.uint8)
        mujoco.mjr_readPixels(picture, None, rectangle, self._context)
        return picture[::-1]

    def _repaint(self, *, see_through: bool) -> None:
        """Give the goal its colour of the maps, and let one look through walls that stand before the body."""
        model = self._env.model
        for geom in self._scene.geoms[: self._scene.ngeom]:
            if geom.objtype != mujoco.mjtObj.mjOBJ_GEOM:
                continue
            owner = model.geom_bodyid[geom.objid]
            if model.body(owner).name in _GOAL_BODIES:
                geom.rgba[:3] = rgba(style.GOAL)[:3]
            elif see_through and owner == 0 and geom.type == mujoco.mjtGeom.mjGEOM_BOX:
                geom.rgba[3] = _WALL_OPACITY

    def _add_markers(self, moment: Moment) -> None:
        small, large = _LANDMARK * self._unit, _SUBGOAL * self._unit
        for points, colour in ((self._markers.coverage, style.COVERAGE), (self._markers.novelty, style.NOVELTY)):
            for point in points:
                self._ball(point[:3], small, rgba(colour, 0.9))
        self._mark_subgoal(moment.subgoal, large)

    def _mark_subgoal(self, subgoal: np.ndarray, size: float) -> None:
        """Draw a maze's subgoal as a pillar, which walls do not hide; of arms each three numbers as a ball."""
        colour = rgba(style.SUBGOAL, 0.85)
        if not self._is_maze:
            for start in range(0, len(subgoal) - 2, 3):
                self._ball(subgoal[start : start + 3], size, colour)
            return
        half = self._env.scene_height() / 2 + size
        place = np.array([subgoal[0], subgoal[1], half])
        self._add(mujoco.mjtGeom.mjGEOM_CYLINDER, np.array([0.7 * size, half, 0.0]), place, colour)

    def _ball(self, point: np.ndarray, radius: float, colour: np.ndarray) -> None:
        """Draw a ball: in a maze on the floor, of arms where the point is."""
        place = np.array([point[0], point[1], radius]) if self._is_maze else np.asarray(point, float)
        self._add(mujoco.mjtGeom.mjGEOM_SPHERE, np.array([radius, 0.0, 0.0]), place, colour)

    def _add(self, kind: Any, size: np.ndarray, place: np.ndarray, colour: np.ndarray) -> None:
        scene = self._scene
        if scene.ngeom < scene.maxgeom:
            mujoco.mjv_initGeom(scene.geoms[scene.ngeom], kind, size, place, np.eye(3).ravel(), colour)
            scene.geoms[scene.ngeom].emission = _GLOW
            scene.ngeom += 1


def _context(model: mujoco.MjModel) -> mujoco.MjrContext:
    """Return a context that draws without smoothing edges: three times as fast without a graphics card."""
    quality = model.vis.quality
    before = quality.offsamples
    quality.offsamples = 0
    try:
        return mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    finally:
        quality.offsamples = before


def _camera(env: GoalEnv, name: str) -> mujoco.MjvCamera:
    env.camera = name
    return camera_of(env)


# --- Without GL -----------------------------------------------------------------------------------------------------


class PlanPainter:
    """Draws moments as plans of the goal space, one for each projection: needs no GL library."""

    name = "plan"

    def __init__(self, snapshot: Columns, shown: Sequence[Projection], size: int, markers: Markers):
        self._shown = [shown[0], shown[-1]] if len(shown) > 1 else list(shown)
        self._frames = [extent([snapshot], projection) for projection in self._shown]
        self._size, self._markers = size, markers
        self.colours = markers.colours
        self._radius = float(snapshot.get("radius", np.nan))
        self._walls = np.asarray(snapshot.get("walls", np.zeros((0, 4))))

    def paint(self, moment: Moment) -> np.ndarray:
        """Return a picture, uint8 [H, W, 3]."""
        plans = [self._plan(moment, *pair) for pair in zip(self._shown, self._frames, strict=True)]
        return np.concatenate(plans, axis=1)

    def close(self) -> None:
        """Nothing is held."""

    def _plan(self, moment: Moment, projection: Projection, frame: tuple[float, float, float, float]) -> np.ndarray:
        size = _SUPERSAMPLED * self._size
        left, right, low, high = frame
        scale = (size - 1) / max(right - left, high - low)

        def place(points: np.ndarray) -> np.ndarray:
            """Return pixels of goal-space points: [..., G] to [..., 2]."""
            x, y = np.moveaxis(projection.of(np.asarray(points, float)), -1, 0)
            return np.stack([(x - left) * scale, (high - y) * scale], axis=-1)

        picture = Image.new("RGB", (size, size), style.FLOOR)
        draw = ImageDraw.Draw(picture, "RGBA")
        for x0, y0, x1, y1 in self._walls:
            box = [(x0 - left) * scale, (high - y1) * scale, (x1 - left) * scale, (high - y0) * scale]
            draw.rectangle(box, fill=style.WALL)
        if np.isfinite(self._radius) and projection.decides:
            _dot(draw, place(moment.desired), self._radius * scale, style.GOAL + "30")
        for points, colour in ((self._markers.coverage, style.COVERAGE), (self._markers.novelty, style.NOVELTY)):
            for point in place(points) if len(points) else ():
                _dot(draw, point, 0.009 * size, colour)
        way = [tuple(point) for point in place(moment.trail)]
        draw.line(way, fill=style.STATE, width=max(1, size // 240), joint="curve")
        _dot(draw, place(moment.desired), 0.016 * size, style.GOAL)
        here, there = place(moment.achieved), place(moment.subgoal)
        draw.line([tuple(here), tuple(there)], fill=style.SUBGOAL, width=max(1, size // 200))
        _dot(draw, there, 0.014 * size, style.SUBGOAL)
        _dot(draw, here, 0.02 * size, style.STATE)
        draw.text((0.015 * size, 0.985 * size), projection.title, fill="#7A8490", anchor="ls", font_size=0.03 * size)
        return np.asarray(picture.resize((self._size, self._size), Image.Resampling.LANCZOS))


def _dot(draw: ImageDraw.ImageDraw, point: np.ndarray, radius: float, colour: str) -> None:
    x, y = point
    draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colour)
