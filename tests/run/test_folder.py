"""Writing a run folder: a full disk, truncating, facts, and one process at a time."""

from __future__ import annotations

import errno
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from higl.errors import RunFolderError
from higl.run import files
from higl.run.files import EVALUATION_COLUMNS, FORMAT
from higl.run.folder import LineLog, Lock, RunFolder
from higl.run.reading import is_locked, last_evaluation, last_step, read_config, read_facts, run_folders, run_state
from higl.settings.config import Config
from higl.settings.layers import to_toml

CONFIG = replace(Config(), task="point-maze", steps=1000, seed=3)
ROW = {
    "step": 500,
    "time": 1.5,
    "episodes": 5,
    "success": 0.4,
    "success_at_end": 0.2,
    "return": -1.0,
    "steps_to_success": "",
    "path_length": 2,
}


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder.create(tmp_path / "run", CONFIG, pytest.fail)
    folder.start(2, "cpu", 0)
    yield folder
    folder.close()


def test_what_is_written_is_read_again(folder):
    folder.episode({"step": 500, "episode": 1, "time": 1.235, "low/loss": 0.1})
    folder.episode({"step": 1000, "episode": 2, "time": 2.5, "low/loss": 0.2})
    folder.evaluation(ROW)
    folder.log("hello")
    first, _ = (json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines())
    assert first == {"step": 500, "episode": 1, "time": 1.235, "low/loss": 0.1}
    header, row = (folder.path / "eval.csv").read_text().splitlines()
    assert header == ",".join(EVALUATION_COLUMNS)
    assert row == "500,1.5,5,0.4,0.2,-1.0,,2"
    assert last_step(folder.path) == 1000
    evaluation = last_evaluation(folder.path)
    assert math.isnan(evaluation.pop("steps_to_success"))
    assert evaluation == {name: value for name, value in ROW.items() if name != "steps_to_success"}
    assert (folder.path / "log.txt").read_text().endswith("Z hello\n")
    assert read_config(folder.path) == CONFIG
    facts = read_facts(folder.path)
    assert facts["status"] == "running"
    assert facts["starts"][0]["packages"]["jax"]
    assert {"host", "cores", "device", "python", "commit", "command", "processor"} <= facts["starts"][0].keys()


def test_a_run_that_continues_keeps_the_columns_of_its_evaluations(tmp_path):
    run = RunFolder.create(tmp_path / "run", CONFIG, pytest.fail)
    run.start(2, "cpu", 0)
    run.close()
    columns = [name for name in EVALUATION_COLUMNS if name != "success_at_end"]
    (run.path / "eval.csv").write_text(f"{','.join(columns)}\n400,1,5,0.2,-2,,2\n")
    run = RunFolder.open(run.path, pytest.fail)
    run.evaluation(ROW)
    assert last_evaluation(run.path)["return"] == -1.0
    run.cut({})
    run.evaluation(ROW)
    run.close()
    assert last_evaluation(run.path)["success_at_end"] == 0.2


def test_a_run_folder_must_hold_every_setting(folder):
    file = folder.path / "config.toml"
    content = file.read_text()
    file.write_text("".join(line for line in content.splitlines(True) if not line.startswith(("pool", "average"))))
    missing = r"config\.toml: missing settings landmarks\.pool, evaluation\.average$"
    with pytest.raises(RunFolderError, match=missing):
        read_config(folder.path)
    file.write_text(content.replace("pool", "pooll"))
    with pytest.raises(RunFolderError, match=r"config\.toml: unknown setting landmarks\.pooll; did you mean"):
        read_config(folder.path)


def test_cutting_back(folder):
    folder.episode({"step": 500, "episode": 1, "time": 1.0})
    folder.evaluation(ROW)
    lengths = folder.lengths()
    before = {name: (folder.path / name).read_bytes() for name in lengths}
    folder.episode({"step": 1000, "episode": 2, "time": 2.0})
    folder.evaluation(ROW)
    folder.cut(lengths)
    assert {name: (folder.path / name).read_bytes() for name in lengths} == before
    folder.episode({"step": 1000, "episode": 2, "time": 3.0})
    assert last_step(folder.path) == 1000
    folder.cut({})
    folder.evaluation(ROW)
    assert (folder.path / "eval.csv").read_text().startswith("step,")


def test_a_log_that_lost_lines_causes_a_warning(tmp_path):
    warnings: list[str] = []
    folder = RunFolder.create(tmp_path / "run", CONFIG, warnings.append)
    folder.episode({"step": 500, "episode": 1, "time": 1.0})
    folder.cut({"metrics.jsonl": 10_000})
    folder.close()
    assert len(warnings) == 1
    assert "metrics.jsonl is shorter than it was at the checkpoint" in warnings[0]


class FullDisk:
    """A file on a disk with room for a number of bytes."""

    def __init__(self, file, room: int):
        self._file, self.room = file, room

    def write(self, content: bytes) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._file.write(content[: self.room])
        self.room -= written
        return written

    def __getattr__(self, name):
        return getattr(self._file, name)


