"""More small goal environments in NumPy, with mechanics that `worlds.py` lacks.

Each has a `train` mode with random goals and a `test` mode with one far goal:

    Stagger      a robot that hardly drives backward, between four staggered shelves
    Spiral       a point with inertia in a spiral corridor; actions from -2 to 2
    KeyDeadEnd   a key at the end of a winding dead end opens a far door; the goal is (x, y, has key)
    TwoKeys      the first key lets one take the second, which opens the door; the goal is (x, y, first, second)
    Toggle       a button opens a gate and closes it again; the goal is (x, y, is open)
    Arm2         two links with masses under weak torques bring a tip to a point; actions from -0.9 to 0.9
    Arm3         three links with stops under joint velocities bring a tip to a point
    Arm3Torque   the same under torques
    Scales       a probe moves metres and is heated by thousands of kelvins; barriers are to be passed hot or cold
    Ledge        terraces from which one can drop, but to which one can climb only at ramps
    Car          a car with a turning circle among pillars
    Park         the car has to stand in a place with a heading; the goal is (x, y, cosine, sine)

All rewards are sparse: 0 within `radius` of the goal, else -1. `NEW_WORLDS` maps names to constructors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from worlds import GoalWorld, Mode, Rectangle, inside


class PointWorld(GoalWorld):
    """A body at a point of a room with rectangular walls. It stops where it would enter a wall or leave the room.

    The goal is a place, followed by dimensions whose lowest and highest values `beyond` gives.
    """

    def __init__(
        self,
        mode: Mode,
        *,
        size: tuple[float, float],
        walls: Sequence[Rectangle] = (),
        observation: int,
        beyond: Sequence[tuple[float, float]] = (),
        radius: float = 0.6,
        steps: int,
        action_range: float = 1.0,
    ):
        self.mode, self.size, self.walls = mode, size, list(walls)
        low, high = zip((0.0, size[0]), (0.0, size[1]), *beyond, strict=True)
        super().__init__(
            observation=observation,
            goal_low=low,
            goal_high=high,
            action=2,
            unit=np.ones(len(low)),
            radius=radius,
            steps=steps,
            action_range=action_range,
        )

    def _barriers(self) -> list[Rectangle]:
        """Return the walls and what is closed at the moment."""
        return self.walls

    def _blocked(self, x: float, y: float) -> bool:
        within = 0.0 <= x <= self.size[0] and 0.0 <= y <= self.size[1]
        return not within or inside(self._barriers(), x, y)

    def _allowed(self, old: np.ndarray, new: np.ndarray) -> bool:
        """Return whether a small step from one place to another is possible."""
        return not self._blocked(*new)

    def _slide(self, move: np.ndarray) -> None:
        """Move by small steps; what blocks stops each axis on its own.

        Unlike `worlds.slide`, a step is taken whole or not at all, also at the border of the room.
        """
        pieces = max(1, int(np.ceil(np.abs(move).max() / 0.05)))
        for _ in range(pieces):
            for axis in (0, 1):
                new = self.place.copy()
                new[axis] += move[axis] / pieces
                if self._allowed(self.place, new):
                    self.place = new

    def _achieved(self) -> np.ndarray:
        return self.place.copy()

    def _draw_place(self) -> np.ndarray:
        while True:
            place = self.np_random.uniform((0.0, 0.0), self.size)
            if not self._blocked(*place):
                return place


class Stagger(PointWorld):
    """A robot in a room of 12 x 12 with four staggered shelves. It drives at up to 0.5, but at most 0.15 backward."""

    def __init__(self, mode: Mode = "train"):
        walls = ((0.0, 2.1, 9.6, 2.6), (2.4, 4.5, 12.0, 5.0), (0.0, 6.9, 9.6, 7.4), (2.4, 9.3, 12.0, 9.8))
        super().__init__(mode, size=(12.0, 12.0), walls=walls, observation=5, radius=0.7, steps=250)

    def _begin(self) -> None:
        self.place = self.np_random.uniform(0.6, 1.4, 2)
        self.heading, self.speed = float(self.np_random.uniform(-np.pi, np.pi)), 0.0

    def _move(self, action: np.ndarray) -> None:
        self.heading += 0.5 * action[1]
        forward = np.array([np.cos(self.heading), np.sin(self.heading)])
        self.speed = 0.4 * self.speed + 0.6 * (0.175 + 0.325 * action[0])
        before = self.place
        self._slide(self.speed * forward)
        self.speed = float((self.place - before) @ forward)

    def _state(self) -> np.ndarray:
        return np.array([*self.place, np.cos(self.heading), np.sin(self.heading), self.speed])

    def _draw_goal(self) -> np.ndarray:
        return np.array([11.2, 11.2]) if self.mode == "test" else self._draw_place()


SPIRAL = """
###########
#.........#
#.#######.#
#.#.....#.#
#.#.###.#.#
#.#.#.#.#.#
#.#.#...#.#
#.#.#####.#
#.#.......#
#.#########
#S.########
"""
"""Squares of side 1, the upper row first; a body starts at S."""


class Spiral(PointWorld):
    """A point with inertia in a spiral corridor that is as wide as its walls are thick."""

    def __init__(self, mode: Mode = "train"):
        self.rows = SPIRAL.split()[::-1]
        size = (float(len(self.rows[0])), float(len(self.rows)))
        super().__init__(mode, size=size, observation=4, radius=0.5, steps=350, action_range=2.0)

    def _blocked(self, x: float, y: float) -> bool:
        within = 0.0 < x < self.size[0] and 0.0 < y < self.size[1]
        return not within or self.rows[int(y)][int(x)] == "#"

    def _begin(self) -> None:
        self.place = np.array([1.5, 0.5]) + self.np_random.uniform(-0.2, 0.2, 2)
        self.velocity = np.zeros(2)

    def _move(self, action: np.ndarray) -> None:
        self.velocity = 0.85 * self.velocity + 0.06 * action  # at most 0.4
        before = self.place
        self._slide(self.velocity)
        self.velocity = self.place - before

    def _state(self) -> np.ndarray:
        return np.array([*self.place, *self.velocity])

    def _draw_goal(self) -> np.ndarray:
        return np.array([5.5, 5.5]) if self.mode == "test" else self._draw_place()


class KeyDeadEnd(PointWorld):
    """A room of 20 x 10. The key lies at the end of a winding dead end on the left; the door is on the right."""

    def __init__(self, mode: Mode = "train"):
        walls = (
            (2.5, 3.0, 8.0, 3.5),
            (8.0, 0.0, 8.5, 6.5),
            (2.5, 3.5, 3.0, 7.0),
            (13.8, 0.0, 14.2, 6.4),
            (13.8, 8.4, 14.2, 10.0),
        )
        self.door: Rectangle = (13.8, 6.4, 14.2, 8.4)
        self.key = np.array([7.2, 1.2])
        super().__init__(mode, size=(20.0, 10.0), walls=walls, observation=3, beyond=[(0.0, 1.0)], steps=250)

    def _barriers(self) -> list[Rectangle]:
        return self.walls if self.has_key else [*self.walls, self.door]

    def _begin(self) -> None:
        self.has_key = False
        self.place = np.array([11.0, 1.0]) + self.np_random.uniform(-0.4, 0.4, 2)

    def _move(self, action: np.ndarray) -> None:
        self._slide(0.5 * action)
        if np.linalg.norm(self.place - self.key) < 0.8:
            self.has_key = True

    def _state(self) -> np.ndarray:
        return np.array([*self.place, float(self.has_key)])

    def _achieved(self) -> np.ndarray:
        return self._state()

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([19.0, 1.0, 1.0])
        x, y = self._draw_place()
        return np.array([x, y, float(x > 14.0 or self.np_random.random() < 0.5)])


class TwoKeys(PointWorld):
    """A room of 10 x 6 with a door. Who has the first key can take the second, and the second opens the door."""

    def __init__(self, mode: Mode = "train"):
        walls = ((4.9, 0.0, 5.1, 2.4), (4.9, 3.8, 5.1, 6.0))
        self.door: Rectangle = (4.9, 2.4, 5.1, 3.8)
        self.keys = np.array([[0.7, 5.3], [4.2, 0.7]])
        beyond = [(0.0, 1.0), (0.0, 1.0)]
        super().__init__(mode, size=(10.0, 6.0), walls=walls, observation=4, beyond=beyond, steps=150)

    def _barriers(self) -> list[Rectangle]:
        return self.walls if self.has_second else [*self.walls, self.door]

    def _begin(self) -> None:
        self.has_first = self.has_second = False
        self.place = np.array([1.0, 1.0]) + self.np_random.uniform(-0.3, 0.3, 2)

    def _move(self, action: np.ndarray) -> None:
        self._slide(0.4 * action)
        at_first, at_second = np.linalg.norm(self.place - self.keys, axis=1) < 0.6
        self.has_first = self.has_first or bool(at_first)
        self.has_second = self.has_second or bool(at_second and self.has_first)

    def _state(self) -> np.ndarray:
        return np.array([*self.place, float(self.has_first), float(self.has_second)])

    def _achieved(self) -> np.ndarray:
        return self._state()

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([9.2, 5.2, 1.0, 1.0])
        x, y = self._draw_place()
        keys = 2 if x > 5.0 else self.np_random.integers(3)
        return np.array([x, y, float(keys >= 1), float(keys == 2)])


class Toggle(PointWorld):
    """A room of 10 x 5 with a gate. A button opens or closes it each time that the body enters the button."""

    def __init__(self, mode: Mode = "train"):
        walls = ((5.4, 0.0, 5.6, 1.8), (5.4, 3.2, 5.6, 5.0))
        self.gate: Rectangle = (5.4, 1.8, 5.6, 3.2)
        self.button = np.array([1.0, 4.2])
        super().__init__(mode, size=(10.0, 5.0), walls=walls, observation=5, beyond=[(0.0, 1.0)], steps=120)

    def _barriers(self) -> list[Rectangle]:
        return self.walls if self.is_open else [*self.walls, self.gate]

    def _begin(self) -> None:
        self.is_open = self.on_button = False
        self.place = np.array([3.5, 0.8]) + self.np_random.uniform(-0.3, 0.3, 2)
        self.velocity = np.zeros(2)

    def _move(self, action: np.ndarray) -> None:
        self.velocity = 0.5 * self.velocity + 0.2 * action
        before = self.place
        self._slide(self.velocity)
        self.velocity = self.place - before
        on_button = bool(np.linalg.norm(self.place - self.button) < 0.7)
        if on_button and not self.on_button:
            self.is_open = not self.is_open
        self.on_button = on_button

    def _state(self) -> np.ndarray:
        return np.array([*self.place, *self.velocity, float(self.is_open)])

    def _achieved(self) -> np.ndarray:
        return np.array([*self.place, float(self.is_open)])

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([9.2, 4.2, 1.0])
        x, y = self._draw_place()
        return np.array([x, y, float(x > 5.5 or self.np_random.random() < 0.5)])


class ArmWorld(GoalWorld):
    """Links in a plane, each with an angle to the one before it; the goal is a point for the tip."""

    angle: np.ndarray

    def __init__(
        self, mode: Mode, *, links: Sequence[float], radius: float = 0.06, steps: int, action_range: float = 1.0
    ):
        self.mode, self.links = mode, np.array(links)
        reach, joints = sum(links), len(links)
        super().__init__(
            observation=6,  # cosines and sines of two angles, or three angles; and the rates
            goal_low=(-reach, -reach),
            goal_high=(reach, reach),
            action=joints,
            unit=(1.0, 1.0),
            radius=radius,
            steps=steps,
            action_range=action_range,
        )

    def _tip(self, angle: Any) -> np.ndarray:
        total = np.cumsum(angle)
        return np.array([(self.links * np.cos(total)).sum(), (self.links * np.sin(total)).sum()])

    def _achieved(self) -> np.ndarray:
        return self._tip(self.angle)


class Arm2(ArmWorld):
    """Two links with a mass at each end, as rigid bodies with damping and no gravity, under weak torques."""

    def __init__(self, mode: Mode = "train"):
        super().__init__(mode, links=(0.45, 0.45), radius=0.06 * 0.9, steps=150, action_range=0.9)
        self.masses = np.array([1.0, 0.6])
        self.torque, self.damping = np.array([0.9, 0.25]), np.array([0.6, 0.12])

    def _begin(self) -> None:
        self.angle, self.rate = self.np_random.uniform(-0.2, 0.2, 2), np.zeros(2)

    def _dynamics(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mass matrix [2, 2], and the torques [2] that keep the rates as they are."""
        (upper, lower), (elbow, tip), (first, second) = self.links, self.masses, self.rate
        outer = tip * lower**2
        across = tip * upper * lower * np.cos(self.angle[1])
        corner = (elbow + tip) * upper**2 + outer + 2 * across
        mass = np.array([[corner, outer + across], [outer + across, outer]])
        swing = tip * upper * lower * np.sin(self.angle[1])
        coriolis = swing * np.array([-(2 * first * second + second**2), first**2])
        return mass, coriolis + self.damping * self.rate

    def _move(self, action: np.ndarray) -> None:
        for _ in range(10):
            mass, bias = self._dynamics()
            self.rate = self.rate + 0.005 * np.linalg.solve(mass, self.torque * action - bias)
            self.angle = self.angle + 0.005 * self.rate

    def _state(self) -> np.ndarray:
        return np.array([*np.cos(self.angle), *np.sin(self.angle), *self.rate])

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([-0.63, -0.27])
        turn, far = self.np_random.uniform(-np.pi, np.pi), 0.9 * np.sqrt(self.np_random.uniform(0.1, 0.95))
        return far * np.array([np.cos(turn), np.sin(turn)])


