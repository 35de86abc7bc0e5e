"""Stop a run when it has learned its task."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from higl.errors import SettingsError
from higl.run.observers import Row


class StopAtSuccess:
    """A callback that stops training once several evaluations in a row have a mean success of at least a share.

    The run then counts as finished. Evaluations before an interruption count too.

    Args:
        success: Share of successful episodes, more than 0 and at most 1.
        evaluations: Number of evaluations in a row.

    Raises:
        SettingsError: a number is out of range.
    """

    def __init__(self, success: float, evaluations: int = 5):
        if not 0 < success <= 1:
            raise SettingsError(f"stop at success {success:g}: expected a share, more than 0 and at most 1")
        if evaluations < 1:
            raise SettingsError(f"stop after {evaluations} evaluations: expected 1 or more")
        self.success, self.evaluations = success, evaluations
        self._last: deque[float] = deque(maxlen=evaluations)

    def __call__(self, row: Row) -> bool:
        """Take in a row; return False if it is the evaluation at which to stop."""
        if "evaluation/success" not in row:
            return True
        self._last.append(float(row["evaluation/success"]))
        return not self.reached

    def restart(self, successes: Iterable[float]) -> None:
        """Forget all evaluations, and take in those of a run that is continued."""
        self._last.clear()
        self._last.extend(successes)

    @property
    def reached(self) -> bool:
        """Whether the last evaluations have the wanted mean."""
        return len(self._last) == self.evaluations and sum(self._last) / self.evaluations >= self.success - 1e-9