def test_lines_wait_while_the_disk_is_full(tmp_path):
    log = LineLog(tmp_path / "lines")
    log.write("first")
    log._file = FullDisk(log._file, 3)
    for line in ("second", "third"):
        with pytest.raises(OSError, match="No space"):
            log.write(line)
        assert (tmp_path / "lines").read_text() == "first\n"
        log._file.room = 3
    with pytest.raises(OSError, match="No space"):
        log.length()
    log._file.room = 1000
    log.write("fourth")
    assert (tmp_path / "lines").read_text() == "first\nsecond\nthird\nfourth\n"
    assert log.length() == len("first\nsecond\nthird\nfourth\n")
    log.close()


def test_a_full_disk_causes_one_warning_and_the_run_continues(tmp_path):
    warnings: list[str] = []
    folder = RunFolder.create(tmp_path / "run", CONFIG, warnings.append)
    folder._metrics._file = FullDisk(folder._metrics._file, 0)
    for step in (500, 1000):
        folder.episode({"step": step, "episode": 1, "time": 1.0})
    assert len(warnings) == 1
    assert "metrics.jsonl could not be written (No space left on device)" in warnings[0]
    folder._evaluations._file = FullDisk(folder._evaluations._file, 3)
    folder.evaluation(ROW)
    folder._evaluations._file.room = folder._metrics._file.room = 10_000
    folder.evaluation(ROW)
    assert len((folder.path / "eval.csv").read_text().splitlines()) == 3
    folder.episode({"step": 1500, "episode": 3, "time": 1.0})
    assert len((folder.path / "metrics.jsonl").read_text().splitlines()) == 3
    folder.close()


def test_replacing_a_file_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    files.replace_file(path, b"old")

    def full(path, content):
        Path(path).write_bytes(content[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_durably", full)
    with pytest.raises(OSError, match="No space"):
        files.replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [place.name for place in tmp_path.iterdir()] == ["run.json"]


def test_one_process_at_a_time(folder):
    assert is_locked(folder.path)
    with pytest.raises(RunFolderError, match=r"is in use by process \d+ on .*: only one process"):
        RunFolder.open(folder.path, pytest.fail)
    folder.close()
    assert not is_locked(folder.path)
    Lock(folder.path).release()


def test_a_folder_that_is_not_a_run_folder(tmp_path):
    with pytest.raises(RunFolderError, match="is not a run folder"):
        RunFolder.open(tmp_path, pytest.fail)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunFolderError, match=r"is not empty \(it contains thesis.tex\)"):
        RunFolder.create(tmp_path, CONFIG, pytest.fail)


def test_a_folder_that_a_crash_left_incomplete(tmp_path):
    for name in ("lock", "config.toml", "metrics.jsonl", ".new-run.json"):
        (tmp_path / name).touch()
    RunFolder.create(tmp_path, CONFIG, pytest.fail).close()
    assert read_config(tmp_path) == CONFIG


def test_damaged_and_old_folders(folder):
    facts = folder.path / "run.json"
    content = facts.read_text()
    facts.write_text(content.replace(f'"format": {FORMAT}', '"format": 1'))
    with pytest.raises(RunFolderError, match=f"has format 1; this version of higl reads format {FORMAT}"):
        read_facts(folder.path)
    facts.write_text(content[:20])
    with pytest.raises(RunFolderError, match=r"run\.json is damaged"):
        read_facts(folder.path)
    assert run_state(folder.path, folder.path.parent).state == "damaged"
    (folder.path / "config.toml").write_text('task = "pusher"\ncolour = 3\n')
    with pytest.raises(RunFolderError, match="unknown setting colour"):
        read_config(folder.path)


def test_start_returns_the_differences_from_the_last_start(folder):
    assert folder.start(2, "cpu", 500) == []
    folder.facts["starts"][-1]["packages"]["jax"] = "0.1"
    folder.facts["starts"][-1]["cores"] = 8
    differences = folder.start(2, "cpu", 500)
    assert "cores 8 -> 2" in differences
    assert any(text.startswith("jax 0.1 -> ") for text in differences)


def test_states_of_runs(tmp_path):
    folder = RunFolder.create(tmp_path / "group" / "run", CONFIG, pytest.fail)
    folder.start(2, "cpu", 0)
    folder.episode({"step": 500, "episode": 1, "time": 1.0})
    folder.evaluation(ROW)
    (path,) = run_folders(tmp_path)
    state = run_state(path, tmp_path)
    assert (state.run, state.state, state.step, state.success) == ("group/run", "running", 500, 0.4)
    folder.close()
    assert run_state(path, tmp_path).state == "stopped"  # killed
    folder = RunFolder.open(path, pytest.fail)
    folder.update(status="failed", message="the motor came off")
    folder.close()
    state = run_state(path, tmp_path)
    assert (state.state, state.message) == ("failed", "the motor came off")
    folder = RunFolder.open(path, pytest.fail)
    folder.update(status="finished", saved_step=1000)
    folder.close()
    assert run_state(path, tmp_path).state == "finished"
    (path / "config.toml").write_text(to_toml(replace(CONFIG, steps=2000)))
    assert run_state(path, tmp_path).state == "stopped"  # asked for more, and killed before it went on
