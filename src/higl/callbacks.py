"""Ready-made callbacks: `agent.learn(100_000, callback=[StopAtSuccess(0.95), KeepBest("best.safetensors")])`.

A callback is any function that takes a dict of named numbers, see `learn`. If it is an object with a method
`begin(agent)`, `learn` calls that first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from higl.agent import Agent, evaluate
from higl.errors import SettingsError
from higl.run.observers import Row
from higl.run.stopping import StopAtSuccess

if TYPE_CHECKING:
    from higl.envs.source import EnvironmentLike
    from higl.run.measure import Evaluation

__all__ = ["EvaluateElsewhere", "KeepBest", "StopAtSuccess"]


class KeepBest:
    """Saves the policy with the best evaluation so far: by success, then by return.

    Args:
        path: File to write, as `agent.save` does.

    Attributes:
        step: Step of that evaluation, None before the first one.
        success: Its success.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.step: int | None = None
        self.success = 0.0
        self._best: tuple[float, float] | None = None

    def begin(self, agent: Agent) -> None:
        """Save the policy of this agent."""
        self._agent = agent

    def __call__(self, row: Row) -> None:
        """Save the policy if this is an evaluation, and the best one."""
        if "evaluation/success" not in row:
            return
        found = float(row["evaluation/success"]), float(row["evaluation/return"])
        if self._best is None or found > self._best:
            self._best, self.step, self.success = found, int(row["step"]), found[0]
            self._agent.save(self.path)


class EvaluateElsewhere:
    """Evaluates the policy in another environment: with other goals, another maze, or more episodes.

    Args:
        env: The environment, as `HIGL` takes it; it needs the same spaces.
        episodes: Episodes of each evaluation.
        every: Steps between two of these evaluations; they take place together with those of training. Default: at each
            of those.
        seed: The same seed gives the same episodes each time.

    Attributes:
        results: Step and summary of each evaluation.
    """

    def __init__(self, env: EnvironmentLike, *, episodes: int = 20, every: int = 0, seed: int = 0):
        if episodes < 1 or every < 0:
            raise SettingsError("EvaluateElsewhere: episodes must be 1 or more, every 0 or more")
        self._env, self._episodes, self._every, self._seed = env, episodes, every, seed
        self.results: list[tuple[int, Evaluation]] = []

    def begin(self, agent: Agent) -> None:
        """Evaluate the policy of this agent."""
        self._agent = agent

    def __call__(self, row: Row) -> None:
        """Evaluate, if this is an evaluation and the last one here is long enough ago."""
        step, last = int(row["step"]), self.results[-1][0] if self.results else -self._every
        if "evaluation/success" in row and step - last >= self._every:
            self.results.append((step, evaluate(self._agent, self._env, self._episodes, seed=self._seed)))
