"""`higl bench`: the cost of each stage of a run, compared with the processor's matrix product rate.

Everything is measured in one run on one machine: a time is meaningful only next to the machine's own matrix product
rate at the same shapes, or next to another algorithm's time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from higl.algo import planner
from higl.algo.adjacency import CALL_BATCHES, epoch_batches
from higl.algo.episodes import collect_episode
from higl.algo.forward import MLP
from higl.algo.high import relabel
from higl.algo.landmarks import Landmarks, sample_landmarks
from higl.algo.learner import Learner
from higl.algo.policy import Spaces
from higl.algo.replay import sample
from higl.envs import find_task
from higl.envs.make import make_env
from higl.envs.maps import WALL
from higl.run.checkpoint import Checkpoints, Counters, learner_arrays
from higl.run.files import CHECKPOINT_MINUTES
from higl.run.measure import evaluate, make_test_env
from higl.settings.config import AdjacencyConfig, Algorithm, Config
from higl.settings.presets import preset

# A stage's time is the best of this many: other processes on the machine only make it longer.
REPEATS = 5
ROUNDS = 3
EPISODES_BEFORE = 4
# Cells of the goal space that a run visits. In a maze these are its floor (112 in Ant Maze U, whose runs found 112 to
# 121). With random actions the arms visited 1,700 in 20,000 steps. For other tasks the number is a guess.
ARM_CELLS, OTHER_CELLS = 1_500, 150


@dataclass(frozen=True)
class Stage:
    """The cost of a stage: seconds and FLOPs of one call, and the number of calls per environment step."""

    name: str
    seconds: float
    calls_per_step: float
    flops: float = 0.0
    part_of: str | None = None

    @property
    def milliseconds_per_step(self) -> float:
        """Return the stage's share of an environment step."""
        return 1e3 * self.seconds * self.calls_per_step

    def share_of(self, rate: float) -> float | None:
        """Return the stage's FLOP/s as a share of the matrix product rate; None if its FLOPs are unknown."""
        return self.flops / self.seconds / rate if self.flops else None


