"""The low level alone: an ant in an open hall pursues random subgoals, and learns to walk.

    python benchmarks/low_level_alone.py --seed 0 --steps 150000 --out runs/low-level-alone.csv

A subgoal is drawn uniformly from the disc of radius 3 around the ant every 10 steps. The measure is `progress`: how
far a segment moves along its subgoal, averaged over the episodes of the last 10,000 steps, exploration included.
`fallen` is the share of those episodes that end with the ant on its back.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import higl.envs  # noqa: F401  (registers the environments)
from higl.algo.episodes import collect_episode
from higl.algo.health import episode_metrics, low_value_metrics
from higl.algo.learner import Learner
from higl.algo.policy import Policy, Spaces
from higl.algo.subgoals import views_of
from higl.settings.layers import apply
from higl.settings.presets import preset

HALL = ("#########", *(["#.......#"] * 3), "#...S...#", *(["#.......#"] * 3), "#########")
RADIUS = 3.0
WINDOW = 10_000


class RandomSubgoals(Policy):
    """The policy with a high level that draws subgoals uniformly from a disc."""

    def propose(
        self, observation: np.ndarray, achieved: np.ndarray, desired: np.ndarray, rng: np.random.Generator | None
    ) -> np.ndarray:
        """Return a random subgoal."""
        assert rng is not None
        angle, radius = rng.uniform(0, 2 * np.pi), RADIUS * np.sqrt(rng.uniform())
        return np.asarray([radius * np.cos(angle), radius * np.sin(angle)], np.float32)


@dataclass
class Args:
    """Train the low level alone."""

    seed: int = 0
    steps: int = 150_000
    out: Path | None = None
    """CSV file of the curve."""
    set: tuple[str, ...] = ()
    """Settings that differ from the preset, as `low.actor_learning_rate=3e-4`."""


def average(rows: Sequence[dict[str, float]], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def on_its_back(observation: np.ndarray) -> float:
    """Return 1 if the ant's upward axis points down, else 0, by the quaternion after x, y and z."""
    _, x, y, _ = observation[3:7]
    return float(x * x + y * y > 0.5)


def _value(text: str) -> Any:
    """Return a number, truth value or list as such, and any other text as it is."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def main(args: Args) -> None:
    config = preset("ant-maze-u", "hiro")
    changes = {name: _value(value) for name, value in (change.split("=") for change in args.set)}
    config = apply(replace(config, seed=args.seed), changes)
    env = gymnasium.make("higl/AntMaze-v0", map=HALL, cell=4.0, goal=(8.0, 8.0))
    learner = Learner(config, Spaces.of(env))
    rows: list[dict[str, float]] = []
    table, start, due = [], time.time(), WINDOW
    while learner.steps < args.steps:
        low, high, seen = jax.device_get((learner.state.low.networks, learner.state.high.networks, learner.state.seen))
        views = views_of(config, seen)
        policy = RandomSubgoals(config, learner.spaces, low.actor, high.actor, views)
        seed = int(np.random.SeedSequence([args.seed, learner.episodes]).generate_state(1)[0])
        episode = collect_episode(env, policy, seed, explore=True)
        learner.steps += len(episode)
        learner.episodes += 1
        learner.remember(episode)
        key = jax.random.fold_in(learner.key, learner.episodes)
        learner.train_low(key, jnp.asarray(len(episode)))
        rewards, metrics = jax.device_get(learner.state.low.rewards), episode_metrics(config, episode)
        metrics |= low_value_metrics(config, learner.stages.low, low, rewards, views.low, episode)
        rows.append(metrics | {"fallen": on_its_back(episode.observation[-1])})
        if learner.steps >= due:
            due += WINDOW
            recent = rows[-WINDOW // 500 :]
            entry = {
                "step": learner.steps,
                "progress": average(recent, "low/progress"),
                "progress_share": average(recent, "low/progress_share"),
                "subgoal_distance": average(recent, "low/subgoal_distance"),
                "saturated": average(recent, "low/saturated"),
                "fallen": average(recent, "fallen"),
                "seconds": time.time() - start,
            }
            table.append({name: round(value, 4) for name, value in entry.items()})
            print(table[-1], flush=True)
            if args.out:
                args.out.parent.mkdir(parents=True, exist_ok=True)
                with args.out.open("w", newline="") as file:
                    writer = csv.DictWriter(file, table[0])
                    writer.writeheader()
                    writer.writerows(table)


def read_arguments() -> Args:
    parser = argparse.ArgumentParser(description=Args.__doc__)
    parser.add_argument("--seed", type=int, default=Args.seed)
    parser.add_argument("--steps", type=int, default=Args.steps)
    parser.add_argument("--out", type=Path, help="CSV file of the curve")
    parser.add_argument("--set", nargs="*", default=(), help="settings, as `low.actor_learning_rate=3e-4`")
    return Args(**vars(parser.parse_args()))


if __name__ == "__main__":
    main(read_arguments())
