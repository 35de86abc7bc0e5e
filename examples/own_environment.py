"""Wrap an environment that has no goals, train on it in less than a minute, act, save and load.

python examples/own_environment.py --steps 5000
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import higl


class Boat(gymnasium.Env):
    """A boat on a lake, drifting: thrust and rudder. It knows nothing of goals."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (6,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start in the middle, at rest, with any heading."""
        super().reset(seed=seed)
        self.place, self.speed, self.heading = np.zeros(2), np.zeros(2), self.np_random.uniform(-np.pi, np.pi)
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Turn, push, drift."""
        thrust, rudder = action
        self.heading += 0.4 * rudder
        direction = np.array([np.cos(self.heading), np.sin(self.heading)])
        self.speed = 0.8 * self.speed + 0.1 * thrust * direction
        self.place = np.clip(self.place + self.speed, -5.0, 5.0)
        return self._observe(), 0.0, False, False, {}

    def _observe(self) -> np.ndarray:
        return np.array([*self.place, *self.speed, np.cos(self.heading), np.sin(self.heading)])


def make_env() -> gymnasium.Env:
    """Give the boat a goal, drawn anew for each episode, and a time limit."""
    boat = gymnasium.wrappers.TimeLimit(Boat(), max_episode_steps=100)
    return higl.wrap_goal(
        boat,
        goal_fn=lambda observation: observation[:2],
        desired=lambda rng: rng.uniform(-4.0, 4.0, 2),
        radius=0.7,
    )


def main() -> None:
    """Train, evaluate, save, load, act."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5_000)
    steps = parser.parse_args().steps

    agent = higl.HIGL(make_env, seed=0, hidden=(64, 64))  # a small network: quick, and enough here
    print("before:", higl.evaluate(agent, episodes=20))
    agent.learn(steps)
    print("after: ", higl.evaluate(agent, episodes=20))

    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "boat.safetensors")
        loaded = higl.HIGL.load(Path(folder) / "boat.safetensors", make_env)

    env = make_env()
    observation, _ = env.reset(seed=1)
    state, ended = None, False
    while not ended:
        action, state = loaded.predict(observation, state)
        observation, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated or info["is_success"]
    print(f"the boat is at {observation['achieved_goal']}, and its goal at {observation['desired_goal']}")


if __name__ == "__main__":
    main()
