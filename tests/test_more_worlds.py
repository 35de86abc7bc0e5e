"""`benchmarks/more_worlds.py`: far goals can be reached, and walls, doors, ledges and stops do what they say."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.driving import Controller, follow, steps_to_goal

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    more_worlds = importlib.import_module("more_worlds")

WORLDS, STEPS = more_worlds.NEW_WORLDS, more_worlds.NEW_STEPS
POINTS = [name for name, make in WORLDS.items() if issubclass(make, more_worlds.PointWorld)]
EPISODES = 10


# --- Controllers ------------------------------------------------------------------------------------------------------


def along(env: Any, points: Any, near: float = 0.4) -> Controller:
    return follow(lambda: env.place, [*points, env.desired[:2]], near)


def turn_to(env: Any, way: np.ndarray) -> float:
    """Return the angle by which a heading differs from a way."""
    return (np.arctan2(way[1], way[0]) - env.heading + np.pi) % (2 * np.pi) - np.pi


def around_shelves(env: Any) -> Controller:
    left, right = 1.2, 10.8
    heights = (1.2, 3.5, 3.5, 6.0, 6.0, 8.3, 8.3, 10.8)
    way = along(env, list(zip((right, right, left, left) * 2, heights, strict=True)), 0.5)

    def act() -> np.ndarray:
        turn = turn_to(env, way())
        return np.array([1.0 if abs(turn) < 0.6 else -0.5, turn / 0.5])

    return act


def through_spiral(env: Any) -> Controller:
    corners = [(1.5, 9.5), (9.5, 9.5), (9.5, 2.5), (3.5, 2.5), (3.5, 7.5), (7.5, 7.5), (7.5, 4.5), (5.5, 4.5)]
    way = along(env, corners, 0.3)
    return lambda: 3 * way() - 12 * env.velocity


def to_key_and_door(env: Any) -> Controller:
    there = [(9.5, 7.8), (1.2, 7.8), (1.2, 1.5)]
    way = along(env, [*there, env.key, *there[:0:-1], (12.8, 7.4), (15.2, 7.4)])
    return lambda: way() / 0.5


def to_both_keys(env: Any) -> Controller:
    way = along(env, [*env.keys, (4.3, 3.1), (5.7, 3.1)])
    return lambda: way() / 0.4


def to_button(env: Any) -> Controller:
    way = along(env, [env.button, (4.6, 2.5), (6.4, 2.5)])
    return lambda: 3 * way() - 3 * env.velocity


def turn_two_joints(env: Any) -> Controller:
    (x, y), (upper, lower) = env.desired, env.links
    bend = np.arccos((x * x + y * y - upper**2 - lower**2) / (2 * upper * lower))
    shoulder = np.arctan2(y, x) - np.arctan2(lower * np.sin(bend), upper + lower * np.cos(bend))
    target = np.array([shoulder, bend])

    def act() -> np.ndarray:
        mass, bias = env._dynamics()
        return (mass @ (4 * (target - env.angle) - 4 * env.rate) + bias) / env.torque

    return act


def turn_three_joints(env: Any) -> Controller:
    target = np.array([-2.5, -0.3, -0.3])
    gain, damping = (4.0, 2.0) if isinstance(env, more_worlds.Arm3Torque) else (6.0, 0.0)
    return lambda: gain * (target - env.angle) - damping * env.rate


def past_barriers(env: Any) -> Controller:
    points = [(0.8, 2350.0), (1.2, 2350.0), (1.8, 650.0), (2.2, 650.0)]
    way = follow(lambda: env.place, [*points, env.desired], 0.1 * env.unit)
    return lambda: 20 * way() / env.unit


def over_ramps(env: Any) -> Controller:
    way = along(env, [(9.2, 2.0), (9.2, 4.5), (6.9, 5.4), (6.9, 7.0), (5.0, 7.0)])
    return lambda: way() / 0.35


def steer(env: Any, points: Any) -> Controller:
    """Drive a car along points; back up for a while where it bumps or the way is behind it."""
    way, back = along(env, points, 0.5), 0

    def act() -> np.ndarray:
        nonlocal back
        turn = turn_to(env, way())
        if back:
            back -= 1
        elif abs(turn) > 1.9 or (env.speed == 0.0 and env.time > 1):
            back = 5
        return np.array([-0.8, -np.sign(turn)]) if back else np.array([0.8, 2 * turn])

    return act


CONTROLLERS = {
    "stagger": around_shelves,
    "spiral": through_spiral,
    "key-dead-end": to_key_and_door,
    "two-keys": to_both_keys,
    "toggle": to_button,
    "arm2": turn_two_joints,
    "arm3": turn_three_joints,
    "arm3-torque": turn_three_joints,
    "scales": past_barriers,
    "ledge": over_ramps,
    "car": lambda env: steer(env, [(1.2, 10.8)]),
    "park": lambda env: steer(env, [(6.0, 1.2), (7.6, 3.0), (7.6, 6.2), (6.0, 7.0)]),
}


# --- All worlds -------------------------------------------------------------------------------------------------------


def test_every_world_has_steps_and_a_controller():
    assert WORLDS.keys() == STEPS.keys() == CONTROLLERS.keys()


@pytest.mark.parametrize("name", WORLDS)
def test_far_goal_is_reached_in_70_percent_of_an_episode(name):
    env = WORLDS[name]("test")
    longest = max(steps_to_goal(env, CONTROLLERS[name], seed) for seed in range(EPISODES))
    print(f"{name}: at most {longest} of {env.steps} steps")
    assert longest <= 0.7 * env.steps


@pytest.mark.parametrize("mode", ["train", "test"])
@pytest.mark.parametrize("name", WORLDS)
def test_an_episode(name, mode):
    """Observations fit the spaces, the same seed and actions give the same episode, and only time ends it."""
    first, second = WORLDS[name](mode), WORLDS[name](mode)
    one, other = first.reset(seed=3)[0], second.reset(seed=3)[0]
    first.action_space.seed(3)
    for step in range(1, first.steps + 1):
        assert one in first.observation_space
        assert all(np.array_equal(one[key], other[key]) for key in one)
        action = first.action_space.sample()
        one, reward, terminated, truncated, info = first.step(action)
        other = second.step(action)[0]
        assert (terminated, truncated) == (False, step == first.steps)
        assert reward == (0.0 if info["is_success"] else -1.0)


@pytest.mark.parametrize("name", WORLDS)
def test_actions_beyond_the_range_are_clipped(name):
    first, second = WORLDS[name]("test"), WORLDS[name]("test")
    one, other = first.reset(seed=0)[0], second.reset(seed=0)[0]
    assert np.all(first.action_space.high == np.float32({"spiral": 2.0, "arm2": 0.9}.get(name, 1.0)))
    for _ in range(5):
        one, other = first.step(first.action_space.high)[0], second.step(3 * second.action_space.high)[0]
    np.testing.assert_allclose(one["observation"], other["observation"], rtol=1e-6)
    assert not np.array_equal(one["observation"], first.reset(seed=0)[0]["observation"])


@pytest.mark.parametrize("name", WORLDS)
def test_success_within_the_radius_of_the_goal(name):
    env = WORLDS[name]("train")
    goals = np.array([env.reset(seed=seed)[0]["desired_goal"] for seed in range(20)])
    away = np.zeros_like(goals)
    away[:, 1] = env.radius * env.unit[1]
    assert np.all(env.compute_reward(goals + 0.99 * away, goals, {}) == 0.0)
    assert np.all(env.compute_reward(goals + 1.01 * away, goals, {}) == -1.0)
    assert np.ptp(goals, axis=0).min() > 0.0
    low, high = env.goal_low - 1e-9, env.goal_high + 1e-9
    assert np.all((goals >= low) & (goals <= high))


@pytest.mark.parametrize("name", POINTS)
def test_no_way_leads_into_a_wall(name):
    env = WORLDS[name]("train")
    random = np.random.default_rng(0)
    for seed in range(5):
        env.reset(seed=seed)
        for step in range(env.steps):
            if step % 15 == 0:
                action = env.action_range * random.uniform(-1, 1, 2)
            env.step(action)
            assert not env._blocked(*env.place)
            assert np.all((env.place >= 0.0) & (env.place <= env.size))


# --- Each world -------------------------------------------------------------------------------------------------------


def started(name: str, **state: Any) -> Any:
    """Return an environment in a given state."""
    env = WORLDS[name]("test")
    env.reset(seed=0)
    for key, value in state.items():
        assert hasattr(env, key)
        setattr(env, key, np.array(value) if isinstance(value, tuple) else value)
    return env


def push(env: Any, *action: float, steps: int = 20) -> np.ndarray:
    """Repeat an action, given as shares of its range; return the place."""
    for _ in range(steps):
        env.step(env.action_range * np.array(action))
    return env.place


def test_stagger_hardly_drives_backward():
    speeds = []
    for action in (1.0, -1.0):
        env = started("stagger", place=(6.0, 1.0), heading=0.0)
        push(env, action, 0.0, steps=6)
        speeds.append(env.speed)
    assert speeds == pytest.approx([0.5, -0.15], abs=0.01)


def test_stagger_stops_at_a_shelf_and_passes_at_its_end():
    assert push(started("stagger", place=(5.0, 1.0), heading=np.pi / 2), 1.0, 0.0)[1] < 2.1
    assert push(started("stagger", place=(10.8, 1.0), heading=np.pi / 2), 1.0, 0.0, steps=8)[1] > 2.6


def test_spiral_has_inertia_and_walls():
    env = started("spiral", place=(1.5, 2.5))
    push(env, 0.0, 1.0, steps=1)
    assert env.velocity[1] == pytest.approx(0.06)
    push(env, 0.0, 1.0, steps=14)
    assert 0.3 < env.velocity[1] < 0.4
    x, y = push(env, 1.0, 1.0, steps=60)
    assert y > 9.9  # at the end of the first corridor, then along the second
    assert x > 9.9
    assert push(started("spiral", place=(1.5, 5.5)), 1.0, 0.0)[0] < 2.0


def test_key_dead_end_door_opens_with_the_key():
    env = started("key-dead-end", place=(13.0, 7.4))
    assert push(env, 1.0, 0.0)[0] < 13.8
    env.place = np.array([6.0, 1.2])
    assert push(env, 1.0, 0.0, steps=1)[0] == pytest.approx(6.5)
    assert env.has_key
    assert env._achieved()[2] == 1.0
    env.place = np.array([13.0, 7.4])
    assert push(env, 1.0, 0.0)[0] > 14.2
    assert push(started("key-dead-end", place=(13.0, 3.0), has_key=True), 1.0, 0.0)[0] < 13.8


def test_key_dead_end_has_one_way_to_the_key():
    assert push(started("key-dead-end", place=(9.5, 1.2)), -1.0, 0.0)[0] > 8.5
    assert push(started("key-dead-end", place=(7.2, 5.0)), 0.0, -1.0)[1] > 3.5
    assert push(started("key-dead-end", place=(4.0, 5.0)), -1.0, 0.0)[0] > 3.0


def test_second_key_needs_the_first():
    env = started("two-keys", place=(4.2, 0.7))
    push(env, 0.0, 0.0, steps=1)
    assert (env.has_first, env.has_second) == (False, False)
    env.place = np.array([0.7, 5.3])
    push(env, 0.0, 0.0, steps=1)
    assert (env.has_first, env.has_second) == (True, False)
    env.place = np.array([4.5, 3.1])
    assert push(env, 1.0, 0.0)[0] < 4.9
    env.place = np.array([4.2, 0.7])
    push(env, 0.0, 0.0, steps=1)
    assert env._achieved()[2:].tolist() == [1.0, 1.0]
    env.place = np.array([4.5, 3.1])
    assert push(env, 1.0, 0.0)[0] > 5.1


def test_button_opens_the_gate_and_closes_it_again():
    env = started("toggle")
    states = []
    for x in (3.0, 1.0, 1.0, 3.0, 1.0, 3.0, 1.0):  # standing on the button changes nothing
        env.place, env.velocity = np.array([x, 4.2]), np.zeros(2)
        push(env, 0.0, 0.0, steps=1)
        states.append(env.is_open)
    assert states == [False, True, True, True, False, False, True]
    env.place = np.array([5.0, 2.5])
    assert push(env, 1.0, 0.0)[0] > 5.6
    assert push(started("toggle", place=(5.0, 2.5)), 1.0, 0.0)[0] < 5.4


def test_arm2_keeps_its_energy_without_torques_and_damping():
    env = started("arm2", angle=(0.3, 0.8), rate=(1.0, -2.0), damping=(0.0, 0.0))

    def kinetic_energy() -> float:
        """Return the energy of the two masses from their places alone."""
        shift = 1e-6
        ends = [np.cumsum(env.links * np.exp(1j * np.cumsum(env.angle + time * env.rate))) for time in (-shift, shift)]
        return float((0.5 * env.masses * np.abs((ends[1] - ends[0]) / (2 * shift)) ** 2).sum())

    before = kinetic_energy()
    mass, _ = env._dynamics()
    assert 0.5 * env.rate @ mass @ env.rate == pytest.approx(before)
    for _ in range(20):
        env.step(np.zeros(2))
        assert kinetic_energy() == pytest.approx(before, rel=0.02)
    assert np.abs(env.rate - [1.0, -2.0]).min() > 0.05  # the links do exchange energy


@pytest.mark.parametrize("name", ["arm3", "arm3-torque"])
def test_arms_halt_at_their_stops(name):
    env = started(name)
    for sign in (1.0, -1.0):
        for _ in range(env.steps):
            env.step(np.full(3, sign))
            assert np.all(np.abs(env.angle) <= env.stops)
        np.testing.assert_allclose(env.angle, sign * env.stops)
        np.testing.assert_allclose(env.rate, 0.0)
    env.step(np.ones(3))
    assert np.all(env.angle > -env.stops)


def test_arm3_joint_speed():
    env = started("arm3", angle=(0.0, 0.0, 0.0))
    for _ in range(12):
        env.step(np.array([1.0, 0.0, -1.0]))
    np.testing.assert_allclose(env.rate, [0.12, 0.0, -0.12], atol=1e-4)


@pytest.mark.parametrize(("barrier", "passes", "stops"), [(1.0, 2600.0, 2000.0), (2.0, 400.0, 1000.0)])
def test_scales_barriers(barrier, passes, stops):
    assert push(started("scales", place=(barrier - 0.3, passes)), 1.0, 0.0)[0] > barrier + 0.1
    assert push(started("scales", place=(barrier - 0.3, stops)), 1.0, 0.0)[0] <= barrier - 0.1


def test_scales_dimensions_are_equally_fast_in_their_units():
    env = started("scales", place=(0.2, 200.0))
    before = env.place
    np.testing.assert_allclose((push(env, 1.0, 1.0, steps=10) - before) / env.unit, 0.425, atol=0.001)


def test_ledges_are_climbed_at_ramps_and_dropped_from_anywhere():
    assert push(started("ledge", place=(2.0, 2.5)), 0.0, 1.0)[1] < 3.05
    assert push(started("ledge", place=(9.0, 2.5)), 0.0, 1.0, steps=4)[1] > 3.05
    assert push(started("ledge", place=(9.0, 5.5)), 0.0, 1.0)[1] < 6.05
    assert push(started("ledge", place=(7.0, 5.5)), 0.0, 1.0, steps=4)[1] > 6.05
    assert push(started("ledge", place=(2.0, 6.5)), 0.0, -1.0, steps=4)[1] < 6.05
    assert push(started("ledge", place=(2.0, 3.5)), 0.0, -1.0, steps=4)[1] < 3.05


def test_pocket_is_entered_only_from_above():
    assert push(started("ledge", place=(3.0, 4.2)), 1.0, 0.0)[0] < 3.9
    assert push(started("ledge", place=(7.0, 4.2)), -1.0, 0.0)[0] > 6.1
    assert push(started("ledge", place=(5.0, 2.5)), 0.0, 1.0)[1] < 3.05
    assert push(started("ledge", place=(5.0, 6.5)), 0.0, -1.0, steps=4)[1] < 6.0


def test_car_has_a_turning_circle_and_stops_where_it_bumps():
    env = started("car", place=(1.0, 1.0), heading=0.0)
    push(env, 0.0, 1.0)
    assert (env.place.tolist(), env.heading) == ([1.0, 1.0], 0.0)  # it cannot turn on the spot
    env = started("car", place=(11.9, 6.0), heading=np.pi / 2)
    places = np.array([push(env, 0.5, 1.0, steps=1) for _ in range(60)])
    assert np.ptp(places, axis=0) == pytest.approx(2 / np.tan(0.8), abs=0.1)
    env = started("car", place=(0.5, 3.0), heading=0.0)
    assert push(env, 1.0, 0.0)[0] < 2.3
    assert env.place[0] > 2.0
    assert push(env, -1.0, 0.0, steps=5)[0] < 2.0


def test_parked_is_a_place_with_a_heading():
    success = []
    for heading in (np.pi, 0.0, np.pi / 2):
        env = started("park", place=(7.0, 7.0), heading=heading)
        success.append(env.step(np.zeros(2))[4]["is_success"])
    assert success == [True, False, False]
