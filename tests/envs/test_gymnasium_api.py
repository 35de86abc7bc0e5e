"""All seven environments follow the API of Gymnasium, are deterministic and restore their state."""

import json
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import higl.envs
from higl.envs import TASKS

IDS = [task.id for task in TASKS]
SIZES = {"point": (7, 2, 2), "ant": (30, 2, 8), "reacher": (17, 3, 7), "pusher": (20, 6, 7)}
RANGES = {"point": 1.0, "ant": 30.0, "reacher": 20.0, "pusher": 2.0}
all_tasks = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
all_rewards = pytest.mark.parametrize("reward", ["dense", "sparse"])


def rollout(env, steps, seed=0):
    """Observations, rewards and flags of random actions, as one array per step."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(steps):
        action = rng.uniform(env.action_space.low, env.action_space.high)
        observation, reward, terminated, truncated, info = env.step(action)
        rows.append(np.concatenate([*observation.values(), [reward, terminated, truncated, info["is_success"]]]))
        if terminated or truncated:
            observation, _ = env.reset()
            rows.append(np.concatenate([*observation.values(), [0, 0, 0, 0]]))
    return np.array(rows)


FRESH = {
    "import": "import gymnasium, higl.envs; e = gymnasium.make('higl/AntMazeU-v0')",
    "module in the id": "import gymnasium; e = gymnasium.make('higl.envs:higl/AntMazeU-v0')",
    "entry point": (
        "import gymnasium; from importlib.metadata import entry_points\n"
        "[plugin] = [p for p in entry_points(group='gymnasium.envs') if p.name == 'higl']\n"
        "plugin.load()(); e = gymnasium.make('higl/AntMazeU-v0')"
    ),
}


@pytest.mark.parametrize("way", FRESH)
def test_ids_are_known_in_a_fresh_process(way):
    code = FRESH[way] + "; e.reset(); print(type(e.unwrapped).__name__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "MazeEnv"


def test_envs_import_neither_jax_nor_gl():
    code = (
        "import sys, gymnasium, higl.envs, higl.envs.maze, higl.envs.arm\n"
        "gymnasium.make('higl/Pusher-v0').reset()\n"
        "print([m for m in ('jax', 'OpenGL.GL', 'matplotlib', 'rich') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_registering_twice_is_harmless():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        higl.envs.register_envs()
        higl.envs.register_envs()
    assert set(IDS) <= set(gymnasium.registry)


@all_tasks
@all_rewards
def test_check_env(task, reward):
    env = gymnasium.make(task.id, reward=reward)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Infinite bounds of positions and velocities, and actions in newton metres, are intended.
        warnings.filterwarnings("ignore", message=".*(infinity|symmetric and normalized).*")
        check_env(env.unwrapped, skip_render_check=True)


@all_tasks
def test_spaces(task):
    env = gymnasium.make(task.id)
    observation_size, goal_size, action_size = SIZES[task.body]
    assert env.observation_space["observation"].shape == (observation_size,)
    assert env.observation_space["achieved_goal"].shape == (goal_size,)
    assert env.observation_space["desired_goal"].shape == (goal_size,)
    assert all(space.dtype == np.float64 for space in env.observation_space.values())
    assert env.action_space.shape == (action_size,)
    assert env.action_space.high.tolist() == [RANGES[task.body]] * action_size
    assert env.action_space.low.tolist() == [-RANGES[task.body]] * action_size


@all_tasks
def test_truncated_at_the_step_limit_and_not_before(task):
    env = gymnasium.make(task.id, mode="test")
    env.reset(seed=0)
    idle = np.zeros(env.action_space.shape)
    flags = [env.step(idle)[3] for _ in range(task.max_steps)]
    assert flags == [False] * (task.max_steps - 1) + [True]


@all_tasks
def test_same_seed_same_trajectory(task):
    env, other = gymnasium.make(task.id), gymnasium.make(task.id)
    first, _ = env.reset(seed=5)
    again, _ = other.reset(seed=5)
    assert all(np.array_equal(first[key], again[key]) for key in first)
    trajectory = rollout(env, 60)
    assert np.array_equal(trajectory, rollout(other, 60))
    env.reset(seed=5)
    assert np.array_equal(trajectory, rollout(env, 60))
    env.reset(seed=6)
    assert not np.array_equal(trajectory, rollout(env, 60))


_IN_ANOTHER_PROCESS = """
import hashlib, gymnasium, numpy as np, higl.envs
rng = np.random.default_rng(3)
for task in {ids!r}:
    env = gymnasium.make(task)
    env.reset(seed=11)
    digest = hashlib.sha256()
    for _ in range(40):
        observation, reward, *_ = env.step(rng.uniform(env.action_space.low, env.action_space.high))
        digest.update(observation["observation"].tobytes() + observation["desired_goal"].tobytes())
        digest.update(np.float64(reward).tobytes())
    print(digest.hexdigest())
