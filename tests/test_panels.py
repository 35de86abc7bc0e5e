"""`benchmarks/panels.py`: which runs it trains, and how."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module("panels")
    for name in ("panels", "recipe"):
        sys.modules.pop(name)


def result(panel, seed: int, last: int | None = None, name: str | None = None):
    config = SimpleNamespace(task=panel.task, reward=panel.reward, seed=seed)
    path = Path("results") / f"{panel.task}-{panel.reward}" / (name or panel.algo) / f"seed-{seed}"
    return SimpleNamespace(config=config, curve=SimpleNamespace(last=last or panel.steps), path=path)


def test_missing_runs_come_seed_by_seed(script):
    first, second = script.PANELS[:2]
    held = [result(first, 7), result(second, 7, last=second.steps // 2), result(first, 8, name="higl-earlier")]
    found = list(script.missing([7, 8], held))
    assert (first, 7) not in found
    assert found[0] == (second, 7), "a shorter run does not count"
    assert (first, 8) in found, "nor does one of an earlier version"
    assert [seed for _, seed in found] == sorted(seed for _, seed in found)


def test_some_panels_have_fewer_seeds(script):
    found = list(script.missing([1, 2, 3], []))
    large = [seed for panel, seed in found if panel.task == "ant-maze-u-large" and panel.algo == "hrac"]
    assert sorted(set(large)) == [1, 2]


def test_a_run_is_trained_tested_and_stored(script, monkeypatch, tmp_path):
    told = []
    monkeypatch.setattr(sys.modules["recipe"], "_higl", lambda *words: told.append(" ".join(map(str, words))) or 0)
    monkeypatch.setattr(script, "PANELS", script.PANELS[1:2])
    assert (
        script.main(["run", "--seeds", "7", "--cores", "3", "--runs", str(tmp_path), "--results", str(tmp_path)]) == 0
    )
    train, add = told
    assert train.startswith("train ant-maze-u --algo hrac --reward sparse --seed 7 --steps 500000 --out ")
    assert "--resume" in train
    assert train.endswith("--cores 3")
    assert add.startswith("results add ")
    assert "--test 100" in add


def test_the_list_of_missing_runs(script, capsys):
    assert script.main(["list", "--seeds", "1234"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ant-maze-u sparse, higl, seed 1234, 300,000 steps"
    assert lines[-1].startswith(f"{len(script.PANELS)} runs are missing, ")
