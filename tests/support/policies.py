"""Policies for synthetic runs: small random networks."""

from pathlib import Path

import numpy as np

from higl.algo.forward import Layer
from higl.algo.policy import Policy, Spaces
from higl.envs.make import make_env
from higl.run.policy_file import save_policy
from higl.run.reading import read_config


def give_policy(folder: Path, spaces: Spaces | None = None) -> None:
    """Write a policy of random networks into a run folder; the spaces are those of its task, if not given."""
    config = read_config(folder)
    spaces = spaces or Spaces.of(make_env(config.task, config.reward, "test"))
    rng = np.random.default_rng(0)

    def network(inputs: int, outputs: int):
        sizes = ((inputs, 16), (16, outputs))
        return tuple(
            Layer(rng.normal(0, a**-0.5, (a, b)).astype(np.float32), np.zeros(b, np.float32)) for a, b in sizes
        )

    inputs = spaces.observation + spaces.goal
    policy = Policy(config, spaces, network(inputs, spaces.action), network(inputs, spaces.goal))
    save_policy(folder / "policy.safetensors", policy, config, spaces)
