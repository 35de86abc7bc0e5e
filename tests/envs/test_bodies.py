"""The numbers of the compiled models."""

import math

import gymnasium
import mujoco
import numpy as np
import pytest

from higl.envs import bodies, maps

ANT_LEGS = ((1, 1.0, 1.0), (2, -1.0, 1.0), (3, -1.0, -1.0), (4, 1.0, -1.0))


@pytest.fixture(scope="module")
def ant():
    return bodies.maze_model("ant", maps.U_SHAPE, 4.0, 2.5)


def body_geoms(model):
    return [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] != 0 and model.geom_contype[geom]]


def scenery(model):
    return [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] == 0]


def test_ant_options(ant):
    assert ant.opt.timestep == 0.02
    assert ant.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert bodies.ANT_FRAME_SKIP == 5
    assert ant.opt.gravity.tolist() == [0, 0, -9.81]
    assert (ant.opt.solver, ant.opt.cone) == (mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtCone.mjCONE_PYRAMIDAL)
    assert (ant.nq, ant.nv, ant.nu) == (15, 14, 8)


def test_ant_contacts(ant):
    geoms = body_geoms(ant)
    assert len(geoms) == 13
    assert np.unique(ant.geom_margin[geoms]).tolist() == [0.01]
    for array, value in (
        (ant.geom_friction, [1, 0.5, 0.5]),
        (ant.geom_solref, [0.02, 1]),
        (ant.geom_solimp[:, :3], [0.8, 0.8, 0.01]),
    ):
        assert np.unique(array[geoms + scenery(ant)], axis=0).tolist() == [value]
    assert set(ant.geom_condim[geoms + scenery(ant)]) == {3}
    # The ant does not touch itself, and floor and walls touch only the ant.
    assert set(ant.geom_contype[geoms]) == {1}
    assert set(ant.geom_conaffinity[geoms]) == {0}
    assert set(ant.geom_conaffinity[scenery(ant)]) == {1}


def test_ant_contact_margin_is_0_01_with_floor_and_walls(ant):
    data = mujoco.MjData(ant)
    data.qpos[1] = -1.3  # legs reach the wall at y = -2
    seen = set()
    for _ in range(100):
        mujoco.mj_step(ant, data)
        for contact in data.contact:
            assert contact.includemargin == pytest.approx(0.01, abs=1e-12)
            assert contact.solimp[:3].tolist() == [0.8, 0.8, 0.01]
            assert contact.friction.tolist() == [1, 1, 0.5, 0.5, 0.5]
            assert contact.dim == 3
            seen |= {ant.geom(geom).name.split("_")[0] for geom in contact.geom}
    assert {"floor", "wall"} <= seen


def test_ant_joints(ant):
    assert ant.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    assert not ant.jnt_limited[0]
    assert ant.dof_damping[:6].tolist() == ant.dof_armature[:6].tolist() == [0] * 6
    assert ant.dof_damping[6:].tolist() == ant.dof_armature[6:].tolist() == [1] * 8
    assert [ant.joint(joint).name for joint in range(1, 9)] == [
        f"{part}_{leg}" for leg, *_ in ANT_LEGS for part in ("hip", "ankle")
    ]
    for leg, x, y in ANT_LEGS:
        assert np.degrees(ant.joint(f"hip_{leg}").range).tolist() == pytest.approx([-30, 30])
        expected = [30, 70] if leg in (1, 4) else [-70, -30]
        assert np.degrees(ant.joint(f"ankle_{leg}").range).tolist() == pytest.approx(expected)
        axis = ant.joint(f"ankle_{leg}").axis * math.sqrt(2)
        assert axis.tolist() == pytest.approx([-1, 1, 0] if leg in (1, 3) else [1, 1, 0])
        assert ant.body(f"aux_{leg}").pos.tolist() == pytest.approx([0.2 * x, 0.2 * y, 0])
    assert ant.jnt_limited[1:].all()
    assert ant.qpos0.tolist() == [0, 0, 0.75, 1, 0, 0, 0] + [0] * 8


