"""Observers: everything that listens to a run, through one small interface.

The run folder, the progress display, the user's callback and the trackers are observers. Imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

Row = Mapping[str, float | int | str]
"""Named measurements of one episode (`step`, `episode`, `time`, then the learner's), or one row of `eval.csv`."""

Callback = Callable[[Row], bool | None]
"""Receives the measurements of every episode and evaluation; False stops the run."""


class Observer:
    """Listens to a run. Every method does nothing unless a subclass overrides it."""

    def begin(self, name: str, step: int, total: int) -> None:
        """React to training that starts at `step`, of `total` steps."""

    def episode(self, row: Row) -> None:
        """React to an episode that was collected and learned from."""

    def evaluation(self, row: Row) -> None:
        """React to an evaluation."""

    def pause(self) -> None:
        """Act between two rounds of episodes, where a run can be resumed."""

    def saved(self, step: int) -> None:
        """React to a checkpoint of this step on disk."""

    def note(self, text: str) -> None:
        """Take a message that a quiet run does not show."""

    def warn(self, text: str) -> None:
        """Take a message that is always shown."""

    def end(self) -> None:
        """Finish when training is over, successfully or not; possibly more than once."""

    def interrupted(self, text: str) -> bool:
        """React to a signal that will stop the run; return whether `text` will be shown. A signal handler calls it."""
        return False

    def wants_to_stop(self) -> bool:
        """Return whether the run should stop at the next point from which it can be resumed."""
        return False


class Observers(Observer):
    """Passes every event on to several observers, in order."""

    def __init__(self, observers: Iterable[Observer]):
        self._observers = tuple(observers)

    def begin(self, name: str, step: int, total: int) -> None:
        """Pass it on."""
        for observer in self._observers:
            observer.begin(name, step, total)

    def episode(self, row: Row) -> None:
        """Pass it on."""
        for observer in self._observers:
            observer.episode(row)

    def evaluation(self, row: Row) -> None:
        """Pass it on."""
        for observer in self._observers:
            observer.evaluation(row)

    def pause(self) -> None:
        """Pass it on."""
        for observer in self._observers:
            observer.pause()

    def saved(self, step: int) -> None:
        """Pass it on."""
        for observer in self._observers:
            observer.saved(step)

    def note(self, text: str) -> None:
        """Pass it on."""
        for observer in self._observers:
            observer.note(text)

    def warn(self, text: str) -> None:
        """Pass it on."""
        for observer in self._observers:
            observer.warn(text)

    def end(self) -> None:
        """Pass it on."""
        for observer in self._observers:
            observer.end()

    def interrupted(self, text: str) -> bool:
        """Pass it on; return whether any observer will show the text."""
        shown = [observer.interrupted(text) for observer in self._observers]  # all of them, not up to the first
        return any(shown)

    def wants_to_stop(self) -> bool:
        """Return whether any observer wants to stop."""
        return any(observer.wants_to_stop() for observer in self._observers)


class CallbackObserver(Observer):
    """Calls a user's function with the measurements of every episode and evaluation; False stops the run.

    An exception in the function ends the run, as it would in the user's own loop.
    """

    def __init__(self, callback: Callback):
        self._callback = callback
        self._episode: float | int | str = 0
        self._stop = False

    def episode(self, row: Row) -> None:
        """Call the function with the row."""
        self._episode = row["episode"]
        self._call(row)

    def evaluation(self, row: Row) -> None:
        """Call the function with `step`, `episode` and the row's entries as `evaluation/NAME`."""
        named = {f"evaluation/{name}": value for name, value in row.items()}
        self._call({"step": row["step"], "episode": self._episode, **named})

    def wants_to_stop(self) -> bool:
        """Return whether the function has returned False."""
        return self._stop

    def _call(self, row: Row) -> None:
        answer = self._callback(row)
        self._stop |= answer is not None and not answer  # not `is False`: NumPy has its own
