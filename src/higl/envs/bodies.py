"""The bodies as MuJoCo specs: point, ant, the two arms; and the maze around a body.

Every body starts from a model of the gymnasium package. This module lists only the numbers that differ, each once and
with its reason. They reproduce the simulator of the paper's results, so that a policy trained there moves the same way
here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

import mujoco
import numpy as np

from higl.envs.maps import Maze

RK4 = mujoco.mjtIntegrator.mjINT_RK4

SCENERY_MARGIN = 0.0
"""Contact margin of everything that a body touches (floor, walls, table, puck); packaged: the body's own margin.

MuJoCo adds the margins of two touching geoms; the authors' version took the larger one. Without a margin on the scenery
the sum equals the body's margin: 0.01 for the ant, 0.002 for the pusher's fork."""

# --- Ant -----------------------------------------------------------------------------------------------------------
# The packaged ant is OpenAI Gym's classic ant except for the following numbers: the maze environments of the
# hierarchical reinforcement-learning literature set them differently, or Gymnasium has changed them since.
ANT_TIMESTEP = 0.02
"""Seconds; packaged 0.01. With a frame skip of 5 an action lasts 0.1 s."""
ANT_FRAME_SKIP = 5
ANT_SOLREF = (0.02, 1.0)
"""MuJoCo's default, stated because `ANT_SOLIMP` belongs with it."""
ANT_SOLIMP = (0.8, 0.8, 0.01)
"""Softer contacts than MuJoCo's default (0.9, 0.95, 0.001), which the packaged model uses."""
ANT_GEAR = 1.0
"""Packaged 150: actions are torques in newton metres here."""
ANT_TORQUE = 30.0
"""Control range -30..30; packaged -1..1."""

# --- Point ---------------------------------------------------------------------------------------------------------
# The packaged point is the authors' point. Its two motors only declare an action range and move nothing.
POINT_FRAME_SKIP = 1
POINT_STRIDE = 0.2
"""Metres that the point moves in one step with a forward action of 1."""

# --- Arms ----------------------------------------------------------------------------------------------------------
ARM_JOINTS = (
    "r_shoulder_pan_joint",
    "r_shoulder_lift_joint",
    "r_upper_arm_roll_joint",
    "r_elbow_flex_joint",
    "r_forearm_roll_joint",
    "r_wrist_flex_joint",
    "r_wrist_roll_joint",
)
PUSHER_FRAME_SKIP = 4
PUSHER_TORQUE = 2.0
"""As packaged."""
PUCK_MASS = 0.04
"""Kilograms; packaged 8e-6, with an armature of 0.04 on the joints instead.

The inertia is the same. But after version 2.3.7 MuJoCo ignores armature when it estimates how hard a contact must push
(`body_invweight0`), so the fork passed through an almost weightless puck (MuJoCo's issue 1495)."""
PUSHER_PAN_LIMIT = 2.0
"""Radians, upper limit of the shoulder pan; packaged 1.714602."""

REACHER_FRAME_SKIP = 2
REACHER_TORQUE = 20.0
"""Packaged 2; the Reacher's joints have ten times the damping, and its links are heavier."""
REACHER_BASE = (0.0, -0.188, 0.0)
"""Packaged (0, -0.6, 0), which suits a target on a table; the Reacher's target is near the origin."""
REACHER_DENSITY = 1000.0
"""MuJoCo's default; packaged 300."""
REACHER_DAMPING = (10.0, 10.0, 0.1, 1.0, 0.1, 0.1, 0.1)
"""In the order of `ARM_JOINTS`; packaged 1, 1, then 0.1."""
REACHER_RANGES = {"r_upper_arm_roll_joint": (-3.9, 0.8), "r_wrist_flex_joint": (-2.094, 0.0)}
"""Radians; packaged -1.5..1.7 and -1.094..0."""
REACHER_UNLIMITED = ("r_forearm_roll_joint", "r_wrist_roll_joint")
"""Packaged -1.5..1.5."""
REACHER_FOREARM = 0.321
"""Metres, up to the wrist; packaged 0.291, shorter to leave room for the pusher's fork."""
REACHER_PALM_AHEAD, REACHER_PALM_RADIUS, REACHER_PALM_HALF_LENGTH = 0.05, 0.05, 0.02
REACHER_WRIST_HALF_LENGTH = 0.02
REACHER_FINGER_AHEAD, REACHER_FINGER_SIDE = 0.07691, 0.03
REACHER_PHALANX, REACHER_PHALANX_SPREAD = 0.09137, 0.00495
"""Each finger consists of two capsules of this length; the first also points outward by the spread."""
REACHER_THIN_RADIUS = 0.01
"""Radius of wrist and fingers."""
REACHER_END_EFFECTOR = REACHER_FINGER_AHEAD + REACHER_PHALANX
"""0.16828 ahead of the wrist along the hand, at the middle joint of the fingers."""


