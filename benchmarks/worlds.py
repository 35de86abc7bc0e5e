"""Small goal environments in NumPy for which no preset exists: what an agent meets at a user's site.

Each has a `train` mode with random goals and a `test` mode with one far goal. Layout and speed can be varied, so that
settings are not fitted to one instance:

    Shelves     a robot drives around shelves that stand between it and the goal
    Rooms       a point goes from one room to another; the wall between them has no thickness
    KeyDoor     a point fetches a key that opens the door to the other room; the goal is (x, y, has key)
    TorqueArm   a two-link arm under torques brings its tip to a point
    Lift        a carriage moves metres sideways and millimetres upwards: goal dimensions 1,000 times apart

All rewards are sparse: 0 within `radius` of the goal, else -1. `WORLDS` maps names to constructors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

Mode = Literal["train", "test"]
Rectangle = tuple[float, float, float, float]
"""x from, y from, x to, y to."""


class GoalWorld(gymnasium.Env):
    """A goal environment with sparse rewards; subclasses move the state and name their goals.

    Actions lie within `action_range` of zero; `_move` gets them divided by it.
    """

    def __init__(
        self,
        *,
        observation: int,
        goal_low: Any,
        goal_high: Any,
        action: int,
        unit: Any,
        radius: float,
        steps: int,
        action_range: float = 1.0,
    ):
        low, high = np.asarray(goal_low, np.float64), np.asarray(goal_high, np.float64)
        self.unit = np.asarray(unit, np.float64)
        self.radius, self.steps, self.action_range = radius, steps, action_range
        self.goal_low, self.goal_high = low, high
        box = spaces.Box(-np.inf, np.inf, low.shape, np.float64)
        self.observation_space = spaces.Dict(
            observation=spaces.Box(-np.inf, np.inf, (observation,), np.float64), achieved_goal=box, desired_goal=box
        )
        self.action_space = spaces.Box(-action_range, action_range, (action,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode."""
        super().reset(seed=seed)
        self.time = 0
        self._begin()
        self.desired = np.asarray(self._draw_goal(), np.float64)
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        """Advance by one step; the episode is truncated after `steps`."""
        self.time += 1
        self._move(np.clip(np.asarray(action, np.float64) / self.action_range, -1.0, 1.0))
        observation = self._observe()
        reward = float(self.compute_reward(observation["achieved_goal"], self.desired, {}))
        return observation, reward, False, self.time >= self.steps, {"is_success": reward == 0.0}

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> np.ndarray:
        """Return 0 within the radius of the goal (in units of each dimension), else -1."""
        distance = np.linalg.norm((np.asarray(achieved) - np.asarray(desired)) / self.unit, axis=-1)
        return -(distance > self.radius).astype(np.float32)

    def _observe(self) -> dict[str, np.ndarray]:
        return {"observation": self._state(), "achieved_goal": self._achieved(), "desired_goal": self.desired.copy()}

    def _begin(self) -> None:
        raise NotImplementedError

    def _move(self, action: np.ndarray) -> None:
        raise NotImplementedError

    def _state(self) -> np.ndarray:
        raise NotImplementedError

    def _achieved(self) -> np.ndarray:
        raise NotImplementedError

    def _draw_goal(self) -> Any:
        raise NotImplementedError


def inside(walls: list[Rectangle], x: float, y: float) -> bool:
    """Return whether a point lies in a wall."""
    return any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in walls)


def slide(walls: list[Rectangle], place: np.ndarray, move: np.ndarray, size: Any) -> np.ndarray:
    """Move a point by small steps within a room of the given size; walls stop each axis on its own."""
    place = place.copy()
    pieces = max(1, int(np.ceil(np.abs(move).max() / 0.05)))
    for _ in range(pieces):
        for axis in (0, 1):
            new = place.copy()
            new[axis] = np.clip(new[axis] + move[axis] / pieces, 0.0, size[axis])
            if not inside(walls, *new):
                place = new
    return place


