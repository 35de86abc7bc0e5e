"""The library: learn, predict, save, load and evaluate; tasks with one, three and six goal dimensions are learned."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from support.reach import SMALL, ReachEnv

import higl
from higl.agent import Agent
from higl.algo.episodes import collect_episode
from higl.algo.policy import PolicyState
from higl.cli import main
from higl.envs.make import make_env
from higl.errors import EpisodeError, PolicyFileError, SettingsError, TaskError, WrongFolderError
from higl.run.policy_file import read_arrays, write_arrays
from higl.settings.config import Config
from higl.settings.derive import derive_settings
from higl.settings.layers import setting_types
from higl.settings.presets import preset


def make() -> ReachEnv:
    return ReachEnv(2, steps=20)


TINY = SMALL | {"evaluation": {"episodes": 2, "every": 100}, "landmarks": SMALL["landmarks"] | {"start": 60}}


def agent(**options) -> higl.HIGL:
    return higl.HIGL(make, verbose=False, **(TINY | options))


@pytest.fixture(scope="module")
def trained() -> higl.HIGL:
    return agent().learn(160)


def actions(learned: Agent, seed: int = 1) -> np.ndarray:
    """Return the actions of one episode, predicted step by step."""
    env = make()
    observation, _ = env.reset(seed=seed)
    state, ended, found = None, False, []
    while not ended:
        action, state = learned.predict(observation, state)
        found.append(action)
        observation, _, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
    return np.stack(found)


@pytest.mark.parametrize("steps", [0, -5, 10.5, float("inf"), float("nan"), "10"])
def test_steps_to_learn_are_a_whole_number(steps):
    with pytest.raises(SettingsError, match=r"learn: steps = .*: expected a whole number, 1 or more"):
        agent().learn(steps)


def test_steps_to_learn_may_be_written_with_an_exponent(tmp_path):
    learned = agent().learn(5e1, log_dir=tmp_path / "run")
    assert learned.config.steps == 50
    assert higl.HIGL.load(tmp_path / "run", make).steps == learned.steps


def test_importing_the_package_does_not_import_jax():
    """So that `higl --help` starts at once."""
    program = "import sys, higl, higl.cli; higl.cli.usage(); sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_package_has_no_other_names():
    with pytest.raises(AttributeError, match="no attribute 'HIGLL'"):
        higl.HIGLL  # noqa: B018


# ---- settings ------------------------------------------------------------------------------------------------------


def test_settings_by_part_or_by_dotted_name():
    by_part = agent(landmarks={"coverage": 3})
    dotted = agent(**{"landmarks.coverage": 3})
    assert by_part.config.landmarks.coverage == dotted.config.landmarks.coverage == 3
    assert dotted.config.landmarks.pool == TINY["landmarks"]["pool"]


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ({"policy": "MlpPolicy"}, "hidden=(256, 256)"),
        ({"policy_kwargs": {"net_arch": [64, 64]}}, "hidden=(256, 256)"),
        ({"gamma": 0.9}, "low={'discount': 0.95}"),
        ({"tau": 0.01}, "0.005 for both levels"),
        ({"gradient_steps": 4}, "low={'updates': 2}"),
        ({"learning_starts": 100}, "high={'random_steps': 50_000}"),
        ({"train_freq": 1}, "low={'updates': 2}"),
        ({"replay_buffer_class": object}, "buffer_size=1_000_000"),
        ({"replay_buffer_kwargs": {}}, "buffer_size=1_000_000"),
        ({"device": "cuda"}, "jax[cuda12]"),
        ({"n_envs": 4}, "use num_envs"),
        ({"tensorboard_log": "logs"}, "log_dir='runs/first'"),
    ],
)
def test_arguments_of_stable_baselines_say_what_to_write_instead(argument, instead):
    (name,) = argument
    with pytest.raises(SettingsError, match=f"^{name} = .*: not a setting of an agent; .*{re.escape(instead)}"):
        agent(**argument)
    group, equals, value = instead.partition("=")
    named = value.partition("{'")[2].partition("'")[0]
    told = f"{group}.{named}" if named else group
    assert not equals or told in [*setting_types(Config), "log_dir"]


@pytest.mark.parametrize("arguments", [("MlpPolicy", make), ("MultiInputPolicy",), (make, 0)])
def test_a_policy_in_front_of_the_environment_says_what_to_write(arguments):
    options = {"env": make} if len(arguments) == 1 else {}
    with pytest.raises(SettingsError, match=r"^HIGL\(.*\): write HIGL\(env\), with all other arguments by name"):
        higl.HIGL(*arguments, **options)


def test_unknown_settings_are_rejected():
    with pytest.raises(SettingsError, match=r"did you mean landmarks\.coverage"):
        agent(landmarks={"covrage": 3})
    with pytest.raises(SettingsError, match=r"subgoal_range: expected 1 or 2 numbers"):
        agent(high={"subgoal_range": (1.0, 2.0, 3.0)})
    with pytest.raises(SettingsError, match=r'preset = "bst": expected one of best, paper'):
        agent(preset="bst")
    with pytest.raises(SettingsError, match=r"low is a group of settings: .* such as low\.actor_learning_rate"):
        agent(low=3)


def test_a_task_of_ours_has_the_recipe_and_derived_settings():
    learned = higl.HRAC("higl/PointMaze-v0", reward="dense", seed=3, verbose=False)
    assert (learned.config.task, learned.config.algo, learned.config.reward) == ("point-maze", "hrac", "dense")
    assert learned.config.seed == 3
    expected, derived = derive_settings(preset("point-maze", "hrac"), (), make_env("point-maze", "dense"))
    assert learned.derived == derived
    assert replace(learned.config, reward="sparse", seed=0) == expected


def test_the_papers_settings_of_a_task_of_ours_are_not_derived():
    learned = higl.HRAC("higl/PointMaze-v0", seed=0, preset="paper", verbose=False)
    assert learned.config == preset("point-maze", "hrac", "paper")
    assert learned.derived == []


def test_the_papers_settings_are_derived_for_another_environment():
    learned = agent(preset="paper").learn(80)
    assert not learned.config.walks_map
    assert learned.config.low.hidden_entries == (2, 3)
    assert {"goal_unit", "adjacency.degree", "high.reward_scale"} <= {value.name for value in learned.derived}
    assert learned.config.landmarks.cutoff == preset("Some-v0", family="paper").landmarks.cutoff


class Flip(gymnasium.ObservationWrapper):
    """Reverses the observation."""

    def observation(self, observation):
        return observation | {"observation": observation["observation"][::-1]}


def test_a_wrapped_task_is_another_task(tmp_path, capsys):
    """It hides other entries, and its id does not make it."""
    small = {"hidden": (8,)}
    bare = higl.HIGL(lambda: gymnasium.make("higl/PointMaze-v0", reward="dense"), verbose=False)
    assert (bare.config.task, bare.config.reward) == ("point-maze", "dense")
    assert bare.config.low.hidden_entries == (0, 1)
    wrapped = higl.HIGL(lambda: Flip(gymnasium.make("higl/PointMaze-v0")), verbose=False, **small)
    assert wrapped.config.task == "higl/PointMaze-v0+Flip"
    assert wrapped.config.low.hidden_entries == (5, 6)
    wrapped.learn(1, log_dir=tmp_path / "run")
    assert main(["eval", str(tmp_path / "run")]) == 2
    assert f"higl.HIGL.load('{tmp_path / 'run'}', env)" in capsys.readouterr().err
    short = gymnasium.make("higl/PointMaze-v0", max_episode_steps=50)
    assert higl.HIGL(short, verbose=False).config.task == "higl/PointMaze-v0+max_episode_steps"


def test_task_and_algorithm_are_not_settings():
    with pytest.raises(SettingsError, match=r"algo = 'hrac': .*higl\.HRAC"):
        agent(algo="hrac")
    with pytest.raises(SettingsError, match=r"task = 'ant-maze-u': .*as the environment"):
        agent(task="ant-maze-u")


def test_settings_of_a_custom_maze_are_derived():
    """A point in it must not explore with an ant's torques."""
    env = gymnasium.make("higl/AntMaze-v0", body="point", map=("S..", "##.", "G.."), cell=4.0)
    learned = higl.HIGL(env, verbose=False)
    assert any(value.name == "goal_unit" for value in learned.derived)
    assert 0 < learned.config.low.exploration <= 1


