"""The assumptions of `higl bench` about a run: the length of its episodes, and how many cells it visits."""

from __future__ import annotations

import pytest

from higl.run.bench import Bench, adjacency_pairs, explored_cells
from higl.settings.config import AdjacencyConfig
from higl.settings.layers import apply
from higl.settings.presets import preset

SMALL = {
    "low.hidden": [8],
    "high.hidden": [8],
    "low.buffer_size": 1000,
    "high.buffer_size": 200,
    "adjacency.hidden": [8],
    "novelty.hidden": [8],
}


@pytest.mark.parametrize(
    ("task", "cells"),
    [("ant-maze-u", 112), ("ant-maze-u-large", 448), ("ant-maze-w", 208), ("pusher", 1_500), ("lake:Boat-v0", 150)],
)
def test_a_larger_maze_and_the_arms_have_more_cells(task, cells):
    assert explored_cells(preset(task)) == cells
    half = apply(preset(task), {"adjacency.cell": preset(task).adjacency.cell / 2})
    assert explored_cells(half) == (4 * cells if "maze" in task else cells)


def test_beyond_a_number_of_cells_a_training_sees_some_of_the_pairs():
    config = AdjacencyConfig(all_pairs_up_to=300)
    assert adjacency_pairs(config, 100, 8.0) == 100 * 99 / 2
    assert adjacency_pairs(config, 1_500, 8.0) == 300 * 299 / 2 + 1_500 * 8


def test_an_episode_is_as_long_as_the_task_has_it():
    """An arm has 100 steps: its graph is made five times as often as in a maze of 500."""
    assert Bench(apply(preset("reacher"), SMALL)).episode_steps == 100
