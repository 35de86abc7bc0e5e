"""`higl runs`: the table and the JSON lines."""

from __future__ import annotations

import itertools
import json

import pytest
from support import tiny
from support.commands import tell

from higl.run.files import FORMAT
from higl.run.folder import RunFolder
from higl.settings.layers import apply
from higl.settings.presets import preset


def test_runs(whole, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    code, out, _ = tell(capsys, "runs", whole.parent)
    assert code == 0
    assert out.splitlines()[2].split()[:7] == ["whole", "finished", tiny.TASK, "higl", "sparse", "0", "200"]
    code, out, _ = tell(capsys, "runs", whole, "--json")
    state = json.loads(out)
    assert (state["state"], state["step"], state["steps"]) == ("finished", 200, 200)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_long_names_are_folded(tmp_path, capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    task = "my_company.environments.warehouse:Warehouse/PickAndPlaceWithObstacles-v12"
    name = "a-run-of-the-warehouse-with-a-name-of-some-length-0"
    RunFolder.create(tmp_path / name, apply(preset(task), {"seed": 3}), pytest.fail).close()
    facts = {"format": FORMAT, "status": "stopped", "updated": ""}
    (tmp_path / name / "run.json").write_text(json.dumps(facts))
    code, out, _ = tell(capsys, "runs", tmp_path)
    assert code == 0
    rows = out.splitlines()
    assert max(map(len, rows)) <= width
    columns = rows[0].index("state"), rows[0].index("task"), rows[0].index("algo" if width >= 110 else "step")
    assert columns[0] >= 15, "room for the first column"
    shown = ["".join(row[start:end].strip() for row in rows[2:]) for start, end in itertools.pairwise((0, *columns))]
    assert shown == [name, "stopped", task]
