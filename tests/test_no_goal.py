"""`benchmarks/no_goal.py`: what it runs, measures and prints."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "no_goal.py"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    yield importlib.import_module("no_goal")
    for name in ("no_goal", "time_to_solved", "peers", "more_worlds", "worlds"):
        sys.modules.pop(name)


def call(*words: object, folder: Path = ROOT) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, words)], capture_output=True, text=True, cwd=folder)


def test_the_share_of_the_far_room(script):
    """Cells of 0.5: in the room behind the door, x from 4.5 to 8 and y from 0 to 4."""
    world, side = script.KeyDoor("test"), np.full(3, 0.5)
    squares = np.array([(x, y, 2) for x in range(17) for y in range(9)])
    far = squares[squares[:, 0] >= 9]
    assert len(far) == 8 * 9
    assert script.far_room(world, squares, side) == script.far_room(world, far, side) == 1.0
    assert script.far_room(world, squares[squares[:, 0] < 9], side) == 0.0
    twice = np.concatenate([far[:18], far[:18] - [0, 0, 2]])
    assert script.far_room(world, twice, side) == 0.25


def test_the_table_of_a_file(tmp_path):
    file = tmp_path / "lines.jsonl"
    line = {"task": "key-door", "seed": 300, "steps": 20_000, "goals": 0.5, "goal_episodes": 100, "test": 1.0}
    lines = [line | {"method": "hrac", "explored": None}]
    lines += [line | {"method": "frontier", "explored": 0.876, "all_after": 15_500}]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    done = call("--table", "--out", file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2:] == [
        "| key-door | frontier | 300 | 20,000 | 88% | 15,500 | 50% | 100% |",
        "| key-door | hrac | 300 | 20,000 | - | - | 50% | 100% |",
    ]


def test_when_all_was_explored(script, tmp_path):
    rows = [{"step": 500}, {"step": 1_000, "explored_share": 0.9}]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert script.all_explored_after(tmp_path) is None
    rows += [{"step": step, "explored_share": 1.0} for step in (1_500, 2_000)]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert script.all_explored_after(tmp_path) == 1_500


def test_each_run_is_trained_without_a_goal_and_measured_once(script, tmp_path, monkeypatch):
    calls = []

    def higl(args, *words):
        calls.append(" ".join(map(str, words)))
        return json.dumps({"success": 0.25 if "grid" in words or "--env" in words else 0.5, "episodes": 112})

    monkeypatch.setattr(script, "higl", higl)
    monkeypatch.setattr(script, "explored", lambda task, folder: 0.75)
    words = ["point-maze", "key-door", "--methods", "uniform", "hrac", "--seeds", "7", "--runs", "runs"]
    monkeypatch.setattr(sys, "argv", ["no_goal.py", *words, "--out", str(tmp_path / "lines.jsonl")])
    script.main(script.read_arguments())
    assert calls[0] == (
        "train point-maze --goal none --landmarks.explore uniform --seed 7 --steps 100000 "
        "--out runs/point-maze-uniform-7 --resume --quiet"
    )
    assert (
        calls[1] == "eval runs/point-maze-uniform-7 --goals grid -o runs/point-maze-uniform-7/goals.png --json --trust"
    )
    assert calls[2] == "eval runs/point-maze-uniform-7 --json --trust"
    assert calls[9].startswith("train worlds:worlds/key-door-v0 --test-env worlds:worlds/key-door-test-v0 --goal none")
    assert "--algo hrac --seed 7 --steps 20000" in calls[9]
    assert "--env worlds:worlds/key-door-v0" in calls[10]
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert [(line["task"], line["method"]) for line in lines] == [
        (task, method) for task in ("point-maze", "key-door") for method in ("uniform", "hrac")
    ]
    expected = {"seed": 7, "explored": 0.75, "goals": 0.25, "goal_episodes": 112, "test": 0.5}
    assert all(line.items() >= expected.items() for line in lines)
    script.main(script.read_arguments())
    assert len(calls) == 12, "what the file holds is not repeated"