@dataclass(frozen=True)
class Body:
    """The properties of a body that a maze environment needs.

    Attributes:
        build: makes a fresh spec.
        frame_skip: simulation steps per action.
        action_low: lowest action, one number per motor.
        action_high: highest action.
        drive: moves the body kinematically, `drive(qpos, action)`; None if actions are motor torques.
    """

    build: Callable[[], mujoco.MjSpec]
    frame_skip: int
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    drive: Callable[[np.ndarray, np.ndarray], None] | None = None


def _packaged(file: str) -> mujoco.MjSpec:
    text = resources.files("gymnasium").joinpath("envs", "mujoco", "assets", file).read_text(encoding="utf-8")
    return mujoco.MjSpec.from_string(text)


def ant_spec() -> mujoco.MjSpec:
    """Build the classic ant: 15 positions, 14 velocities, 8 motors (hip and ankle of legs 4, 1, 2, 3)."""
    spec = _packaged("ant.xml")
    spec.option.timestep = ANT_TIMESTEP
    # A changed default applies only to elements added later (walls), not to parsed ones: set both.
    for geom in [spec.default.geom, *spec.geoms]:
        geom.solref = ANT_SOLREF
        geom.solimp[:3] = ANT_SOLIMP
    spec.geom("floor").margin = SCENERY_MARGIN
    spec.default.geom.margin = SCENERY_MARGIN  # for the walls
    for motor in spec.actuators:
        motor.gear[0] = ANT_GEAR
        motor.ctrlrange = (-ANT_TORQUE, ANT_TORQUE)
    return spec


def point_spec() -> mujoco.MjSpec:
    """Build the point mass: joints x, y and heading, no motors; timestep 0.02 as packaged."""
    spec = _packaged("point.xml")
    for motor in list(spec.actuators):
        spec.delete(motor)
    return spec


def drive_point(qpos: np.ndarray, action: np.ndarray) -> None:
    """Update `qpos`: turn the heading by `action[1]`, then move `POINT_STRIDE * action[0]` along the new heading."""
    heading = qpos[2] + action[1]
    stride = POINT_STRIDE * action[0]
    qpos[0] += stride * math.cos(heading)
    qpos[1] += stride * math.sin(heading)
    qpos[2] = heading


MAZE_BODIES = {
    "ant": Body(ant_spec, ANT_FRAME_SKIP, (-ANT_TORQUE,) * 8, (ANT_TORQUE,) * 8),
    "point": Body(point_spec, POINT_FRAME_SKIP, (-1.0, -1.0), (1.0, 1.0), drive_point),
}


def pusher_spec() -> mujoco.MjSpec:
    """Build the pusher: seven arm joints, then the puck's y and x, then the goal disc's y and x."""
    spec = _packaged("pusher_v5.xml")
    spec.joint("r_shoulder_pan_joint").range[1] = PUSHER_PAN_LIMIT
    for geom in [spec.geom("table"), *spec.body("object").geoms]:
        geom.margin = SCENERY_MARGIN
    puck = spec.body("object")
    puck.geoms[0].mass = PUCK_MASS
    for joint in puck.joints:
        joint.armature = 0.0
    return spec


