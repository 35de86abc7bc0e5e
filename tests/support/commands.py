"""Helpers of the command tests: call a command, wait for a run, compare runs."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from higl.cli import main
from higl.envs.make import make_env
from higl.run.checkpoint import Checkpoints
from higl.run.folder import RunFolder
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.layers import apply
from higl.settings.presets import preset
from support import tiny
from support.arrays import differing


def tell(capsys, *words: object) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code and what it wrote."""
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def wait_for(condition, process: subprocess.Popen, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def line_count(run: Path) -> int:
    metrics = run / "metrics.jsonl"
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0


def finished_run(path: Path) -> Path:
    """Write the folder of `higl train point-maze --steps 500`, without training."""
    config, _ = derive_settings(apply(preset("point-maze"), {"steps": 500}), {"steps"}, make_env("point-maze"))
    folder = RunFolder.create(path, derive_schedule(config, {"steps"})[0], pytest.fail)
    folder.update(status="finished", saved_step=500)
    folder.close()
    return path


def assert_same_run(first: Path, second: Path) -> None:
    assert tiny.lines(first) == tiny.lines(second)
    assert tiny.evaluations(first) == tiny.evaluations(second)
    states = [Checkpoints(run / "checkpoints").load(pytest.fail) for run in (first, second)]
    assert states[0] is not None
    assert states[1] is not None
    assert differing(states[0][0], states[1][0]) == []