class Shelves(GoalWorld):
    """A robot with heading and speed in a room of 10 x 10. Two shelves leave a way in the shape of an S.

    `drive="steer"`: the actions are acceleration and turning. `drive="push"`: forces along x and y.
    """

    def __init__(
        self,
        mode: Mode = "train",
        *,
        drive: Literal["steer", "push"] = "push",
        speed: float = 0.5,
        gap: float = 2.0,
        thickness: float = 0.6,
        mirrored: bool = False,
        steps: int = 150,
    ):
        self.mode, self.drive, self.speed = mode, drive, speed
        self.size = (10.0, 10.0)
        self.walls: list[Rectangle] = [
            (0.0, 3.3 - thickness / 2, 10.0 - gap, 3.3 + thickness / 2),
            (gap, 6.7 - thickness / 2, 10.0, 6.7 + thickness / 2),
        ]
        if mirrored:
            self.walls = [(10 - x1, y0, 10 - x0, y1) for x0, y0, x1, y1 in self.walls]
        self.mirrored = mirrored
        super().__init__(
            observation=6, goal_low=(0, 0), goal_high=self.size, action=2, unit=(1, 1), radius=0.7, steps=steps
        )

    def _begin(self) -> None:
        x = self.np_random.uniform(0.5, 1.5)
        self.place = np.array([10 - x if self.mirrored else x, self.np_random.uniform(0.5, 1.5)])
        self.velocity, self.heading = np.zeros(2), float(self.np_random.uniform(-np.pi, np.pi))

    def _move(self, action: np.ndarray) -> None:
        if self.drive == "push":
            self.velocity = 0.5 * self.velocity + 0.5 * self.speed * action
        else:
            self.heading += 0.6 * action[1]
            forward = np.array([np.cos(self.heading), np.sin(self.heading)])
            self.velocity = 0.5 * self.velocity + 0.5 * self.speed * action[0] * forward
        before = self.place
        self.place = slide(self.walls, self.place, self.velocity, self.size)
        self.velocity = self.place - before

    def _state(self) -> np.ndarray:
        return np.array([*self.place, *self.velocity, np.cos(self.heading), np.sin(self.heading)])

    def _achieved(self) -> np.ndarray:
        return self.place.copy()

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([1.0 if self.mirrored else 9.0, 9.0])
        while True:
            goal = self.np_random.uniform((0.0, 0.0), self.size)
            if not inside(self.walls, *goal):
                return goal


class Rooms(GoalWorld):
    """A fast point in two rooms of 5 x 6. The wall between them has no thickness, and a gap at its upper end."""

    def __init__(
        self,
        mode: Mode = "train",
        *,
        speed: float = 0.6,
        gap: float = 1.5,
        mirrored: bool = False,
        steps: int = 100,
    ):
        self.mode, self.speed, self.mirrored = mode, speed, mirrored
        self.size = (10.0, 6.0)
        self.wall = (5.0, self.size[1] - gap)
        super().__init__(
            observation=4, goal_low=(0, 0), goal_high=self.size, action=2, unit=(1, 1), radius=0.6, steps=steps
        )

    def _begin(self) -> None:
        self.place, self.velocity = np.array([9.0 if self.mirrored else 1.0, 1.0]), np.zeros(2)

    def _move(self, action: np.ndarray) -> None:
        self.velocity = 0.5 * self.velocity + 0.5 * self.speed * action
        place, (x, top) = np.clip(self.place + self.velocity, (0, 0), self.size), self.wall
        if (self.place[0] - x) * (place[0] - x) <= 0 and place[1] < top:
            place[0] = self.place[0]
        self.velocity, self.place = place - self.place, place

    def _state(self) -> np.ndarray:
        return np.array([*self.place, *self.velocity])

    def _achieved(self) -> np.ndarray:
        return self.place.copy()

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([1.0 if self.mirrored else 9.0, 1.0])
        return self.np_random.uniform((0.0, 0.0), self.size)


