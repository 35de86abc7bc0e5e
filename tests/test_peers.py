"""`benchmarks/peers.py`: what the comparison measures, stores and prints."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "peers.py"


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    yield importlib.import_module("peers")
    for name in ("peers", "more_worlds", "worlds"):
        sys.modules.pop(name)


def call(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), *map(str, words)], capture_output=True, text=True)


def drive(observation, state):
    """Drive right, in every second environment left; the state counts the steps."""
    actions = np.tile([1.0, 0.0], (len(observation["observation"]), 1))
    actions[1::2] *= -1
    return actions, (0 if state is None else state) + 1


def test_success_at_any_step_counts(peers):
    envs = [peers.WORLDS["key-door"]("train") for _ in range(4)]
    for env in envs:
        env._draw_goal = lambda: np.array([3.0, 0.8, 0.0])  # passed on the way to the door
    assert peers.success(envs, drive) == 0.5
    assert all(env.compute_reward(env._achieved(), env.desired, {}) == -1 for env in envs)  # at the end
    assert [env.time for env in envs] == [env.steps for env in envs]


def test_all_methods_meet_the_same_episodes(peers):
    seen = []

    def note(observation, state):
        if state is None:
            seen.append(observation["desired_goal"])
        return drive(observation, state)

    for _ in range(2):
        peers.success([peers.WORLDS["torque-arm"]("train") for _ in range(5)], note)
    assert np.array_equal(*seen)
    assert len(np.unique(seen[0], axis=0)) == 5


def test_curve_has_ten_evaluations_at_equal_distances(peers):
    curve = peers.Curve("torque-arm", 1000)
    for step in range(0, 1100, 30):  # episodes of 30 steps: measured at the first end of one after each tenth
        curve.measure_if_due(step, drive)
    assert [row["step"] for row in curve.rows] == [120, 210, 300, 420, 510, 600, 720, 810, 900, 1020]


def test_each_world_is_trained_over_its_own_steps(peers, monkeypatch, tmp_path):
    def run_apart(args, method, world, seed, steps):
        rows = [{"step": steps, "far": 1.0, "train": 1.0}]
        run = {"world": world, "method": method, "seed": seed, "steps": steps, "evaluations": rows}
        return run | {"seconds": 1.0, "cpu_seconds": 1.0}

    monkeypatch.setattr(peers, "run_apart", run_apart)
    words = ["--worlds", "lift-fast", "key-door", "key-dead-end", "arm3", "arm3-torque", "--methods", "higl"]
    monkeypatch.setattr(sys, "argv", ["peers.py", *words, "--seeds", "1", "--out", str(tmp_path / "peers.jsonl")])
    peers.main(peers.read_arguments())
    steps = {world: steps for world, _, _, steps in peers.read_runs(tmp_path / "peers.jsonl")}
    told = {"lift-fast": 30_000, "key-door": 20_000, "key-dead-end": 40_000, "arm3": 20_000, "arm3-torque": 25_000}
    assert steps == told


def line(world: str, method: str, seed: int, far: float) -> str:
    run = {"world": world, "method": method, "seed": seed, "steps": 20_000, "seconds": 61.4, "cpu_seconds": 40.2}
    return json.dumps(run | {"evaluations": [{"step": step, "far": far, "train": 0.5} for step in (2000, 4000)]})


def test_table_of_a_file(tmp_path):
    file = tmp_path / "peers.jsonl"
    runs = [("lift", "sac", 100, 0.25), ("shelves", "sac", 101, 0.0), ("shelves", "higl", 100, 1.0)]
    file.write_text("\n".join(line(*run) for run in runs) + "\n")
    done = call("--table", file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2:] == [
        "| shelves | higl | 100 | 20,000 | 100 100 | 50 50 | 61 | 40 |",
        "| shelves | sac | 101 | 20,000 | 0 0 | 50 50 | 61 | 40 |",
        "| lift | sac | 100 | 20,000 | 25 25 | 50 50 | 61 | 40 |",
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--table", "missing.jsonl"], "there is no file missing.jsonl"),
        (["--methods", "sac", "--peer-python", "nowhere/python"], "run `make peers`, or give --peer-python"),
    ],
)
def test_wrong_use_ends_with_one_line(words, says):
    done = call(*words)
    assert done.returncode == 2
    assert says in done.stderr.splitlines()[-1]
