"""`higl bench`: the tables that it prints and the numbers that it writes."""

from __future__ import annotations

import json

import pytest
from support.commands import tell

from higl.run import bench
from higl.settings.layers import apply
from higl.settings.presets import preset

SMALL = {"hidden": [8], "buffer_size": 1_000}


def test_stages_are_printed_and_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "preset", lambda *names: apply(preset(*names), SMALL))
    code, out, err = tell(
        capsys, "bench", "reacher", "--algos", "hiro", "--precision", "fp32", "--json", str(tmp_path / "bench.json")
    )
    assert code == 0
    assert "hiro on reacher, preset best, relabelled, fp32" in out
    assert "hiro on reacher: episodes" in err
    (report,) = json.loads((tmp_path / "bench.json").read_text())["reports"]
    assert (report["task"], report["algo"], report["preset"]) == ("reacher", "hiro", "best")
    assert report["landmarks"] == 0
    seconds = {stage["name"]: stage["seconds"] for stage in report["stages"]}
    assert {"environment", "acting", "low update", "high update", "evaluation"} <= seconds.keys()
    # What the parts leave of the high level's update may be too little to measure.
    assert all(value > 0 or (name, value) == ("update", 0) for name, value in seconds.items())
    assert report["bf16_gemm_rate"] > 0
    equivalents = report["milliseconds_per_step"] * 1e-3 * report["gemm_rate"] * 1e-6
    assert report["mflop_equivalents"] == pytest.approx(equivalents)
    top = [stage["milliseconds_per_step"] for stage in report["stages"] if stage["part_of"] is None]
    assert report["milliseconds_per_step"] == pytest.approx(sum(top))


def test_a_task_that_is_unknown(capsys):
    code, _, err = tell(capsys, "bench", "Pendulum-v1")
    assert code == 2
    assert "does not know the task 'Pendulum-v1': choose from point-maze, " in err
    assert err.count("\n") == 1
