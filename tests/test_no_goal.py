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
    for name in ("no_goal", "time_to_solved", "peers", "worlds"):
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
    lines = [line | {"method": "hrac", "explored": None}, line | {"method": "frontier", "explored": 0.876}]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    done = call("--table", "--out", file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2:] == [
        "| key-door | frontier | 300 | 20,000 | 88% | 50% | 100% |",
        "| key-door | hrac | 300 | 20,000 | - | 50% | 100% |",
    ]


@pytest.mark.slow
def test_a_short_run_of_each_kind_is_measured_once(tmp_path):
    words = ["key-door", "--methods", "random", "hrac", "--seeds", 0, "--steps", 200, "--out", tmp_path / "lines.jsonl"]
    done = call(*words, "--runs", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert [line["method"] for line in lines] == ["random", "hrac"]
    assert all(0.0 <= line[name] <= 1.0 for line in lines for name in ("explored", "goals", "test"))
    assert all(line["goal_episodes"] == 100 for line in lines)
    again = call(*words, "--runs", tmp_path / "nowhere")
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert not (tmp_path / "nowhere").exists()
