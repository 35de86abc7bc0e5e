"""Small sweeps: of stand-in runs that do no training, and of real ones with tiny networks."""

from collections.abc import Callable
from pathlib import Path

import pytest

CATALOGUE = """
[toy]
title = "Toy sweep"
steps = {steps}
seeds = {seeds}
tasks = [{{ task = "point-maze", reward = "dense" }}]
[toy.settings]
evaluation.every = 100
evaluation.episodes = 1
low = {{ hidden = [8], batch_size = 8, buffer_size = 2000 }}
high = {{ hidden = [8], batch_size = 8, buffer_size = 500 }}
adjacency.hidden = [8]
novelty = {{ hidden = [8], embedding = 4, batch_size = 8 }}
landmarks = {{ coverage = 4, novelty = 4, pool = 20, start = 200 }}
[toy.variants]
HIGL = {{ algo = "higl" }}
HRAC = {{ algo = "hrac" }}
"""


@pytest.fixture
def catalogue(tmp_path) -> Callable[..., Path]:
    """Write a catalogue with one entry, `toy`: HIGL and HRAC on the point maze."""

    def write(steps: int = 1000, seeds: int = 2, more: str = "") -> Path:
        path = tmp_path / "catalogue.toml"
        path.write_text(CATALOGUE.format(steps=steps, seeds=seeds) + more)
        return path

    return write
