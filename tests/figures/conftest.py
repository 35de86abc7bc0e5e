"""Synthetic run folders, a small video, and a browser for the tests of figures."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import Browser, find_chromium
from synthetic import synthetic_run

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