class Arm3(ArmWorld):
    """Three links under joint velocities. They have stops, so the first cannot turn through its back."""

    def __init__(self, mode: Mode = "train", *, steps: int = 100):
        super().__init__(mode, links=(0.4, 0.3, 0.2), steps=steps)
        self.stops = np.array([2.9, 2.2, 2.2])

    def _begin(self) -> None:
        self.angle = np.array([1.6, 0.3, 0.3]) + self.np_random.uniform(-0.2, 0.2, 3)
        self.rate = np.zeros(3)

    def _move(self, action: np.ndarray) -> None:
        rate = 0.5 * self.rate + 0.06 * action  # at most 0.12 per step
        angle = np.clip(self.angle + rate, -self.stops, self.stops)
        self.rate, self.angle = angle - self.angle, angle

    def _state(self) -> np.ndarray:
        return np.array([*self.angle, *self.rate])

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return self._tip([-2.5, -0.3, -0.3])
        return self._tip(self.np_random.uniform(-self.stops, self.stops))


class Arm3Torque(Arm3):
    """The same links under torques with damping; a joint stands still at its stop."""

    def __init__(self, mode: Mode = "train"):
        super().__init__(mode, steps=150)
        self.torque = np.array([2.0, 2.5, 3.0])

    def _move(self, action: np.ndarray) -> None:
        for _ in range(4):
            rate = self.rate + 0.0125 * (self.torque * action - 1.5 * self.rate)
            angle = self.angle + 0.0125 * rate
            self.rate = np.where(np.abs(angle) <= self.stops, rate, 0.0)
            self.angle = np.clip(angle, -self.stops, self.stops)


