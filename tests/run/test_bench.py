"""The assumptions of `higl bench` about a run: the length of its episodes, and how many cells it visits."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from higl.algo.learner import Learner
from higl.envs.make import make_env
from higl.run import bench
from higl.run.bench import Bench, Stage, adjacency_pairs, bench_configs, explored_cells, run_benches, td3_flops
from higl.settings.config import AdjacencyConfig
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.layers import apply
from higl.settings.presets import preset

SMALL = {
    "hidden": [8],
    "buffer_size": 1000,
}


@pytest.mark.parametrize(
    ("task", "cells"),
    [("ant-maze-u", 112), ("ant-maze-u-large", 448), ("ant-maze-w", 208), ("pusher", 1_500), ("lake:Boat-v0", 150)],
)
def test_a_larger_maze_and_the_arms_have_more_cells(task, cells):
    config = preset(task, family="paper")
    assert explored_cells(config) == cells
    for half in ({"adjacency.cell": config.adjacency.cell / 2}, {"goal_unit": (0.5,)}):
        assert explored_cells(apply(config, half)) == (4 * cells if "maze" in task else cells)


def test_beyond_a_number_of_cells_a_training_sees_some_of_the_pairs():
    config = AdjacencyConfig(all_pairs_up_to=300)
    assert adjacency_pairs(config, 100, 8.0) == 100 * 99 / 2
    assert adjacency_pairs(config, 1_500, 8.0) == 300 * 299 / 2 + 1_500 * 8


def test_an_episode_is_as_long_as_the_task_has_it():
    """An arm has 100 steps: its map grows five times as often as in a maze of 500."""
    assert Bench(apply(preset("reacher", family="paper"), SMALL)).episode_steps == 100


def test_what_is_measured_is_what_a_run_has():
    """`best` is derived from the environment, `paper` is not."""
    higl, hrac = bench_configs("reacher", ("higl", "hrac"), precision="fp32")
    expected, _ = derive_settings(replace(preset("reacher"), precision="fp32"), (), make_env("reacher"))
    assert higl == derive_schedule(expected, ())[0]
    assert higl.observe_achieved
    assert (hrac.adjacency.degree, hrac.high.period) == (10, 10)
    [paper] = bench_configs("reacher", ("higl",), "paper", landmarks=5)
    assert paper == apply(preset("reacher", family="paper"), {"landmarks.coverage": 5, "landmarks.novelty": 5})


def test_a_map_is_measured_instead_of_a_high_level(monkeypatch):
    monkeypatch.setattr(bench, "MAP_STEPS", 2_000)
    [config] = bench_configs("reacher", ("higl",), landmarks=50, precision="fp32")
    measured = Bench(apply(config, SMALL))
    stages = {stage.name: stage for stage in measured.measure()}
    assert list(stages) == ["environment", "acting", "low update", "map", "evaluation"]
    assert stages["map"].calls_per_step == 1 / 100
    assert len(measured.learner.map) > 25
    assert measured.checkpoint_seconds() > 0


def test_the_low_level_counts_every_update_of_its_critics(monkeypatch):
    """Two updates per step, each with two of the critics: as many FLOPs as the shapes of the networks say."""
    monkeypatch.setattr(bench, "MAP_STEPS", 100)
    [config] = bench_configs("reacher", ("higl",), landmarks=50, precision="fp32")
    measured = Bench(apply(config, SMALL | {"low.updates": 2, "low.critic_updates": 2}))
    low, batch = measured.learner.state.low, config.batch_size
    actor, critic = (
        sum(2 * batch * layer.weight.size for layer in network)
        for network in (low.networks.actor, low.networks.critics[0])
    )
    assert td3_flops(low, batch, 1) == 4 * actor + 10 * critic
    stage = measured._low()
    assert stage.calls_per_step == 2
    assert stage.flops == 5 * actor + 18 * critic


@pytest.mark.parametrize(("algo", "rows"), [("higl", (300, 0)), ("hrac", (300, 100))])
def test_a_checkpoint_is_timed_with_the_rows_of_both_levels(monkeypatch, algo, rows):
    """A buffer of 300 transitions is full after 1,000 steps, but not with segments of ten steps."""
    monkeypatch.setattr(bench, "EPISODES_BEFORE", 1)
    sizes: list[tuple[int, int]] = []

    def arrays(learner: Learner) -> dict:
        sizes.append((int(learner.state.low_buffer.size), int(learner.state.high_buffer.size)))
        return {}

    monkeypatch.setattr(bench, "learner_arrays", arrays)
    [config] = bench_configs("reacher", (algo,), landmarks=50, precision="fp32")
    config = apply(config, SMALL | {"steps": 1_000, "buffer_size": 300, "high.period": 10})
    assert Bench(config).checkpoint_seconds() >= 0
    assert sizes == [rows]


class Fake(Bench):
    """Takes some seconds by the clock of the test."""

    now = 0.0

    def __init__(self, config, tell):
        self.config, self.tell = config, tell
        Fake.now += 10.0

    def measure(self):
        Fake.now += self.config.seed
        return [Stage("low update", Fake.now, 1.0)]

    def checkpoint_seconds(self):
        return 0.0


@pytest.mark.parametrize(("seconds", "rounds"), [(15, 3), (24, 2), (40, 1), (500, 1)])
def test_a_slow_machine_gets_fewer_rounds(monkeypatch, seconds, rounds):
    """It begins after 10 seconds, so a third round of 24 would end after 82; the limit is 80."""
    said: list[str] = []
    Fake.now = 0.0
    monkeypatch.setattr(bench, "Bench", Fake)
    monkeypatch.setattr(bench, "ProductRate", lambda *shape: SimpleNamespace(measure=lambda: 1e9))
    monkeypatch.setattr(bench, "time", SimpleNamespace(monotonic=lambda: Fake.now))
    [report] = run_benches([replace(preset("reacher"), seed=seconds)], said.append)
    assert sum("round" in text for text in said) == rounds
    assert report.stages[0].seconds == 10 + seconds  # the best of all rounds