def test_ant_shape_and_mass(ant):
    torso = ant.geom("torso_geom")
    assert torso.type[0] == mujoco.mjtGeom.mjGEOM_SPHERE
    assert torso.size[0] == 0.25
    capsules = [geom for geom in body_geoms(ant) if ant.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE]
    assert np.unique(ant.geom_size[capsules, 0]).tolist() == [0.08]
    lengths = sorted(np.round(2 * ant.geom_size[capsules, 1], 6))
    assert (
        lengths == [pytest.approx(0.2 * math.sqrt(2), abs=1e-6)] * 8 + [pytest.approx(0.4 * math.sqrt(2), abs=1e-6)] * 4
    )
    ball = 4 / 3 * math.pi * 0.25**3
    legs = sum(math.pi * 0.08**2 * length + 4 / 3 * math.pi * 0.08**3 for length in lengths)
    assert ant.body_mass.sum() == pytest.approx(5.0 * (ball + legs), rel=1e-5)


def test_ant_motors(ant):
    driven = [ant.joint(ant.actuator_trnid[motor, 0]).name for motor in range(8)]
    assert driven == [f"{part}_{leg}" for leg in (4, 1, 2, 3) for part in ("hip", "ankle")]
    assert ant.actuator_gear[:, 0].tolist() == [1] * 8
    assert ant.actuator_ctrlrange.tolist() == [[-30, 30]] * 8
    assert ant.actuator_ctrllimited.all()
    assert not ant.actuator_forcelimited.any()


@pytest.mark.parametrize(("body", "rows", "cell"), [("ant", maps.W_SHAPE, 2.0), ("point", maps.U_SHAPE, 4.0)])
def test_walls_fill_their_cells_half_a_cell_high(body, rows, cell):
    maze = maps.Maze(rows, cell)
    model = bodies.maze_model(body, rows, cell, 1.0)
    walls = [geom for geom in scenery(model) if model.geom(geom).name.startswith("wall")]
    assert len(walls) == len(maze.walls)
    for geom, wall in zip(walls, maze.walls, strict=True):
        assert model.geom_pos[geom].tolist() == [*maze.centre(wall), cell / 4]
        assert model.geom_size[geom].tolist() == [cell / 2, cell / 2, cell / 4]
        assert model.geom_contype[geom] == model.geom_conaffinity[geom] == 1


def test_point():
    point = bodies.maze_model("point", maps.U_SHAPE, 4.0, 2.5)
    assert point.opt.timestep == 0.02
    assert (point.nq, point.nv, point.nu) == (3, 3, 0)
    kinds = [mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE]
    assert point.jnt_type.tolist() == [int(kind) for kind in kinds]
    assert point.jnt_axis.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_drive_point_turns_then_moves():
    qpos = np.array([1.0, 2.0, math.pi / 2 - 0.5])
    bodies.drive_point(qpos, np.array([0.5, 0.5]))
    assert qpos.tolist() == pytest.approx([1.0, 2.1, math.pi / 2])


def packaged_pusher():
    return bodies._packaged("pusher_v5.xml").compile()