class Scales(GoalWorld):
    """A probe moves along 3 m and is heated up to 3,000 K. It passes the first barrier hot, and the second cold."""

    def __init__(self, mode: Mode = "train"):
        self.mode = mode
        super().__init__(
            observation=4,
            goal_low=(0.0, 0.0),
            goal_high=(3.0, 3000.0),
            action=2,
            unit=(1.0, 1000.0),
            radius=0.2,
            steps=240,
        )

    def _blocked(self, x: float, kelvins: float) -> bool:
        return (0.9 < x < 1.1 and kelvins < 2200.0) or (1.9 < x < 2.1 and kelvins > 800.0)

    def _begin(self) -> None:
        self.place = np.array([0.2, 200.0]) + self.np_random.uniform(-0.1, 0.1, 2) * self.unit
        self.velocity = np.zeros(2)

    def _move(self, action: np.ndarray) -> None:
        self.velocity = 0.6 * self.velocity + 0.02 * action * self.unit  # at most 0.05 m and 50 K
        before = self.place
        for axis in (0, 1):
            new = self.place.copy()
            new[axis] = np.clip(new[axis] + self.velocity[axis], self.goal_low[axis], self.goal_high[axis])
            if not self._blocked(*new):
                self.place = new
        self.velocity = self.place - before

    def _state(self) -> np.ndarray:
        return np.array([*self.place, *self.velocity])

    def _achieved(self) -> np.ndarray:
        return self.place.copy()

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([2.7, 2700.0])
        while True:
            goal = self.np_random.uniform(self.goal_low, self.goal_high)
            if not self._blocked(*goal):
                return goal


