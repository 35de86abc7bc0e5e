"""How the cost of an environment step grows with the number of landmarks and with the dimensions of the goal space.

    python benchmarks/growth.py [--plot growth.png]
    python benchmarks/growth.py --preset paper

A step of learning and acting with the recipe (`best`): the low level's updates, growing the map, the chart that a
policy gets after each episode, and acting along it. Maps have places for 20 to 800 landmarks and are full, in a goal
space of 2 dimensions; then there are places for 800, in 2 to 50 dimensions. A body follows the subgoals, with
exploration. Beside it HRAC: low level, high level and acting, without the training of its adjacency network.

With `--preset paper`, the paper's graph: learning alone, with 20 to 160 landmarks, half of each kind, in 2 dimensions,
then 40 landmarks in 2 to 50. Both use random trajectories and no simulator, which depends on neither number. All sizes
are measured in one process on one core, in turns, and the best counts. Prints milliseconds of processor time and
MFLOP-equivalents (FLOPs of the machine's fp32 matrix products in that time).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from higl.run.process import prepare_process

LANDMARKS = {"best": (20, 40, 80, 160, 400, 800), "paper": (20, 40, 80, 160)}
# Landmarks of the measurements in goal spaces of several dimensions.
FIXED = {"best": 800, "paper": 40}
DIMENSIONS = (2, 5, 10, 20, 50)
ROUNDS, STEPS, UPDATES = 3, 500, 50
# Random walks: the length of a step, and the width of the world in units. As many fill a map as it takes.
STEP, WIDTH, WALKS = 0.2, 10.0, 60
# The body moves this far towards its subgoal.
SPEED = 0.1

Costs = dict[tuple[str, int], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=list(LANDMARKS), default="best")
    parser.add_argument("--plot", type=Path, help="file for a plot of both")
    parser.add_argument("--core", type=int, default=0)
    options = parser.parse_args()
    prepare_process([options.core])
    cases = recipe_cases() if options.preset == "best" else paper_cases()
    costs, rate = measure(cases)
    for kind, first in (("landmarks", 40), ("dimensions", 2)):
        found = {size: cost for (name, size), cost in costs.items() if name == kind and size}
        for size, cost in found.items():
            line = f"{size:4d} {kind}: {1e3 * cost:6.3f} ms = {1e-6 * cost * rate:5.0f} MFLOP-equivalents"
            print(f"{line}, {cost / found[first]:.2f} x those of {first}; {cases[kind, size].note}")
    cost = costs["landmarks", 0]
    print(f"hrac: {1e3 * cost:6.3f} ms = {1e-6 * cost * rate:5.0f} MFLOP-equivalents", end="; ")
    print(f"matrix products {rate / 1e9:.1f} GFLOP/s")
    if options.plot:
        draw(costs, rate, options.plot)


@dataclass
class Case:
    """What is measured, part by part: functions that return seconds per environment step; and a note for people."""

    parts: dict[str, Callable[[], float]]
    holds: str = ""
    note: str = ""


def measure(cases: dict[tuple[str, int], Case]) -> tuple[Costs, float]:
    """Return the seconds per environment step by kind and size, and the product rate; notes say what the parts cost.

    A part that several cases share, such as the low level, is measured once per round.
    """
    from higl.run.timing import PRODUCTS, ProductRate

    rate, best = ProductRate(*PRODUCTS, "fp32"), 0.0
    found = {part: float("inf") for case in cases.values() for part in case.parts.values()}
    for number in range(ROUNDS):
        print(f"round {number + 1} of {ROUNDS}", flush=True)
        best = max(best, rate.measure())
        for part, seconds in found.items():
            found[part] = min(seconds, part())
    for case in cases.values():
        shares = [f"{name} {1e3 * found[part]:.3f}" for name, part in case.parts.items()]
        case.note = ", ".join(filter(None, [case.holds, *shares]))
    return {name: sum(found[part] for part in case.parts.values()) for name, case in cases.items()}, best


# --- The recipe -----------------------------------------------------------------------------------------------------


def recipe_cases() -> dict[tuple[str, int], Case]:
    from higl.settings.presets import preset

    config, hrac = preset("ant-maze-u"), preset("ant-maze-u", "hrac")
    total = FIXED["best"]
    learners = {size: filled_learner(config, size) for size in DIMENSIONS}
    low = {size: partial(low_seconds, learner) for size, learner in learners.items()}
    cases = {("landmarks", 0): hrac_case(filled_learner(hrac, 2))}
    for places in LANDMARKS["best"]:
        cases["landmarks", places] = map_case(learners[2], low[2], places)
    for size, learner in learners.items():
        cases["dimensions", size] = cases["landmarks", total] if size == 2 else map_case(learner, low[size], total)
    return cases


def map_case(learner: Any, low: Callable[[], float], places: int) -> Case:
    """Return the case of a map with so many places. The `low` level does not see it, and is measured for all alike."""
    from higl.algo.walked import WalkedMap

    grown = WalkedMap(places, learner.spaces.goal, learner.config.high.period)
    learner.map = grown
    for seed in range(WALKS):
        learner.remember(random_episode(learner.config, learner.spaces.goal, seed))

    def with_map(part: Callable[[Any], float]) -> Callable[[], float]:
        def seconds() -> float:
            learner.map = grown
            return part(learner)

        return seconds

    parts = {"low": low, "map": with_map(map_seconds), "acting": with_map(acting_seconds)}
    return Case(parts, f"it holds {len(grown)}")


def hrac_case(learner: Any) -> Case:
    parts = {"low": low_seconds, "high": high_seconds, "acting": acting_seconds}
    return Case({name: partial(part, learner) for name, part in parts.items()})


def map_seconds(learner: Any, episodes: int = 4) -> float:
    """Return the seconds per step of remembering episodes, which grows the map, and of the policy after each."""
    from higl.run.timing import clock

    walks = [random_episode(learner.config, learner.spaces.goal, WALKS + number) for number in range(episodes)]
    start = clock()
    for walk in walks:
        learner.remember(walk)
        _ = learner.policy
    return (clock() - start) / (episodes * STEPS)


def acting_seconds(learner: Any, episodes: int = 2) -> float:
    """Return the seconds per step of acting and exploring, with a body that goes where it is asked to."""
    import numpy as np

    from higl.run.timing import clock

    rng, taken = np.random.default_rng(0), 0.0
    size, observation = learner.spaces.goal, np.zeros(learner.spaces.observation, np.float32)
    for _ in range(episodes):
        policy = learner.policy
        policy.random_subgoals = False
        achieved, desired = (rng.uniform(0, WIDTH, size).astype(np.float32) for _ in range(2))
        state = policy.begin()
        start = clock()
        for _ in range(STEPS):
            _, state = policy.step(observation, achieved, desired, state, rng)
            length = max(float(np.linalg.norm(state.subgoal)), SPEED)
            achieved = achieved + SPEED * state.subgoal / length
        taken += clock() - start
    return taken / (episodes * STEPS)


# --- The paper's graph ----------------------------------------------------------------------------------------------


def paper_cases() -> dict[tuple[str, int], Case]:
    from higl.settings.presets import preset

    config = replace(preset("ant-maze-u", family="paper"), precision="auto")
    cases = {("landmarks", 0): graph_case(replace(config, algo="hrac"), 2)}
    for total in LANDMARKS["paper"]:
        cases["landmarks", total] = graph_case(with_landmarks(config, total), 2)
    for size in DIMENSIONS:
        same = size == 2 and cases["landmarks", FIXED["paper"]]
        cases["dimensions", size] = same or graph_case(with_landmarks(config, FIXED["paper"]), size)
    return cases


def with_landmarks(config: Any, total: int) -> Any:
    return replace(config, landmarks=replace(config.landmarks, coverage=total // 2, novelty=total // 2))


def graph_case(config: Any, goal_size: int) -> Case:
    learner = filled_learner(config, goal_size)
    learner.steps = config.landmarks.start  # with planning
    parts = {"low": low_seconds, "high": high_seconds}
    if config.uses_novelty:
        parts["novelty"] = novelty_seconds
    return Case({name: partial(part, learner) for name, part in parts.items()})


# --- Learning -------------------------------------------------------------------------------------------------------


def low_seconds(learner: Any) -> float:
    """Return the seconds per environment step of the low level's updates."""
    import jax
    import jax.numpy as jnp

    from higl.run.timing import best_time

    seconds = best_time(lambda: learner.train_low(jax.random.key(0), jnp.asarray(10))) / 10
    return seconds * learner.config.low.updates


