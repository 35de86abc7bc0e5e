"""Reacher and Pusher."""

import gymnasium
import mujoco
import numpy as np
import pytest

import higl.envs  # noqa: F401, makes the ids known

REACHER, PUSHER = "higl/Reacher-v0", "higl/Pusher-v0"
PENALTY = {REACHER: 0.0001, PUSHER: 0.001}
both = pytest.mark.parametrize("name", [REACHER, PUSHER])


def make(name, **options):
    return gymnasium.make(name, **options).unwrapped


def test_reacher_starts_at_zero_and_at_rest():
    env = make(REACHER)
    observation, _ = env.reset(seed=0)
    row = observation["observation"]
    assert row[:7].tolist() == [0] * 7
    assert row[10:].tolist() == [0] * 7
    assert np.array_equal(row[7:10], observation["desired_goal"])
    assert observation["achieved_goal"] == pytest.approx([0.98928, -0.188, 0.0])


def test_reacher_observation_layout():
    env = make(REACHER)
    env.reset(seed=0)
    observation, *_ = env.step(env.action_space.sample())
    row = observation["observation"]
    assert np.array_equal(row[:7], env.data.qpos)
    assert np.array_equal(row[7:10], env.goal)
    assert np.array_equal(row[10:], env.data.qvel)
    mujoco.mj_forward(env.model, env.data)
    assert np.array_equal(observation["achieved_goal"], env.data.site("end_effector").xpos)


def test_pusher_start():
    env = make(PUSHER)
    rows = []
    for seed in range(400):
        observation, _ = env.reset(seed=seed)
        rows.append(observation["observation"])
        assert observation["desired_goal"].tolist() == [0.45, -0.05, -0.323] * 2
    rows = np.array(rows)
    assert (rows[:, :7] == 0).all()
    assert (np.abs(rows[:, 7:14]) <= 0.005).all()
    assert np.allclose(rows[:, 7:14].max(0), 0.005, atol=5e-4)
    offsets = rows[:, 17:19] - (0.45, -0.05)
    assert np.allclose(offsets.mean(0), (0.15, -0.25), atol=0.005)
    assert np.allclose(offsets.std(0), 0.025, atol=0.004)
    assert np.allclose(rows[:, 19], -0.275)


def test_pusher_observation_layout():
    env = make(PUSHER)
    env.reset(seed=0)
    observation, *_ = env.step(env.action_space.sample())
    row = observation["observation"]
    assert np.array_equal(row[:7], env.data.qpos[:7])
    assert np.array_equal(row[7:14], env.data.qvel[:7])
    assert np.array_equal(row[14:], observation["achieved_goal"])
    mujoco.mj_forward(env.model, env.data)
    assert np.array_equal(row[14:17], env.data.body("tips_arm").xpos)
    assert np.array_equal(row[17:20], env.data.body("object").xpos)


def test_only_the_puck_counts_for_success():
    env, target = make(PUSHER, reward="sparse"), np.array([0.45, -0.05, -0.323])
    far = target + 5.0
    for achieved, success in (((far, target), True), ((target, far), False)):
        goal = np.concatenate((target, target))
        reached = np.concatenate(achieved)
        assert bool(env.is_success(reached, goal)) is success
        assert env.compute_reward(reached, goal, None) == (0.0 if success else -1.0)
    dense = make(PUSHER, reward="dense")
    goal = np.concatenate((target, target))
    reached = goal + np.array([0.3, 0, 0, 0, 0.4, 0])
    assert dense.compute_reward(reached, goal, None) == pytest.approx(-0.5)


@both
@pytest.mark.parametrize("reward", ["dense", "sparse"])
def test_success_at_the_boundary(name, reward):
    env = make(name, reward=reward)
    goal = np.zeros(env.observation_space["desired_goal"].shape)
    for distance, success in ((0.25, True), (np.nextafter(0.25, 0), True), (np.nextafter(0.25, 1), False)):
        achieved = goal.copy()
        achieved[-1] = distance
        assert bool(env.is_success(achieved, goal)) is success
        expected = -distance if reward == "dense" else (0.0 if success else -1.0)
        assert env.compute_reward(achieved, goal, None) == expected


@both
@pytest.mark.parametrize("reward", ["dense", "sparse"])
def test_action_penalty(name, reward):
    env = make(name, reward=reward)
    high = env.action_space.high[0]
    for action in (np.zeros(7), np.full(7, 0.5 * high), np.linspace(-high, high, 7), np.full(7, 3 * high)):
        env.reset(seed=0)
        observation, value, _, _, info = env.step(action)
        penalty = PENALTY[name] * np.square(np.clip(action, -high, high)).sum()
        assert info["action_penalty"] == pytest.approx(penalty)
        term = env.compute_reward(observation["achieved_goal"], observation["desired_goal"], None)
        assert value == pytest.approx(term - penalty)
        assert term == (
            pytest.approx(-np.linalg.norm(observation["achieved_goal"] - observation["desired_goal"]))
            if reward == "dense"
            else (0.0 if info["is_success"] else -1.0)
        )


def test_penalty_in_info_is_vectorised_and_must_be_there():
    env = make(REACHER, reward="sparse")
    goals = np.zeros((2, 3))
    assert env.compute_reward(goals, goals, {"action_penalty": np.array([0.5, 0.25])}).tolist() == [-0.5, -0.25]
    assert env.compute_reward(goals, goals, [{"action_penalty": 0.5}, {"action_penalty": 0.0}]).tolist() == [-0.5, 0.0]
    assert env.compute_reward(goals, goals, {}).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="lacks 'action_penalty'"):
        env.compute_reward(goals, goals, [{"is_success": True}] * 2)


@both
def test_success_does_not_end_the_episode(name):
    env = make(name)
    observation, _ = env.reset(seed=0)
    env.reset(seed=0, options={"goal": observation["achieved_goal"]})
    *_, terminated, truncated, info = env.step(np.zeros(7))
    assert info["is_success"] is True
    assert not terminated
    assert not truncated


def test_time_per_step():
    for name, seconds in ((REACHER, 0.02), (PUSHER, 0.04)):
        env = make(name)
        env.reset(seed=0)
        env.step(np.zeros(7))
        assert env.data.time == pytest.approx(seconds)


def test_the_arm_pushes_the_puck_without_passing_through_it():
    env = make(PUSHER)
    env.reset(seed=0)
    env.data.qpos[1] = 0.37  # lowers the fork to the table
    mujoco.mj_forward(env.model, env.data)
    tip = env.observe()["achieved_goal"][:3]
    assert -0.325 < tip[2] < -0.225
    env.data.qpos[7:9] = tip[1] + 0.3 + 0.05, tip[0] - 0.45  # the puck 0.3 beside it: y, x from the target
    mujoco.mj_forward(env.model, env.data)
    before = env.observe()["achieved_goal"][3:].copy()
    puck, depths = env.model.body("object").id, [0.0]
    for _ in range(40):
        observation, *_ = env.step(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
        touching = env.model.geom_bodyid[env.data.contact.geom]
        depths += list(-env.data.contact.dist[(touching == puck).any(axis=1) & (touching != 0).all(axis=1)])
    moved = observation["achieved_goal"][3:] - before
    assert len(depths) > 1
    assert max(depths) < 0.005
    assert moved[1] > 0.1
    assert moved[2] == 0.0
