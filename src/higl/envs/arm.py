"""The seven-joint arm: Reacher brings its hand to a target, Pusher pushes a puck to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np

from higl.envs import bodies
from higl.envs.base import GoalEnv, Info, Observation
from higl.envs.tasks import find_task

REACH = 1.1
"""Metres, slightly more than the arm's length: an image from above shows this much to each side of the base."""
PUSHER_VELOCITY_NOISE = 0.005
"""The Pusher's joints start with velocities U(-0.005, 0.005)."""
PUCK_OFFSET = (0.15, -0.25)
"""x, y of the puck relative to the target at the start of an episode, before noise."""
PUCK_NOISE = 0.025
"""Standard deviation of the noise on both."""


class ArmEnv(GoalEnv):
    """Base class of Reacher and Pusher: torques on seven joints, and a penalty on the action.

    Reward: minus the distance (dense), or 0 for success and -1 otherwise (sparse), minus the task's coefficient x the
    squared length of the (clipped) action. `info["action_penalty"]` holds that penalty for `compute_reward`.
    """

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, Info]:
        """Act for one time step (Reacher 0.02 s, Pusher 0.04 s).

        Args:
            action: torques of the seven motors, clipped to the action space.

        Raises:
            ValueError: the action contains NaN or has the wrong shape; nothing has moved.
        """
        action = np.maximum(np.minimum(self._checked_action(action), self._high), self._low)
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, self.frame_skip)
        # `mj_step` leaves cartesian positions one simulation step behind; update them from the joint angles.
        mujoco.mj_kinematics(self.model, self.data)
        self._steps += 1

        observation = self.observe()
        achieved, desired = observation["achieved_goal"], observation["desired_goal"]
        info = {
            "is_success": bool(self.is_success(achieved, desired)),
            "action_penalty": self.task.action_penalty * float(np.square(action).sum()),
        }
        reward = self.compute_reward(achieved, desired, info)
        if self.render_mode == "human":
            self.render()
        return observation, reward, False, self._steps >= self.task.max_steps, info

    def extent(self) -> tuple[float, float, float, float]:
        """Return low x, low y, high x, high y of a square around the stretched arm."""
        base_x, base_y, _ = self.model.body("r_shoulder_pan_link").pos
        return base_x - REACH, base_y - REACH, base_x + REACH, base_y + REACH

    def scene_height(self) -> float:
        """Return the height of the shoulder post."""
        return 0.3

    def _reset_info(self, observation: Observation) -> Info:
        return {**super()._reset_info(observation), "action_penalty": 0.0}

    def _penalty_in(self, info: Info | Sequence[Info] | np.ndarray | None) -> Any:
        if info is None or len(info) == 0:
            return 0.0
        try:
            if isinstance(info, Mapping):
                return np.asarray(info["action_penalty"], np.float64)
            return np.array([row["action_penalty"] for row in info], np.float64)
        except KeyError:
            raise ValueError("info lacks 'action_penalty', which step() provides; pass None for no penalty") from None


class ReacherEnv(ArmEnv):
    """Brings the hand to a target around (0, 0.25, 0).

    Observation, 17 numbers: 7 joint angles, the target's x, y, z, 7 joint velocities. Goals are the end effector's
    x, y, z. Keyword arguments are those of `GoalEnv`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            find_task("reacher"),
            bodies.arm_model("reacher"),
            bodies.REACHER_FRAME_SKIP,
            (-bodies.REACHER_TORQUE,) * 7,
            (bodies.REACHER_TORQUE,) * 7,
            17,
            3,
            **options,
        )
        self._end_effector = self.data.site("end_effector").xpos

    def observe(self) -> Observation:
        """Return the observation of the current state in new arrays."""
        goal = self.goal
        return {
            "observation": np.concatenate((self._qpos, goal, self._qvel)),
            "achieved_goal": self._end_effector.copy(),
            "desired_goal": goal,
        }

    def _place(self, rng: np.random.Generator, start: np.ndarray | None) -> None:
        self._qpos[:] = 0.0
        self._qvel[:] = 0.0

    def _place_goal_marker(self, goal: np.ndarray) -> None:
        self.data.mocap_pos[0] = goal


class PusherEnv(ArmEnv):
    """Pushes the puck to a target at (0.45, -0.05) on the table.

    Observation, 20 numbers: 7 joint angles, 7 joint velocities, the tip's x, y, z, the puck's x, y, z. Goals are (tip,
    puck), six numbers, and the desired one is (target, target); only the puck counts for success. Keyword
    arguments are those of `GoalEnv`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            find_task("pusher"),
            bodies.arm_model("pusher"),
            bodies.PUSHER_FRAME_SKIP,
            (-bodies.PUSHER_TORQUE,) * 7,
            (bodies.PUSHER_TORQUE,) * 7,
            20,
            6,
            **options,
        )
        self._tip = self.data.body("tips_arm").xpos
        self._puck = self.data.body("object").xpos

    def success_distance(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        """Return the distance between puck and target, [..., 6] to [...]."""
        return self.distance(np.asarray(achieved)[..., 3:], np.asarray(desired)[..., 3:])

    def observe(self) -> Observation:
        """Return the observation of the current state in new arrays."""
        achieved = np.concatenate((self._tip, self._puck))
        return {
            "observation": np.concatenate((self._qpos[:7], self._qvel[:7], achieved)),
            "achieved_goal": achieved,
            "desired_goal": self.goal,
        }

    def _place(self, rng: np.random.Generator, start: np.ndarray | None) -> None:
        qpos = np.zeros(self.model.nq)
        qvel = np.zeros(self.model.nv)
        offset = rng.normal(PUCK_OFFSET, PUCK_NOISE)
        # The puck's joints are relative to the target, y before x.
        qpos[7], qpos[8] = offset[1], offset[0]
        qvel[:7] = rng.uniform(-PUSHER_VELOCITY_NOISE, PUSHER_VELOCITY_NOISE, 7)
        self._qpos[:] = qpos
        self._qvel[:] = qvel

    def _place_goal_marker(self, goal: np.ndarray) -> None:
        disc = self.model.body("goal").pos
        self._qpos[9], self._qpos[10] = goal[4] - disc[1], goal[3] - disc[0]