def test_derived_settings_are_printed(capsys):
    higl.HIRO(make, verbose=2, **SMALL)
    assert "low.hidden_entries = [2, 3]  # these entries equal the achieved goal" in capsys.readouterr().out
    higl.HIRO(make, **SMALL)
    first, *lines = capsys.readouterr().out.splitlines()
    assert "ReachEnv: settings derived from the environment" in first
    assert "verbose=2" in first
    assert lines[2] == "  the low level sees the observation without entries [2, 3]"
    assert lines[3].startswith("No compute_reward("), "a notice is not part of the summary"
    assert len(lines) == 4
    higl.HIRO(make, verbose=0, **SMALL)
    assert capsys.readouterr().out == ""


# ---- predict -------------------------------------------------------------------------------------------------------


def test_predict_acts_as_the_policy_does_in_an_episode(trained):
    env, policy = make(), trained.policy
    episode = collect_episode(env, policy, 1, explore=False)
    np.testing.assert_allclose(actions(trained), policy.environment_action(episode.action), atol=1e-5)
    assert actions(trained).dtype == env.action_space.dtype


def test_predict_takes_batches_and_starts_each_episode_anew(trained):
    env = make()
    first, second = env.reset(seed=1)[0], env.reset(seed=2)[0]
    both = {name: np.stack([first[name], second[name]]) for name in first}
    together, state = trained.predict(both)
    assert isinstance(state, PolicyState)
    assert together.shape == (2, 2)
    np.testing.assert_allclose(together[1], trained.predict(second)[0], atol=1e-5)
    later, state = trained.predict(both, state, episode_start=np.array([False, True]))
    assert state.clock.tolist() == [2, 1]
    np.testing.assert_allclose(later[1], together[1], atol=1e-5)