def reacher_spec() -> mujoco.MjSpec:
    """Build the pusher's arm with a hand instead of the fork and nothing to touch; adds the site `end_effector`."""
    spec = _packaged("pusher_v5.xml")
    spec.option.integrator = RK4
    spec.delete(spec.geom("table"))
    for name in ("object", "goal", "tips_arm"):
        spec.delete(spec.body(name))
    wrist = spec.body("r_wrist_roll_link")
    for fork in list(wrist.geoms):
        spec.delete(fork)

    spec.body("r_shoulder_pan_link").pos = REACHER_BASE
    for geom in [spec.default.geom, *spec.geoms]:
        geom.density = REACHER_DENSITY
    spec.geom("fa").fromto = (0.0, 0.0, 0.0, REACHER_FOREARM, 0.0, 0.0)
    for name, damping in zip(ARM_JOINTS, REACHER_DAMPING, strict=True):
        spec.joint(name).damping[0] = damping
    for name, limits in REACHER_RANGES.items():
        spec.joint(name).range = limits
    for name in REACHER_UNLIMITED:
        spec.joint(name).limited = mujoco.mjtLimited.mjLIMITED_FALSE
    for motor in spec.actuators:
        motor.ctrlrange = (-REACHER_TORQUE, REACHER_TORQUE)
    _add_hand(wrist)
    return spec


def _add_hand(wrist: mujoco.MjsBody) -> None:
    """Add wrist, palm and two fingers of two capsules; x points ahead, y to the side. Nothing collides (default)."""

    def capsule(radius: float, start: tuple[float, float, float], end: tuple[float, float, float]) -> None:
        wrist.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=(radius, 0.0, 0.0), fromto=(*start, *end))

    capsule(REACHER_THIN_RADIUS, (-REACHER_WRIST_HALF_LENGTH, 0.0, 0.0), (REACHER_WRIST_HALF_LENGTH, 0.0, 0.0))
    palm_x, palm_z = REACHER_PALM_AHEAD, REACHER_PALM_HALF_LENGTH
    capsule(REACHER_PALM_RADIUS, (palm_x, 0.0, -palm_z), (palm_x, 0.0, palm_z))
    for side in (1.0, -1.0):
        knuckle = (REACHER_FINGER_AHEAD, side * REACHER_FINGER_SIDE, 0.0)
        middle = (knuckle[0] + REACHER_PHALANX, knuckle[1] + side * REACHER_PHALANX_SPREAD, 0.0)
        capsule(REACHER_THIN_RADIUS, knuckle, middle)
        capsule(REACHER_THIN_RADIUS, middle, (middle[0] + REACHER_PHALANX, middle[1], 0.0))
    wrist.add_site(name="end_effector", pos=(REACHER_END_EFFECTOR, 0.0, 0.0), size=(0.01, 0.01, 0.01))


# --- Appearance: below this line only the walls affect the physics ---------------------------------------------------
WALL_RGBA = (0.36, 0.42, 0.5, 1.0)
GOAL_RGBA = (0.85, 0.15, 0.15, 0.4)
GOAL_BALL_RGBA = (0.85, 0.15, 0.15, 1.0)
GOAL_BALL_PER_CELL = 0.08
REACHER_GOAL_BALL = 0.035
FLOOR_RGB = ((0.86, 0.87, 0.88), (0.78, 0.8, 0.82))
ARM_RGBA = (0.75, 0.6, 0.42, 1.0)
TABLE_RGBA = (0.82, 0.83, 0.85, 1.0)
SKY_RGB = ((0.95, 0.96, 0.98), (0.7, 0.75, 0.82))


