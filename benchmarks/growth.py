"""How the cost of an environment step grows with the number of landmarks and with the dimensions of the goal space.

    python benchmarks/growth.py [--plot growth.png]

All sizes are measured in one process, in turns, with the paper's settings of Ant Maze U on random states: 20 to 160
landmarks, half of each kind, and HRAC, which has none; then 40 landmarks in goal spaces of 2 to 50 dimensions. Only
learning is measured, because the simulator depends on neither. Prints milliseconds and MFLOP-equivalents (FLOPs of the
machine's fp32 matrix products in that time).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from higl.run.process import prepare_process

LANDMARKS = (20, 40, 80, 160)
DIMENSIONS = (2, 5, 10, 20, 50)
SETTINGS = {"precision": "auto"}
ROUNDS = 3
UPDATES = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, help="file for a plot of both")
    parser.add_argument("--core", type=int, default=0)
    options = parser.parse_args()
    prepare_process([options.core])
    costs = measure()
    rate = costs.pop("rate")
    for kind, first in (("landmarks", 40), ("dimensions", 2)):
        found = {size: cost for (name, size), cost in costs.items() if name == kind}
        for size, cost in found.items():
            line = f"{size:4d} {kind}: {1e3 * cost:6.2f} ms = {1e-6 * cost * rate:5.0f} MFLOP-equivalents"
            print(f"{line}, {cost / found[first]:.2f} x those of {first}")
    print(f"hrac: {1e3 * costs['landmarks', 0]:6.2f} ms; matrix products {rate / 1e9:.1f} GFLOP/s")
    if options.plot:
        draw(costs, rate, options.plot)


def measure() -> dict:
    """Return the seconds of learning per environment step by kind and size, and the product rate under "rate"."""
    from higl.run.timing import ProductRate
    from higl.settings.layers import apply
    from higl.settings.presets import preset

    config = apply(preset("ant-maze-u", family="paper"), SETTINGS)
    rate = ProductRate(config.batch_size, max(config.hidden), "fp32")
    learners = {("landmarks", 0): filled_learner(replace(config, algo="hrac"), 2)}
    for total in LANDMARKS:
        learners["landmarks", total] = filled_learner(with_landmarks(config, total), 2)
    for size in DIMENSIONS:
        learners["dimensions", size] = filled_learner(with_landmarks(config, 40), size)
    costs: dict = {"rate": 0.0}
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS}", flush=True)
        costs["rate"] = max(costs["rate"], rate.measure())
        for name, learner in learners.items():
            costs[name] = min(costs.get(name, float("inf")), step_seconds(learner))
    return costs


def with_landmarks(config, total: int):
    return replace(config, landmarks=replace(config.landmarks, coverage=total // 2, novelty=total // 2))


def filled_learner(config, goal_size: int):
    """Return a learner with an episode of random states, after the start of planning."""
    import numpy as np

    from higl.algo.episodes import Episode
    from higl.algo.learner import Learner
    from higl.algo.policy import Spaces

    steps, observation, action = 500, 30, 8
    config = replace(config, buffer_size=20_000)
    spaces = Spaces(observation, goal_size, (-1.0,) * action, (1.0,) * action)
    learner = Learner(config, spaces)
    rng = np.random.default_rng(0)

    def random(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    episode = Episode(
        observation=random(steps + 1, observation),
        achieved=3 * random(steps + 1, goal_size),
        desired=np.repeat(random(1, goal_size), steps + 1, axis=0),
        subgoal=random(steps, goal_size),
        action=rng.uniform(-1, 1, (steps, action)).astype(np.float32),
        reward=np.zeros(steps, np.float32),
        success=np.zeros(steps, bool),
        terminated=False,
        truncated=True,
        begins=np.arange(steps) % config.high.period == 0,
    )
    for _ in range(2):
        learner.remember(episode)
    learner.steps = config.landmarks.start
    return learner


def step_seconds(learner) -> float:
    """Return the seconds of learning per environment step: low level, high level and novelty."""
    import jax
    import jax.numpy as jnp

    from higl.run.timing import best_time

    key, period = jax.random.key(0), learner.config.high.period
    seconds = best_time(lambda: learner.train_low(key, jnp.asarray(10))) / 10
    # As many high-level updates as after an episode of 500 steps.
    seconds += best_time(lambda: learner.train_high(key, jnp.asarray(UPDATES))) / (UPDATES * period)
    if learner.config.uses_novelty:
        seconds += best_time(lambda: learner.train_novelty(key, jnp.asarray(10))) / 10
    return seconds


def draw(costs: dict, rate: float, path: Path) -> None:
    """Plot MFLOP-equivalents over landmarks and over dimensions."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    names = {"landmarks": "landmarks (0: HRAC)", "dimensions": "dimensions of the goal space"}
    for axis, (kind, name) in zip(axes, names.items(), strict=True):
        points = sorted((size, 1e-6 * cost * rate) for (of, size), cost in costs.items() if of == kind)
        axis.plot(*zip(*points, strict=True), marker="o")
        axis.set(xlabel=name, ylim=(0, None))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("MFLOP-equivalents of learning per step")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
