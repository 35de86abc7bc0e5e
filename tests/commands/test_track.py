"""`higl track`, and `--tracker` with the real packages, offline."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3
import struct
from collections.abc import Iterator

import pytest
from support import tiny
from support.commands import tell, wait_for

from higl.run.reading import read_evaluations, read_metrics


def test_wrong_uses(run_folder, tmp_path, capsys):
    for words, message in [
        ((run_folder,), "which tracker? --tracker wandb"),
        ((run_folder, "--tracker", "wandbb"), "unknown tracker 'wandbb'; did you mean wandb?"),
        ((tmp_path / "none", "--tracker", "support.trackers:Listing"), "does not exist"),
    ]:
        code, _, error = tell(capsys, "track", *words)
        assert code == 2
        assert message in error
        assert error.count("\n") == 1


def test_train_rejects_an_unknown_tracker_before_it_writes(tmp_path, capsys):
    code, _, error = tell(capsys, "train", "point-maze", "--tracker", "wandbb", "--out", tmp_path / "run")
    assert code == 2
    assert "unknown tracker 'wandbb'" in error
    assert not (tmp_path / "run").exists()


def test_two_processes_cannot_write_one_record(run_folder, capsys):
    from higl.run.folder import Lock
    from higl.run.tracker_process import tracker_folder

    folder = tracker_folder(run_folder, "support.trackers:Listing")
    folder.mkdir(parents=True)
    lock = Lock(folder)
    code, _, error = tell(capsys, "track", run_folder, "--tracker", "support.trackers:Listing")
    lock.release()
    assert code == 1
    assert "is in use by process" in error


def test_a_tracker_that_is_ended_finishes_its_record(run_folder):
    from higl.run.folder import Lock

    lock = Lock(run_folder)  # so that the run seems to be trained
    process = tiny.start("track", run_folder, "--tracker", "support.trackers:Listing")
    wait_for((run_folder / "trackers" / "support.trackers-Listing" / "record.json").is_file, process)
    process.terminate()
    assert process.wait(60) == 143, process.communicate()
    lock.release()
    assert (run_folder / "listed-0.json").is_file()


def test_a_failing_tracker_is_one_line_below_its_traceback(run_folder, capsys, monkeypatch):
    monkeypatch.setattr("higl.commands.track.os.nice", lambda by: 0)
    code, _, error = tell(capsys, "track", run_folder, "--tracker", "support.trackers:Raising")
    assert code == 1
    assert error.splitlines()[-1] == "higl track: ZeroDivisionError: no server"


def wandb_records(content: bytes) -> Iterator[bytes]:
    """Read a .wandb file: LevelDB's log format, blocks of 32 KiB, after a header of 7 bytes."""
    place, record = 7, b""
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:  # padding
            place += left
            continue
        length, kind = struct.unpack("<HB", content[place + 4 : place + 7])
        record += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole one, or the last part
            yield record
            record = b""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="needs the extra wandb")
def test_wandb_offline(whole, tmp_path, monkeypatch):
    from wandb.proto import wandb_internal_pb2

    run = tmp_path / "run"
    shutil.copytree(whole, run)
    monkeypatch.setenv("WANDB_MODE", "offline")
    done = tiny.higl("track", run, "--tracker", "wandb")
    assert done.returncode == 0, done.stderr
    (file,) = run.glob("trackers/wandb/offline-run-*/run-*.wandb")
    history = []
    for content in wandb_records(file.read_bytes()):
        entry = wandb_internal_pb2.Record.FromString(content)
        if entry.WhichOneof("record_type") == "history":
            names = {item.key or ".".join(item.nested_key): item.value_json for item in entry.history.item}
            history.append({name: json.loads(value) for name, value in names.items()})
    by_step = {row["_step"]: row for row in history}
    for row in read_metrics(run).rows:
        assert by_step[row["step"]]["episode/return"] == row["episode/return"]
    for row in read_evaluations(run).rows:
        assert by_step[int(row["step"])]["evaluation/success"] == row["success"]
        assert any(name.startswith("landmarks") for name in by_step[int(row["step"])])
    assert len(list(file.parent.glob("files/media/images/*.png"))) == len(read_evaluations(run).rows)
    assert len(list(file.parent.glob("files/media/videos/*.mp4"))) == 1


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("trackio") is None, reason="needs the extra trackio")
def test_trackio_on_this_machine(whole, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    done = tiny.higl("track", run, "--tracker", "trackio")
    assert done.returncode == 0, done.stderr
    (database,) = (tmp_path / "trackio").glob("higl*.db")
    rows = sqlite3.connect(database).execute("select step, metrics from metrics order by step, id").fetchall()
    found: dict[int, dict] = {}
    for step, content in rows:
        found.setdefault(step, {}).update(json.loads(content))
    for row in read_metrics(run).rows:
        assert found[row["step"]]["episode/return"] == row["episode/return"]
    for row in read_evaluations(run).rows:
        assert found[int(row["step"])]["evaluation/success"] == row["success"]
    media = [path.suffix for path in (tmp_path / "trackio").rglob("*") if path.suffix in (".png", ".mp4")]
    assert sorted(media) == [".mp4"] + [".png"] * len(read_evaluations(run).rows)