class Ledge(PointWorld):
    """Three terraces in 10 x 9. One can drop from each, but climb only at its ramp; a pocket is open only above."""

    def __init__(self, mode: Mode = "train"):
        walls = ((3.9, 3.0, 4.1, 6.0), (5.9, 3.0, 6.1, 6.0))
        # Height of a ledge, and where along it the ramp is.
        self.ledges = ((3.05, 8.5, 10.0), (6.05, 6.2, 7.7))
        super().__init__(mode, size=(10.0, 9.0), walls=walls, observation=2, radius=0.5, steps=150)

    def _allowed(self, old: np.ndarray, new: np.ndarray) -> bool:
        climbs = any(old[1] < y <= new[1] and not x0 <= new[0] <= x1 for y, x0, x1 in self.ledges)
        return not climbs and super()._allowed(old, new)

    def _begin(self) -> None:
        self.place = np.array([1.0, 1.5]) + self.np_random.uniform(-0.4, 0.4, 2)

    def _move(self, action: np.ndarray) -> None:
        self._slide(0.35 * action)

    def _state(self) -> np.ndarray:
        return self.place.copy()

    def _draw_goal(self) -> np.ndarray:
        return np.array([5.0, 4.2]) if self.mode == "test" else self._draw_place()


class CarWorld(PointWorld):
    """A car with drag, a wheelbase of 1 and a turning circle with a radius of about 1. It stops where it bumps."""

    def _begin(self) -> None:
        self.place = self.np_random.uniform(0.8, 1.6, 2)
        self.heading, self.speed = float(self.np_random.uniform(-np.pi, np.pi)), 0.0

    def _move(self, action: np.ndarray) -> None:
        self.speed += 0.12 * action[0] - 0.2 * self.speed  # at most 0.6
        for _ in range(6):
            self.heading += self.speed / 6 * np.tan(0.8 * action[1])
            new = self.place + self.speed / 6 * np.array([np.cos(self.heading), np.sin(self.heading)])
            if not self._allowed(self.place, new):
                self.speed = 0.0
                break
            self.place = new

    def _state(self) -> np.ndarray:
        return np.array([*self.place, np.cos(self.heading), np.sin(self.heading), self.speed])


