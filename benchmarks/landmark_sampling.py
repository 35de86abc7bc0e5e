"""How much the planner's choices depend on the sample of landmarks and on the number of edges, and what they cost.

    python benchmarks/landmark_sampling.py RUN [--landmarks 60] [--core 0]

RUN is the folder of a run by the paper's graph (`--preset paper`) with a checkpoint. Takes its low level, buffers and
novelty queue, samples landmarks several times, and plans for the same states of the high level's buffer each time:

- two samples: how often the selected point moves, and the pseudo-landmark, by more than a tenth and by more than half
  of its shift. If landmarks were sampled once per episode, all of its updates would share one of these samples.
- one sample, with some of the edges and with all of them: how often another landmark is selected.
- milliseconds of sampling, of the graph, and of planning for a batch.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from higl.run.process import prepare_process

SAMPLES, STATES = 8, 512
EDGES = (4, 10, 15, 20)
CALLS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--landmarks", type=int, help="coverage landmarks (default: those of the run)")
    parser.add_argument("--core", type=int, default=0)
    options = parser.parse_args()
    prepare_process([options.core])
    learner = restored(options.run, options.landmarks)
    config = learner.config.landmarks
    print(f"{options.run.name}: {learner.steps:,} steps, {config.coverage} + {config.novelty} landmarks")
    selections, pseudo = plans(learner)
    for line in compare_samples(selections, pseudo, config.shift):
        print(line)
    for edges, share in compare_edges(learner).items():
        print(f"{edges:3d} edges of each state and goal: another landmark for {share:.2%} of the states than with all")
    for name, seconds in costs(learner).items():
        print(f"{name}: {1e3 * seconds:.1f} ms")


def restored(run: Path, coverage: int | None = None) -> Any:
    """Return the learner of a run's newest checkpoint, with another number of coverage landmarks if given."""
    from higl.algo.learner import Learner
    from higl.algo.policy import Spaces
    from higl.envs.make import make_env
    from higl.run.checkpoint import Checkpoints, restore_newest
    from higl.run.files import CHECKPOINTS
    from higl.run.reading import read_config

    config = read_config(run)
    if config.walks_map or not config.uses_landmarks:
        raise SystemExit(f"{run} has no graph of values: train one with --preset paper")
    if coverage is not None:  # the queue of novel states cannot grow afterwards
        config = replace(config, landmarks=replace(config.landmarks, coverage=coverage))
    learner = Learner(config, Spaces.of(make_env(config.task, observe_achieved=config.observe_achieved)))
    if restore_newest(learner, Checkpoints(run / CHECKPOINTS), print) is None:
        raise SystemExit(f"{run} has no checkpoint")
    return learner


def _query(learner: Any) -> Any:
    """Return the same states of the high level's buffer for every comparison."""
    import jax

    from higl.algo import planner
    from higl.algo.replay import sample

    rows = sample(learner.state.high_buffer, jax.random.key(1), STATES)
    return planner.Query(rows.observation, rows.achieved, rows.desired)


