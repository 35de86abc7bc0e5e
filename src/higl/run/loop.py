"""The training loop: collect episodes, learn from each, evaluate. The command line and the library both run this one.

A run is a function of its settings and seed. Episode e draws all that is random from a seed made of the run's seed
and e, and the learner from keys made of the same two, so that between two episodes there is no random state to save
but the number of the episode. With several environments, as many episodes are collected with one policy and learned
from in their order.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.episodes import Episode, collect_episode, collect_episodes, explores
from higl.algo.learner import Learner, Metrics
from higl.errors import EpisodeError
from higl.run.measure import Outcome, evaluation_row
from higl.run.seeds import EVALUATION, TRAINING, episode_seed

Row = Mapping[str, float | int | str]

# Hears the measurements of every episode and evaluation; False stops the run.
Callback = Callable[[Row], bool | None]


class Loop:
    """Moves a learner on. What is kept and shown of it is up to those who override the hooks."""

    def __init__(
        self,
        learner: Learner,
        env: gymnasium.Env | VectorEnv,
        test_env: gymnasium.Env,
        callback: Callback | None = None,
    ):
        self.learner, self.config = learner, learner.config
        self.env, self.test_env, self.callback = env, test_env, callback
        self.stop_asked = False
        self.stop_signal: int | None = None
        self.seconds_before = 0.0
        self.started = time.perf_counter()

    # --- Hooks ---

    @property
    def stopped(self) -> bool:
        """Return whether a signal or the callback asked to stop, at the next point that a run can go on from."""
        return self.stop_asked or self.stop_signal is not None

    @contextmanager
    def noting(self, signals: Collection[signal.Signals], text: str, after: Any = signal.SIG_DFL) -> Generator[None]:
        """Note a signal, say so, and go on to a point where a run can stop; the same again has the handler `after`."""

        def note(number: int, frame: FrameType | None) -> None:
            self.stop_signal = number
            signal.signal(number, after)
            # Not through the display: it may be in the middle of printing.
            os.write(2, f"\nhigl: {text}\n".encode())

        if threading.current_thread() is not threading.main_thread():  # only there can signals be heard
            signals = ()
        # `nohup` has SIGHUP ignored: so it stays.
        heard = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
        handlers = {number: signal.signal(number, note) for number in heard}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def on_episode(self, metrics: Metrics) -> None:
        """Hear of an episode that was learned from."""

    def on_evaluation(self, row: Row, episodes: list[Episode]) -> None:
        """Hear of an evaluation."""

    def on_pause(self) -> None:
        """Do what can only be done between two rounds of episodes, such as saving."""

    # --- The loop ---

    @property
    def seconds(self) -> float:
        """Return the seconds of work so far, those before an interruption included."""
        return self.seconds_before + time.perf_counter() - self.started

    def loop(self) -> None:
        """Train up to the settings' number of steps, or until stopped."""
        learner, config = self.learner, self.config
        while learner.steps < config.steps and not self.stopped:
            before, start = learner.steps, time.perf_counter()
            try:
                episodes = self.collect()
            except EpisodeError:
                if not self.stopped:
                    raise
                return  # what asked to stop has ended the environments' processes, too
            if self.stopped:  # not learned from yet: the resumed run collects it again
                return
            collecting = (time.perf_counter() - start) / len(episodes)
            for episode in episodes:
                metrics = {"seconds/collect": collecting} | learner.learn(episode)
                self.on_episode(metrics)
                self._tell(metrics)
            every = config.evaluation.every
            if before // every < learner.steps // every or learner.steps >= config.steps:
                self.evaluate()
            self.on_pause()

    def collect(self) -> list[Episode]:
        """Collect the next episodes of training, one from each environment.

        Raises:
            EpisodeError: an environment failed.
        """
        first, count = self.learner.episodes, self.config.num_envs
        seeds = [episode_seed(self.config.seed, TRAINING, first + index) for index in range(count)]
        place = f"episode {first + 1}, seed {seeds[0]}" if count == 1 else f"episodes {first + 1} to {first + count}"
        policy = self.learner.policy
        explore = [explores(self.config, policy, seed) for seed in seeds]
        with _blaming_the_environment(place):
            if isinstance(self.env, VectorEnv):
                episodes = collect_episodes(self.env, policy, seeds, explore=explore)
            else:
                episodes = [collect_episode(self.env, policy, seeds[0], explore=explore[0])]
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
        with _blaming_the_environment(f"evaluation at step {learner.steps}"):
            episodes = [collect_episode(self.test_env, policy, seed, explore=False) for seed in seeds]
            _check_finite(episodes)
        row = evaluation_row(learner.steps, self.seconds, [Outcome.of(episode) for episode in episodes])
        self.on_evaluation(row, episodes)
        self._tell({f"evaluation/{name}": value for name, value in row.items()})

    def _tell(self, metrics: Row) -> None:
        """Tell the callback, and hear whether it wants to stop."""
        if self.callback is not None:
            place = {"step": self.learner.steps, "episode": self.learner.episodes}
            answer = self.callback({**place, **metrics})
            self.stop_asked |= answer is not None and not answer  # NumPy's False is another than Python's


@contextmanager
def _blaming_the_environment(place: str) -> Generator[None]:
    """Tell where it was that an environment failed.

    Raises:
        EpisodeError: what it raised, or gave, and where.
    """
    try:
        yield
    except EpisodeError as error:
        raise EpisodeError(f"{error} ({place})") from None
    except Exception as error:
        raise EpisodeError(f"the environment raised {type(error).__name__}: {error} ({place})") from error


def _check_finite(episodes: Collection[Episode]) -> None:
    """Refuse episodes with numbers that are none.

    Raises:
        EpisodeError: which part has them.
    """
    for name in ("observation", "achieved", "desired", "reward"):
        if not all(np.isfinite(getattr(episode, name)).all() for episode in episodes):
            raise EpisodeError(f"the environment gave NaN or infinity in '{name}'")