"""


def test_same_seed_same_trajectory_in_another_process():
    code = _IN_ANOTHER_PROCESS.format(ids=IDS)
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].split()) == len(IDS)


@all_tasks
def test_state_restores_bit_for_bit_mid_episode(task):
    env = gymnasium.make(task.id)
    env.reset(seed=1)
    rollout(env, 17)
    state = env.unwrapped.get_state()
    here = env.unwrapped.observe()
    # Past the end of the episode, so that restored randomness shows in the next start and goal too.
    steps = task.max_steps if task.max_steps <= 100 else 60
    expected = rollout(env, steps, seed=2)

    through_json = {**state, "physics": state["physics"].tolist(), "goal": state["goal"].tolist()}
    through_json = json.loads(json.dumps(through_json))
    fresh = gymnasium.make(task.id)
    for target, saved in ((env, state), (fresh, through_json)):
        target.unwrapped.set_state(saved)
        assert target.unwrapped.steps == 17
        restored = target.unwrapped.observe()
        assert all(np.array_equal(here[key], restored[key]) for key in here)
        assert np.array_equal(expected, rollout(target, steps, seed=2))


@all_tasks
def test_restored_randomness_draws_the_same_next_episode(task):
    env = gymnasium.make(task.id)
    env.reset(seed=4)
    state = env.unwrapped.get_state()
    first = [env.reset()[0] for _ in range(3)]
    env.unwrapped.set_state(state)
    again = [env.reset()[0] for _ in range(3)]
    for one, other in zip(first, again, strict=True):
        assert all(np.array_equal(one[key], other[key]) for key in one)


def test_state_is_a_copy_and_bad_states_are_rejected():
    env = gymnasium.make("higl/AntMazeU-v0").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.get_state()
    env.reset(seed=0)
    state = env.get_state()
    before = env.observe()["observation"]
    env.step(env.action_space.high)
    assert env.get_state()["physics"].tolist() != state["physics"].tolist()
    env.set_state(state)
    other = gymnasium.make("higl/PointMaze-v0").unwrapped
    other.reset(seed=0)
    for bad, message in (
        (other.get_state(), "physics has shape"),
        ({"physics": state["physics"]}, "lacks goal, rng, steps"),
        ({**state, "goal": np.zeros(3)}, "goal has shape"),
        ({**state, "goal": [np.nan, 0]}, "goal is not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            env.set_state(bad)
    assert np.array_equal(env.observe()["observation"], before)


@all_tasks
def test_bad_actions_are_rejected_and_nothing_moves(task):
    env = gymnasium.make(task.id)
    env.reset(seed=0)
    rollout(env, 3)
    before = env.unwrapped.get_state()
    size = env.action_space.shape[0]
    nan = np.zeros(size)
    nan[1] = np.nan
    with pytest.raises(ValueError, match="NaN at index 1"):
        env.step(nan)
    with pytest.raises(ValueError, match=rf"shape \({size + 1},\); this environment takes \({size},\)"):
        env.step(np.zeros(size + 1))
    with pytest.raises(ValueError, match="shape"):
        env.step(0.0)
    after = env.unwrapped.get_state()
    assert np.array_equal(before.pop("physics"), after.pop("physics"))
    assert np.array_equal(before.pop("goal"), after.pop("goal"))
    assert before == after


@all_tasks
def test_actions_out_of_range_are_clipped(task):
    env, other = gymnasium.make(task.id), gymnasium.make(task.id)
    env.reset(seed=0)
    other.reset(seed=0)
    signs = np.where(np.arange(env.action_space.shape[0]) % 2, -1.0, 1.0)
    for factor in (5.0, 1e12, np.inf):
        far = env.step(signs * factor * RANGES[task.body])
        near = other.step(signs * RANGES[task.body])
        assert np.array_equal(far[0]["observation"], near[0]["observation"])
        assert far[1] == near[1]


@all_tasks
def test_step_does_not_keep_or_change_the_action(task):
    env = gymnasium.make(task.id)
    env.reset(seed=0)
    action = env.action_space.high * 2
    kept = action.copy()
    observation, *_ = env.step(action)
    assert np.array_equal(action, kept)
    for array in observation.values():
        array[:] = 99.0
    assert not (env.unwrapped.observe()["observation"] == 99.0).any()
    assert not (env.unwrapped.goal == 99.0).any()


def test_step_before_reset():
    with pytest.raises(gymnasium.error.ResetNeeded):
        gymnasium.make("higl/Reacher-v0").step(np.zeros(7))


@pytest.mark.parametrize(
    ("option", "value"), [("reward", "dens"), ("mode", "eval"), ("render_mode", "ascii"), ("camera", "side")]
)
def test_unknown_choices(option, value):
    with pytest.raises((ValueError, gymnasium.error.Error), match=value):
        gymnasium.make("higl/AntMazeU-v0", **{option: value})


@all_tasks
@all_rewards
def test_compute_reward_agrees_with_step_and_is_vectorised(task, reward):
    env = gymnasium.make(task.id, reward=reward)
    env.reset(seed=2)
    rng = np.random.default_rng(0)
    achieved, desired, infos, rewards = [], [], [], []
    for _ in range(30):
        observation, value, _, _, info = env.step(rng.uniform(env.action_space.low, env.action_space.high))
        assert type(value) is float
        assert type(info["is_success"]) is bool
        assert value == env.unwrapped.compute_reward(observation["achieved_goal"], observation["desired_goal"], info)
        achieved.append(observation["achieved_goal"])
        desired.append(observation["desired_goal"])
        infos.append(info)
        rewards.append(value)
    for many in (infos, np.array(infos)):
        computed = env.unwrapped.compute_reward(np.array(achieved), np.array(desired), many)
        assert np.array_equal(computed, rewards)
    grid = env.unwrapped.compute_reward(np.array(achieved)[:, None], np.array(desired)[None, :3], None)
    assert grid.shape == (30, 3)


@all_tasks
def test_modes_differ_only_in_the_goal(task):
    train, test = gymnasium.make(task.id, mode="train"), gymnasium.make(task.id, mode="test")
    first, _ = train.reset(seed=3)
    other, _ = test.reset(seed=3)
    if task.body != "reacher":  # its observation contains the target
        assert np.array_equal(first["observation"], other["observation"])
    for _ in range(5):
        goal = test.reset()[0]["desired_goal"]
        if task.body != "reacher":
            assert goal.tolist() == list(task.test_goal.at)


@all_tasks
def test_training_goals_follow_the_table(task):
    env = gymnasium.make(task.id)
    goals = np.array([env.reset(seed=seed)[0]["desired_goal"] for seed in range(50)])
    if hasattr(task.train_goal, "low"):
        assert (goals >= task.train_goal.low).all()
        assert (goals <= task.train_goal.high).all()
        assert (np.ptp(goals, axis=0) > 0.7 * (np.array(task.train_goal.high) - task.train_goal.low)).all()
    elif task.body == "reacher":
        assert np.allclose(goals.mean(0), (0, 0.25, 0), atol=0.06)
        assert np.allclose(goals.std(0), 0.1, atol=0.04)
    else:
        assert (goals == task.train_goal.at).all()


@all_tasks
def test_goal_can_be_given(task):
    env = gymnasium.make(task.id)
    goal = np.linspace(0.1, 0.6, SIZES[task.body][1])
    observation, _ = env.reset(seed=0, options={"goal": goal})
    assert observation["desired_goal"].tolist() == goal.tolist()
    before = env.unwrapped.get_state()["physics"]
    with pytest.raises(ValueError, match="unknown reset option 'gaol'"):
        env.reset(options={"gaol": goal})
    with pytest.raises(ValueError, match="goal has shape"):
        env.reset(options={"goal": np.zeros(9)})
    assert np.array_equal(env.unwrapped.get_state()["physics"], before)


@pytest.mark.parametrize("name", ["higl/AntMazeUStochastic-v0", "higl/Pusher-v0"])
def test_vector_envs_equal_single_ones(name):
    makers = [lambda: gymnasium.make(name)] * 2
    sync, parallel = SyncVectorEnv(makers), AsyncVectorEnv(makers)
    single = gymnasium.make(name)
    try:
        results = []
        for vector in (sync, parallel):
            observation, _ = vector.reset(seed=7)
            rows = [observation["observation"].copy()]
            rng = np.random.default_rng(0)
            for _ in range(10):
                action = rng.uniform(vector.action_space.low, vector.action_space.high)
                observation, reward, _, _, info = vector.step(action)
                rows.append(np.column_stack([observation["observation"], observation["achieved_goal"], reward]))
                assert info["is_success"].shape == (2,)
            results.append(rows)
        assert all(np.array_equal(one, other) for one, other in zip(*results, strict=True))
        assert np.array_equal(results[0][0][1], single.reset(seed=8)[0]["observation"])
    finally:
        sync.close()
        parallel.close()


def test_env_spec_survives_json():
    env = gymnasium.make("higl/AntMazeW-v0", reward="sparse", mode="test")
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.reward_type == "sparse"
    assert again.unwrapped.task == env.unwrapped.task
