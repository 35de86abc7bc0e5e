"""Follow a run folder and hand what is new to a tracker: measurements, evaluations, landmark maps, and the video."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from higl.errors import NoSnapshotsError
from higl.figures.curves import save
from higl.figures.maps import draw_landmarks
from higl.run.files import VIDEO
from higl.run.observers import Row
from higl.run.reading import (
    MetricsTail,
    Run,
    SnapshotFile,
    is_locked,
    list_snapshots,
    read_config,
    read_evaluations,
    read_facts,
    read_run,
)
from higl.run.tracker_process import Written, save_written
from higl.run.trackers import Record, Tracker, episode_numbers, evaluation_numbers
from higl.settings.flat import flat_config

# Seconds between two looks at the folder.
_EVERY = 2.0


class Follower:
    """Hands what a run folder holds, and the tracker has not written yet, to a tracker."""

    def __init__(self, run: Path, tracker: Tracker, written: Written, say: Callable[[str], None]):
        self._run = Run(run, settings=flat_config(read_config(run)), facts=read_facts(run))
        self._tracker, self._written, self._say = tracker, written, say
        self._metrics = MetricsTail(run)

    def follow(self) -> None:
        """Follow the run until no process works on it; make the video if it is finished."""
        path, written = self._run.path, self._written
        settings = self._run.settings | {"test_env": self._run.test_env or self._run.task}
        try:
            self._tracker.begin(Record(path, settings, written.id, written.step))
            save_written(path, written)
            working = True
            while working:
                working = is_locked(path)  # first: then everything that the run has written is read
                self._write_new()
                save_written(path, self._written)
                if working:
                    time.sleep(_EVERY)
            self._write_video()
            save_written(path, self._written)
        except BaseException:
            with suppress(Exception):  # the first failure is the one to report
                self._tracker.end()
            raise
        self._tracker.end()

    def _write_new(self) -> None:
        """Write what is new, in the order of steps."""
        written = self._written
        # In this order: once an episode has been read, the evaluations and snapshots before it can be read too.
        new: list[tuple[int, Callable[[], None]]] = []
        for row in self._metrics.rows():
            new += [(int(row["step"]), partial(self._write_episode, row))] if row["step"] > written.episode else []
        for row in read_evaluations(self._run.path).rows:
            later = row["step"] > written.evaluation
            new += [(int(row["step"]), partial(self._write_evaluation, row))] if later else []
        for snapshot in list_snapshots(replace(self._run, notices=[])):
            new += [(snapshot.step, partial(self._write_map, snapshot))] if snapshot.step > written.map else []
        for _, write in sorted(new, key=lambda item: item[0]):
            write()

    def _write_episode(self, row: Row) -> None:
        self._written.episode = int(row["step"])
        self._tracker.log(self._written.episode, episode_numbers(row))

    def _write_evaluation(self, row: Row) -> None:
        self._written.evaluation = int(row["step"])
        self._tracker.log(self._written.evaluation, evaluation_numbers(row))

    def _write_map(self, snapshot: SnapshotFile) -> None:
        self._written.map = snapshot.step
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder) / "landmarks.png"
            try:
                save(draw_landmarks(replace(self._run, snapshots=[snapshot]), 1, graph=True), picture)
            except NoSnapshotsError:  # thinned out in the meantime
                return
            self._tracker.picture(snapshot.step, "landmarks", picture)

    def _write_video(self) -> None:
        """Make the video of a finished run, unless it has one of its last policy."""
        run = read_run(self._run.path)
        if run.status != "finished" or run.last_step <= self._written.video:
            return
        try:
            file = self._video(run)
        except Exception as error:  # no id of the environment, no GL library, ...: the record is complete without it
            self._say(f"no video: {type(error).__name__}: {error}")
            return
        self._tracker.video(run.last_step, "video", file)
        self._written.video = run.last_step

    def _video(self, run: Run) -> Path:
        from higl.figures.video import make_video

        file = run.path / VIDEO
        if not (run.video and file.stat().st_mtime > run.policy.stat().st_mtime):
            self._say(make_video(run, file, say=self._say))
        return file
