"""A small finished run that several files of tests read."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import tiny
from support.tiny import higl


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """Return a run that was never interrupted."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    done = higl("train", *tiny.flags(), "--out", run)
    assert done.returncode == 0, done.stderr
    assert "evaluation at step 60: success" in done.stdout
    assert "finished: 200 steps in" in done.stdout
    return run
