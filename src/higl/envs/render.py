"""Images of an environment from MuJoCo's renderer.

This module is imported when something is drawn, so that everything else works without a GL library. MuJoCo chooses its
GL library by the variable `MUJOCO_GL`, and its import fails if that library is missing. If the variable is unset, the
first image sets it to a library that is installed.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from higl.envs.bodies import MAZE_BODIES
from higl.errors import RenderError

if TYPE_CHECKING:
    from higl.envs.base import GoalEnv

INSTALL_HINT = (
    "install one, on Debian or Ubuntu `apt-get install libegl1 libgl1` (or `libosmesa6`, and set MUJOCO_GL=osmesa)"
)
_LIBRARIES = {"egl": ("libEGL.so.1", "libEGL.so"), "osmesa": ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so")}
_MAX_GEOMS = 2000
_FIELD_OF_VIEW = 45.0  # degrees, MuJoCo's default for free cameras

Decorate = Callable[[mujoco.MjvScene], None]


def make_renderer(env: GoalEnv) -> OffscreenRenderer | WindowRenderer:
    """Return the renderer for the `render_mode` of `env`.

    Raises:
        RenderError: no usable GL library, or no display for a window.
    """
    return WindowRenderer(env) if env.render_mode == "human" else OffscreenRenderer(env)


class _Painter:
    """Draws an environment's scene into the current GL context."""

    def __init__(self, env: GoalEnv) -> None:
        self._env = env
        self.context = mujoco.MjrContext(env.model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self._scene = mujoco.MjvScene(env.model, _MAX_GEOMS)
        # Without them a software renderer is several times faster.
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._option = mujoco.MjvOption()
        self._camera = camera_of(env)

    def paint(
        self, width: int, height: int, camera: mujoco.MjvCamera | None = None, decorate: Decorate | None = None
    ) -> mujoco.MjrRect:
        """Draw the current state in width x height pixels, and return that rectangle."""
        model, data = self._env.model, self._env.data
        # `mj_step` leaves cartesian positions one simulation step behind the joints. The next step computes them
        # again from the same joint positions, so drawing does not change the trajectory.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(model, data, self._option, None, camera or self._camera, everything, self._scene)
        if decorate is not None:
            decorate(self._scene)
        rectangle = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(rectangle, self._scene, self.context)
        return rectangle


class OffscreenRenderer:
    """Draws an environment into arrays."""

    def __init__(self, env: GoalEnv) -> None:
        self._shape = (env.height, env.width, 3)
        self._gl = gl_context(env.width, env.height)
        self._gl.make_current()
        self._painter = _Painter(env)
        mujoco.mjr_resizeOffscreen(env.width, env.height, self._painter.context)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._painter.context)

    def draw(self, camera: mujoco.MjvCamera | None = None, decorate: Decorate | None = None) -> np.ndarray:
        """Return an image of the current state, uint8 [H, W, 3].

        Args:
            camera: camera to draw from; that of the environment if None.
            decorate: changes the scene before it is drawn, for example to add markers.
        """
        self._gl.make_current()
        height, width, _ = self._shape
        rectangle = self._painter.paint(width, height, camera, decorate)
        picture = np.empty(self._shape, np.uint8)
        mujoco.mjr_readPixels(picture, None, rectangle, self._painter.context)
        return np.ascontiguousarray(picture[::-1])

    def close(self) -> None:
        """Free the GL context."""
        self._gl.make_current()
        self._painter.context.free()
        self._gl.free()