def add_walls(spec: mujoco.MjSpec, maze: Maze) -> None:
    """Add one box per wall cell, half a cell high.

    The boxes are not merged, so that contacts at seams equal those in the authors' mazes. Boxes take the body's default
    friction, margin, solref and solimp; with `conaffinity` 1 they collide with the body's geoms, whose own is 0.
    """
    half = maze.cell / 2
    for cell in maze.walls:
        x, y = maze.centre(cell)
        spec.worldbody.add_geom(
            name=f"wall_{cell.row}_{cell.column}",
            type=mujoco.mjtGeom.mjGEOM_BOX,
            pos=(x, y, half / 2),
            size=(half, half, half / 2),
            contype=1,
            conaffinity=1,
            rgba=WALL_RGBA,
        )


def _add_goal_marker(spec: mujoco.MjSpec, radius: float, ball: float, ball_height: float) -> None:
    """Add a body `goal_marker` without collisions, to be moved to the goal.

    It is a disc of the given radius on the floor (none for 0) and a ball above it that walls do not hide.
    """
    marker = spec.worldbody.add_body(name="goal_marker", mocap=True)
    untouchable = {"contype": 0, "conaffinity": 0, "mass": 0.0}
    if radius > 0.0:
        disc = mujoco.mjtGeom.mjGEOM_CYLINDER
        marker.add_geom(type=disc, size=(radius, 0.01, 0.0), rgba=GOAL_RGBA, **untouchable)
    marker.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=(ball, 0.0, 0.0),
        pos=(0.0, 0.0, ball_height),
        rgba=GOAL_BALL_RGBA,
        **untouchable,
    )


def _light(spec: mujoco.MjSpec, height: float) -> None:
    """Replace the model's lights with a soft light from above, and its background with a pale sky."""
    for light in list(spec.lights):
        spec.delete(light)
    spec.worldbody.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=(0.0, 0.0, height),
        dir=(0.2, 0.3, -1.0),
        diffuse=(0.45, 0.45, 0.45),
        specular=(0.0, 0.0, 0.0),
    )
    spec.visual.headlight.ambient[:] = 0.4
    spec.visual.headlight.diffuse[:] = 0.3
    spec.visual.headlight.specular[:] = 0.0
    skies = [texture for texture in spec.textures if texture.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX]
    sky = skies[0] if skies else spec.add_texture(type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, width=64, height=64)
    sky.builtin = mujoco.mjtBuiltin.mjBUILTIN_GRADIENT
    sky.rgb1, sky.rgb2 = SKY_RGB


def _dress_maze(spec: mujoco.MjSpec) -> None:
    _light(spec, 10.0)
    checker = spec.texture("texplane")
    checker.rgb1, checker.rgb2 = FLOOR_RGB
    floor = spec.material("MatPlane")
    floor.specular, floor.reflectance = 0.0, 0.0
    spec.geom("floor").rgba = (1.0, 1.0, 1.0, 1.0)


def _dress_arm(spec: mujoco.MjSpec) -> None:
    _light(spec, 3.0)
    unpainted = (0.5, 0.5, 0.5, 1.0)
    for geom in spec.geoms:
        if np.allclose(geom.rgba, unpainted):
            geom.rgba = TABLE_RGBA if geom.name == "table" else ARM_RGBA


@functools.lru_cache(maxsize=16)
def maze_model(body: str, rows: tuple[str, ...], cell: float, radius: float) -> mujoco.MjModel:
    """Compile a body in a maze, with a disc of the success radius as the goal's marker.

    Compiled models are never modified, so the environments of a process share them.
    """
    maze = Maze(rows, cell)
    spec = MAZE_BODIES[body].build()
    add_walls(spec, maze)
    _add_goal_marker(spec, radius, ball=GOAL_BALL_PER_CELL * cell, ball_height=cell / 2)
    _dress_maze(spec)
    return spec.compile()


@functools.lru_cache(maxsize=2)
def arm_model(body: str) -> mujoco.MjModel:
    """Compile an arm: "reacher" (with a ball as the goal's marker) or "pusher" (which has its own goal disc)."""
    spec = reacher_spec() if body == "reacher" else pusher_spec()
    if body == "reacher":
        _add_goal_marker(spec, 0.0, ball=REACHER_GOAL_BALL, ball_height=0.0)
    _dress_arm(spec)
    return spec.compile()
