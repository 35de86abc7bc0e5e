"""Fixtures of several rooms: synthetic runs, a small video, a browser, and a catalogue of small sweeps."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.browser import Browser, find_chromium
from support.synthetic import synthetic_run

NO_CHROMIUM = (
    "NO BROWSER: the report page was NOT opened. Install chromium (as root, `make test` does so through apt-get), "
    "or name a Chromium or Chrome in the variable HIGL_CHROMIUM."
)


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory) -> Path:
    """Seven runs of two tasks: read only."""
    root = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        synthetic_run(root / f"higl-{seed}", seed=seed, snapshots=4)
    for seed in range(2):
        synthetic_run(root / f"hrac-{seed}", algo="hrac", seed=seed, steps=80_000 if seed else 100_000, snapshots=3)
    synthetic_run(root / "hiro-0", algo="hiro", snapshots=2)
    synthetic_run(root / "pusher-0", task="pusher", snapshots=2)
    return root


@pytest.fixture
def run_folder(tmp_path) -> Path:
    """One run that a test may break."""
    return synthetic_run(tmp_path / "run", snapshots=3)


@pytest.fixture(scope="session")
def video_bytes(tmp_path_factory) -> bytes:
    """A second of video."""
    import imageio.v2 as imageio

    path = tmp_path_factory.mktemp("video") / "video.mp4"
    with imageio.get_writer(path, format="FFMPEG", fps=20, codec="libx264", macro_block_size=2) as writer:
        for shade in range(0, 200, 10):
            writer.append_data(np.full((64, 96, 3), shade, np.uint8))
    return path.read_bytes()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium for this session."""
    program = find_chromium()
    if program is None:
        pytest.skip(NO_CHROMIUM)
    started = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


CATALOGUE = """
[toy]
title = "Toy sweep"
steps = {steps}
seeds = {seeds}
tasks = [{{ task = "point-maze", reward = "dense" }}]
[toy.settings]
evaluation.every = 100
evaluation.episodes = 1
hidden = [8]
batch_size = 8
buffer_size = 2000
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
