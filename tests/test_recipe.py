"""`benchmarks/recipe.py`: its targets, what it runs, and its table."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from higl.sweep.aggregate import SeedCurve

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("recipe")
    sys.modules.pop("recipe")


def result(success: list[float], task: str = "reacher", seed: int = 0, at_end: float = 1.0, steps: int = 300_000):
    curve = SeedCurve(np.linspace(steps / len(success), steps, len(success)).astype(int), np.array(success))
    test = {"successes": 99, "successes_at_end": 98, "episodes": 100, "success_at_end": at_end}
    config = SimpleNamespace(task=task, seed=seed, steps=steps)
    return SimpleNamespace(config=config, curve=curve, test=test, path=Path(f"results/{task}-sparse/higl/seed-{seed}"))


def test_level_in_time(script):
    target = script.Target(100, 1.0, by=50)
    assert target.is_met(result([0.0] * 4 + [1.0] * 5 + [0.0], steps=100))
    assert not target.is_met(result([0.0] * 5 + [1.0] * 5, steps=100))
    assert not target.is_met(result([0.8] * 10, steps=100))


def test_a_level_below_100_percent_is_reached_with_the_last_of_five(script):
    curve = result([0.0, 1.0, 1.0, 1.0, 1.0, 0.8], steps=60).curve
    assert script.reached(curve, 0.9) == 60
    assert script.reached(curve, 0.8) == 50


def test_final_success(script):
    target = script.Target(100_000, 0.9, by=100_000, final=0.95)
    assert target.is_met(result([1.0] * 10, steps=100_000))
    assert not target.is_met(result([1.0] * 8 + [0.7, 1.0], steps=100_000))


def test_success_that_is_kept(script):
    target = script.Target(100, 1.0, by=50, kept=0.95)
    assert target.is_met(result([1.0] * 10, steps=100))
    assert not target.is_met(result([1.0] * 5 + [0.6] + [1.0] * 4, steps=100))


def test_success_at_the_last_step(script):
    target = script.Target(100, 1.0, by=100, at_end=0.9)
    assert target.is_met(result([1.0] * 10, at_end=0.9, steps=100))
    assert not target.is_met(result([1.0] * 10, at_end=0.89, steps=100))


def test_only_missing_runs_are_trained_the_shortest_first(script, monkeypatch):
    held = [result([1.0] * 10, "reacher", 1), result([1.0] * 10, "pusher", 2, steps=150_000)]
    monkeypatch.setattr(script, "read_results", lambda results: held)
    found = list(script.missing(["reacher", "pusher"], [1, 2], Path("results")))
    assert found == [("pusher", 1), ("reacher", 2), ("pusher", 2)]  # a run of fewer steps does not count


def test_other_settings_are_no_runs_of_the_recipe(script, monkeypatch):
    other = result([1.0] * 10)
    other.path = Path("results/reacher-sparse/higl-updates1/seed-0")
    monkeypatch.setattr(script, "read_results", lambda results: [other])
    assert script.recipe_results(Path("results")) == []


def test_table(script, monkeypatch, capsys):
    monkeypatch.setattr(
        script, "read_results", lambda results: [result([1.0] * 60, seed=1), result([0.0] * 60, seed=2)]
    )
    assert script.main(["table", "--tasks", "reacher", "--seeds", "1", "2", "3"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    target = "100% by 20k, never below 95% again"
    assert rows == [
        f"| reacher | {target} | 1 | 300k | 5k | 100% | 99, 98 of 100 | met |",
        f"| reacher | {target} | 2 | 300k | not reached | 0% | 99, 98 of 100 | missed |",
        f"| reacher | {target} | 3 | | | | | not run |",
    ]


def test_a_failed_run_is_not_stored(script, monkeypatch):
    calls = []
    monkeypatch.setattr(script, "_higl", lambda *words: calls.append(words[0]) or 2)
    assert script.train("reacher", 0, 0, Path("runs"), Path("results")) == 2
    assert calls == ["train"]
