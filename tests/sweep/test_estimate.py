"""Estimated hours: what is measured, what is measured once, and what is left."""

from types import SimpleNamespace

import pytest
from support.sweeps import OWN_CATALOGUE

from higl.run import bench
from higl.settings.config import Config
from higl.settings.layers import apply, setting_types
from higl.settings.presets import preset
from higl.sweep.catalogue import read_catalogue
from higl.sweep.estimate import COSTLESS, StepTimes, cost_key, hours_left, measured, unmeasured, wall_hours
from higl.sweep.plan import RunStatus, make_plan


def test_step_times_are_measured_once_for_each_kind_of_run(tmp_path, monkeypatch):
    measured_configs = []

    def measure(config) -> float:
        measured_configs.append(config)
        return 36.0

    base = preset("ant-maze-u")
    kinds = [base, apply(base, {"seed": 3, "reward": "dense", "landmarks.shift": 4.0}), preset("ant-maze-u", "hrac")]
    assert [StepTimes(tmp_path).of(config, measure) for config in kinds] == [36.0] * 3
    assert measured_configs == [kinds[0], kinds[2]]
    assert StepTimes(tmp_path).of(preset("pusher")) is None
    with monkeypatch.context() as patch:
        patch.setattr("higl.sweep.estimate.__version__", "99.0")  # another version may be faster
        assert StepTimes(tmp_path).of(base) is None


@pytest.mark.parametrize("content", ["[broken", "[1, 2]", '{"key": null}', '"text"'])
def test_damaged_step_times_are_measured_anew(tmp_path, content):
    (tmp_path / "step-times.json").write_text(content)
    assert StepTimes(tmp_path).of(preset("ant-maze-u")) is None
    assert StepTimes(tmp_path).of(preset("ant-maze-u"), lambda config: 36.0) == 36.0
    assert StepTimes(tmp_path).of(preset("ant-maze-u")) == 36.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "ant-maze-w"),
        ("landmarks.coverage", 60),
        ("novelty.discard", "adjacency"),
        ("batch_size", 2),
        ("adjacency.every", 50_000),
        ("high.relabel", True),
    ],
)
def test_settings_that_may_change_the_cost_are_measured_anew(name, value):
    base = preset("ant-maze-u")
    assert cost_key(base) != cost_key(apply(base, {name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", 5), ("steps", 7), ("reward", "dense"), ("landmarks.shift", 4.0), ("adjacency.degree", 9)],
)
def test_settings_that_do_not_change_the_cost_are_not_measured_anew(name, value):
    base = preset("ant-maze-u")
    assert cost_key(base) == cost_key(apply(base, {name: value}))


@pytest.mark.parametrize(("family", "walks", "unit"), [("best", True, (0.12,)), ("paper", False, (1.0,))])
def test_a_run_is_measured_with_the_settings_that_it_will_have(monkeypatch, family, walks, unit):
    """A setting that the catalogue gives stays."""
    found = []

    def run_bench(config):
        found.append(config)
        return SimpleNamespace(milliseconds_per_step=3.0)

    monkeypatch.setattr(bench, "run_bench", run_bench)
    assert measured(apply(preset("reacher", family=family), {"high.period": 4})) == 3.0
    [config] = found
    assert (config.walks_map, config.goal_unit, config.high.period) == (walks, unit, 4)


def test_costless_settings_exist():
    assert set(setting_types(Config)) >= COSTLESS


def test_runs_on_other_tasks_than_ours_are_not_measured(tmp_path):
    (tmp_path / "own.toml").write_text(OWN_CATALOGUE)
    plan = make_plan(read_catalogue(tmp_path / "own.toml")["mine"], tmp_path)
    waiting = [RunStatus("waiting")] * len(plan)
    times = StepTimes(tmp_path)
    assert {config.task for config in unmeasured(plan, waiting, times)} == {"reacher"}
    hours = hours_left(plan, waiting, times, lambda config: 36.0)
    assert [each is None for each in hours] == [run.config.task != "reacher" for run in plan]
    assert all(run.derives for run in plan)


def test_hours(tmp_path):
    plan = make_plan(read_catalogue()["fig4a"], tmp_path, seeds=1)
    statuses = [RunStatus("finished", 1_000_000), RunStatus("stopped", 500_000), RunStatus("waiting")]
    times = StepTimes(tmp_path)
    assert unmeasured(plan, statuses, times) == [run.config for run in plan[1:]]
    assert hours_left(plan, statuses, times, lambda config: 36.0) == [0.0, 5.0, 10.0]
    assert unmeasured(plan, statuses, times) == []
    assert wall_hours([5.0, 10.0, 2.0], 2) == 10.0
    assert wall_hours([5.0, 10.0, 2.0], 1) == 17.0
