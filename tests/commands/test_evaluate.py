"""`higl eval`: the summary it prints, the same on any number of cores."""

from __future__ import annotations

import json
import os

import pytest
from support.tiny import higl

from higl.commands.evaluate import text
from higl.run.measure import Evaluation, Outcome


def test_eval_is_the_same_on_any_number_of_cores(whole):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    first = higl("eval", whole, "--episodes", 5, "--seed", 1, "--json", "--trust")
    second = higl("eval", whole, "--episodes", 5, "--seed", 1, "--json", "--cores", 0, "--trust")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert len(json.loads(first.stdout)["outcomes"]) == 5


def test_eval_names_the_reward_of_our_tasks_only():
    summary = Evaluation((Outcome(False, -100.0, 100, None, 30.0),)).summary() | {
        "policy": "p",
        "reward": "sparse",
        "seed": 0,
    }
    assert "point-maze, sparse reward, test goals, seed 0" in text(summary | {"task": "point-maze"})
    assert "Mine-v0, its own reward and goals, seed 0" in text(summary | {"task": "Mine-v0"})


def test_eval_as_text(whole):
    done = higl("eval", whole / "policy.safetensors", "--episodes", 3, "--cores", 0, "--trust")
    assert done.returncode == 0, done.stderr
    for word in ("success", "95% interval", "steps to success", "path length", "return"):
        assert word in done.stdout
