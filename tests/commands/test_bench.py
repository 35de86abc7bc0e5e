"""`higl bench`: the tables that it prints and the numbers that it writes."""

from __future__ import annotations

import json

import pytest
from support.commands import tell

from higl.run import bench
from higl.settings.layers import apply
from higl.settings.presets import preset

SMALL = {"low.hidden": [8], "high.hidden": [8], "low.buffer_size": 1_000, "high.buffer_size": 200}


def test_stages_are_printed_and_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "preset", lambda task, algo: apply(preset(task, algo), SMALL))
    code, out, _ = tell(capsys, "bench", "reacher", "--algos", "hiro", "--json", str(tmp_path / "bench.json"))
    assert code == 0
    assert "hiro on reacher" in out
    (report,) = json.loads((tmp_path / "bench.json").read_text())["reports"]
    assert (report["task"], report["algo"], report["landmarks"]) == ("reacher", "hiro", 0)
    seconds = {stage["name"]: stage["seconds"] for stage in report["stages"]}
    assert {"environment", "acting", "low update", "high update", "evaluation"} <= seconds.keys()
    assert all(value > 0 for value in seconds.values())
    top = [stage["milliseconds_per_step"] for stage in report["stages"] if stage["part_of"] is None]
    assert report["milliseconds_per_step"] == pytest.approx(sum(top))