class KeyDoor(GoalWorld):
    """Two rooms, 8 x 4, with a door between them that opens for whoever has touched the key; goal (x, y, has key)."""

    def __init__(
        self,
        mode: Mode = "train",
        *,
        speed: float = 0.4,
        key: tuple[float, float] = (0.8, 3.2),
        door: float = 0.8,
        start: tuple[float, float] = (2.0, 0.8),
        steps: int = 100,
    ):
        self.mode, self.speed, self.key, self.start = mode, speed, np.array(key), start
        self.size = (8.0, 4.0)
        self.walls: list[Rectangle] = [(3.9, 0.0, 4.1, door - 0.6), (3.9, door + 0.6, 4.1, 4.0)]
        self.door: Rectangle = (3.9, door - 0.6, 4.1, door + 0.6)
        super().__init__(
            observation=3, goal_low=(0, 0, 0), goal_high=(8, 4, 1), action=2, unit=(1, 1, 1), radius=0.6, steps=steps
        )

    def _begin(self) -> None:
        self.place = np.array(self.start) + self.np_random.uniform(-0.3, 0.3, 2)
        self.has_key = False

    def _move(self, action: np.ndarray) -> None:
        walls = self.walls if self.has_key else [*self.walls, self.door]
        self.place = slide(walls, self.place, self.speed * action, self.size)
        if np.linalg.norm(self.place - self.key) < 0.6:
            self.has_key = True

    def _state(self) -> np.ndarray:
        return np.array([*self.place, float(self.has_key)])

    def _achieved(self) -> np.ndarray:
        return self._state()

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([7.2, 3.2, 1.0])
        x, y = self.np_random.uniform((0.0, 0.0), self.size)
        has_key = x > 4.0 or self.np_random.random() < 0.5
        return np.array([x, y, float(has_key)])


class TorqueArm(GoalWorld):
    """Two links under torques, with damping and no gravity; the goal is a point for the tip."""

    def __init__(
        self, mode: Mode = "train", *, links: tuple[float, float] = (0.5, 0.4), torque: float = 3.0, steps: int = 100
    ):
        self.mode, self.links, self.torque = mode, np.array(links), torque
        reach = sum(links)
        super().__init__(
            observation=6,
            goal_low=(-reach, -reach),
            goal_high=(reach, reach),
            action=2,
            unit=(1, 1),
            radius=0.06 * reach,
            steps=steps,
        )

    def _begin(self) -> None:
        self.angle, self.rate = self.np_random.uniform(-0.2, 0.2, 2), np.zeros(2)

    def _move(self, action: np.ndarray) -> None:
        for _ in range(4):
            coupling = np.array([self.rate[1] ** 2, -(self.rate[0] ** 2)]) * 0.3 * np.sin(self.angle[1])
            self.rate = self.rate + 0.0125 * (self.torque * action + coupling - 1.5 * self.rate)
            self.angle = self.angle + 0.0125 * self.rate

    def _state(self) -> np.ndarray:
        return np.array([*np.cos(self.angle), *np.sin(self.angle), *self.rate])

    def _achieved(self) -> np.ndarray:
        total = np.cumsum(self.angle)
        return np.array([(self.links * np.cos(total)).sum(), (self.links * np.sin(total)).sum()])

    def _draw_goal(self) -> np.ndarray:
        reach = self.links.sum()
        if self.mode == "test":
            return np.array([-0.7 * reach, -0.3 * reach])
        turn, far = self.np_random.uniform(-np.pi, np.pi), reach * np.sqrt(self.np_random.uniform(0.1, 0.95))
        return far * np.array([np.cos(turn), np.sin(turn)])


