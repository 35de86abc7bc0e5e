"""`higl runs`: the table and the JSON lines."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from support import tiny
from support.commands import tell

from higl.commands.runs import print_runs
from higl.run.files import FORMAT
from higl.run.folder import RunFolder
from higl.run.reading import RunState, run_state
from higl.settings.layers import apply
from higl.settings.presets import preset


def test_runs(whole, capsys):
    code, out, _ = tell(capsys, "runs", whole.parent)
    assert code == 0
    assert out.splitlines()[2].split()[:7] == ["whole", "finished", tiny.TASK, "higl", "sparse", "0", "200"]
    code, out, _ = tell(capsys, "runs", whole, "--json")
    state = json.loads(out)
    assert (state["state"], state["step"], state["steps"]) == ("finished", 200, 200)


TASK = "my_company.environments.warehouse:Warehouse/PickAndPlaceWithObstacles-v12"
NAME = "a-run-of-the-warehouse-with-a-name-of-some-length-0"


@pytest.fixture
def long_names(tmp_path) -> list[RunState]:
    RunFolder.create(tmp_path / NAME, apply(preset(TASK), {"seed": 3}), pytest.fail).close()
    facts = {"format": FORMAT, "status": "stopped", "updated": "", "test_env": "warehouse:Test-v0"}
    (tmp_path / NAME / "run.json").write_text(json.dumps(facts))
    return [run_state(tmp_path / NAME, tmp_path), RunState("short", "finished", "point-maze", success=0.5)]


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (None, "run state task tested in algo reward seed step done success"),
        (220, "run state task tested in algo reward seed step done success"),
        (180, "run state task tested in step done success"),
        (100, "run state step done success"),
    ],
)
def test_names_are_whole_in_the_fullest_table_that_fits(long_names, width, columns):
    output = io.StringIO()
    print_runs(long_names, Console(file=output, width=width or 80), width)
    rows = output.getvalue().splitlines()
    assert rows[0].split() == columns.split()
    assert len(rows) == 4
    assert width is None or max(map(len, rows)) <= width
    cells = rows[2].split()
    assert cells[:2] == [NAME, "stopped"]
    assert (TASK in cells) == ("warehouse:Test-v0" in cells) == ("task" in columns)
    assert rows[3].split()[0] == "short"


def test_runs_that_fit_into_no_table_have_two_lines(long_names):
    output = io.StringIO()
    print_runs(long_names, Console(file=output, width=60), 60)
    assert output.getvalue().splitlines() == [
        NAME,
        f"  stopped {TASK} higl sparse, tested in warehouse:Test-v0, seed 3, step 0, done 0%",
        "short",
        "  finished point-maze, seed 0, step 0, success 50%",
    ]


def test_a_table_that_is_not_shown_in_a_terminal_has_whole_names(long_names, tmp_path, capsys):
    code, out, _ = tell(capsys, "runs", tmp_path)
    assert code == 0
    assert NAME in out.split()
    assert TASK in out
