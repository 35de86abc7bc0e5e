"""How often the planner selects another landmark when it weighs only some of the edges of states and goals.

    python benchmarks/near_pairs.py runs/ant-maze-u-sparse-higl-0

Reads a run's last checkpoint, samples batches and landmarks as the high level's update does, and compares the
selections with those of the full graph. Prints, for each number of neighbours, the share of states whose selected
landmark differs, the share whose pseudo-landmark moves by more than half the shift, and the pairs weighed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from higl.algo import planner
from higl.algo.learner import Learner, LearnerState
from higl.algo.policy import Spaces
from higl.algo.replay import sample
from higl.envs.make import make_env
from higl.run.checkpoint import Checkpoints, restore_learner
from higl.run.files import CHECKPOINTS
from higl.run.reading import read_config


@dataclass
class Args:
    """Compare near pairs with the full graph."""

    run: Path
    batches: int = 50
    neighbours: tuple[int, ...] = (3, 4, 5, 6, 8, 10, 15)


def load(run: Path) -> Learner:
    """Return the learner of a run's newest checkpoint."""
    config = read_config(run)
    env = make_env(config.task, config.reward, observe_achieved=config.observe_achieved)
    learner = Learner(config, Spaces.of(env))
    loaded = Checkpoints(run / CHECKPOINTS).load(print)
    assert loaded is not None, f"{run} has no checkpoint"
    restore_learner(learner, *loaded)
    return learner


def compare(learner: Learner, neighbours: int, state: LearnerState, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return which states' selections differ from the full graph's, and how far their pseudo-landmarks lie apart."""
    stages, config = learner.stages, learner.config
    rows_key, landmark_key = jax.random.split(key)
    rows = sample(state.high_buffer, rows_key, config.high.batch_size)
    graph = stages.graph(state, landmark_key)
    query = planner.Query(rows.observation, rows.achieved, rows.desired)
    near, full = (
        planner.plan(replace(config.landmarks, neighbours=count), stages.distance(state), graph, query)
        for count in (neighbours, 0)
    )
    near_pseudo = planner.pseudo_landmark(config.landmarks, rows.achieved, near.point)
    full_pseudo = planner.pseudo_landmark(config.landmarks, rows.achieved, full.point)
    return near.index != full.index, jnp.linalg.norm(near_pseudo - full_pseudo, axis=-1)


def main(args: Args) -> None:
    learner = load(args.run)
    config = learner.config
    total, batch = config.landmarks.coverage + config.landmarks.novelty, config.high.batch_size
    print(f"{args.run.name}, step {learner.steps:,}, {total} landmarks, {args.batches} batches of {batch}")
    for neighbours in args.neighbours:
        program = jax.jit(partial(compare, learner, neighbours))
        results = [program(learner.state, jax.random.key(number)) for number in range(args.batches)]
        differs = np.mean([np.asarray(result[0]) for result in results])
        moved = np.mean([np.asarray(result[1]) > config.landmarks.shift / 2 for result in results])
        pairs = batch * (2 * min(neighbours, total) + 1)
        print(
            f"{neighbours:3d} neighbours: other landmark {differs:6.2%}, moved {moved:6.2%}, {pairs:5d} pairs weighed"
        )


def read_arguments() -> Args:
    parser = argparse.ArgumentParser(description=Args.__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--batches", type=int, default=Args.batches)
    parser.add_argument("--neighbours", type=int, nargs="+", default=Args.neighbours)
    return Args(**vars(parser.parse_args()))


if __name__ == "__main__":
    main(read_arguments())
