"""`benchmarks/worlds.py`: every far goal can be reached well within an episode."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
WORLDS = runpy.run_path(str(ROOT / "benchmarks" / "worlds.py"))["WORLDS"]
EPISODES = 20

Controller = Callable[[], np.ndarray]


def follow(position: Callable[[], np.ndarray], points: Any, near: Any) -> Callable[[], np.ndarray]:
    """Return the way to the next of some points; a point is passed where every coordinate is `near` it."""
    left = [np.asarray(point, float) for point in points]

    def way() -> np.ndarray:
        while len(left) > 1 and np.all(np.abs(left[0] - position()) < near):
            left.pop(0)
        return left[0] - position()

    return way


def through_shelves(env: Any) -> Controller:
    points = [(9.0, 1.0), (9.0, 5.0), (1.0, 5.0), (1.0, 9.0), (9.0, 9.0)]
    way = follow(lambda: env.place, [(10 - x, y) if env.mirrored else (x, y) for x, y in points], 0.5)

    def push() -> np.ndarray:
        return way() / env.speed

    def steer() -> np.ndarray:
        x, y = way()
        turn = (np.arctan2(y, x) - env.heading + np.pi) % (2 * np.pi) - np.pi
        return np.array([1.0 if abs(turn) < 0.6 else 0.0, turn / 0.6])

    return push if env.drive == "push" else steer


def through_gap(env: Any) -> Controller:
    x, top = env.wall
    middle, side = (top + env.size[1]) / 2, 1.0 if env.mirrored else -1.0
    way = follow(lambda: env.place, [(x + side, middle), (x - side, middle), env.desired], 0.4)
    return lambda: way() / env.speed


def through_door(env: Any) -> Controller:
    x0, y0, x1, y1 = env.door
    middle = (y0 + y1) / 2
    way = follow(lambda: env.place, [env.key, (x0 - 0.5, middle), (x1 + 0.5, middle), env.desired[:2]], 0.4)
    return lambda: way() / env.speed


def turn_joints(env: Any) -> Controller:
    (x, y), (upper, lower) = env.desired, env.links
    bend = np.arccos((x * x + y * y - upper**2 - lower**2) / (2 * upper * lower))
    shoulder = np.arctan2(y, x) - np.arctan2(lower * np.sin(bend), upper + lower * np.cos(bend))
    target = np.array([shoulder, bend])
    return lambda: 5 * (target - env.angle) - env.rate


def over_post(env: Any) -> Controller:
    points = [(env.post - 350.0, 3.5), (env.post + 350.0, 3.5), env.desired]
    way = follow(lambda: env.place, points, 0.2 * env.unit)
    return lambda: way() / env.unit / env.speed


CONTROLLERS = {
    "shelves": through_shelves,
    "rooms": through_gap,
    "key-door": through_door,
    "torque-arm": turn_joints,
    "lift": over_post,
}


def steps_to_goal(env: Any, control: Callable[[Any], Controller], seed: int) -> int:
    """Return the step of the first success, or a step after the end."""
    env.reset(seed=seed)
    act = control(env)
    for step in range(1, env.steps + 1):
        if env.step(np.clip(act(), -1, 1))[4]["is_success"]:
            return step
    return env.steps + 1


@pytest.mark.parametrize("name", WORLDS)
def test_far_goal_is_reached_in_70_percent_of_an_episode(name):
    control = next(control for kind, control in CONTROLLERS.items() if name.startswith(kind))
    env = WORLDS[name]("test")
    longest = max(steps_to_goal(env, control, seed) for seed in range(EPISODES))
    print(f"{name}: at most {longest} of {env.steps} steps")
    assert longest <= 0.7 * env.steps
