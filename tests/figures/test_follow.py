"""Following a run folder: everything reaches the tracker once, in the order of steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.synthetic import synthetic_run
from support.trackers import Listing, Raising

from higl.figures import follow
from higl.figures.follow import Follower
from higl.run.folder import Lock
from higl.run.reading import read_evaluations, read_metrics, read_run
from higl.run.tracker_process import read_written, tracker_folder


def make(run: Path, tracker, said: list[str] | None = None) -> Follower:
    tracker_folder(run, "listing").mkdir(parents=True, exist_ok=True)
    return Follower(run, tracker, read_written(run, "listing"), (said if said is not None else []).append)


def test_everything_is_written_once_in_order(run_folder, video_bytes):
    (run_folder / "video.mp4").write_bytes(video_bytes)
    (run_folder / "policy.safetensors").touch()
    said: list[str] = []
    tracker = Listing()
    make(run_folder, tracker, said).follow()
    assert tracker.ends == 1
    assert tracker.record.settings["task"] == tracker.record.settings["test_env"] == read_run(run_folder).task
    steps = [step for step, _ in tracker.calls]
    assert steps == sorted(steps)
    evaluations = [step for step, what in tracker.calls if "evaluation/success" in what]
    assert evaluations == [row["step"] for row in read_evaluations(run_folder).rows]
    maps = [step for step, what in tracker.calls if what == "landmarks"]
    assert maps == [snapshot.step for snapshot in read_run(run_folder).snapshots]
    others = [call for call in tracker.calls if call[1] not in ("landmarks", "video")]
    assert len(others) == len(read_metrics(run_folder).rows) + len(evaluations)

    again = Listing()
    make(run_folder, again).follow()
    assert again.calls == []
    assert again.record.id == tracker.record.id


def test_a_video_that_cannot_be_made_is_left_out(run_folder):
    said: list[str] = []
    tracker = Listing()
    make(run_folder, tracker, said).follow()
    assert "video" not in [what for _, what in tracker.calls]
    assert [text.split(":")[0] for text in said] == ["no video"] * (read_run(run_folder).status == "finished")


def test_a_run_is_followed_while_it_is_trained(tmp_path, monkeypatch):
    """Rows that come later are written, and so are those of a run that was resumed before its last rows."""
    run = synthetic_run(tmp_path / "run", snapshots=0)
    metrics = run / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    versions = iter(["".join(lines[:2]) + lines[2][:9], "".join(lines[:5]), "".join(lines[:3]), "".join(lines[:8])])
    lock = Lock(run)

    def work(_) -> None:
        if content := next(versions, None):
            metrics.write_text(content)
        else:
            lock.release()

    metrics.write_text("")
    monkeypatch.setattr(follow.time, "sleep", work)
    tracker = Listing()
    make(run, tracker).follow()
    steps = [step for step, what in tracker.calls if "evaluation/success" not in what and what != "landmarks"]
    assert steps == [json.loads(line)["step"] for line in lines[:8]]


def test_a_failure_ends_the_tracker_and_is_passed_on(run_folder):
    with pytest.raises(ZeroDivisionError, match="no server"):
        make(run_folder, Raising()).follow()
