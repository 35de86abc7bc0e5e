"""Whole runs of the tiny task in this process: interrupted ones end like the uninterrupted one, bit for bit."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from support import tiny
from support.arrays import differing

from higl.algo import products
from higl.algo.hindsight import COPIES
from higl.algo.learner import Learner
from higl.envs.source import Source
from higl.errors import CheckpointError, SettingsError, TaskError
from higl.run import checkpoint
from higl.run.checkpoint import Checkpoints
from higl.run.observers import Row
from higl.run.policy_file import load_policy, read_arrays
from higl.run.progress import Silent
from higl.run.reading import SnapshotFile, read_config, read_facts, run_status
from higl.run.snapshot_store import SnapshotStore
from higl.run.stopping import StopAtSuccess
from higl.run.training import open_training
from higl.settings.config import Config
from higl.settings.layers import apply


class Killed(BaseException):
    """Stands for kill -9: nothing in the program handles it."""


class Watcher(Silent):
    """Collects warnings, and does something at an episode."""

    def __init__(self, at_step: int | None = None, act: Callable[[], None] | None = None):
        self.warnings: list[str] = []
        self._at_step, self._act = at_step, act

    def episode(self, row: Row) -> None:
        if row["step"] == self._at_step and self._act is not None:
            self._act()

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def settings(**changes) -> Config:
    return apply(Config(), tiny.SETTINGS | {name.replace("__", "."): value for name, value in changes.items()})


def train(
    path: Path, config: Config | None = None, watcher: Watcher | None = None, minutes: float = 0, **options
) -> int:
    """Start a run with a configuration, or continue one without; the options are those of `open_training`."""
    watcher = watcher or Watcher()
    new, config = config is not None, config or read_config(path)
    source = Source(config.task, hide_goal=config.explores_freely)
    env = source.training_env(num_envs=config.num_envs, observe_achieved=False, processes=False)
    test_env = source.test_env(observe_achieved=False)
    options |= {"progress": watcher, "checkpoint_minutes": minutes}
    with open_training(path, config, env, test_env, new=new, **options) as training:
        return training.run()


def final(path: Path) -> dict[str, np.ndarray]:
    loaded = Checkpoints(path / "checkpoints").load(pytest.fail)
    assert loaded is not None
    return loaded[0]


def assert_same_run(first: Path, second: Path) -> None:
    assert tiny.lines(first) == tiny.lines(second)
    assert tiny.evaluations(first) == tiny.evaluations(second)
    assert differing(final(first), final(second)) == []
    policies = [read_arrays(path / "policy.safetensors") for path in (first, second)]
    assert policies[0][0] == policies[1][0]
    assert differing(policies[0][1], policies[1][1]) == []
    names = [[place.name for place in SnapshotStore(path / "snapshots").paths()] for path in (first, second)]
    assert names[0] == names[1]
    for name in names[0]:
        one, other = (SnapshotFile(0, path / "snapshots" / name).load() for path in (first, second))
        assert differing(one, other) == []


def kill() -> None:
    raise Killed


def interrupt(path: Path, config: Config | None, at_step: int, minutes: float = 0, **options) -> None:
    with pytest.raises(Killed):
        train(path, config, Watcher(at_step, kill), minutes, **options)


def test_a_run_that_reaches_its_success_is_finished(tmp_path):
    """Also if it is interrupted in between: the evaluations before count."""
    config = settings(task=tiny.EASY, evaluation__every=20, evaluation__episodes=1)
    stop = StopAtSuccess(0.9, evaluations=4)
    assert train(tmp_path / "whole", config, callbacks=[stop]) == 0
    with pytest.raises(Killed):
        train(tmp_path / "broken", config, Watcher(60, kill), callbacks=[StopAtSuccess(0.9, evaluations=4)])
    assert len(tiny.evaluations(tmp_path / "broken")) == 3
    assert read_facts(tmp_path / "broken")["stop_at"] == 0.9
    assert train(tmp_path / "broken", callbacks=[StopAtSuccess(0.9, evaluations=4)]) == 0
    for name in ("whole", "broken"):
        facts = read_facts(tmp_path / name)
        assert (facts["status"], facts["saved_step"], facts["reached"]) == ("finished", 80, True)
        assert run_status(tmp_path / name, facts, config.steps) == "finished"
    assert_same_run(tmp_path / "whole", tmp_path / "broken")
    assert train(tmp_path / "broken") == 0  # without the stop it trains on
    assert read_facts(tmp_path / "broken")["saved_step"] == 200


def test_impossible_values_are_reported_in_the_log_and_on_the_console(tmp_path):
    config, watcher = settings(steps=40), Watcher()
    source = Source(config.task)
    env = source.training_env(num_envs=1, observe_achieved=False, processes=False)
    test_env = source.test_env(observe_achieved=False)
    with open_training(tmp_path / "run", config, env, test_env, new=True, progress=watcher) as training:
        state = training.learner.state
        critics = state.high.networks.critics
        far = tuple((*critic[:-1], critic[-1]._replace(bias=critic[-1].bias - 1e4)) for critic in critics)
        high = state.high._replace(networks=state.high.networks._replace(critics=far))
        training.learner.state = state._replace(high=high)
        training.run()
    assert [text for text in watcher.warnings if "of the high level's values are impossible: rewards allow -" in text]
    assert not [text for text in watcher.warnings if "low level" in text]
    assert "of the high level's values are impossible" in (tmp_path / "run" / "log.txt").read_text()


WALKED = {
    "preset": "best",
    "landmarks.graph": "walked",
    "landmarks.coverage": 12,
    "low.normalise": True,
    "goal_unit": (0.4,),
    "high.subgoal_range": (4.0,),
}
ALGORITHMS = {
    "higl": {},
    "hrac": {"algo": "hrac", "preset": "best"},
    "hiro": {"algo": "hiro", "high.relabel": True},
    "higl-two-envs": {"num_envs": 2, "novelty.discard": "adjacency", "landmarks.pseudo": "automatic"},
    "walked": WALKED,
    "walked-two-envs": WALKED | {"num_envs": 2},
    "no-goal": WALKED | {"goal": "none"},
    "no-goal-hrac": {"goal": "none", "algo": "hrac", "task": tiny.REWARDING, "high.relabel": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_exact_resume(tmp_path, name):
    config = settings(**ALGORITHMS[name])
    assert train(tmp_path / "whole", config) == 0
    interrupt(tmp_path / "broken", config, 80)
    interrupt(tmp_path / "broken", None, 160)
    assert train(tmp_path / "broken") == 0
    assert_same_run(tmp_path / "whole", tmp_path / "broken")
    steps = [line["step"] for line in tiny.lines(tmp_path / "whole")]
    assert steps == list(range(20, 201, 20))
    assert [row[0] for row in tiny.evaluations(tmp_path / "whole")[1:]] == (
        ["60", "120", "180", "200"] if config.num_envs == 1 else ["80", "120", "200"]
    )


@pytest.mark.slow
def test_a_run_keeps_the_precision_of_its_first_start(tmp_path, monkeypatch):
    """A run that starts in bf16 and continues where `auto` is fp32 ends like one that was bf16 all along."""
    wide = {"hidden": (20, 20)}
    assert train(tmp_path / "whole", settings(precision="bf16", **wide)) == 0
    monkeypatch.setattr(products, "has_fast_bfloat16", lambda: True)
    interrupt(tmp_path / "broken", settings(precision="auto", **wide), 80)
    monkeypatch.setattr(products, "has_fast_bfloat16", lambda: False)
    assert train(tmp_path / "broken") == 0
    assert read_facts(tmp_path / "broken")["precision"] == "bf16"
    assert read_config(tmp_path / "broken").precision == "auto"
    assert tiny.lines(tmp_path / "whole") == tiny.lines(tmp_path / "broken")
    assert differing(final(tmp_path / "whole"), final(tmp_path / "broken")) == []
    assert train(tmp_path / "single", settings(precision="auto", **wide)) == 0
    assert read_facts(tmp_path / "single")["precision"] == "fp32"
    assert tiny.lines(tmp_path / "single") != tiny.lines(tmp_path / "whole")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "whole"
    assert train(path, settings()) == 0
    return path


def test_the_finished_run(whole):
    facts = read_facts(whole)
    assert facts["status"] == "finished"
    assert facts["saved_step"] == 200
    assert facts["overhead"].keys() == {"checkpoints", "logs"}
    policy, config = load_policy(whole / "policy.safetensors")
    assert config == settings()
    assert policy.period == 5
    snapshot = SnapshotFile(200, whole / "snapshots" / "000000000200.npz").load()
    assert snapshot["eval_paths"].shape == (2, tiny.LENGTH + 1, 2)
    assert snapshot["eval_success"].shape == (2,)


def test_killed_between_the_last_checkpoint_and_noting_it(tmp_path, whole):
    """Its facts are out of date: continued, it has nothing to do but update them."""
    shutil.copytree(whole, tmp_path / "run")
    facts = read_facts(whole) | {"status": "running", "saved_step": 180}
    (tmp_path / "run" / "run.json").write_text(json.dumps(facts))
    assert train(tmp_path / "run") == 0
    facts = read_facts(tmp_path / "run")
    assert (facts["status"], facts["saved_step"]) == ("finished", 200)


def test_killed_before_the_first_checkpoint(tmp_path, whole):
    interrupt(tmp_path / "run", settings(), 60, minutes=60)
    assert train(tmp_path / "run", minutes=60) == 0
    assert_same_run(whole, tmp_path / "run")


def test_a_damaged_checkpoint_causes_a_warning_and_the_previous_one_is_used(tmp_path, whole):
    interrupt(tmp_path / "run", settings(), 100)
    newest = max((tmp_path / "run" / "checkpoints").iterdir())
    assert newest.name == "000000000080"
    (newest / "state.safetensors").write_bytes(b"rubbish")
    watcher = Watcher()
    assert train(tmp_path / "run", watcher=watcher) == 0
    assert any("checkpoint 80" in text and "bytes where" in text for text in watcher.warnings)
    assert_same_run(whole, tmp_path / "run")


def test_no_checkpoint_is_usable(tmp_path):
    interrupt(tmp_path / "run", settings(), 100)
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    for place in (tmp_path / "run" / "checkpoints").iterdir():
        (place / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="no usable checkpoint"):
        train(tmp_path / "run")
    for place in (tmp_path / "run" / "checkpoints").iterdir():
        (place / "state.safetensors").unlink()
        place.rmdir()
    with pytest.raises(CheckpointError, match=r"is empty, although the run was saved at step 80"):
        train(tmp_path / "run")
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_full_disk_while_saving(tmp_path, whole, monkeypatch):
    write, full = checkpoint.write_durably, False

    def sometimes_full(path, content):
        if full:
            Path(path).write_bytes(content[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, content)

    def fill_up() -> None:
        nonlocal full
        full = True

    monkeypatch.setattr(checkpoint, "write_durably", sometimes_full)
    watcher = Watcher(100, fill_up)
    assert train(tmp_path / "run", settings(), watcher) == 1
    expected = "no checkpoint at step 100: No space left on device; the one at step 80 is intact, and the run continues"
    assert expected in watcher.warnings
    assert "free some disk space, then: higl resume" in watcher.warnings[-1]
    assert read_facts(tmp_path / "run")["status"] == "stopped"
    assert tiny.lines(tmp_path / "run") == tiny.lines(whole)
    monkeypatch.undo()
    assert train(tmp_path / "run") == 0
    assert_same_run(whole, tmp_path / "run")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (tiny.RAISES, "the environment raised ArithmeticError: the motor came off (episode 7, seed "),
        (tiny.NAN, "the environment returned NaN or infinity in 'observation' (episode 7, seed "),
    ],
)
def test_failing_environment(tmp_path, task, message):
    watcher = Watcher()
    assert train(tmp_path / "run", settings(task=task), watcher) == 1
    assert watcher.warnings[-1].startswith(f"failed at step 120: {message}")
    assert "the last checkpoint is step 120" in watcher.warnings[-1]
    facts = read_facts(tmp_path / "run")
    assert facts["status"] == "failed"
    assert message in facts["message"]
    assert final(tmp_path / "run")
    if task == tiny.RAISES:
        assert "ArithmeticError: the motor came off" in (tmp_path / "run" / "log.txt").read_text()


def test_nan_while_learning(tmp_path, monkeypatch):
    learn = Learner.learn

    def poisoned(self, episode, rewards=None):
        if self.steps == 100:
            state = self.state
            networks = state.low.networks
            bad = jax.tree.map(lambda x: x * np.nan, networks.critics)
            self.state = state._replace(low=state.low._replace(networks=networks._replace(critics=bad)))
        return learn(self, episode)

    monkeypatch.setattr(Learner, "learn", poisoned)
    watcher = Watcher()
    assert train(tmp_path / "run", settings(), watcher) == 1
    assert "NaN or infinity in the stage 'low' after 120 steps (episode 6)" in watcher.warnings[-1]
    assert "the last checkpoint is step 100" in watcher.warnings[-1]
    assert read_facts(tmp_path / "run")["status"] == "failed"
    monkeypatch.undo()
    assert train(tmp_path / "run") == 0


def test_other_versions_cause_a_warning(tmp_path, monkeypatch):
    interrupt(tmp_path / "run", settings(), 100)
    facts = tmp_path / "run" / "run.json"
    facts.write_text(facts.read_text().replace('"jaxlib": "', '"jaxlib": "0.'))
    watcher = Watcher()
    assert train(tmp_path / "run", watcher=watcher) == 0
    assert "this start differs from the last one, so results may differ: jaxlib 0." in watcher.warnings[0]


def test_a_failing_snapshot_does_not_end_the_run(tmp_path, monkeypatch):
    def broken(*args):
        raise ZeroDivisionError("no picture")

    monkeypatch.setattr(SnapshotStore, "take", broken)
    watcher = Watcher()
    assert train(tmp_path / "run", settings(steps=60), watcher) == 0
    assert watcher.warnings == ["no snapshot at step 60: ZeroDivisionError: no picture"]


class Garbage(tiny.RewardingEnv):
    """The tiny task with other goals and rewards at each step; the body moves as ever."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        observation["desired_goal"] = 1e3 * np.sin(np.arange(2.0) + self._steps)
        return observation, -7.0 * self._steps, terminated, truncated, info | {"is_success": True}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [WALKED, {"algo": "hrac"}, {"algo": "hiro"}], ids=["higl", "hrac", "hiro"])
