"""`benchmarks/worlds.py`: every far goal can be reached well within an episode."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.driving import Controller, follow, steps_to_goal

ROOT = Path(__file__).parents[1]
WORLDS = runpy.run_path(str(ROOT / "benchmarks" / "worlds.py"))["WORLDS"]
EPISODES = 20


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


@pytest.mark.parametrize("name", WORLDS)
def test_far_goal_is_reached_in_70_percent_of_an_episode(name):
    control = next(control for kind, control in CONTROLLERS.items() if name.startswith(kind))
    env = WORLDS[name]("test")
    longest = max(steps_to_goal(env, control, seed) for seed in range(EPISODES))
    print(f"{name}: at most {longest} of {env.steps} steps")
    assert longest <= 0.7 * env.steps
