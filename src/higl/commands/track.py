"""`higl track`: a run in Weights & Biases, Trackio, or a tracker of your own."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from higl.commands.arguments import Argument, Run
from higl.commands.command import command, only_run
from higl.commands.trust import TrustOptions, import_task_module
from higl.errors import SettingsError, TrackerError
from higl.run.folder import Lock
from higl.run.process import handling
from higl.run.reading import read_config, tested_in
from higl.run.tracker_process import read_written, tracker_folder
from higl.run.trackers import Tracker, make_tracker


@dataclass(frozen=True, kw_only=True)
class TrackOptions(TrustOptions):
    """Write a run into a tracker: curves, evaluations, landmark maps and, when it is finished, a video.

    A run that is being trained is followed to its end. What the tracker has already written is not written again.
    """

    run: Run
    """Folder of a run."""
    tracker: Annotated[str | None, Argument(metavar="NAME", default="")] = None
    """Tracker: wandb, trackio, or your own class as `module:Class`."""


@command("track", TrackOptions)
def track(options: TrackOptions) -> int:
    """Follow a run and hand everything to a tracker."""
    if options.tracker is None:
        raise SettingsError("which tracker? --tracker wandb, --tracker trackio, or your own as --tracker module:Class")
    tracker = make_tracker(options.tracker)
    run = only_run(options.run, notices=False).path
    if options.trust:  # else a run whose task has a module gets no video
        import_task_module(tested_in(run, read_config(run)))
    folder = tracker_folder(run, options.tracker)
    folder.mkdir(parents=True, exist_ok=True)
    lock = Lock(folder)
    os.nice(10)  # training comes first
    try:
        with handling([signal.SIGTERM], _stop):
            _follow(options.tracker, tracker, run)
    finally:
        lock.release()
    return 0


def _stop(number: int, frame: object) -> None:
    """Let the tracker finish its record."""
    raise SystemExit(128 + number)


def _follow(name: str, tracker: Tracker, run: Path) -> None:
    """Follow the run, and report what the tracker raises in one line below its traceback."""
    from higl.figures.follow import Follower

    follower = Follower(run, tracker, read_written(run, name), say=lambda text: print(text, file=sys.stderr))
    try:
        follower.follow()
    except Exception as error:
        traceback.print_exc()
        raise TrackerError(f"{type(error).__name__}: {error}") from error