def test_without_a_goal_neither_goals_nor_rewards_matter(tmp_path, changes):
    """Every number of training is the same, whatever the environment wants."""
    config = settings(**changes, goal="none")
    for name, env in (("whole", tiny.RewardingEnv()), ("garbage", Garbage())):
        training = Source(env, hide_goal=True).training_env(num_envs=1, observe_achieved=False, processes=False)
        with open_training(tmp_path / name, config, training, tiny.RewardingEnv(), new=True, progress=Watcher()) as run:
            assert run.run() == 0
    assert_same_run(tmp_path / "whole", tmp_path / "garbage")
    assert not {"episode/success", "episode/return"} & set(tiny.lines(tmp_path / "whole")[0])


@pytest.mark.slow
@pytest.mark.parametrize("num_envs", [1, 2])
def test_random_goals_are_learned_from_as_they_are_and_in_hindsight(tmp_path, num_envs):
    """The buffer of the high level holds each segment once with the goal of its episode, and with later points."""
    config = settings(goal="none", algo="hrac", task=tiny.REWARDING, num_envs=num_envs, steps=40, buffer_size=500)
    assert train(tmp_path / "run", config) == 0
    state = final(tmp_path / "run")
    size = int(state["high_buffer.size"])
    assert size == 40 // config.high.period * (1 + COPIES)
    desired, reward = (state[f"high_buffer.rows.{name}"][:size] for name in ("desired", "reward"))
    assert len(np.unique(desired, axis=0)) > 10
    assert reward.min() == -config.high.period
    assert reward.max() > -config.high.period


