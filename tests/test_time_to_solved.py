"""`benchmarks/time_to_solved.py`: what it runs, stores and prints."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
from support import tiny

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "time_to_solved.py"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    yield importlib.import_module("time_to_solved")
    for name in ("time_to_solved", "peers", "more_worlds", "worlds"):
        sys.modules.pop(name)


def call(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, words)], capture_output=True, text=True)


def line(seed: int, step: int | None, seconds: float | None, **changes) -> dict:
    made = {"task": "point-maze", "method": "higl", "settings": [], "seed": seed, "steps": 300_000}
    return (
        made | {"step": step, "seconds": seconds, "resumed": False, "gflops": [90.0, 110.0], "versions": {}} | changes
    )


def test_solved_at_the_last_of_five_evaluations_with_a_mean_of_90_percent(script):
    successes = [1.0, 1.0, 0.4, 1.0, 0.8, 1.0, 1.0, 0.8, 0.9, 0.0]
    rows = [{"step": 5000 * (place + 1), "time": place, "success": each} for place, each in enumerate(successes)]
    assert script.solved_row(rows) == rows[7]
    assert script.solved_row(rows[:7]) is None
    assert script.solved_row([]) is None


def test_medians_count_a_seed_that_is_not_solved_as_infinitely_long(script):
    lines = [line(0, 40_000, 50.0), line(1, None, None), line(2, 60_000, 70.0)]
    (row,) = script.summary(lines)
    assert (row["solved"], row["step"], row["seconds"], row["rate"]) == ("2 of 3", 60_000, 70.0, 100.0)
    assert row["tflop"] == pytest.approx(70.0 * 100 / 1000)
    assert script.summary([*lines, line(3, None, None)])[0]["step"] == float("inf")


def test_table_has_a_row_for_each_task_method_and_settings(tmp_path):
    file = tmp_path / "lines.jsonl"
    lines = [line(0, 40_000, 50.4), line(0, None, None, method="sac"), line(1, 20_000, 41.6)]
    lines += [line(0, 10_000, 20.0, settings=["--precision", "auto"])]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    done = call("--table", "--out", file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2:] == [
        "| point-maze | higl |  | 2 of 2 | 30,000 | 46 | 5 | 100 |",
        "| point-maze | sac |  | 0 of 1 | not reached | not reached | not reached | 100 |",
        "| point-maze | higl | --precision auto | 1 of 1 | 10,000 | 20 | 2 | 100 |",
    ]


def test_runs_are_planned_seed_by_seed_and_told_apart_by_their_settings(script):
    args = script.read_arguments(["--tasks", "lift", "--seeds", "1", "2", "--", "--precision", "auto"])
    plan = script.planned(args)
    assert [(run["method"], run["seed"], run["steps"]) for run in plan] == [("higl", 1, 30_000), ("higl", 2, 30_000)]
    assert plan[0]["settings"] == ["--precision", "auto"]
    plain = script.planned(script.read_arguments(["--tasks", "lift", "--seeds", "1"]))
    assert script.key(plain[0]) != script.key(plan[0])
    assert script.key(json.loads(json.dumps(plan[0]))) == script.key(plan[0])


def test_a_world_is_trained_on_its_goals_and_evaluated_on_the_far_one(script):
    words = script.train_command("lift", 3, 1000, 0, Path("runs/lift"), ["--precision", "auto"])
    place = words.index("train")
    assert words[place + 1 : place + 4] == ["worlds:worlds/lift-v0", "--test-env", "worlds:worlds/lift-test-v0"]
    for name, mode in (("worlds/lift-v0", "train"), ("worlds/lift-test-v0", "test")):
        assert gymnasium.make(name).unwrapped.mode == mode  # ty: ignore[unresolved-attribute]


def test_the_peer_is_evaluated_as_often_as_higl(script):
    assert script.evaluation_plan("point-maze", 300_000) == (5000, 5)
    assert script.evaluation_plan("lift", 30_000) == (1500, 5)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--table", "--out", "missing.jsonl"], "there is no file missing.jsonl"),
        (["--peer"], "--peer: it cannot learn ant-maze-u"),
        (["--peer", "--tasks", "lift", "--peer-python", "nowhere/python"], "run `make peers`, or give --peer-python"),
    ],
)
def test_wrong_use_ends_with_one_line(words, says):
    done = call(*words)
    assert done.returncode == 2
    assert says in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_real_run_is_stored_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    settings = ["--hidden=8", "--evaluation.every=20"]
    words = ["--tasks", tiny.EASY, "--seeds", 0, "--steps", 200, "--runs", tmp_path / "runs", "--out", tmp_path / "out"]
    for _ in range(2):
        done = call(*words, "--", *settings)
        assert done.returncode == 0, done.stderr
    (stored,) = [json.loads(text) for text in (tmp_path / "out").read_text().splitlines()]
    assert (stored["step"], stored["resumed"]) == (100, False)
    assert stored["seconds"] > 1
    assert all(rate > 0 for rate in stored["gflops"])