def plans(learner: Any) -> tuple[Any, Any]:
    """Return the selected points and the pseudo-landmarks by each sample of landmarks: [S, B, G] twice."""
    import jax
    import numpy as np

    from higl.algo import planner

    config, stages, query = learner.config.landmarks, learner.stages, _query(learner)

    def plan(state: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        point = planner.plan(config, stages.distance(state), stages.graph(state, key), query).point
        return point, planner.pseudo_landmark(config, query.achieved, point)

    program = jax.jit(plan)
    found = [program(learner.state, jax.random.key(seed)) for seed in range(SAMPLES)]
    points, pseudo = (np.stack(column) for column in zip(*found, strict=True))
    return points, pseudo


def compare_samples(points: Any, pseudo: Any, shift: float) -> list[str]:
    """Return how far the plans of two samples are apart, over all pairs of samples and all states."""
    import numpy as np

    first, second = np.triu_indices(len(points), k=1)
    moved = np.linalg.norm(points[first] - points[second], axis=-1)
    turned = np.linalg.norm(pseudo[first] - pseudo[second], axis=-1)
    return [
        f"two samples: the selected point moves by {np.median(moved):.2f} (median), {np.mean(moved):.2f} (mean); "
        f"not at all for {np.mean(moved == 0):.1%} of the states",
        f"two samples: the pseudo-landmark moves by more than a tenth of its shift for "
        f"{np.mean(turned > 0.1 * shift):.1%} of the states, by more than half for {np.mean(turned > 0.5 * shift):.1%}",
    ]


def compare_edges(learner: Any, edges: Sequence[int] = EDGES) -> dict[int, float]:
    """Return by number of edges for how many states another landmark is selected than with all edges."""
    import jax
    import numpy as np

    from higl.algo import planner

    config, stages, query = learner.config.landmarks, learner.stages, _query(learner)
    total = config.coverage + config.novelty

    def select(state: Any, key: jax.Array) -> list[jax.Array]:
        graph, distance = stages.graph(state, key), stages.distance(state)
        full = planner.plan(config, distance, graph, query, total).index
        return [planner.plan(config, distance, graph, query, count).index != full for count in edges]

    program = jax.jit(select)
    shares = [[np.mean(other) for other in program(learner.state, jax.random.key(seed))] for seed in range(SAMPLES)]
    return dict(zip(edges, np.mean(shares, axis=0).tolist(), strict=True))


def costs(learner: Any) -> dict[str, float]:
    """Return the seconds of the parts of an update, each timed in a compiled loop."""
    import jax
    import jax.numpy as jnp

    from higl.algo import planner
    from higl.algo.landmarks import sample_landmarks
    from higl.run.timing import best_time

    config, stages, batch = learner.config.landmarks, learner.stages, learner.config.batch_size
    query = jax.tree.map(lambda column: column[:batch], _query(learner))
    total = config.coverage + config.novelty
    fixed = jax.jit(stages.graph)(learner.state, jax.random.key(0))
    learner.steps = max(learner.steps, config.start)  # with planning

    def timed(part: Any) -> float:
        def run(state: Any) -> jax.Array:
            def body(index: jax.Array, sum_so_far: jax.Array) -> jax.Array:
                leaves = jax.tree.leaves(part(state, jax.random.fold_in(jax.random.key(0), index), sum_so_far))
                return sum_so_far + sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in leaves)

            return jax.lax.fori_loop(0, CALLS, body, jnp.zeros(()))

        program = jax.jit(run)
        return best_time(lambda: program(learner.state)) / CALLS

    def plan(neighbours: int, state: Any, sum_so_far: jax.Array) -> Any:
        # Depends on the calls before, so that it cannot be moved out of the loop.
        moved = query._replace(desired=query.desired + 1e-30 * sum_so_far)
        return planner.plan(config, stages.distance(state), fixed, moved, neighbours).point

    return {
        "sampling landmarks": timed(lambda state, key, _: sample_landmarks(config, *_sources(state), key)),
        "sampling landmarks and the graph between them": timed(lambda state, key, _: stages.graph(state, key)),
        f"planning for a batch, {planner.NEIGHBOURS} edges": timed(
            lambda state, _, before: plan(planner.NEIGHBOURS, state, before)
        ),
        f"planning for a batch, all {total} edges": timed(lambda state, _, before: plan(total, state, before)),
        "a high-level update": best_time(lambda: learner.train_high(jax.random.key(0), jnp.asarray(CALLS))) / CALLS,
        "a low-level update": best_time(lambda: learner.train_low(jax.random.key(0), jnp.asarray(CALLS))) / CALLS,
    }


def _sources(state: Any) -> tuple[Any, Any]:
    return state.low_buffer, state.novelty.queue


if __name__ == "__main__":
    main()
