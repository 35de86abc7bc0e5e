"""`higl eval`: the summary it prints, the same on any number of cores."""

from __future__ import annotations

import json
import os
import pty

import pytest
from support.commands import tell
from support.tiny import higl, start

from higl.commands.evaluate import text
from higl.run.measure import Evaluation, Outcome


def test_eval_is_the_same_on_any_number_of_cores(whole):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    first = higl("eval", whole, "--episodes", 5, "--seed", 1, "--json", "--outcomes", "--trust")
    second = higl("eval", whole, "--episodes", 5, "--seed", 1, "--json", "--outcomes", "--cores", 0, "--trust")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert len(json.loads(first.stdout)["outcomes"]) == 5


def test_eval_names_the_reward_of_our_tasks_only_and_another_test_environment():
    summary = Evaluation((Outcome(False, False, -100.0, 100, None, 30.0),)).summary() | {
        "policy": "p",
        "reward": "sparse",
        "seed": 0,
    }
    for task, test_env, expected in (
        ("point-maze", "point-maze", "point-maze, sparse reward, test goals, seed 0"),
        ("Mine-v0", "Mine-v0", "Mine-v0, its own reward and goals, seed 0"),
        ("point-maze", "Mine-v0", "point-maze, tested in Mine-v0, its own reward and goals, seed 0"),
    ):
        assert expected in text(summary | {"task": task, "test_env": test_env})


def test_eval_as_text(whole):
    done = higl("eval", whole / "policy.safetensors", "--episodes", 3, "--cores", 0, "--trust")
    assert done.returncode == 0, done.stderr
    for word in ("success", "at the last step", "95% interval", "steps to success", "path length", "return"):
        assert word in done.stdout


def test_eval_shows_both_successes():
    """As in FetchReach: the hand passes the goal, and does not stay there."""
    passing = Outcome(True, False, -40.0, 50, 9, 1.0)
    staying = Outcome(True, True, -10.0, 50, 9, 1.0)
    summary = Evaluation((passing, passing, passing, staying)).summary()
    facts = {"policy": "p", "reward": "sparse", "seed": 0, "task": "Reach-v0", "test_env": "Reach-v0"}
    lines = text(summary | facts).splitlines()
    assert lines[1].split()[:2] == ["success", "100.0%"]
    assert lines[2].split()[:5] == ["at", "the", "last", "step", "25.0%"]


def test_json_lists_the_episodes_only_if_asked(capsys):
    code, out, err = tell(capsys, "eval", "point-maze", "--pretrained", "--episodes", 1, "--json")
    assert (code, err) == (0, "")
    assert {"success", "success_at_end"} <= set(json.loads(out))
    assert "outcomes" not in json.loads(out)
    _, out, _ = tell(capsys, "eval", "point-maze", "--pretrained", "--episodes", 1, "--json", "--outcomes")
    assert len(json.loads(out)["outcomes"]) == 1


def test_progress_on_a_terminal(whole):
    leader, follower = pty.openpty()
    words = ["eval", whole, "--episodes", 2, "--trust", "--cores", 0]
    process = start(*words, stderr=follower)
    os.close(follower)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "success" in out
    shown = os.read(leader, 100_000).decode()
    os.close(leader)
    assert "episodes" in shown
    assert "/2" in shown


@pytest.mark.parametrize("command", ["eval", "render"])
def test_seeds_out_of_range(capsys, command):
    code, _, err = tell(capsys, command, "point-maze", "--pretrained", "--seed", 2**32)
    assert code == 2
    assert err == f"higl {command}: --seed 4294967296: expected a number from 0 to 4,294,967,295\n"


def test_a_grid_of_goals(capsys, tmp_path):
    out = tmp_path / "map.png"
    code, told, err = tell(capsys, "eval", "point-maze", "--pretrained", "--goals", "grid", "-o", out, "--cores", 0)
    assert (code, err) == (0, "")
    assert "a grid of 112 goals, seed 0" in told
    rows = (tmp_path / "map.csv").read_text().splitlines()
    assert len(rows) == 113
    reached = sum(float(row.split(",")[3]) > 0 for row in rows[1:])
    assert f"goals reached     {reached / 112:.1%} of 112 goals" in told
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_grid_needs_goals_that_can_be_chosen(whole, tmp_path):
    """The tiny task has no `compute_reward`."""
    done = higl("eval", whole, "--goals", "grid", "--trust", "-o", tmp_path / "map.png")
    assert (done.returncode, done.stdout) == (2, "")
    assert "its goals cannot be chosen" in done.stderr
    done = higl("eval", whole, "--goals", "grid", "--trust", "-o", tmp_path / "map.txt")
    assert done.returncode == 2