class Lift(GoalWorld):
    """A carriage drives along 4,000 mm and lifts a fork by 4 mm; a post at half the way can only be passed lifted."""

    def __init__(self, mode: Mode = "train", *, speed: float = 0.04, post: float = 2000.0, steps: int = 150):
        self.mode, self.speed, self.post = mode, speed, post
        super().__init__(
            observation=4,
            goal_low=(0, 0),
            goal_high=(4000, 4),
            action=2,
            unit=(1000, 1),
            radius=0.25,
            steps=steps,
        )

    def _begin(self) -> None:
        self.place = np.array([200.0, 0.2]) + self.np_random.uniform(-0.1, 0.1, 2) * self.unit
        self.velocity = np.zeros(2)

    def _move(self, action: np.ndarray) -> None:
        self.velocity = 0.5 * self.velocity + 0.5 * 2 * self.speed * action * self.unit
        for axis in (1, 0):
            new = self.place.copy()
            new[axis] = np.clip(new[axis] + self.velocity[axis], self.goal_low[axis], self.goal_high[axis])
            if not (abs(new[0] - self.post) < 200.0 and new[1] < 3.0):
                self.place = new

    def _state(self) -> np.ndarray:
        return np.concatenate([self.place, self.velocity])

    def _achieved(self) -> np.ndarray:
        return self.place.copy()

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([3700.0, 0.3])
        while True:
            goal = self.np_random.uniform(self.goal_low, self.goal_high)
            if not (abs(goal[0] - self.post) < 200.0 and goal[1] < 3.0):
                return goal


WORLDS: dict[str, Callable[..., GoalWorld]] = {
    "shelves": Shelves,
    "shelves-steer": partial(Shelves, drive="steer"),
    "shelves-slow": partial(Shelves, speed=0.35, gap=1.6, mirrored=True, steps=250),
    "rooms": Rooms,
    "rooms-slow": partial(Rooms, speed=0.3, gap=1.0, mirrored=True, steps=150),
    "key-door": KeyDoor,
    "key-door-far": partial(KeyDoor, speed=0.3, key=(0.6, 0.6), door=3.2, start=(3.0, 3.0), steps=150),
    "torque-arm": TorqueArm,
    "torque-arm-weak": partial(TorqueArm, links=(0.4, 0.5), torque=1.5, steps=150),
    "torque-arm-short": partial(TorqueArm, links=(0.45, 0.3), torque=2.2, steps=120),
    "lift": Lift,
    "lift-fast": partial(Lift, speed=0.08, post=1500.0, steps=100),
}
"""The worlds and variations with which the recipe was tuned, by name. Each takes the mode."""

WORLDS |= {
    "shelves-wide": partial(Shelves, speed=0.6, gap=2.6, thickness=1.0, mirrored=True, steps=130),
    "shelves-steer-slow": partial(Shelves, drive="steer", speed=0.4, gap=2.2, steps=220),
    "rooms-fast": partial(Rooms, speed=0.8, gap=1.2, mirrored=True, steps=80),
    "rooms-wide": partial(Rooms, speed=0.45, gap=2.2, steps=120),
    "key-door-near": partial(KeyDoor, speed=0.5, key=(2.6, 3.3), door=2.2, start=(0.7, 0.7), steps=90),
    "key-door-slow": partial(KeyDoor, speed=0.28, key=(0.6, 2.0), door=1.4, start=(3.2, 3.3), steps=140),
    "torque-arm-long": partial(TorqueArm, links=(0.7, 0.5), torque=3.5, steps=110),
    "torque-arm-even": partial(TorqueArm, links=(0.4, 0.4), torque=2.6, steps=120),
    "lift-slow": partial(Lift, speed=0.03, post=2400.0, steps=180),
}
"""Variations that are only for checking: nothing was tuned with them."""

# As Gymnasium ids for the command line: `worlds:worlds/lift-v0`, and `worlds:worlds/lift-test-v0` with the far goal.
for _name, _make in WORLDS.items():
    for _id, _mode in ((f"worlds/{_name}-v0", "train"), (f"worlds/{_name}-test-v0", "test")):
        if _id not in gymnasium.registry:
            gymnasium.register(_id, _make, kwargs={"mode": _mode}, disable_env_checker=True, order_enforce=False)

STEPS = {"shelves": 60_000, "rooms": 10_000, "key-door": 20_000, "torque-arm": 15_000, "lift": 30_000}
"""Steps within which each kind of world is to be learned."""


def world_steps(name: str) -> int:
    """Return the number of steps of a world by its kind."""
    return next(steps for kind, steps in STEPS.items() if name.startswith(kind))