def best_time(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the shortest of several timings of a call, after one call to compile it."""
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return min(times)


def gemm_rate(batch: int, width: int, loops: int = 600) -> float:
    """Return the machine's matrix product rate in FLOP/s, at the shapes of a hidden layer's update.

    One pass is the three products of such a layer: forward, gradient of the input, gradient of the weight.
    """

    def body(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, weight = carry
        forward = x @ weight
        back = forward @ weight.T
        grad = x.T @ back
        # The scales keep the numbers finite; everything is used, so nothing is optimised away.
        return back * (1.0 / width), weight * 0.5 + grad * 1e-9

    x = jax.random.normal(jax.random.key(0), (batch, width))
    weight = jax.random.normal(jax.random.key(1), (width, width)) * width**-0.5
    run = jax.jit(lambda x, weight: jax.lax.fori_loop(0, loops, body, (x, weight)))
    return loops * 3 * 2 * batch * width * width / best_time(lambda: run(x, weight))


def mlp_flops(params: MLP, rows: float) -> float:
    """Return the FLOPs of a network's forward pass over some rows."""
    return sum(2.0 * rows * np.prod(layer.weight.shape) for layer in params)


def td3_flops(state: Any, batch: int) -> float:
    """Return the FLOPs of one TD3 update.

    Target actor and both target critics forward; both critics forward and back; the actor forward and back, and the
    first critic forward and back to its input.
    """
    actor = mlp_flops(state.networks.actor, batch)
    critic = mlp_flops(state.networks.critics[0], batch)
    return (actor + 2 * critic) + 2 * 3 * critic + (3 * actor + 2 * critic)


def explored_cells(config: Config) -> int:
    """Return roughly how many cells of the goal space a run visits."""
    try:
        task = find_task(config.task)
    except ValueError:
        return OTHER_CELLS
    if task.map is None:
        return ARM_CELLS
    floor = sum(symbol != WALL for row in task.map for symbol in row)
    return round(floor * (task.cell / config.adjacency.cell) ** 2)


def adjacency_pairs(config: AdjacencyConfig, cells: int, adjacent_per_cell: float) -> float:
    """Return the number of pairs of cells in one epoch of the adjacency network; see `CellMatrix.pairs`."""
    limit = config.all_pairs_up_to
    if cells <= limit:
        return cells * (cells - 1) / 2
    return limit * (limit - 1) / 2 + cells * adjacent_per_cell


class Bench:
    """Times the stages of one configuration on its real environment."""

    def __init__(self, config: Config):
        self.config = config
        self.env = make_env(config.task, config.reward, observe_achieved=config.observe_achieved)
        self.learner = Learner(config, Spaces.of(self.env))
        self.stages = self.learner.stages
        episodes = [
            collect_episode(self.env, self.learner.policy, number, explore=True) for number in range(EPISODES_BEFORE)
        ]
        for episode in episodes:
            self.learner.matrix.add_trajectory(episode.achieved)
            self.learner.remember(episode)
        self.episode = episodes[-1]
        # The high level's updates run once per episode. An episode that ends with success may be shorter.
        self.episode_steps = max(map(len, episodes))

    def measure(self) -> list[Stage]:
        """Return the cost of every stage."""
        stages = [*self._environment(), self._low(), *self._high()]
        if self.config.uses_novelty:
            stages.append(self._novelty())
        if self.config.reads_adjacency_network:
            stages.append(self._adjacency())
        return [*stages, self._evaluation()]

    def _environment(self) -> list[Stage]:
        """Time the environment's steps and the policy's actions separately."""
        policy, count = self.learner.tested_policy, 200
        rng = np.random.default_rng(0)
        low, high = np.asarray(self.learner.spaces.action_low), np.asarray(self.learner.spaces.action_high)
        actions = rng.uniform(low, high, (count, len(low)))

        def step() -> None:
            self.env.reset(seed=0)
            for action in actions:
                _, _, terminated, truncated, _ = self.env.step(action)
                if terminated or truncated:
                    self.env.reset(seed=0)

        first = self.episode.observation[0], self.episode.achieved[0], self.episode.desired[0]

        def act() -> None:
            state = policy.begin()
            for _ in range(count):
                action, state = policy.step(*first, state, rng)
                policy.environment_action(action)

        return [
            Stage("environment", best_time(step) / count, 1.0),
            Stage("acting", best_time(act) / count, 1.0, mlp_flops(policy.low_actor, 1)),
        ]

    def _low(self) -> Stage:
        """Time the low level's update."""
        count, learner = 200, self.learner
        seconds = best_time(lambda: learner.train_low(jax.random.key(0), jnp.asarray(count)))
        flops = td3_flops(learner.state.low, self.config.low.batch_size)
        return Stage("low update", seconds / count, 1.0, flops)

    def _high(self) -> list[Stage]:
        """Time the high level's update, and each of its parts."""
        config, learner = self.config, self.learner
        count = -(-self.episode_steps // config.high.period)
        per_step = 1 / config.high.period
        learner.steps = max(learner.steps, config.landmarks.start)  # with planning
        whole = best_time(lambda: learner.train_high(jax.random.key(0), jnp.asarray(count))) / count
        state = learner.state
        batch = config.high.batch_size
        parts = []
        if config.high.relabel:
            rows = batch * config.high.period * (config.high.relabel_candidates + 2)
            flops = mlp_flops(state.low.networks.actor, rows)
            parts.append(Stage("relabel", self._loop(self._relabel, count), per_step, flops, "high update"))
        if config.uses_landmarks:
            parts += self._planner(count, per_step)
        update = whole - sum(part.seconds for part in parts)
        flops = td3_flops(state.high, batch)
        if config.reads_adjacency_network:
            flops += 4 * mlp_flops(state.adjacency.network, batch)
        parts.append(Stage("update", update, per_step, flops, "high update"))
        return [Stage("high update", whole, per_step, sum(part.flops for part in parts)), *parts]

    def _planner(self, count: int, per_step: float) -> list[Stage]:
        """Time the planner's parts, each as what it adds to the previous ones; the graph is built once per episode."""
        config, batch = self.config.landmarks, self.config.high.batch_size
        total = config.coverage + config.novelty
        near = min(config.neighbours or total, total)
        networks = self.learner.state.low.networks

        def flops(pairs: int) -> float:
            return mlp_flops(networks.actor, pairs) + 2 * mlp_flops(networks.critics[0], pairs)

        per_update = self.config.high.period / self.episode_steps
        sampled = per_update * self._loop(self._sample_landmarks, count)
        graph = per_update * self._loop(partial(self.stages.graph, self.learner.state), count)
        fixed = self.stages.graph(self.learner.state, jax.random.key(0))
        weighed = self._loop(partial(self._weigh, fixed), count)
        selected = self._loop(partial(self._select, fixed), count)
        pairs = batch * (2 * near + 1)
        return [
            Stage("landmarks", sampled, per_step, 0.0, "high update"),
            Stage("graph", max(graph - sampled, 0.0), per_step, per_update * flops(total * total), "high update"),
            Stage("edge weights", weighed, per_step, flops(pairs), "high update"),
            Stage("shortest path", max(selected - weighed, 0.0), per_step, 0.0, "high update"),
        ]

    def _loop(self, part: Callable[[jax.Array], Any], count: int) -> float:
        """Return the time of one call of a part, from a compiled loop of several calls with different keys."""

        def body(index: jax.Array, total: jax.Array) -> jax.Array:
            leaves = jax.tree.leaves(part(jax.random.fold_in(jax.random.key(0), index)))
            return total + sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in leaves)

        run = jax.jit(lambda: jax.lax.fori_loop(0, count, body, jnp.zeros(())))
        return best_time(run) / count

    def _rows(self, key: jax.Array) -> Any:
        return sample(self.learner.state.high_buffer, key, self.config.high.batch_size)

    def _relabel(self, key: jax.Array) -> jax.Array:
        actor = self.learner.state.low.networks.actor
        return relabel(self.config.high, self.stages.limit, actor, self.stages.visible, self._rows(key), key)

    def _sample_landmarks(self, key: jax.Array) -> Landmarks:
        state = self.learner.state
        return sample_landmarks(self.config.landmarks, state.low_buffer, state.novelty.queue, key)

    def _query(self, key: jax.Array) -> planner.Query:
        rows = self._rows(key)
        return planner.Query(rows.observation, rows.achieved, rows.desired)

    def _weigh(self, graph: planner.Graph, key: jax.Array) -> planner.EndpointEdges:
        distance = self.stages.distance(self.learner.state)
        return planner.endpoint_edges(self.config.landmarks, distance, graph, self._query(key))

    def _select(self, graph: planner.Graph, key: jax.Array) -> planner.Selection:
        distance = self.stages.distance(self.learner.state)
        return planner.plan(self.config.landmarks, distance, graph, self._query(key))

    def _novelty(self) -> Stage:
        """Time the novelty predictor's update."""
        count, learner = 50, self.learner
        seconds = best_time(lambda: learner.train_novelty(jax.random.key(0), jnp.asarray(count)))
        flops = 4 * mlp_flops(learner.state.novelty.predictor, self.config.novelty.batch_size)
        return Stage("novelty update", seconds / count, 1 / self.config.high.period, flops)

    def _adjacency(self) -> Stage:
        """Time a batch of the adjacency network; each training has several epochs over the pairs of cells."""
        config, matrix = self.config.adjacency, self.learner.matrix
        pairs = adjacency_pairs(config, explored_cells(self.config), len(matrix.codes) / len(matrix))
        calls = epoch_batches(config, matrix, np.random.default_rng(0))
        batches = jax.tree.map(jnp.asarray, calls[0][0])
        run = partial(self.stages.train_adjacency, self.learner.state.adjacency, batches, CALL_BATCHES)
        per_training = config.epochs * pairs / config.batch_size
        flops = 3 * mlp_flops(self.learner.state.adjacency.network, 2 * config.batch_size)
        return Stage("adjacency update", best_time(run) / CALL_BATCHES, per_training / config.every, flops)

    def _evaluation(self) -> Stage:
        """Time an evaluation episode."""
        config, policy = self.config, self.learner.policy
        env = make_test_env(config)
        seconds = best_time(lambda: evaluate(env, policy, [0]), repeats=2)
        return Stage("evaluation", seconds, self.config.evaluation.episodes / self.config.evaluation.every)

    def checkpoint_seconds(self) -> float:
        """Return the time to save a checkpoint with full buffers."""
        state = self.learner.state
        low = state.low_buffer._replace(size=jnp.asarray(self.config.low.buffer_size, jnp.int32))
        high = state.high_buffer._replace(size=jnp.asarray(self.config.high.buffer_size, jnp.int32))
        self.learner.state = state._replace(low_buffer=low, high_buffer=high)
        with tempfile.TemporaryDirectory() as folder:
            checkpoints = Checkpoints(Path(folder))
            seconds = best_time(lambda: checkpoints.save(learner_arrays(self.learner), Counters()) and None, repeats=2)
        self.learner.state = state
        return seconds


@dataclass(frozen=True)
class Report:
    """The stages of one configuration, beside the machine's matrix product rate (FLOP/s)."""

    task: str
    algo: str
    landmarks: int
    relabel: bool
    gemm_rate: float
    stages: list[Stage]
    checkpoint_seconds: float

    @property
    def milliseconds_per_step(self) -> float:
        """Return the time of one environment step, all stages included."""
        return sum(stage.milliseconds_per_step for stage in self.stages if stage.part_of is None)

    @property
    def checkpoint_share(self) -> float:
        """Return the share of a run's time spent on checkpoints."""
        return self.checkpoint_seconds / (60 * CHECKPOINT_MINUTES)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        stages = [
            asdict(stage)
            | {"milliseconds_per_step": stage.milliseconds_per_step, "gemm_share": stage.share_of(self.gemm_rate)}
            for stage in self.stages
        ]
        return asdict(self) | {
            "stages": stages,
            "milliseconds_per_step": self.milliseconds_per_step,
            "checkpoint_share": self.checkpoint_share,
        }


def run_bench(config: Config) -> Report:
    """Measure a configuration, together with the machine."""
    return run_benches([config])[0]


def run_benches(configs: list[Config]) -> list[Report]:
    """Measure configurations and the machine in turns, and keep the best time of each stage.

    On a shared machine, a slow minute would otherwise affect only one of them.
    """
    benches = [Bench(config) for config in configs]
    rates = [0.0] * len(configs)
    measured: list[list[list[Stage]]] = [[] for _ in configs]
    for _ in range(ROUNDS):
        for place, bench in enumerate(benches):
            rate = gemm_rate(bench.config.low.batch_size, max(bench.config.low.hidden))
            rates[place] = max(rates[place], rate)
            measured[place].append(bench.measure())
    reports = []
    for bench, rate, rounds in zip(benches, rates, measured, strict=True):
        config = bench.config
        stages = [min(same, key=lambda stage: stage.seconds) for same in zip(*rounds, strict=True)]
        total = config.landmarks.coverage + config.landmarks.novelty if config.uses_landmarks else 0
        seconds = bench.checkpoint_seconds()
        reports.append(Report(config.task, config.algo, total, config.high.relabel, rate, stages, seconds))
    return reports


def start_up_seconds(task: str, algo: Algorithm) -> dict[str, float]:
    """Return the seconds from start to a first trained episode, with an empty and with a full cache."""
    code = (
        "from higl.run.process import prepare_process; prepare_process()\n"
        "from higl.run.bench import Bench; from higl.settings.presets import preset\n"
        f"bench = Bench(preset({task!r}, {algo!r})); bench.learner.learn(bench.episode)\n"
    )
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"XDG_CACHE_HOME": folder}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        for name in ("cold", "warm"):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=environment)
            seconds[name] = time.perf_counter() - start
    return seconds


