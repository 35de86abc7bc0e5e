"""`higl runs`: the table and the JSON lines."""

from __future__ import annotations

import json

from support import tiny
from support.commands import tell


def test_runs(whole, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    code, out, _ = tell(capsys, "runs", whole.parent)
    assert code == 0
    assert out.splitlines()[2].split()[:7] == ["whole", "finished", tiny.TASK, "higl", "sparse", "0", "200"]
    code, out, _ = tell(capsys, "runs", whole, "--json")
    state = json.loads(out)
    assert (state["state"], state["step"], state["steps"]) == ("finished", 200, 200)