class WindowRenderer:
    """Shows an environment in a window, in real time.

    Not `mujoco.viewer`: its thread can hang or crash the process when it is closed.
    """

    def __init__(self, env: GoalEnv) -> None:
        if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise RenderError(
                "render_mode='human' needs a display, but neither DISPLAY nor WAYLAND_DISPLAY is set; "
                "render_mode='rgb_array' works without one"
            )
        try:
            import glfw

            self._glfw: Any = glfw  # its type hints do not allow None as the current context
            if not self._glfw.init():
                raise OSError("GLFW did not start")
            if sys.platform == "linux" and any(map(_loads, _LIBRARIES["egl"])):
                # The same library as for offscreen images: one thread cannot switch between libraries.
                self._glfw.window_hint(glfw.CONTEXT_CREATION_API, glfw.EGL_CONTEXT_API)
            self._window = self._glfw.create_window(env.width, env.height, env.task.id, None, None)
            if not self._window:
                raise OSError("GLFW opened no window")
            self._glfw.make_context_current(self._window)
            self._glfw.swap_interval(0)
            self._painter = _Painter(env)
        except Exception as error:  # missing libraries and drivers raise many types
            raise RenderError(f"no window could be opened ({error}); {INSTALL_HINT}") from error
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_WINDOW, self._painter.context)
        self._glfw.make_context_current(None)  # else an offscreen context could not become current
        self._seconds_per_frame = 1.0 / env.metadata["render_fps"]
        self._next_frame = time.monotonic()

    def draw(self) -> None:
        """Update the window when the next frame is due; a window that the user closed stays closed."""
        if self._window is None:
            return
        self._glfw.make_context_current(self._window)
        self._painter.paint(*self._glfw.get_framebuffer_size(self._window))
        time.sleep(max(0.0, self._next_frame - time.monotonic()))
        self._glfw.swap_buffers(self._window)
        self._glfw.make_context_current(None)
        self._next_frame = max(self._next_frame + self._seconds_per_frame, time.monotonic())
        self._glfw.poll_events()
        if self._glfw.window_should_close(self._window):
            self.close()

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._glfw.make_context_current(self._window)
            self._painter.context.free()
            self._glfw.make_context_current(None)
            self._glfw.destroy_window(self._window)
            self._window = None


def camera_of(env: GoalEnv) -> mujoco.MjvCamera:
    """Return the camera of `env`: "top" shows everything from above, y up; "track" follows the body."""
    camera = mujoco.MjvCamera()
    is_maze = env.task.body in MAZE_BODIES
    if env.camera == "top":
        low_x, low_y, high_x, high_y = env.extent()
        camera.type = mujoco.mjtCamera.mjCAMERA_FREE
        camera.lookat[:] = ((low_x + high_x) / 2, (low_y + high_y) / 2, 0.0)
        # The whole area must fit at the height of the object nearest to the camera.
        half = max(high_y - low_y, (high_x - low_x) * env.height / env.width) / 2
        camera.distance = half / np.tan(np.radians(_FIELD_OF_VIEW / 2)) + env.scene_height()
        camera.azimuth, camera.elevation = 90.0, -90.0
    elif is_maze:
        camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
        camera.trackbodyid = env.model.body("torso").id
        camera.distance, camera.azimuth, camera.elevation = 7.0, 90.0, -50.0
    else:
        camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
        camera.trackbodyid = env.model.body("r_shoulder_pan_link").id
        camera.distance, camera.azimuth, camera.elevation = 2.6, 130.0, -30.0
    return camera


def gl_context(width: int, height: int) -> Any:
    """Return a GL context for drawing without a window.

    Raises:
        RenderError: there is no GL library, or it fails.
    """
    backend = os.environ.get("MUJOCO_GL", "").lower().strip()
    if not backend and sys.platform == "linux":
        backend = next((name for name, files in _LIBRARIES.items() if any(map(_loads, files))), "")
        if not backend and not os.environ.get("DISPLAY"):
            raise RenderError(f"cannot draw: no GL library (EGL or OSMesa) was found; {INSTALL_HINT}")
    try:
        if backend == "egl":
            from mujoco.egl import GLContext
        elif backend == "osmesa":
            from mujoco.osmesa import GLContext
        else:
            from mujoco import GLContext
        context = GLContext(width, height)
    except Exception as error:  # ImportError, AttributeError, GLError, RuntimeError, ...
        raise RenderError(
            f"cannot draw with the GL library {backend or 'of the display'} ({error}); {INSTALL_HINT}"
        ) from error
    if backend:
        os.environ["MUJOCO_GL"] = backend  # MuJoCo reads it when it loads GL functions
    return context


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
