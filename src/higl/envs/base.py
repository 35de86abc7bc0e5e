"""Base class of the environments: spaces, checks, reward, step limit, saving and restoring the full state."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces

from higl.envs.tasks import Goal, Task

# Positions, velocities, controls, mocap poses and the solver's warm start: all that the next step depends on.
_FULL_STATE = mujoco.mjtState.mjSTATE_INTEGRATION

REWARDS = ("dense", "sparse")
MODES = ("train", "test")
CAMERAS = ("top", "track")

Observation = dict[str, np.ndarray]
Info = dict[str, Any]


class GoalEnv(gymnasium.Env[Any, np.ndarray]):
    """A goal-conditioned MuJoCo environment with a `Dict` observation and a step limit of its own.

    Args:
        task: the numbers of the task.
        model: compiled MuJoCo model; read only.
        frame_skip: simulation steps per action.
        action_low: lowest action.
        action_high: highest action.
        observation_size: length of `observation`.
        goal_size: length of `achieved_goal` and `desired_goal`.
        reward: "dense", minus the distance to the goal; or "sparse", 0 within the success radius and -1 elsewhere.
        mode: "train" or "test"; only the goals differ.
        render_mode: None, "rgb_array" or "human".
        camera: "top" looks down on the whole scene, "track" follows the body.
        width: of rendered images, in pixels.
        height: of rendered images, in pixels.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": 10}  # noqa: RUF012, as Gymnasium

    def __init__(
        self,
        task: Task,
        model: mujoco.MjModel,
        frame_skip: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        observation_size: int,
        goal_size: int,
        *,
        reward: str = "dense",
        mode: str = "train",
        render_mode: str | None = None,
        camera: str = "top",
        width: int = 480,
        height: int = 480,
    ) -> None:
        _check_choice("reward", reward, REWARDS)
        _check_choice("mode", mode, MODES)
        _check_choice("camera", camera, CAMERAS)
        if render_mode is not None:
            _check_choice("render_mode", render_mode, tuple(self.metadata["render_modes"]))
        self.task = task
        self.reward_type = reward
        self.mode = mode
        self.render_mode = render_mode
        self.camera = camera
        self.width = width
        self.height = height
        self.model = model
        self.data = mujoco.MjData(model)
        self.frame_skip = frame_skip
        self.metadata = {
            **type(self).metadata,
            "render_fps": round(1.0 / (model.opt.timestep * frame_skip)),
        }

        self._goal_shape = (goal_size,)
        self._low = np.array(action_low, dtype=np.float64)
        self._high = np.array(action_high, dtype=np.float64)
        self._action_shape = self._low.shape
        self.action_space = spaces.Box(self._low, self._high, dtype=np.float64)
        self.observation_space = spaces.Dict(
            {
                "observation": _unbounded(observation_size),
                "achieved_goal": _unbounded(goal_size),
                "desired_goal": _unbounded(goal_size),
            }
        )

        # Attributes of MjData are views into its memory; looking one up costs as much as using it.
        self._qpos = self.data.qpos
        self._qvel = self.data.qvel
        self._steps = 0
        self._goal: np.ndarray | None = None
        self._renderer: Any = None

    # --- Gymnasium -------------------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode.

        Args:
            seed: seeds the environment's random generator.
            options: `{"goal": ...}` sets the goal instead of drawing one; mazes also take `{"start": (x, y)}`.

        Raises:
            ValueError: an option is unknown, or a goal or start has the wrong shape or lies in a wall. The current
                episode is unchanged.
        """
        options = dict(options or {})
        goal = options.pop("goal", None)
        if goal is not None:
            goal = self._checked_point("goal", goal, self._goal_shape)
        start = self._checked_options(options)
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self._place(self.np_random, start)
        self._goal = self._goal_source().sample(self.np_random) if goal is None else goal
        self._steps = 0
        self._place_goal_marker(self._goal)
        mujoco.mj_forward(self.model, self.data)
        observation = self.observe()
        if self.render_mode == "human":
            self.render()
        return observation, self._reset_info(observation)

    def render(self) -> Any:
        """Draw the current state: an RGB image, uint8 [H, W, 3], or a window with `render_mode="human"`."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs render_mode='rgb_array' or 'human' in gymnasium.make")
            return None
        if self._renderer is None:
            from higl.envs.render import make_renderer  # GL libraries load only when something is drawn

            self._renderer = make_renderer(self)
        return self._renderer.draw()

    def close(self) -> None:
        """Release the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    # --- Reward ----------------------------------------------------------------------------------------------------

    def distance(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        """Return the L2 distance between goals, [..., G] to [...]."""
        return np.sqrt(np.square(np.asarray(achieved) - desired).sum(axis=-1))

    def success_distance(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        """Return the distance that determines success, [..., G] to [...]."""
        return self.distance(achieved, desired)

    def is_success(self, achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
        """Return whether goals are reached, [..., G] to bool [...]; a distance equal to the radius is a success."""
        return self.success_distance(achieved, desired) <= self.task.radius

    def compute_reward(
        self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Info | Sequence[Info] | np.ndarray | None
    ) -> Any:
        """Return the reward for `achieved_goal` when the goal is `desired_goal`.

        Args:
            achieved_goal: [..., G].
            desired_goal: [..., G].
            info: the dict that `step` returned, or a sequence of them, one per row. The mazes ignore it. The arms
                subtract `action_penalty`; None or an empty info means no penalty.

        Returns:
            A float for single goals, else an array [...].
        """
        achieved, desired = np.asarray(achieved_goal, np.float64), np.asarray(desired_goal, np.float64)
        if self.reward_type == "dense":
            reward = -self.distance(achieved, desired)
        else:
            reward = np.where(self.is_success(achieved, desired), 0.0, -1.0)
        reward = reward - self._penalty_in(info)
        return float(reward) if np.ndim(reward) == 0 else reward

    def _penalty_in(self, info: Info | Sequence[Info] | np.ndarray | None) -> Any:
        return 0.0

    # --- Full state ------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """Return the full state, on which the rest of the episode and of the run depend.

        Returns:
            `physics`, float64 [P], MuJoCo's full state with its warm start; `steps`, int; `goal`, float64 [G];
            `rng`, the random generator's state as JSON text. Arrays are copies.
        """
        if self._goal is None:
            raise gymnasium.error.ResetNeeded("get_state() needs an episode: call reset() first")
        physics = np.empty(mujoco.mj_stateSize(self.model, _FULL_STATE))
        mujoco.mj_getState(self.model, self.data, physics, _FULL_STATE)
        return {
            "physics": physics,
            "steps": self._steps,
            "goal": self._goal.copy(),
            "rng": json.dumps(self.np_random.bit_generator.state),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state of `get_state`; the environment then continues bit for bit as it did from there.

        Raises:
            ValueError: the state belongs to another model or is incomplete. The environment is unchanged.
        """
        missing = {"physics", "steps", "goal", "rng"} - set(state)
        if missing:
            raise ValueError(f"the state lacks {', '.join(sorted(missing))}")
        physics = np.array(state["physics"], dtype=np.float64)
        size = mujoco.mj_stateSize(self.model, _FULL_STATE)
        if physics.shape != (size,):
            raise ValueError(f"the state's physics has shape {physics.shape}, this environment's is ({size},)")
        goal = self._checked_point("goal", state["goal"], self._goal_shape)
        rng_state = json.loads(str(state["rng"]))
        generator = np.random.Generator(getattr(np.random, rng_state["bit_generator"])())
        generator.bit_generator.state = rng_state
        mujoco.mj_setState(self.model, self.data, physics, _FULL_STATE)
        mujoco.mj_kinematics(self.model, self.data)
        self._goal = goal
        self._steps = int(state["steps"])
        self.np_random = generator

    @property
    def steps(self) -> int:
        """Steps taken in this episode."""
        return self._steps

    @property
    def goal(self) -> np.ndarray:
        """The desired goal of this episode, [G]; a copy."""
        if self._goal is None:
            raise gymnasium.error.ResetNeeded("there is no goal before reset()")
        return self._goal.copy()

    # --- For subclasses --------------------------------------------------------------------------------------------

    def observe(self) -> Observation:
        """Return the observation of the current state in new arrays."""
        raise NotImplementedError

    def extent(self) -> tuple[float, float, float, float]:
        """Return low x, low y, high x, high y of the area that the camera "top" shows."""
        raise NotImplementedError

    def scene_height(self) -> float:
        """Return the z of the highest object that must fit into an image from above."""
        raise NotImplementedError

    def _place(self, rng: np.random.Generator, start: np.ndarray | None) -> None:
        """Set the initial positions and velocities of an episode."""
        raise NotImplementedError

    def _place_goal_marker(self, goal: np.ndarray) -> None:
        """Move the visible marker to the goal."""
        raise NotImplementedError

    def _reset_info(self, observation: Observation) -> Info:
        return {"is_success": bool(self.is_success(observation["achieved_goal"], observation["desired_goal"]))}

    def _checked_options(self, options: dict[str, Any]) -> np.ndarray | None:
        if options:
            raise ValueError(f"unknown reset option {next(iter(options))!r}; this environment accepts 'goal'")
        return None

    def _goal_source(self) -> Goal:
        return self.task.train_goal if self.mode == "train" else self.task.test_goal

    def _checked_action(self, action: Any) -> np.ndarray:
        """Return the action as float64, not clipped; raise ValueError (NaN, shape) or ResetNeeded."""
        if self._goal is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        action = np.asarray(action, dtype=np.float64)
        if action.shape != self._action_shape:
            raise ValueError(f"the action has shape {action.shape}; this environment takes {self._action_shape}")
        # The cheapest test for NaN: infinities square and sum to infinity, NaN propagates.
        squares = action.dot(action)
        if squares != squares:
            where = ", ".join(map(str, np.flatnonzero(np.isnan(action))))
            raise ValueError(f"the action is NaN at index {where}: {action.tolist()}")
        return action

    @staticmethod
    def _checked_point(what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
        point = np.array(value, dtype=np.float64)
        if point.shape != shape:
            raise ValueError(f"the {what} has shape {point.shape}; this environment takes {shape}")
        if not np.isfinite(point).all():
            raise ValueError(f"the {what} is not finite: {point.tolist()}")
        return point


def _unbounded(size: int) -> spaces.Box:
    return spaces.Box(-math.inf, math.inf, (size,), np.float64)


def _check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"unknown {what} {value!r}; choose from {', '.join(map(repr, choices))}")
