"""A run in its folder: the training loop with logs, checkpoints, snapshots, and what to do about signals."""

from __future__ import annotations

import signal
import time

import gymnasium
import jax
from gymnasium.vector import VectorEnv

from higl.algo.episodes import Episode
from higl.algo.learner import Learner, Metrics
from higl.algo.policy import Spaces
from higl.errors import CheckpointError, SettingsError
from higl.run.checkpoint import Checkpoints, Counters, learner_arrays, restore_learner
from higl.run.files import CHECKPOINTS, POLICY, SNAPSHOTS
from higl.run.folder import RunFolder
from higl.run.loop import Callback, Loop, Row
from higl.run.policy_file import save_policy
from higl.run.process import available_cores
from higl.run.progress import Progress, evaluation_line
from higl.run.snapshot_store import SnapshotStore
from higl.run.trackers import EventWriter
from higl.settings.config import Config
from higl.text import duration

EXIT_FAILED = 1

# What asks a run to stop.
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def check_spaces(config: Config, spaces: Spaces) -> None:
    """Refuse settings that do not fit the environment.

    Raises:
        SettingsError: which, and why.
    """
    if len(config.high.subgoal_range) not in (1, spaces.goal):
        raise SettingsError(f"high.subgoal_range: expected 1 or {spaces.goal} numbers for the task {config.task}")
    if any(entry >= spaces.observation for entry in config.low.hidden_entries):
        raise SettingsError(f"low.hidden_entries: the observation of {config.task} has {spaces.observation} entries")


def check_device(device: str | None) -> None:
    """Refuse a device that JAX does not find.

    Raises:
        SettingsError: there is none, and what to install.
    """
    try:
        jax.devices()
    except Exception as error:
        if device is None:  # not of our choosing
            raise
        hint = "; for an NVIDIA one: pip install 'jax[cuda12]'" if device == "gpu" else ""
        raise SettingsError(f"--device {device}: JAX finds none here{hint}") from error