def high_seconds(learner: Any) -> float:
    """Return the seconds per environment step of the high level's updates: as many as after an episode."""
    import jax
    import jax.numpy as jnp

    from higl.run.timing import best_time

    seconds = best_time(lambda: learner.train_high(jax.random.key(0), jnp.asarray(UPDATES))) / UPDATES
    return seconds / learner.config.high.period


def novelty_seconds(learner: Any) -> float:
    """Return the seconds of an update of the novelty predictor; there is one per environment step."""
    import jax
    import jax.numpy as jnp

    from higl.run.timing import best_time

    return best_time(lambda: learner.train_novelty(jax.random.key(0), jnp.asarray(10))) / 10


def filled_learner(config: Any, goal_size: int) -> Any:
    """Return a learner that remembers two random episodes."""
    from higl.algo.learner import Learner
    from higl.algo.policy import Spaces

    observation, action = 30, 8
    spaces = Spaces(observation, goal_size, (-1.0,) * action, (1.0,) * action)
    learner = Learner(replace(config, buffer_size=20_000), spaces)
    for seed in range(2):
        learner.remember(random_episode(learner.config, goal_size, seed))
    return learner


def random_episode(config: Any, goal_size: int, seed: int) -> Any:
    """Return an episode of a random walk in a box, whose subgoals are where it went; the rest is random."""
    import numpy as np

    from higl.algo.episodes import Episode

    rng = np.random.default_rng([seed, 1])
    walk = np.cumsum(rng.normal(0.0, STEP / np.sqrt(goal_size), (STEPS + 1, goal_size)), axis=0)
    walk += rng.uniform(0.0, WIDTH, goal_size)
    achieved = np.abs((walk + WIDTH) % (2 * WIDTH) - WIDTH).astype(np.float32)
    ends = np.minimum((np.arange(STEPS) // config.high.period + 1) * config.high.period, STEPS)
    return Episode(
        observation=rng.normal(size=(STEPS + 1, 30)).astype(np.float32),
        achieved=achieved,
        desired=np.repeat(rng.uniform(0.0, WIDTH, (1, goal_size)).astype(np.float32), STEPS + 1, axis=0),
        subgoal=achieved[ends] - achieved[:-1],
        action=rng.uniform(-1, 1, (STEPS, 8)).astype(np.float32),
        reward=np.zeros(STEPS, np.float32),
        success=np.zeros(STEPS, bool),
        terminated=False,
        truncated=True,
        begins=np.arange(STEPS) % config.high.period == 0,
    )


def draw(costs: Costs, rate: float, path: Path) -> None:
    """Plot MFLOP-equivalents over landmarks and over dimensions."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    names = {"landmarks": "landmarks (0: HRAC)", "dimensions": "dimensions of the goal space"}
    for axis, (kind, name) in zip(axes, names.items(), strict=True):
        points = sorted((size, 1e-6 * cost * rate) for (of, size), cost in costs.items() if of == kind)
        axis.plot(*zip(*points, strict=True), marker="o")
        axis.set_xlabel(name)
        axis.grid(alpha=0.3)
    axes[0].set(ylabel="MFLOP-equivalents per step", ylim=(0, None))  # once both are drawn: they share the axis
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