def print_report(report: Report) -> None:
    """Print the stages as a table."""
    landmarks = f", {report.landmarks} landmarks" if report.landmarks else ""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"{report.algo} on {report.task}{landmarks}{', relabelled' if report.relabel else ''}: "
        f"{report.milliseconds_per_step:.2f} ms per step; matrix products {report.gemm_rate / 1e9:.1f} GFLOP/s",
    )
    for name in ("stage", "ms / call", "calls / step", "ms / step", "MFLOP / call", "share of rate"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    for stage in report.stages:
        share = stage.share_of(report.gemm_rate)
        table.add_row(
            f"  {stage.name}" if stage.part_of else stage.name,
            f"{1e3 * stage.seconds:.3f}",
            f"{stage.calls_per_step:.3g}",
            f"{stage.milliseconds_per_step:.3f}",
            f"{stage.flops / 1e6:.1f}" if stage.flops else "",
            f"{share:.0%}" if share else "",
        )
    console = Console()
    console.print(table)
    console.print(
        f"checkpoint with full buffers: {report.checkpoint_seconds:.2f} s, {report.checkpoint_share:.2%} of a run"
    )


def run(
    task: str,
    algos: tuple[Algorithm, ...],
    landmarks: int | None,
    relabel_subgoals: bool,
    json_file: Path | None,
    cold: bool,
) -> None:
    """Measure algorithms on a task in turns; print the tables, and how each compares with the last."""
    configs = []
    for algo in algos:
        config = preset(task, algo)
        if landmarks is not None:
            config = replace(config, landmarks=replace(config.landmarks, coverage=landmarks, novelty=landmarks))
        config = replace(config, high=replace(config.high, relabel=relabel_subgoals))
        configs.append(config)
    reports = run_benches(configs)
    for report in reports:
        print_report(report)
    last = reports[-1]
    for report in reports[:-1]:
        ratio = report.milliseconds_per_step / last.milliseconds_per_step
        print(f"an environment step of {report.algo} costs {ratio:.2f} x that of {last.algo}")
    result: dict[str, Any] = {"reports": [report.as_dict() for report in reports]}
    if cold:
        result["start_up_seconds"] = start_up_seconds(task, algos[0])
        print(
            "start-up to the first trained episode: {cold:.1f} s cold, {warm:.1f} s warm".format(
                **result["start_up_seconds"]
            )
        )
    if json_file is not None:
        json_file.write_text(json.dumps(result, indent=2) + "\n")