class Training(Loop):
    """A run at work in its folder."""

    def __init__(
        self,
        folder: RunFolder,
        env: gymnasium.Env | VectorEnv,
        test_env: gymnasium.Env,
        progress: Progress,
        save_every_seconds: float,
        callback: Callback | None = None,
        how_to_continue: str | None = None,
    ):
        self.how_to_continue = how_to_continue or f"higl resume {folder.path}"
        self.spaces = Spaces.of(env)
        super().__init__(Learner(folder.config, self.spaces), env, test_env, callback)
        self.folder, self.progress = folder, progress
        self.checkpoints = Checkpoints(folder.path / CHECKPOINTS)
        self.snapshots = SnapshotStore(folder.path / SNAPSHOTS)
        self.save_every_seconds = save_every_seconds
        self.saved_step: int | None = None
        self.seconds_saving = 0.0

    def run(self, *, raises: bool = False) -> int:
        """Go on from the last checkpoint to the end; return the exit code.

        What fails is written down; with `raises` the exception goes on to the caller.
        """
        name = f"{self.config.task} ({self.config.algo}, {self.config.reward}, seed {self.config.seed})"
        self.begin()
        self.events = EventWriter(self.folder.path, self.learner.steps, self._warn)
        self.progress.begin(name, self.learner.steps, self.config.steps)
        try:
            with self.noting(_STOPPING, "stopping after this stage; once more ends at once, without saving"):
                self.loop()
            return self._finish()
        except Exception as error:
            code = self._fail(error)
            if raises:
                raise
            return code
        finally:
            self.events.close()
            self.progress.end()

    def begin(self) -> None:
        """Restore the newest intact checkpoint, if there is one, and cut the logs back to it."""
        loaded = self.checkpoints.load(self._warn)
        arrays, counters = loaded if loaded is not None else ({}, Counters())
        if loaded is not None:
            restore_learner(self.learner, arrays, counters)
            self.saved_step = counters.steps
        elif self.folder.facts["saved_step"] is not None:
            raise CheckpointError(
                f"{self.checkpoints.folder} is empty, and the run was saved there at step "
                f"{self.folder.facts['saved_step']}: put the checkpoints back, or start anew with another --out"
            )
        self.checkpoints.sweep()
        self.folder.cut(counters.log_lengths)
        self.snapshots.cut(counters.steps)
        self.seconds_before = counters.seconds
        device = jax.devices()[0]
        differences = self.folder.start(available_cores(), f"{device.platform} ({device.device_kind})", counters.steps)
        self._start_clock()
        if loaded is not None:
            self._say(f"continuing {self.folder.path} at step {counters.steps:,}")
        if differences:
            self._warn("not as at the last start, so the numbers may differ a little: " + ", ".join(differences))

    # --- What the loop tells ---

    def on_episode(self, metrics: Metrics) -> None:
        """Log and show an episode."""
        learner = self.learner
        self.folder.metrics(learner.steps, learner.episodes, self.seconds, metrics)
        self.progress.episode(learner.steps, metrics)
        self.events.write("", metrics, learner.steps)

    def on_evaluation(self, row: Row, episodes: list[Episode]) -> None:
        """Keep an evaluation's outcome, its paths and a picture of the landmarks."""
        learner = self.learner
        self.folder.evaluation(row)
        self.folder.log(evaluation_line(row))
        self.progress.evaluation(row)
        self.events.write("evaluation/", row, learner.steps)
        try:
            self.snapshots.take(learner, self.test_env, episodes)
        except Exception as error:  # a run of hours does not end for want of a picture
            self._warn(f"no snapshot at step {learner.steps}: {type(error).__name__}: {error}")

    def on_pause(self) -> None:
        """Save if the last checkpoint is a while ago."""
        if time.perf_counter() >= self.next_save:
            self._save()

    def _save(self) -> bool:
        """Write a checkpoint and the policy; return whether that went well."""
        learner, start = self.learner, time.perf_counter()
        if learner.steps == self.saved_step:
            return True
        try:
            counters = Counters(learner.steps, learner.episodes, self.seconds, self.folder.lengths())
            # The policy first: once there is a checkpoint of this step, none of this is done again.
            save_policy(self.folder.path / POLICY, learner.tested_policy, self.config, self.spaces)
            self.checkpoints.save(learner_arrays(learner), counters)
            self.saved_step = learner.steps
        except OSError as error:
            kept = (
                "there is no older one" if self.saved_step is None else f"the one at step {self.saved_step} is intact"
            )
            self._warn(f"no checkpoint at step {learner.steps}: {error.strerror}; {kept}, and the run goes on")
        self.folder.update(saved_step=self.saved_step)
        self.seconds_saving += time.perf_counter() - start
        self.next_save = time.perf_counter() + self.save_every_seconds
        return self.saved_step == learner.steps

    # --- The end of a run ---

    def _finish(self) -> int:
        """Save, and tell how the run ended."""
        saved = self._save()
        self.progress.end()  # so that what follows is the last that is seen
        done = self.learner.steps >= self.config.steps
        overhead = {"checkpoints": self.seconds_saving, "logs": self.folder.seconds_logging}
        # Where it was saved, too: killed between its last checkpoint and telling of it, a run comes here at once.
        status = "finished" if done and saved else "stopped"
        self.folder.update(status=status, saved_step=self.saved_step, seconds=self.seconds, overhead=overhead)
        if not saved:
            self._warn(f"the run could not be saved at its end; free some space, then: {self.how_to_continue}")
            return EXIT_FAILED
        if done:
            self._say(
                f"finished: {self.learner.steps:,} steps in {duration(self.seconds)}; results in {self.folder.path}"
            )
            return 0
        name = "the callback" if self.stop_signal is None else signal.Signals(self.stop_signal).name
        self._warn(f"stopped by {name} at step {self.learner.steps:,}, saved. To continue: {self.how_to_continue}")
        return 0 if self.stop_signal is None else 128 + self.stop_signal

    def _fail(self, error: Exception) -> int:
        """Tell at which step the run failed and what to do; the last checkpoint stays as it is."""
        self.progress.end()
        saved = (
            "there is no checkpoint yet"
            if self.saved_step is None
            else f"the last checkpoint is step {self.saved_step}"
        )
        text = str(error) if isinstance(error, RuntimeError) else f"{type(error).__name__}: {error}"
        message = f"failed at step {self.learner.steps:,}: {text}"
        self.folder.update(status="failed", message=message, seconds=self.seconds)
        self.folder.log_traceback(error)
        self._warn(
            f"{message}; {saved}. The same seed fails in the same place: fix the cause (see log.txt), then "
            f"`{self.how_to_continue}`, or start anew with other settings or another seed"
        )
        return EXIT_FAILED

    # --- Small things ---

    def _start_clock(self) -> None:
        self.started = time.perf_counter()
        self.next_save = self.started + self.save_every_seconds

    def _say(self, text: str) -> None:
        self.folder.log(text)
        self.progress.note(text)

    def _warn(self, text: str) -> None:
        self.folder.log(text)
        self.progress.warn(text)