@pytest.mark.slow
def test_a_baseline_with_goals_keeps_its_rewards_and_learns_in_hindsight_too(tmp_path):
    """One segment in five has the goal and the reward of its episode; the others have later points."""
    given = settings(algo="hrac", preset="best", task=tiny.REWARDING, steps=40, buffer_size=500)
    assert train(tmp_path / "run", given) == 0
    state = final(tmp_path / "run")
    size, copies = int(state["high_buffer.size"]), 40 // given.high.period * COPIES
    assert size == copies + 40 // given.high.period
    desired = state["high_buffer.rows.desired"][:size]
    assert len(np.unique(desired, axis=0)) > 10, "points that were reached"
    paper = settings(algo="hrac", preset="paper", task=tiny.REWARDING, steps=40, buffer_size=500)
    assert train(tmp_path / "paper", paper) == 0
    assert int(final(tmp_path / "paper")["high_buffer.size"]) == 40 // paper.high.period


def test_goals_that_cannot_be_rewarded(tmp_path):
    with pytest.raises(TaskError, match=r"it has no compute_reward\(achieved_goal, desired_goal, info\)"):
        train(tmp_path / "run", settings(goal="none", algo="hrac"))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_random_subgoals_as_a_baseline(tmp_path):
    """They never end, and the map that is drawn all the same leads in tests."""
    assert train(tmp_path / "run", settings(**WALKED, goal="none", landmarks__explore="random")) == 0
    policy, config = load_policy(tmp_path / "run" / "policy.safetensors")
    assert (config.goal, config.landmarks.explore) == ("none", "random")
    assert policy.chart is not None
    assert len(policy.chart.points) > 1
    assert not policy.wanders, "a policy that was trained without a goal takes any"


