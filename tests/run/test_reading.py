"""Reading run folders, whole and broken."""

import json

import numpy as np
import pytest
from support.synthetic import synthetic_run

from higl.errors import NoRunsError
from higl.run.naming import task_title
from higl.run.reading import find_runs, notices_of, read_config, read_run


def test_a_whole_run(runs_folder):
    run = read_run(runs_folder / "higl-1")
    assert (run.task, run.algo, run.reward, run.seed) == ("point-maze", "higl", "sparse", 1)
    assert run.title == "Point Maze (sparse): HIGL, seed 1"
    assert run.last_step == 100_000
    assert run.status == "finished"
    assert len(run.evaluations["step"]) == 20
    assert np.isnan(run.evaluations["steps_to_success"][0])
    assert len(run.metrics["low/progress"]) == 200
    assert [snapshot.step for snapshot in run.snapshots] == [25_000, 50_000, 75_000, 100_000]
    assert run.notices == ["These numbers are synthetic: made up to test the figures, not from training."]


def test_an_incomplete_last_line_is_left_out_silently(run_folder):
    with (run_folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 100500, "low/pro')
    with (run_folder / "eval.csv").open("a") as file:
        file.write("105000,1050.0,5,1")
    run = read_run(run_folder)
    assert run.metrics["step"][-1] == 100_000
    assert run.evaluations["step"][-1] == 100_000
    assert len(run.notices) == 1


def test_damaged_lines_are_left_out_with_a_notice(run_folder):
    lines = (run_folder / "metrics.jsonl").read_text().splitlines()
    lines[3:5] = ["\x00\x00\x00", '["no", "object"]']
    (run_folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    rows = (run_folder / "eval.csv").read_text().splitlines()
    rows[2] = "15000,,,,,,"
    (run_folder / "eval.csv").write_text("\n".join(rows) + "\n")
    run = read_run(run_folder)
    assert len(run.metrics["step"]) == 198
    assert len(run.evaluations["step"]) == 19
    assert any("metrics.jsonl: 2 of 200 lines" in notice for notice in run.notices)
    assert any("eval.csv: 1 of 20 lines" in notice for notice in run.notices)


def test_nan_and_infinity_in_metrics(run_folder):
    (run_folder / "metrics.jsonl").write_text(
        '{"step": 500, "low/value": NaN}\n{"step": 1000, "low/value": Infinity}\n'
    )
    run = read_run(run_folder)
    np.testing.assert_array_equal(run.metrics["step"], [500, 1000])
    np.testing.assert_array_equal(run.metrics["low/value"], [np.nan, np.inf])


@pytest.mark.parametrize("name", ["config.toml", "run.json", "metrics.jsonl", "eval.csv"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe{{{ not = text\n{\n", b"[1, 2]\n[3]\n"])
def test_any_file_may_be_missing_or_damaged(run_folder, name, content):
    (run_folder / name).unlink()
    if content is not None:
        (run_folder / name).write_bytes(content)
    run = read_run(run_folder)
    only_begun = content == b"" and name in ("metrics.jsonl", "eval.csv")
    assert any(name in notice for notice in run.notices) != only_begun
    assert len(run.title) > 0
    assert run.last_step == 100_000


def test_a_damaged_snapshot_is_left_out(run_folder):
    files = sorted((run_folder / "snapshots").iterdir())
    files[0].write_bytes(files[0].read_bytes()[:200])
    (run_folder / "snapshots" / ".new-000000.npz").write_bytes(b"")
    run = read_run(run_folder)
    assert len(run.snapshots) == 2
    assert any("1 of 3 files are damaged" in notice for notice in run.notices)


def test_a_run_that_was_killed_has_stopped(tmp_path):
    run = read_run(synthetic_run(tmp_path / "run", status="running"))
    assert run.status == "stopped"
    assert any("stopped before its end" in notice for notice in run.notices)


def test_a_run_that_was_extended_has_not_finished(tmp_path):
    folder = synthetic_run(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text())
    for saved, status in ((read_config(folder).steps, "finished"), (read_config(folder).steps - 1, "stopped")):
        (folder / "run.json").write_text(json.dumps(facts | {"status": "finished", "saved_step": saved}))
        assert read_run(folder).status == status


def test_the_message_of_a_failed_run_becomes_a_notice(tmp_path):
    folder = synthetic_run(tmp_path / "run", status="failed")
    facts = json.loads((folder / "run.json").read_text()) | {"message": "NaN in the stage 'low'"}
    (folder / "run.json").write_text(json.dumps(facts))
    assert "The run reports: NaN in the stage 'low'" in read_run(folder).notices


def test_folders_of_runs_are_searched_and_a_run_is_taken_once(runs_folder):
    assert len(find_runs([runs_folder])) == 7
    assert len(find_runs([runs_folder, runs_folder / "higl-1"])) == 7


def test_where_there_is_no_run(tmp_path):
    with pytest.raises(NoRunsError, match="does not exist"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(NoRunsError, match="holds no run"):
        find_runs([tmp_path])
    (tmp_path / "file").write_text("")
    with pytest.raises(NoRunsError, match="is not a folder"):
        find_runs([tmp_path / "file"])


def test_notices_name_their_runs(runs_folder, run_folder):
    (run_folder / "eval.csv").unlink()
    said = notices_of([*find_runs([runs_folder]), read_run(run_folder)])
    assert said[0].startswith("All runs: These numbers are synthetic")
    assert said[1].startswith("run: eval.csv is missing")


@pytest.mark.parametrize(
    ("task", "title"),
    [
        ("ant-maze-u", "Ant Maze U (sparse)"),
        ("higl/AntMazeU-v0", "higl/AntMazeU-v0 (sparse)"),
        ("PointMaze_UMaze-v3", "PointMaze_UMaze-v3"),
    ],
)
def test_titles_of_tasks(task, title):
    assert task_title(task, "sparse") == title