def test_exploration_changes_the_action(trained):
    observation, _ = make().reset(seed=1)
    exact, _ = trained.predict(observation)
    assert not np.array_equal(exact, trained.predict(observation, deterministic=False)[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observation": np.zeros(3)}, "observation has shape"),
        ({"desired_goal": np.zeros((2, 2))}, "desired_goal has shape"),
        ({"achieved_goal": None}, "must be a dict"),
    ],
)
def test_predict_rejects_observations_that_do_not_fit(trained, change, message):
    observation = make().reset(seed=1)[0] | change
    observation = {name: value for name, value in observation.items() if value is not None}
    with pytest.raises(ValueError, match=message):
        trained.predict(observation)


# ---- learning ------------------------------------------------------------------------------------------------------


def test_the_callback_hears_episodes_and_evaluations_and_can_stop():
    heard = []
    learned = agent()
    learned.learn(1000, callback=lambda metrics: heard.append(metrics) or len(heard) < 3)
    assert [metrics["step"] for metrics in heard] == [20, 40, 60]
    assert learned.steps == 60
    assert "episode/success" in heard[0]


def first_layer(learned: Agent) -> np.ndarray:
    return np.array(learned.policy.low_actor[0].weight)


@pytest.mark.parametrize("log_dir", [None, "run"])
def test_the_callback_sees_what_is_being_learned(tmp_path, log_dir):
    learned, seen = agent(), []
    learned.learn(
        60,
        callback=lambda metrics: seen.append(first_layer(learned)),
        log_dir=log_dir and tmp_path / log_dir,
    )
    assert len({weight.tobytes() for weight in seen[:3]}) == 3
    np.testing.assert_array_equal(seen[-1], first_layer(learned))


def test_acting_before_learning_does_not_change_learning(trained):
    """The first call of `learn` derives settings, also for an agent whose networks are drawn already."""
    asked = agent()
    before = actions(asked)
    asked.learn(160)
    assert not np.array_equal(before, actions(asked))
    np.testing.assert_array_equal(actions(asked), actions(trained))