class Car(CarWorld):
    """The car drives to a place in a room of 12 x 12 with nine pillars."""

    def __init__(self, mode: Mode = "train"):
        walls = [(x - 0.7, y - 0.7, x + 0.7, y + 0.7) for x in (3.0, 6.0, 9.0) for y in (3.0, 6.0, 9.0)]
        super().__init__(mode, size=(12.0, 12.0), walls=walls, observation=5, radius=0.7, steps=200)

    def _draw_goal(self) -> np.ndarray:
        return np.array([11.0, 11.0]) if self.mode == "test" else self._draw_place()


class Park(CarWorld):
    """The car has to come to a place with a heading, in a room of 8 x 8 with a pillar in the middle."""

    def __init__(self, mode: Mode = "train"):
        beyond = [(-1.0, 1.0), (-1.0, 1.0)]
        super().__init__(mode, size=(8.0, 8.0), walls=[(3.3, 3.3, 4.7, 4.7)], observation=5, beyond=beyond, steps=200)

    def _achieved(self) -> np.ndarray:
        return self._state()[:4]

    def _draw_goal(self) -> np.ndarray:
        if self.mode == "test":
            return np.array([7.0, 7.0, -1.0, 0.0])
        while True:
            x, y = self.np_random.uniform(0.8, 7.2, 2)
            if not self._blocked(x, y):
                heading = self.np_random.uniform(-np.pi, np.pi)
                return np.array([x, y, np.cos(heading), np.sin(heading)])


NEW_WORLDS: dict[str, Callable[..., GoalWorld]] = {
    "stagger": Stagger,
    "spiral": Spiral,
    "key-dead-end": KeyDeadEnd,
    "two-keys": TwoKeys,
    "toggle": Toggle,
    "arm2": Arm2,
    "arm3": Arm3,
    "arm3-torque": Arm3Torque,
    "scales": Scales,
    "ledge": Ledge,
    "car": Car,
    "park": Park,
}
"""The worlds by name. Each takes the mode."""

NEW_STEPS = {
    "stagger": 50_000,
    "spiral": 60_000,
    "key-dead-end": 40_000,
    "two-keys": 30_000,
    "toggle": 25_000,
    "arm2": 25_000,
    "arm3": 20_000,
    "arm3-torque": 25_000,
    "scales": 25_000,
    "ledge": 20_000,
    "car": 40_000,
    "park": 30_000,
}
"""Steps of a run in each world."""
