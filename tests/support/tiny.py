"""A tiny goal task and tiny settings, so that whole runs take seconds; used in this process and in others.

`support.tiny:tests/Tiny-v0` is a point on a square: its action is its step. Other ids break at a given step, are
slow, or easy: every state is a success; and one tells the reward for any goal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

TASK = "support.tiny:tests/Tiny-v0"
RAISES = "support.tiny:tests/Raises-v0"
NAN = "support.tiny:tests/NaN-v0"
SLOW = "support.tiny:tests/Slow-v0"
EASY = "support.tiny:tests/Easy-v0"
REWARDING = "support.tiny:tests/Rewarding-v0"
BREAKS_AT = 130
LENGTH = 20


class TinyEnv(gymnasium.Env):
    """A point on a square of side 4; the goal is in the first quadrant."""

    def __init__(self, breaks: str = ""):
        box = spaces.Box(-np.inf, np.inf, (2,))
        self.observation_space = spaces.Dict(
            {"observation": spaces.Box(-np.inf, np.inf, (3,)), "achieved_goal": box, "desired_goal": box}
        )
        self.action_space = spaces.Box(-1.0, 1.0, (2,))
        self._breaks, self._steps_ever = breaks, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self._place, self._steps = np.zeros(2), 0
        self._in_use = seed is None or seed > 1000  # smaller seeds: it is only looked at, to derive settings
        self._goal = self.np_random.uniform(0.5, 2.0, 2)
        return self._observe(), {}

    def step(self, action: np.ndarray):
        self._place = np.clip(self._place + 0.3 * np.asarray(action), -2.0, 2.0)
        self._steps += 1
        self._steps_ever += self._in_use
        near = bool(np.linalg.norm(self._place - self._goal) < 0.5) or self._breaks == "easy"
        if self._breaks == "slow":
            time.sleep(0.1 * self._in_use)
        elif self._breaks in ("raise", "nan") and self._steps_ever >= BREAKS_AT:
            if self._breaks == "raise":
                raise ArithmeticError("the motor came off")
            self._place = self._place * np.nan
        return self._observe(), float(near) - 1.0, False, self._steps >= LENGTH, {"is_success": near}

    def _observe(self) -> dict[str, np.ndarray]:
        observation = np.append(self._place, 0.01 * self._steps)
        return {"observation": observation, "achieved_goal": self._place.copy(), "desired_goal": self._goal.copy()}


class RewardingEnv(TinyEnv):
    """The tiny task, which also tells the reward for any goal."""

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any) -> float:
        return float(np.linalg.norm(np.asarray(achieved_goal) - desired_goal) < 0.5) - 1.0


if "tests/Rewarding-v0" not in gymnasium.registry:
    gymnasium.register("tests/Rewarding-v0", RewardingEnv, disable_env_checker=True, order_enforce=False)

for _name, _breaks in (("Tiny", ""), ("Raises", "raise"), ("NaN", "nan"), ("Slow", "slow"), ("Easy", "easy")):
    if f"tests/{_name}-v0" not in gymnasium.registry:
        gymnasium.register(
            f"tests/{_name}-v0", TinyEnv, kwargs={"breaks": _breaks}, disable_env_checker=True, order_enforce=False
        )

# All parts are in use within a few episodes: planning from the 3rd, adjacency after every 5th.
SETTINGS = {
    "task": TASK,
    "steps": 200,
    # Given, since they are else derived from the number of steps, in which tests differ.
    "low.actor_learning_rate": 1e-4,
    "high.actor_learning_rate": 1e-4,
    "high.random_steps": 0,
    "hidden": (8, 8),
    "batch_size": 8,
    "buffer_size": 150,
    "low.exploration": 0.3,
    "high.period": 5,
    "high.subgoal_range": (1.0,),
    "adjacency.cell": 0.5,
    "adjacency.every": 100,
    "adjacency.epochs": 1,
    "landmarks.coverage": 4,
    "landmarks.novelty": 4,
    "landmarks.pool": 30,
    "landmarks.start": 60,
    "evaluation.every": 60,
    "evaluation.episodes": 2,
}


def flags(**changes: Any) -> list[str]:
    """Return the settings as flags of `higl train`; `low__discount` stands for `low.discount`."""
    settings = SETTINGS | {name.replace("__", "."): value for name, value in changes.items()}
    words = [str(settings.pop("task"))]
    for name, value in settings.items():
        words += [f"--{name}", *(map(str, value) if isinstance(value, tuple) else [str(value)])]
    return words


def environment() -> dict[str, str]:
    """Return the variables of a process that knows the tiny task."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "COLUMNS": "200"}


def start(*arguments: object, **options: Any) -> subprocess.Popen:
    """Start `higl` in a process of its own."""
    command = [sys.executable, "-m", "higl.cli", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment(), **(pipes | options))


def higl(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    """Run `higl` in a process of its own."""
    command = [sys.executable, "-m", "higl.cli", *map(str, arguments)]
    return subprocess.run(command, env=environment(), cwd=cwd, capture_output=True, text=True, check=False)


def lines(run: Path) -> list[dict[str, float]]:
    """Return the metrics of a run without its times."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [without_times(row) for row in rows]


def without_times(row: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in row.items() if name != "time" and not name.startswith("seconds/")}


def evaluations(run: Path) -> list[list[str]]:
    """Return the evaluations of a run without their times."""
    rows = [line.split(",") for line in (run / "eval.csv").read_text().splitlines()]
    return [row[:1] + row[2:] for row in rows]
