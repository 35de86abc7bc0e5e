"""Ready-made callbacks, and what every callback receives."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from support.reach import SMALL, ReachEnv

import higl
from higl.callbacks import EvaluateElsewhere, KeepBest, StopAtSuccess
from higl.errors import SettingsError, TaskError
from higl.run.reading import read_facts

PAGE = Path(__file__).resolve().parents[1] / "docs" / "run-folder.md"


def make() -> ReachEnv:
    return ReachEnv(2, steps=20)


def agent(env=make, **options) -> higl.HIGL:
    small = SMALL | {"evaluation": {"episodes": 2, "every": 20}, "landmarks": SMALL["landmarks"] | {"start": 60}}
    return higl.HIGL(env, verbose=False, **(small | options))


def test_several_callbacks(tmp_path):
    """Stop at a success, keep the best policy, and evaluate elsewhere; also with the name of Stable-Baselines3."""
    easy = EvaluateElsewhere(lambda: ReachEnv(2, steps=20, radius=100.0), episodes=3, every=40)
    best, rows = KeepBest(tmp_path / "new" / "best.safetensors"), []
    learned = agent(lambda: ReachEnv(2, steps=20, radius=100.0))
    learned.learn(
        total_timesteps=1e3,
        callback=[StopAtSuccess(1.0, evaluations=3), best, easy, rows.append],
        log_dir=tmp_path / "run",
    )
    assert learned.steps == 60
    assert read_facts(tmp_path / "run")["status"] == "finished"
    assert (best.step, best.success) == (20, 1.0)  # all are alike: the first is kept
    assert [(step, result.success, result.episodes) for step, result in easy.results] == [(20, 1.0, 3), (60, 1.0, 3)]
    assert "acts only" in repr(higl.HIGL.load(best.path, make))
    assert sum("evaluation/success" in row for row in rows) == 3


def test_the_best_policy_is_that_of_the_best_evaluation(tmp_path):
    saved = []

    class Agent:
        def save(self, path):
            saved.append(path)

    best = KeepBest(tmp_path / "best.safetensors")
    best.begin(Agent())
    for step, success, reward in [(1, 0.2, -20.0), (2, 0.4, -30.0), (3, 0.4, -30.0), (4, 0.4, -10.0), (5, 0.3, 0.0)]:
        best({"step": step, "episode": 1, "low/loss": 0.0})
        best({"step": step, "episode": 1, "evaluation/success": success, "evaluation/return": reward})
    assert (best.step, best.success, len(saved)) == (4, 0.4, 3)


def test_another_environment_needs_the_same_spaces():
    with pytest.raises(TaskError, match="the agent expects"):
        agent().learn(40, callback=EvaluateElsewhere(lambda: ReachEnv(3, steps=20)))


@pytest.mark.parametrize("arguments", [{}, {"steps": 10, "total_timesteps": 10}])
def test_the_number_of_steps_is_given_once(arguments):
    with pytest.raises(SettingsError, match=r"learn: give the number of steps once"):
        agent().learn(**arguments)


def test_a_tracker_needs_a_folder():
    with pytest.raises(SettingsError, match="give log_dir"):
        agent().learn(10, tracker="support.trackers:Listing")
    with pytest.raises(SettingsError, match="unknown tracker 'wandbb'"):
        agent().learn(10, tracker="wandbb", log_dir="never-made")
    assert not Path("never-made").exists()


@pytest.mark.slow
def test_every_key_that_a_callback_receives_is_documented():
    """For each algorithm, by its name or by `part/...`."""
    documented = set(re.findall(r"`([\w/.]+)`", PAGE.read_text()))
    starred = {name.removesuffix("...") for name in documented if name.endswith("...")}
    names: set[str] = set()
    for kind in (higl.HIGL, higl.HRAC, higl.HIRO):
        small = SMALL | {"evaluation": {"episodes": 1, "every": 40}, "landmarks": SMALL["landmarks"] | {"start": 20}}
        kind(make, verbose=False, **small).learn(80, callback=lambda row: names.update(row))
    assert {"step", "episode", "evaluation/success"} <= names
    missing = {name for name in names if name not in documented and not name.startswith(tuple(starred))}
    assert missing == set()


def test_help_shows_the_arguments():
    for kind in (higl.HIGL, higl.HRAC, higl.HIRO):
        text = inspect.getdoc(kind)
        parameters = inspect.signature(kind).parameters
        assert {"low", "high", "adjacency", "novelty", "landmarks", "evaluation", "num_envs"} <= parameters.keys()
        for name in parameters:
            assert f"    {name}: " in text, name
    assert inspect.getdoc(higl.HRAC).startswith("HIGL without landmarks")


def test_repr():
    learned = higl.HRAC("higl/PointMaze-v0", reward="dense", seed=3, verbose=False)
    assert repr(learned) == "<HRAC('point-maze', reward='dense', seed=3): 0 steps learned>"
    assert repr(agent(num_envs=2)) == "<HIGL('ReachEnv', seed=0, num_envs=2): 0 steps learned>"
