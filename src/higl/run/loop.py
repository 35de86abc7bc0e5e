"""The training loop: collect episodes, learn from each, evaluate. The command line and the library share it.

A run is a function of its settings and seed. Episode e draws all randomness from a seed made of the run's seed and e,
and the learner from keys made of the same two, so that between two episodes the only random state is the number of
the episode. With several environments, one episode of each is collected with the same policy, and they are learned
from in order.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from types import FrameType
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.episodes import Episode, collect_episode, collect_episodes
from higl.algo.health import ValueWatch
from higl.algo.learner import Learner
from higl.errors import EpisodeError
from higl.run.coverage import Coverage
from higl.run.measure import Evaluation, greedy_episodes
from higl.run.observers import Observer, Observers
from higl.run.own_goals import OwnGoals, hindsight_rewards
from higl.run.process import handling
from higl.run.seeds import EVALUATION, TRAINING, episode_seed


class Loop:
    """Trains a learner, and reports to observers."""

    def __init__(
        self,
        learner: Learner,
        env: gymnasium.Env | VectorEnv,
        test_env: gymnasium.Env,
        observers: Iterable[Observer],
    ):
        self.learner, self.config = learner, learner.config
        self.env, self.test_env = env, test_env
        self.observers = Observers(observers)
        self.coverage = Coverage.of(self.config, test_env)
        self.own_goals = OwnGoals.of(self.config, env, test_env)
        self.rewards = hindsight_rewards(self.config, env, test_env)
        self.evaluated: list[Episode] = []
        """Episodes of the last evaluation."""
        self.stop_signal: int | None = None
        self._values = ValueWatch()
        self._seconds_before = 0.0
        self._started = time.perf_counter()

    # --- Time and signals ---

    def start_clock(self, seconds_before: float) -> None:
        """Count seconds of work from now on, after those before an interruption."""
        self._seconds_before, self._started = seconds_before, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds of work so far, including those before an interruption."""
        return self._seconds_before + time.perf_counter() - self._started

    @property
    def stopped(self) -> bool:
        """Whether a signal or an observer asked to stop at the next point from which the run can be resumed."""
        return self.stop_signal is not None or self.observers.wants_to_stop()

    @contextmanager
    def stopping_on(
        self, signals: Collection[signal.Signals], text: str, again: Any = signal.SIG_DFL
    ) -> Generator[None]:
        """On a signal, print `text` and stop at the next possible point; a second one gets the handler `again`."""

        def stop(number: int, frame: FrameType | None) -> None:
            self.stop_signal = number
            signal.signal(number, again)
            # A live display shows it with its next refresh: other lines would move it. Else not through `print`, which
            # may be at work at this moment.
            if not self.observers.interrupted(text):
                os.write(2, f"\nhigl: {text}\n".encode())

        with handling(signals, stop):
            yield

    # --- The loop ---

    def run(self) -> None:
        """Train up to the settings' number of steps, or until stopped."""
        learner, config = self.learner, self.config
        if learner.before and learner.steps == 0:
            self.evaluate()  # what the other run is worth by itself
        while learner.steps < config.steps and not self.stopped:
            before, start = learner.steps, time.perf_counter()
            try:
                episodes = self.collect()
            except EpisodeError:
                if not self.stopped:
                    raise
                return  # the signal has ended the environments' processes, too
            if self.stopped:  # not learned from yet: the resumed run collects them again
                return
            collecting = (time.perf_counter() - start) / len(episodes)
            for episode in episodes:
                metrics = {"seconds/collect": collecting} | learner.learn(episode, self.rewards)
                if self.coverage is not None:
                    metrics["explored_share"] = self.coverage.share(learner.matrix.cells)
                place = {"step": learner.steps, "episode": learner.episodes, "time": round(self.seconds, 3)}
                self._values.see(metrics)
                self.observers.episode(place | metrics)
            every = config.evaluation.every
            if before // every < learner.steps // every or learner.steps >= config.steps:
                self.evaluate()
            self.observers.pause()

    def collect(self) -> list[Episode]:
        """Collect the next episodes of training, one from each environment.

        Raises:
            EpisodeError: an environment failed.
        """
        first, count = self.learner.episodes, self.config.num_envs
        seeds = [episode_seed(self.config.seed, TRAINING, first + index) for index in range(count)]
        place = f"episode {first + 1}, seed {seeds[0]}" if count == 1 else f"episodes {first + 1} to {first + count}"
        policy = self.learner.policy
        goals = None if self.own_goals is None else self.own_goals.draw(self.learner.matrix, seeds)
        with _naming_the_place(place):
            if isinstance(self.env, VectorEnv):
                episodes = collect_episodes(self.env, policy, seeds, goals)
            else:
                shown = None if goals is None else goals[0]
                episodes = [collect_episode(self.env, policy, seeds[0], explore=True, shown=shown)]
            _check_finite(episodes)
        return episodes

    def evaluate(self) -> None:
        """Run the evaluation episodes, without exploration.

        Raises:
            EpisodeError: the environment failed.
        """
        learner, policy = self.learner, self.learner.tested_policy
        seeds = [
            episode_seed(self.config.seed, EVALUATION, learner.episodes, index)
            for index in range(self.config.evaluation.episodes)
        ]
        with _naming_the_place(f"evaluation at step {learner.steps}"):
            episodes = list(greedy_episodes(self.test_env, policy, seeds))
            _check_finite(episodes)
        self.evaluated = episodes
        self.observers.evaluation(Evaluation.of(episodes).row(learner.steps, self.seconds))
        for text in self._values.warnings():
            self.observers.warn(f"step {learner.steps:,}: {text}")


def train_in_memory(loop: Loop) -> None:
    """Train to the end without writing anything.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed. It takes effect between two episodes, so that the learner can go on.
    """
    config, learner = loop.config, loop.learner
    loop.observers.begin(f"{config.task} ({config.algo})", learner.steps, config.steps)
    try:
        with loop.stopping_on([signal.SIGINT], "stopping after this stage", signal.default_int_handler):
            loop.run()
    finally:
        loop.observers.end()
    if loop.stop_signal is not None:
        raise KeyboardInterrupt


@contextmanager
def _naming_the_place(place: str) -> Generator[None]:
    """Say where an environment failed.

    Raises:
        EpisodeError: what it raised or returned, and where.
    """
    try:
        yield
    except EpisodeError as error:
        raise EpisodeError(f"{error} ({place})") from None
    except Exception as error:
        raise EpisodeError(f"the environment raised {type(error).__name__}: {error} ({place})") from error


def _check_finite(episodes: Collection[Episode]) -> None:
    """Reject episodes that contain NaN or infinity.

    Raises:
        EpisodeError: some part is not finite; the message names it.
    """
    for name in ("observation", "achieved", "desired", "reward"):
        if not all(np.isfinite(getattr(episode, name)).all() for episode in episodes):
            raise EpisodeError(f"the environment returned NaN or infinity in '{name}'")