def test_a_run_that_failed_continues_in_its_folder(tmp_path):
    def stumble(metrics):
        raise RuntimeError("not now")

    learned = agent()
    with pytest.raises(RuntimeError, match="not now"):
        learned.learn(60, callback=stumble, log_dir=tmp_path / "run")
    assert learned.steps == 20
    assert learned.learn(60).steps == 60  # nothing had been saved


def test_a_run_that_failed_trains_on_from_where_it_was_saved(tmp_path):
    learned = agent().learn(40, log_dir=tmp_path / "run")

    def stumble(metrics):
        if metrics["step"] == 80:
            raise RuntimeError("not now")

    with pytest.raises(RuntimeError, match="not now"):
        learned.learn(100, callback=stumble)
    assert learned.steps == 80
    assert learned.learn(40).steps == 80
    np.testing.assert_array_equal(actions(learned), actions(agent().learn(40, log_dir=tmp_path / "b").learn(40)))


def test_an_interrupted_agent_learns_on(trained):
    """Ctrl-C waits for the end of the episode, so that the networks and the counters agree."""
    learned = agent()

    def interrupt(metrics):
        if metrics["step"] == 60:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        learned.learn(160, callback=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    assert learned.steps == 60
    assert (
        int(learned.learner.state.low.actor_optimiser[0].count) == 60 * 2 * learned.config.low.updates
    )  # twice at first
    np.testing.assert_array_equal(actions(learned.learn(100)), actions(trained))


def test_a_callback_may_return_numpy_booleans():
    assert agent().learn(200, callback=lambda metrics: np.float32(metrics["step"]) < 40).steps == 40


class Particular(ReachEnv):
    """Takes only what its action space contains."""

    def step(self, action):
        assert self.action_space.contains(action), action
        return super().step(action)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("num_envs", [1, 2])
def test_actions_are_in_the_action_space(dtype, num_envs):
    def make_particular() -> Particular:
        env = Particular(2, steps=20)
        env.action_space = gymnasium.spaces.Box(np.array([-0.1, -1], dtype), np.array([0.3, 1], dtype), dtype=dtype)
        return env

    learned = higl.HIGL(make_particular, verbose=False, num_envs=num_envs, **TINY, **{"low.exploration": 9.0})
    assert learned.learn(40).steps == 40


class Sick(ReachEnv):
    """Returns NaN as the reward from its hundredth step on."""

    steps_taken = 0

    def step(self, action):
        observation, reward, *rest = super().step(action)
        self.steps_taken += 1
        return observation, reward if self.steps_taken < 100 else np.nan, *rest


def test_evaluations_are_checked_too(tmp_path):
    sick = agent(test_env=Sick(2, steps=20), evaluation={"episodes": 2, "every": 20})
    with pytest.raises(EpisodeError, match=r"NaN or infinity in 'reward' \(evaluation at step 60\)"):
        sick.learn(100, log_dir=tmp_path / "run")
    assert "nan" not in (tmp_path / "run" / "eval.csv").read_text()


def test_learning_on_from_a_full_file_is_learning_on(trained, tmp_path):
    trained.save(tmp_path / "all.safetensors", full=True)
    again, other = (higl.HIGL.load(tmp_path / "all.safetensors", make) for _ in range(2))
    np.testing.assert_array_equal(actions(trained), actions(again))
    for learned in (again, other):
        learned.verbose = False
        learned.learn(40)
    assert again.steps == 200
    np.testing.assert_array_equal(actions(again), actions(other))
    assert not np.array_equal(actions(again), actions(trained))


def test_a_full_file_must_hold_every_setting(trained, tmp_path):
    file = tmp_path / "agent.safetensors"
    trained.save(file, full=True)
    metadata, arrays = read_arrays(file)
    settings = json.loads(metadata["config"])
    write_arrays(file, metadata | {"config": json.dumps(settings | {"grady": 1})}, arrays)
    with pytest.raises(PolicyFileError, match=r"agent.safetensors: unknown setting grady"):
        higl.HIGL.load(file, make)
    del settings["precision"], settings["landmarks"]["pool"]
    write_arrays(file, metadata | {"config": json.dumps(settings)}, arrays)
    with pytest.raises(PolicyFileError, match=r"agent.safetensors: missing settings precision, landmarks.pool"):
        higl.HIGL.load(file, make)


def test_a_policy_file_acts_and_does_not_learn(trained, tmp_path):
    trained.save(tmp_path / "deep" / "policy.safetensors")
    loaded = higl.HIGL.load(tmp_path / "deep" / "policy.safetensors", make)
    np.testing.assert_array_equal(actions(trained), actions(loaded))
    with pytest.raises(SettingsError, match="full=True"):
        loaded.learn(10)
    with pytest.raises(SettingsError, match="loaded from a policy file"):
        loaded.save(tmp_path / "all.safetensors", full=True)
    assert not (tmp_path / "all.safetensors").exists()
    with pytest.raises(SettingsError, match=r"HIGL\.load"):
        higl.HRAC.load(tmp_path / "deep" / "policy.safetensors", make)
    with pytest.raises(ValueError, match=r"give the environment: HIGL\.load\(path, env\)"):
        higl.HIGL.load(tmp_path / "deep" / "policy.safetensors")


def test_a_damaged_file_is_rejected(trained, tmp_path):
    path = tmp_path / "policy.safetensors"
    trained.save(path)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(PolicyFileError, match="damaged"):
        higl.HIGL.load(path, make)
    with pytest.raises(PolicyFileError, match="missing"):
        higl.HIGL.load(tmp_path / "nothing", make)
    with pytest.raises(PolicyFileError, match="is a folder, but not a run folder"):
        higl.HIGL.load(tmp_path, make)


def test_an_environment_with_other_spaces_is_rejected(trained, tmp_path):
    def other() -> ReachEnv:
        return ReachEnv(3, steps=20)

    trained.save(tmp_path / "policy.safetensors")
    words = (
        "expects observations of 4 numbers, goals of 2, .*; this environment has observations of 6 numbers, goals of 3"
    )
    with pytest.raises(TaskError, match=words):
        higl.HIGL.load(tmp_path / "policy.safetensors", other)
    with pytest.raises(TaskError, match=words):
        higl.evaluate(trained, other, 2)
    with pytest.raises(TaskError, match=words):
        agent(test_env=other).learn(20, log_dir=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_that_the_command_line_cannot_make_says_how_to_continue(tmp_path, capsys):
    path = tmp_path / "run"
    agent().learn(100, callback=lambda _: False, log_dir=path)
    assert f"To continue: higl.HIGL.load('{path}', env).learn(...)" in capsys.readouterr().err
    for command in ("resume", "eval", "render"):
        assert main([command, str(path)]) == 2
        said = capsys.readouterr().err
        assert "trained in Python on an environment object" in said
        assert "--env" in said
        assert f"higl.HIGL.load('{path}', env)" in said
    with pytest.raises(WrongFolderError, match=r"already holds a run: HIGL\.load"):
        agent().learn(100, log_dir=path)


def test_a_run_folder_can_be_continued(trained, tmp_path):
    """Training in two parts through a folder equals training in one part in memory."""
    learned = agent().learn(80, log_dir=tmp_path / "run")
    assert {"config.toml", "metrics.jsonl", "eval.csv", "policy.safetensors"} <= {
        place.name for place in Path(tmp_path / "run").iterdir()
    }
    again = higl.HIGL.load(tmp_path / "run", make)
    again.verbose = False
    np.testing.assert_array_equal(actions(learned), actions(again))
    again.learn(80)
    assert again.steps == 160
    np.testing.assert_array_equal(actions(again), actions(trained))
    with pytest.raises(SettingsError, match="cannot continue in"):
        again.learn(20, log_dir=tmp_path / "other")


def test_several_environments_at_once():
    """Episodes keep their numbers, updates their ratio; two runs with one seed are the same."""
    heard: list[dict] = []
    first = agent(num_envs=3).learn(100, callback=lambda metrics: heard.append(dict(metrics)))
    assert [m["episode"] for m in heard if "episode/success" in m] == [1, 2, 3, 4, 5, 6]
    assert first.steps == 120
    assert int(first.learner.state.low.actor_optimiser[0].count) == 120 * 2 * first.config.low.updates  # twice at first
    np.testing.assert_array_equal(actions(first), actions(agent(num_envs=3).learn(100)))
    with pytest.raises(SettingsError, match="function that makes it"):
        higl.HIGL(make(), verbose=False, num_envs=2, **TINY).learn(10)


def test_training_explores_and_evaluation_does_not(monkeypatch):
    explored = []

    def collect(env, policy, seed, *, explore, **others):
        explored.append(explore)
        return collect_episode(env, policy, seed, explore=explore, **others)

    for module in ("loop", "measure"):
        monkeypatch.setattr(f"higl.run.{module}.collect_episode", collect)
    high = {"random_steps": 40}
    agent(high=high, evaluation={"every": 1_000, "episodes": 1}).learn(100)
    # Five training episodes of 20 steps, of which two have random subgoals, then the evaluation at the end.
    assert explored == [*[True] * 5, False]


def test_a_batched_episode_is_the_single_one(trained):
    from higl.algo.episodes import collect_episodes
    from higl.envs.adapt import make_vector

    env = make_vector([make, lambda: ReachEnv(2, steps=13)])
    together = collect_episodes(env, trained.policy, [4, 5])
    assert [len(episode) for episode in together] == [20, 13]
    for seed, steps, batched in zip((4, 5), (20, 13), together, strict=True):
        alone = collect_episode(ReachEnv(2, steps=steps), trained.policy, seed, explore=True)
        for name in ("observation", "achieved", "desired", "subgoal", "action", "reward", "success"):
            np.testing.assert_allclose(getattr(batched, name), getattr(alone, name), atol=1e-4)
        assert batched.truncated == alone.truncated


# ---- evaluate ------------------------------------------------------------------------------------------------------


def test_evaluate_is_the_same_for_a_seed(trained):
    first = higl.evaluate(trained, make(), episodes=3)
    assert first == higl.evaluate(trained, episodes=3)
    assert first != higl.evaluate(trained, episodes=3, seed=1)
    assert first.episodes == 3
    assert "of 3 episodes" in str(first)
    with pytest.raises(ValueError, match="the agent expects"):
        higl.evaluate(trained, ReachEnv(3))
    with pytest.raises(ValueError, match="expected 1 or more"):
        higl.evaluate(trained, episodes=0)


@pytest.mark.slow
@pytest.mark.parametrize(("goals", "radius", "steps"), [(1, 0.5, 2_000), (3, 1.0, 8_000), (6, 1.5, 12_000)])
def test_tasks_of_any_goal_dimension_are_learned(goals, radius, steps):
    learned = higl.HIGL(lambda: ReachEnv(goals, radius=radius), verbose=False, **SMALL)
    before = higl.evaluate(learned, episodes=20)
    learned.learn(steps)
    after = higl.evaluate(learned, episodes=20)
    assert after.success >= 0.8
    assert after.mean_return > before.mean_return + 5


def test_a_vector_environment_sets_the_number_of_environments():
    learned = agent().learn(80).steps, higl.HIGL([make, make], verbose=False, **TINY).learn(80)
    assert learned[1].config.num_envs == 2
    assert learned[1].steps == learned[0] == 80


def test_an_environment_without_any_goal(capsys):
    """It can be explored, and the agent then takes a goal; training for its goals makes no sense."""
    env = higl.wrap_goal(gymnasium.make("Pendulum-v1"), lambda observation: observation[:2], radius=0.3)
    with pytest.raises(SettingsError, match=r'has no goals .* goal = "none"'):
        higl.HIGL(env, verbose=0)
    agent = higl.HIGL(env, goal="none", verbose=0, hidden=(8, 8), batch_size=8)
    assert agent.config.walks_map
    agent.learn(600)
    assert agent.policy.chart is not None
    observation, _ = env.reset(seed=0, options={"goal": [1.0, 0.0]})
    action, _ = agent.predict(observation)
    assert env.action_space.contains(action)
    assert "zero-shot" not in capsys.readouterr().out, "quiet"