@pytest.mark.slow
def test_a_run_from_what_another_has_learned(tmp_path):
    """It starts with every array of the other, counts its own steps, and resumes exactly without the other."""
    free = settings(**WALKED, goal="none", steps=100, high__random_steps=300)
    assert train(tmp_path / "free", free) == 0
    config = replace(free, goal="given", steps=200, seed=1)
    assert train(tmp_path / "whole", config, start_from=tmp_path / "free") == 0
    interrupt(tmp_path / "broken", config, 20, minutes=1, start_from=tmp_path / "free")
    loaded = Checkpoints(tmp_path / "broken" / "checkpoints").load(pytest.fail)
    assert loaded is not None
    assert differing(loaded[0], final(tmp_path / "free")) == []
    assert (loaded[1].steps, loaded[1].before) == (0, 100)
    shutil.rmtree(tmp_path / "free")
    assert train(tmp_path / "broken") == 0
    assert_same_run(tmp_path / "whole", tmp_path / "broken")
    assert [row[0] for row in tiny.evaluations(tmp_path / "whole")[1:]] == ["0", "60", "120", "180", "200"]
    assert Path(read_facts(tmp_path / "whole")["from"]) == tmp_path / "free"
    assert read_facts(tmp_path / "broken")["before"] == {"steps": 100, "goal": "none"}


@pytest.mark.slow
def test_a_run_that_cannot_start_from_another(tmp_path):
    config = settings(**WALKED, steps=40)
    assert train(tmp_path / "free", config) == 0
    with pytest.raises(SettingsError, match=r"must keep .*high.period = 5 -> 4"):
        train(tmp_path / "other", apply(config, {"high.period": 4}), start_from=tmp_path / "free")
    shutil.rmtree(tmp_path / "free" / "checkpoints")
    with pytest.raises(SettingsError, match="has no checkpoint to start from"):
        train(tmp_path / "other", config, start_from=tmp_path / "free")
    assert not (tmp_path / "other").exists()
