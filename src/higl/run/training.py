"""A run in its folder: the training loop with logs, checkpoints, snapshots and signals.

`open_training` is the only way to start or continue a run, for the command line and the library.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import gymnasium
import jax
from gymnasium.vector import VectorEnv

from higl.algo.learner import Learner
from higl.algo.policy import Spaces
from higl.algo.products import resolved_precision
from higl.envs.trust import is_imported
from higl.errors import CheckpointError
from higl.run.checkpoint import Checkpoints, Counters, learner_arrays, restore_newest
from higl.run.checks import check_goals, check_spaces
from higl.run.files import CHECKPOINT_MINUTES, CHECKPOINTS, POLICY, SNAPSHOTS
from higl.run.folder import RunFolder
from higl.run.loop import Loop
from higl.run.naming import run_title
from higl.run.observers import Callback, CallbackObserver, Observer, Row
from higl.run.policy_file import save_policy
from higl.run.process import available_cores
from higl.run.progress import evaluation_line
from higl.run.reading import how_to_continue, read_config, read_evaluations
from higl.run.snapshot_store import SnapshotStore
from higl.run.starting import check_start
from higl.run.stopping import StopAtSuccess
from higl.run.tracker_process import make_processes
from higl.run.trackers import Record, make_trackers
from higl.settings.config import Config
from higl.settings.flat import flat_config
from higl.text import duration

EXIT_FAILED = 1

# Signals that stop a run after it has saved.
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def open_training(
    path: Path,
    config: Config,
    env: gymnasium.Env | VectorEnv,
    test_env: gymnasium.Env,
    *,
    new: bool,
    progress: Observer,
    checkpoint_minutes: float = CHECKPOINT_MINUTES,
    callbacks: Sequence[Callback] = (),
    trackers: Sequence[str] = (),
    has_id: bool = True,
    test_env_name: str | None = None,
    start_from: Path | None = None,
) -> Generator[Training]:
    """Create a run folder, or open it to continue its run, and close it at the end.

    Args:
        path: the folder.
        config: settings; of a run that is continued only the number of steps may differ.
        env: environment, or several, to collect episodes from.
        test_env: environment of the evaluations.
        new: whether to create the folder; otherwise it must hold a run.
        progress: display.
        checkpoint_minutes: minutes between two checkpoints.
        callbacks: each receives every measurement; False stops the run.
        trackers: names of trackers, see `make_tracker`; those that already keep a record of the run continue it.
        has_id: whether the task is an id, from which the command line can make the environment.
        test_env_name: name of the test environment, if it is not the task's own; `run.json` keeps it.
        start_from: folder of a run with whose weights, buffers and map a new run starts; `run.json` keeps it.

    Raises:
        SettingsError: settings that do not fit the environment.
        RunFolderError: the folder cannot be used.
    """
    check_spaces(config, Spaces.of(env))
    if new and start_from is not None:
        check_start(config, start_from)
    check_goals(config, test_env if isinstance(env, VectorEnv) else env)
    folder = RunFolder.create(path, config, progress.warn) if new else RunFolder.open(path, progress.warn)
    if test_env_name is not None:
        folder.facts["test_env"] = test_env_name
    if new and start_from is not None:
        folder.facts["from"] = str(start_from.resolve())
    # The name in the folder may be one that nobody has named here: another environment was given.
    trust = is_imported(folder.facts.get("test_env") or config.task)
    processes = make_processes(path, trackers, progress.warn, trust=trust)
    observers = [progress, *processes]
    stopped = True
    try:
        training = Training(folder, config, env, test_env, observers, 60 * checkpoint_minutes, callbacks, has_id)
        yield training
        stopped = training.loop.stop_signal is not None
    finally:
        folder.close()
        for process in processes:  # now: they follow the run until its folder is closed
            process.finish(stopped=stopped)


class Training(Observer):
    """A run in its folder. As an observer of its own loop it takes snapshots and saves."""

    def __init__(
        self,
        folder: RunFolder,
        config: Config,
        env: gymnasium.Env | VectorEnv,
        test_env: gymnasium.Env,
        observers: Sequence[Observer],
        save_every_seconds: float,
        callbacks: Sequence[Callback] = (),
        has_id: bool = True,
    ):
        self.folder, self.config = folder, config
        self.spaces = Spaces.of(env)
        # A run keeps the precision of its first start, on whichever processor it continues.
        precision = folder.facts.setdefault("precision", resolved_precision(config.precision))
        self.learner = Learner(replace(config, precision=precision), self.spaces)
        trackers = make_trackers(Record(folder.path, flat_config(config)), self._warn)
        called = map(CallbackObserver, callbacks)
        self.loop = Loop(self.learner, env, test_env, [folder, *observers, *trackers, self, *called])
        self.observers = self.loop.observers
        self.checkpoints = Checkpoints(folder.path / CHECKPOINTS)
        self.snapshots = SnapshotStore(folder.path / SNAPSHOTS)
        self.has_id = has_id
        self.how_to_continue = how_to_continue(folder.path, folder.facts | {"has_id": has_id}, config)
        self.save_every_seconds = save_every_seconds
        self.stops = [each for each in callbacks if isinstance(each, StopAtSuccess)]
        self.saved_step: int | None = None
        self.seconds_saving = 0.0

    def run(self, *, raises: bool = False) -> int:
        """Continue from the last checkpoint to the end; return the exit code.

        A failure is logged; with `raises` the exception is passed on to the caller.
        """
        text = "stopping after this stage; a second signal stops at once, without saving"
        with self.loop.stopping_on(_STOPPING, text):  # also while the checkpoint is restored
            self._restore()
            self.observers.begin(run_title(self.config), self.learner.steps, self.config.steps)
            try:
                self.loop.run()
                return self._finish()
            except Exception as error:
                code = self._fail(error)
                if raises:
                    raise
                return code
            finally:
                self.observers.end()

    def _restore(self) -> None:
        """Restore the newest intact checkpoint, if there is one; then write the settings and truncate the logs."""
        found = restore_newest(self.learner, self.checkpoints, self._warn)
        if found is not None:
            self.saved_step = found.steps
        elif self.folder.facts["saved_step"] is not None:
            raise CheckpointError(
                f"{self.checkpoints.folder} is empty, although the run was saved at step "
                f"{self.folder.facts['saved_step']}: put the checkpoints back, or start a new run in another folder"
            )
        counters = found or Counters()
        origin = self.folder.facts.get("from") if found is None else None
        if origin is not None:
            self._start_from(Path(origin))
        self.folder.change_settings(self.config)
        self.checkpoints.remove_leftovers()
        self.folder.cut(counters.log_lengths)
        self.snapshots.cut(counters.steps)
        device = jax.devices()[0]
        differences = self.folder.start(available_cores(), f"{device.platform} ({device.device_kind})", counters.steps)
        self.folder.update(has_id=self.has_id)
        self._restart_stops()
        self.loop.start_clock(counters.seconds)
        self.next_save = time.perf_counter() + self.save_every_seconds
        if origin is not None:
            self.folder.update(before={"steps": self.learner.before, "goal": read_config(Path(origin)).goal})
            self._save()  # now: from here on the run does not need the other
            self.observers.note(f"starting from {origin}, which has learned from {self.learner.before:,} steps")
        if found is not None:
            self.observers.note(f"continuing {self.folder.path} at step {counters.steps:,}")
        if self.config.explores_freely:
            self.observers.note("no goal in training: evaluations are zero-shot, on the test goals of the task")
        if differences:
            self._warn("this start differs from the last one, so results may differ: " + ", ".join(differences))

    def _start_from(self, origin: Path) -> None:
        """Give the learner all that another run has learned, and count its steps from 0."""
        if restore_newest(self.learner, Checkpoints(origin / CHECKPOINTS), self._warn) is None:
            raise CheckpointError(f"{origin} has no checkpoint to start from")
        self.learner.start_over()

    def _restart_stops(self) -> None:
        """Note at which success to stop, and let the evaluations so far count."""
        successes = [row["success"] for row in read_evaluations(self.folder.path).rows]
        for stop in self.stops:
            stop.restart(successes)
        self.folder.update(stop_at=self.stops[0].success if self.stops else None, reached=False)

    # --- During the run ---

    def wants_to_stop(self) -> bool:
        """Return whether the wanted success is reached."""
        return any(stop.reached for stop in self.stops)

    def evaluation(self, row: Row) -> None:
        """Log the evaluation and take a snapshot."""
        self.folder.log(evaluation_line(row))
        try:
            self.snapshots.take(self.learner, self.loop.test_env, self.loop.evaluated)
        except Exception as error:  # a missing picture must not end a run of hours
            self._warn(f"no snapshot at step {self.learner.steps}: {type(error).__name__}: {error}")

    def pause(self) -> None:
        """Save if the last checkpoint is old enough."""
        if time.perf_counter() >= self.next_save:
            self._save()

    def _save(self) -> bool:
        """Write the policy and a checkpoint; return whether both are on disk."""
        learner, start = self.learner, time.perf_counter()
        if learner.steps == self.saved_step:
            return True
        try:
            lengths = self.folder.lengths()
            counters = Counters(learner.steps, learner.episodes, self.loop.seconds, lengths, learner.before)
            # The policy first: with a checkpoint of this step, a resumed run would not write the policy again.
            save_policy(self.folder.path / POLICY, learner.tested_policy, self.config, self.spaces)
            self.checkpoints.save(learner_arrays(learner), counters)
            self.saved_step = learner.steps
        except OSError as error:
            older = (
                "there is no older one" if self.saved_step is None else f"the one at step {self.saved_step} is intact"
            )
            self._warn(f"no checkpoint at step {learner.steps}: {error.strerror}; {older}, and the run continues")
        self.folder.update(saved_step=self.saved_step)
        self.seconds_saving += time.perf_counter() - start
        self.next_save = time.perf_counter() + self.save_every_seconds
        saved = self.saved_step == learner.steps
        if saved:
            self.observers.saved(learner.steps)
        return saved

    def _warn(self, text: str) -> None:
        self.observers.warn(text)

    # --- The end of the run ---

    def _finish(self) -> int:
        """Save, and say how the run ended."""
        saved = self._save()
        self.observers.end()  # now, so that the display does not cover the messages below
        loop, reached = self.loop, self.wants_to_stop()
        done = reached or self.learner.steps >= self.config.steps
        overhead = {"checkpoints": self.seconds_saving, "logs": self.folder.seconds_logging}
        # The saved step again: a run that was killed after its last checkpoint resumes directly here.
        status = "finished" if done and saved else "stopped"
        self.folder.update(
            status=status, saved_step=self.saved_step, seconds=loop.seconds, overhead=overhead, reached=reached
        )
        if not saved:
            self._warn(f"the run could not be saved at its end; free some disk space, then: {self.how_to_continue}")
            return EXIT_FAILED
        if done:
            text = f"{self.learner.steps:,} steps in {duration(loop.seconds)}; results in {self.folder.path}"
            why = f"success {self.stops[0].success:.0%} reached, " if reached else ""
            self.observers.note(f"finished: {why}{text}")
            return 0
        name = "the callback" if loop.stop_signal is None else signal.Signals(loop.stop_signal).name
        self._warn(f"stopped by {name} at step {self.learner.steps:,}, saved. To continue: {self.how_to_continue}")
        return 0 if loop.stop_signal is None else 128 + loop.stop_signal

    def _fail(self, error: Exception) -> int:
        """Say at which step the run failed and what to do; the last checkpoint stays as it is."""
        self.observers.end()
        saved = (
            "there is no checkpoint" if self.saved_step is None else f"the last checkpoint is step {self.saved_step}"
        )
        text = str(error) if isinstance(error, RuntimeError) else f"{type(error).__name__}: {error}"
        message = f"failed at step {self.learner.steps:,}: {text}"
        self.folder.update(status="failed", message=message, seconds=self.loop.seconds)
        self.folder.log_traceback(error)
        self._warn(
            f"{message}; {saved}. The same seed fails at the same step: fix the cause (see log.txt), then "
            f"`{self.how_to_continue}`; or start a new run with other settings or another seed"
        )
        return EXIT_FAILED