def test_pusher_differs_from_the_package_only_in_the_listed_numbers():
    ours, theirs = bodies.arm_model("pusher"), packaged_pusher()
    assert ours.opt.timestep == 0.01
    assert ours.opt.gravity.tolist() == [0, 0, 0]
    assert bodies.PUSHER_FRAME_SKIP == 4
    assert ours.actuator_ctrlrange.tolist() == [[-2, 2]] * 7
    ranges = theirs.jnt_range.copy()
    ranges[0, 1] = 2.0
    assert np.array_equal(ours.jnt_range, ranges)
    # Mass replaces armature in the puck's inertia.
    slides = [ours.joint(name).dofadr.item() for name in ("obj_slidex", "obj_slidey")]
    mass, armature = theirs.body_mass.copy(), theirs.dof_armature.copy()
    assert np.all(armature[slides] == 0.04)
    armature[slides], mass[ours.body("object").id] = 0.0, 0.04
    assert np.allclose(ours.body_mass, mass, rtol=1e-12)
    assert np.array_equal(ours.dof_armature, armature)
    for name in ("body_pos", "dof_damping", "jnt_axis", "geom_size"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    for name in ("geom_pos", "geom_contype", "geom_conaffinity", "geom_friction", "geom_solimp", "actuator_trnid"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert ours.opt.integrator == theirs.opt.integrator


def test_pusher_contact_margin_is_0_002():
    model = bodies.arm_model("pusher")
    fork = [geom for geom in range(model.ngeom) if model.geom_contype[geom] and model.geom_conaffinity[geom]]
    fork.remove(model.geom("table").id)
    assert set(model.geom_margin[fork]) == {0.002}
    assert model.geom("table").margin[0] == 0
    assert set(model.geom_margin[model.geom_bodyid == model.body("object").id]) == {0.0}


def test_reacher_numbers():
    model = bodies.arm_model("reacher")
    assert (model.nq, model.nv, model.nu) == (7, 7, 7)
    assert model.opt.timestep == 0.01
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert model.opt.gravity.tolist() == [0, 0, 0]
    assert bodies.REACHER_FRAME_SKIP == 2
    assert [model.joint(joint).name for joint in range(7)] == list(bodies.ARM_JOINTS)
    assert [model.joint(model.actuator_trnid[motor, 0]).name for motor in range(7)] == list(bodies.ARM_JOINTS)
    assert model.actuator_ctrlrange.tolist() == [[-20, 20]] * 7
    assert model.dof_damping.tolist() == [10, 10, 0.1, 1, 0.1, 0.1, 0.1]
    assert set(model.dof_armature) == {0.04}
    assert model.jnt_limited.tolist() == [True, True, True, True, False, True, False]
    limits = {0: (-2.2854, 1.714602), 1: (-0.5236, 1.3963), 2: (-3.9, 0.8), 3: (-2.3213, 0), 5: (-2.094, 0)}
    for joint, expected in limits.items():
        assert tuple(model.jnt_range[joint]) == expected
    assert model.body("r_shoulder_pan_link").pos.tolist() == [0, -0.188, 0]
    assert not model.geom_contype.any()
    assert not model.geom_conaffinity.any()


def test_reacher_links_have_density_1000():
    model = bodies.arm_model("reacher")

    def capsule(radius, length):
        return 1000 * (math.pi * radius**2 * length + 4 / 3 * math.pi * radius**3)

    assert model.body("r_upper_arm_link").mass[0] == pytest.approx(capsule(0.06, 0.4))
    assert model.body("r_forearm_link").mass[0] == pytest.approx(capsule(0.05, 0.321))
    fingers = 2 * capsule(0.01, math.hypot(0.09137, 0.00495)) + 2 * capsule(0.01, 0.09137)
    hand = capsule(0.05, 0.04) + fingers + capsule(0.01, 0.04)
    assert model.body("r_wrist_roll_link").mass[0] == pytest.approx(hand)


def test_reacher_end_effector_is_forward_kinematics():
    model = bodies.arm_model("reacher")
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)

    def turn(axis, angle):
        quaternion, matrix = np.empty(4), np.empty(9)
        mujoco.mju_axisAngle2Quat(quaternion, np.array(axis, float), angle)
        mujoco.mju_quat2Mat(matrix, quaternion)
        return matrix.reshape(3, 3)

    x, y, z = np.eye(3)
    for _ in range(20):
        angles = rng.uniform(-2, 2, 7)
        data.qpos[:] = angles
        mujoco.mj_kinematics(model, data)
        frame, end = np.eye(3), np.array([0, -0.188, 0])
        for axes, ahead in (((z,), 0.1), ((y, x), 0.4), ((y, x), 0.321), ((y, x), 0.16828)):
            for axis in axes:
                frame = frame @ turn(axis, angles[0])
                angles = angles[1:]
            end = end + frame @ (ahead * x)
        assert data.site("end_effector").xpos == pytest.approx(end)


def test_packaged_ant_has_not_changed():
    """If Gymnasium changes its model, compare every number that we take from it again."""
    spec = bodies._packaged("ant.xml")
    assert spec.option.timestep == 0.01
    assert [motor.gear[0] for motor in spec.actuators] == [150] * 8
    assert gymnasium.__version__.split(".")[0] == "1"
